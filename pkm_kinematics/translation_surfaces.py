# SPDX-License-Identifier: Apache-2.0
"""The surfaces on which limbs with locked actuators keep a platform that only translates, read from the graph.

Base and platform never turn, and a joint that turns about an axis shares that direction between its two bodies. So
directions that are known spread through the graph: a body with two of them is known not to turn, a body with one, `u`,
turns about u at most. Along any chain of joints from base to platform, the platform's position is a sum of vectors,
each fixed in one body, and of slides. What is fixed in a body that does not turn, or lies along its known direction, is
constant; what remains says where the platform can be:

| vectors that turn | slides in constant directions | the platform's position is on |
|---|---|---|
| none | any number | a point, a line or a plane |
| one, in a body of no known direction | none | a sphere |
| one, in a body that turns about u | none; one; across u | a circle; a cylinder; a plane |
| one, with a slide in its body, the body turning about u | none | a hyperboloid, a cone or a plane |
| two, in bodies that share an axis, one of them turning about u | none | the torus of two hinges |
| all across u, in bodies that turn about u | across u | a plane |

Each is an equation that *every* configuration of the limb satisfies, however its passive joints stand: this is proven
by what is said above, not fitted. Loops inside a limb are used only where they make directions known; a parallelogram
is seen from the hinges at its two ends. Chains of other kinds give no equation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.surfaces import normals
from pkm_kinematics.engine import Engine
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.records import BASE, PLATFORM

CLOSE = 1e-9  # sine of an angle, or length over the robot's size, that counts as zero
HELD = 1e-6  # relative singular value of the equations' gradients at home below which they do not hold the platform
MOST_CHAINS = 64  # looked at per robot


class Surfaces(NamedTuple):
    """Equations in (1, p, p.p) of the platform's origin p: linear (k, 5) and quadratic (r, 5, 5)."""

    linear: Array
    quadrics: Array


@dataclass(frozen=True, eq=False)
class _Joint:
    """A passive joint between two rigid parts: what they share."""

    ends: tuple[int, int]  # parts
    points: tuple[Array, Array]  # that coincide, up to slides, in each part
    axes: tuple[Array, Array] | None = None  # directions that coincide
    turn: Array | None = None  # rotation of the second part's frame in the first's, where it is constant
    slides: tuple[Array, ...] = ()  # directions, in the first part


@dataclass
class _Turning:
    """Parts that keep their orientation to each other, and the directions that are known of them."""

    known: list[tuple[Array, Array]] = field(default_factory=list)  # in the common frame, and in the base frame
    rotation: Array | None = None  # of the common frame, where two directions are known

    def learn(self, mine: Array, world: Array) -> bool:
        """Take note of a direction; True where it is news."""
        if self.rotation is not None or any(np.linalg.norm(np.cross(mine, other)) < CLOSE for other, _ in self.known):
            return False
        self.known.append((mine, world))
        if len(self.known) == 2:
            frames = []
            for k in (0, 1):
                a, b = self.known[0][k], self.known[1][k]
                normal = np.cross(a, b) / np.linalg.norm(np.cross(a, b))
                frames.append(np.column_stack([a, normal, np.cross(a, normal)]))
            self.rotation = frames[1] @ frames[0].T
        return True

    def world(self, mine: Array) -> Array | None:
        """A direction of the common frame in the base frame, None where it is not known."""
        if self.rotation is not None:
            return np.asarray(self.rotation @ mine)
        for own, world in self.known:
            if np.linalg.norm(np.cross(own, mine)) < CLOSE:
                return world * float(own @ mine)
        return None


class TranslationSurfaces:
    """The limbs of a robot whose platform only translates, ready for any positions of the actuators."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        across = np.linalg.svd(engine.task.subspace[:3].T)[2][engine.mobility :]
        self._own = np.column_stack([-across @ engine.home[:3], across, np.zeros(len(across))])  # of its own branch

    @cached_property
    def recognised(self) -> bool:
        """Whether the limbs' equations hold the platform at home."""
        e = self._engine
        if e.task.subspace[3:].any() or not e.constant_space:
            return False
        linear, quadrics = self.at(e.home_joints[e.actuated_column])
        z = np.array([1.0, *e.home[:3], e.home[:3] @ e.home[:3]])
        slopes = normals(linear, quadrics, e.home[:3])
        lengths = np.linalg.norm(slopes, axis=1)
        errors = np.concatenate([linear @ z, np.einsum("kab,a,b->k", quadrics, z, z)])
        if np.any(np.abs(errors) > CLOSE * e.size * lengths):
            return False
        values = np.linalg.svd(slopes / lengths[:, None], compute_uv=False)
        return bool(len(values) == 3 and values[-1] > HELD * values[0])

    def at(self, q: Array) -> Surfaces:
        """Equations with the actuators at q (n_actuated,), those of the platform's own branch first."""
        linear, quadrics = list(self._own), list[Array]()
        for chain in chains(*parts(self._engine, q)):
            for equation in _equations(chain, self._engine.size):
                (linear if equation.ndim == 1 else quadrics).append(equation)
        return Surfaces(np.array(linear).reshape(-1, 5), np.array(quadrics).reshape(-1, 5, 5))


# -- parts and directions ------------------------------------------------------------------------------------------


def parts(
    engine: Engine, q: Array, axis: Array | None = None
) -> tuple[list[_Joint], int, list[int], list[Array], list[_Turning]]:
    """The graph with its actuators locked: passive joints, the platform's part, and how the parts turn.

    The platform does not turn, or about `axis` only. Parts are numbered by the first body in each. The last three: to
    which `_Turning` each body's part belongs, its rotation in the frame of that, and those themselves.
    """
    bodies, closures = engine.tables.bodies, engine.tables.closures
    part = list(range(len(bodies)))
    R, p = [np.eye(3) for _ in bodies], [np.zeros(3) for _ in bodies]  # of each body in its part's first
    joints = []
    for i in range(2, len(bodies)):
        row, parent = bodies[i], int(bodies[i]["parent"])
        turn, at = R[parent] @ row["rotation"], R[parent] @ row["translation"] + p[parent]
        if row["actuator"] >= 0:
            value = float(q[row["actuator"]])
            part[i] = part[parent]
            R[i] = turn if row["prismatic"] else turn @ Rotation.from_rotvec([0.0, 0.0, value]).as_matrix()
            p[i] = at + turn[:, 2] * value if row["prismatic"] else at
        elif row["prismatic"]:
            joints.append(_Joint((part[parent], i), (at, np.zeros(3)), None, turn, (turn[:, 2],)))
        else:
            joints.append(_Joint((part[parent], i), (at, np.zeros(3)), (turn[:, 2], np.eye(3)[2])))
    for closure in closures:
        i, j = int(closure["predecessor"]), int(closure["successor"])
        ends = part[i], part[j]
        frames = R[i] @ closure["predecessor_rotation"], R[j] @ closure["successor_rotation"]
        points = R[i] @ closure["predecessor_point"] + p[i], R[j] @ closure["successor_point"] + p[j]
        axes, slides = (frames[0][:, 2], frames[1][:, 2]), tuple(frames[0].T)
        kind = int(closure["kind"])
        if kind == records.SPHERICAL:
            joints.append(_Joint(ends, points))
        elif kind == records.UNIVERSAL:  # by its cross, a part of its own with the two axes as x and y
            cross = len(part)
            part.append(cross)
            joints.append(_Joint((ends[0], cross), (points[0], np.zeros(3)), (axes[0], np.eye(3)[0])))
            joints.append(_Joint((cross, ends[1]), (np.zeros(3), points[1]), (np.eye(3)[1], axes[1])))
        elif kind in (records.FIXED, records.PRISMATIC):
            sliding = slides[2:] if kind == records.PRISMATIC else ()
            joints.append(_Joint(ends, points, None, frames[0] @ frames[1].T, sliding))
        else:
            sliding = {records.CYLINDRICAL: slides[2:], records.PLANAR: slides[:2]}.get(kind, ())
            joints.append(_Joint(ends, points, axes, None, sliding))
    turning, rotation = list(range(len(part))), [np.eye(3) for _ in part]
    for joint in joints:  # parts that keep their orientation to each other
        a, b = joint.ends
        if joint.turn is None or turning[a] == turning[b]:
            continue
        change = rotation[a] @ joint.turn @ rotation[b].T
        for k in [k for k in range(len(part)) if turning[k] == turning[b] and k != b] + [b]:
            rotation[k] = change @ rotation[k]
        old = turning[b]
        turning = [turning[a] if t == old else t for t in turning]
    groups = [_Turning() for _ in part]
    groups[turning[BASE]].rotation = rotation[BASE].T
    at_home = Rotation.from_quat(engine.home[3:]).as_matrix()
    if axis is None:
        groups[turning[PLATFORM]].rotation = at_home @ rotation[PLATFORM].T
    else:
        groups[turning[PLATFORM]].learn(rotation[PLATFORM] @ at_home.T @ axis, axis)
    news = True
    while news:
        news = False
        for joint in joints:
            if joint.axes is None:
                continue
            mine = [rotation[end] @ axis for end, axis in zip(joint.ends, joint.axes, strict=True)]
            for one, other in ((0, 1), (1, 0)):
                world = groups[turning[joint.ends[one]]].world(mine[one])
                news |= world is not None and groups[turning[joint.ends[other]]].learn(mine[other], world)
    return joints, part[PLATFORM], turning, rotation, groups


# -- chains --------------------------------------------------------------------------------------------------------


@dataclass
class _Chain:
    """A way from base to platform: p = constant + sum of R vector over what turns + slides."""

    constant: Array
    free: list[Array]  # slides in constant directions
    turning: dict[int, tuple[Array, list[Array]]]  # vector and slides, in the frame of each `_Turning`
    groups: list[_Turning]
    shared: dict[tuple[int, int], tuple[Array, Array]]  # axes that two of them share, in the frame of each


def chains(
    joints: list[_Joint], platform: int, turning: list[int], rotation: list[Array], groups: list[_Turning]
) -> Iterator[_Chain]:
    """Ways from base to platform, MOST_CHAINS of them at most."""
    shared: dict[tuple[int, int], tuple[Array, Array]] = {}
    beside: dict[int, list[tuple[_Joint, int]]] = {}
    for joint in joints:
        for end in (0, 1):
            beside.setdefault(joint.ends[end], []).append((joint, end))
        if joint.axes is not None:
            a, b = (rotation[end] @ axis for end, axis in zip(joint.ends, joint.axes, strict=True))
            first, second = turning[joint.ends[0]], turning[joint.ends[1]]
            shared[first, second], shared[second, first] = (a, b), (b, a)

    def ways(at: int, way: list[tuple[_Joint, int]], seen: set[int]) -> Iterator[list[tuple[_Joint, int]]]:
        if at == platform:
            yield way
            return
        for joint, end in beside.get(at, []):
            onward = joint.ends[1 - end]
            if onward not in seen:
                yield from ways(onward, [*way, (joint, end)], seen | {onward})

    for _, way in zip(range(MOST_CHAINS), ways(BASE, [], {BASE}), strict=False):
        constant, free = np.zeros(3), list[Array]()
        moving: dict[int, tuple[Array, list[Array]]] = {}
        for part, entry, leave, slides in _legs(way, platform):
            group = turning[part]
            vector = rotation[part] @ (leave - entry)
            mine = [rotation[part] @ slide for slide in slides]
            before = moving.get(group, (np.zeros(3), []))
            moving[group] = before[0] + vector, before[1] + mine
        for group, (vector, slides) in list(moving.items()):
            me = groups[group]
            if me.rotation is not None:
                constant = constant + me.rotation @ vector
            elif me.known:
                own, world = me.known[0]
                constant = constant + world * float(own @ vector)
                vector = vector - own * float(own @ vector)
            constants = [(slide, me.world(slide)) for slide in slides]
            free += [world for _, world in constants if world is not None]
            turns = [slide for slide, world in constants if world is None]
            moving[group] = vector, turns
            if me.rotation is not None:
                del moving[group]
        yield _Chain(constant, free, moving, groups, shared)


def _legs(way: list[tuple[_Joint, int]], platform: int) -> Iterator[tuple[int, Array, Array, list[Array]]]:
    """For each part along a way: where it is entered and left, and the slides of the joints that are fixed in it."""
    entry, part = np.zeros(3), BASE
    slides: list[Array] = []
    for joint, end in way:
        forward = list(joint.slides) if end == 0 else []
        yield part, entry, joint.points[end], slides + forward
        slides = list(joint.slides) if end == 1 else []
        entry, part = joint.points[1 - end], joint.ends[1 - end]
    yield platform, entry, np.zeros(3), slides


def _equations(chain: _Chain, size: float) -> list[Array]:
    """Equations (5,) or (5, 5) in z = (1, p, p.p) that a chain imposes on the platform's origin p."""
    c = chain.constant
    offset = np.column_stack([-c, np.eye(3), np.zeros(3)])  # p - c
    square = np.array([c @ c, *(-2.0 * c), 1.0])  # |p - c|^2
    one = np.eye(5)[0]
    small = CLOSE * size
    moving = {k: (v, slides) for k, (v, slides) in chain.turning.items() if np.linalg.norm(v) > small or slides}
    free = np.array(chain.free).reshape(-1, 3)
    if not moving:
        _, sizes, right = np.linalg.svd(free) if len(free) else (None, np.zeros(0), np.eye(3))
        return [n @ offset for n in right[int(np.sum(sizes > CLOSE)) :]]
    groups = {k: chain.groups[k] for k in moving}
    directions = [group.known[0] for group in groups.values() if group.known]
    u = directions[0][1] if directions else np.zeros(3)
    about_one = len(directions) == len(moving) and all(np.linalg.norm(np.cross(u, w)) < CLOSE for _, w in directions)
    flat = about_one and all(
        abs(own @ slide) < CLOSE
        for (own, _), (_, slides) in zip(directions, moving.values(), strict=True)
        for slide in slides
    )
    height = u @ offset
    if flat and (np.abs(free @ u) < CLOSE).all():
        (vector, slides), *others = moving.values()
        circle = not others and not slides and not len(free)
        return [height, square - float(vector @ vector) * one] if circle else [height]
    if len(moving) == 1:
        ((vector, slides),) = moving.values()
        if not directions:
            return [square - float(vector @ vector) * one] if not slides and not len(free) else []
        if len(free) == 1 and not slides:  # a circle about u that slides along a direction not across u
            along = np.eye(3) - np.outer(free[0], u) / float(u @ free[0])
            rows = along @ offset
            return [rows.T @ rows - float(vector @ vector) * np.outer(one, one)]
        if len(slides) == 1 and not len(free):  # a line, not across u, that turns about u
            own = directions[0][0]
            slope = slides[0] / float(own @ slides[0])  # per height
            across = slope - own
            rest = offset - np.outer(u, height)
            radial = np.outer(vector, one) + np.outer(across, height)
            return [rest.T @ rest - radial.T @ radial]
        return []
    if len(moving) == 2 and not len(free) and not any(slides for _, slides in moving.values()):
        return _two_hinges(chain, moving, offset, square, one)
    return []


def _two_hinges(
    chain: _Chain, moving: dict[int, tuple[Array, list[Array]]], offset: Array, square: Array, one: Array
) -> list[Array]:
    """The end of two bars: one, A, turns about a known direction, the other, B, about an axis fixed in A.

    Seen from A, the end is a + cos b1 + sin b2 with a circle about that axis. Its square and its height along the known
    direction are linear in cosine and sine, so that cos^2 + sin^2 = 1 is a quadric in both.
    """
    keys = list(moving)
    for first, second in (keys, keys[::-1]):
        group, axes = chain.groups[first], chain.shared.get((first, second))
        if not group.known or axes is None:
            continue
        own, world = group.known[0]
        (a, _), (b, _) = moving[first], moving[second]
        along = float(axes[1] @ b)
        a = a + along * axes[0]
        radius = float(np.linalg.norm(b - along * axes[1]))
        x = np.cross(axes[0], np.eye(3)[int(np.argmin(np.abs(axes[0])))])
        x /= np.linalg.norm(x)
        circle = radius * np.array([x, np.cross(axes[0], x)])
        rows = np.array([square - float(a @ a + radius**2) * one, world @ offset - float(own @ a) * one])
        matrix = np.array([2.0 * circle @ a, circle @ own])
        left, sizes, _ = np.linalg.svd(matrix)
        if sizes[1] <= CLOSE * sizes[0]:  # linear in one sum of cosine and sine, or in none
            return list(left.T[int(sizes[0] > 0.0) :] @ rows)
        adjugate = np.array([[matrix[1, 1], -matrix[0, 1]], [-matrix[1, 0], matrix[0, 0]]]) @ rows
        return [adjugate.T @ adjugate - float(np.linalg.det(matrix)) ** 2 * np.outer(one, one)]
    return []
