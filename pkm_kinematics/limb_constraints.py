# SPDX-License-Identifier: Apache-2.0
"""What limbs with locked actuators demand of the platform, as spheres, planes and directions, found from the graph.

A limb without inner loops is a chain of joints from base to platform. With its actuators locked, the passive joints
that remain decide: a universal and a spherical joint keep two points at a distance, a hinge and a spherical joint
keep a point on a circle, that is on a sphere and in a plane, and so on (see the table in `_demands`). Six such
demands or more are what `assembly.rigid_body` solves for all poses. A robot with any limb that demands something else
is not recognised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from pkm_description.closure import ClosureModel
from pkm_description.mechanism import Array, Joint, JointType, Limb, Loop, LoopType, Mechanism
from pkm_description.transforms import inverse_transform, perpendicular_pair, rotation_about, transform
from pkm_kinematics.assembly.study import ConstraintKind

CLOSE = 1e-9  # distance over the robot's size, or sine of an angle, that counts as zero
RANK = 1e-6  # relative singular value that counts as zero

Demand = tuple[ConstraintKind, Array, Array, float]  # kind, base vector, platform vector, value; see `study`


@dataclass(frozen=True, eq=False)
class Axis:
    """One freedom of a joint at home, base frame: a turn about a line, or a slide along it."""

    slides: bool
    point: Array
    direction: Array
    actuator: int = -1  # index of the actuator that moves it
    sign: float = 1.0  # of the joint's positive motion, seen from base to platform

    def moved(self, displacement: Array) -> Axis:
        """The axis carried along by a rigid displacement (4, 4)."""
        R, p = displacement[:3, :3], displacement[:3, 3]
        return Axis(self.slides, R @ self.point + p, R @ self.direction, self.actuator, self.sign)

    def motion(self, amount: float) -> Array:
        """Rigid displacement (4, 4) by an amount of the joint's motion [rad or m]."""
        if self.slides:
            return transform(self.sign * amount * self.direction, np.eye(3))
        R = rotation_about(self.direction, self.sign * amount)
        return transform(self.point - R @ self.point, R)


class LockedLimbs:
    """The limbs of a mechanism as chains of axes at home, ready for any positions of the actuators."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
        poses, _ = model.forward(model.reduced(mechanism.home_joints))
        self._poses = {name: poses[k] for name, k in model.link_index.items()}
        places = np.array([pose[:3, 3] for pose in self._poses.values()])
        self._size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=1))) or 1.0
        self._home = self._poses[mechanism.platform_link]
        at_home = model.reduced(mechanism.home_joints)
        joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self._actuated_home = np.array([model.value(joint, at_home)[0] for joint in joints])
        self._chains = [self._chain(limb) for limb in mechanism.limbs]

    @cached_property
    def recognised(self) -> bool:
        """Whether every limb's demands are known, and there are six or more."""
        demands = self.demands(self._actuated_home)
        return demands is not None and len(demands) >= 6

    def demands(self, q: Array) -> list[Demand] | None:
        """All demands with the actuated joints at q (n_actuated,); None where a limb is not known."""
        offsets = q - self._actuated_home
        found: list[Demand] = []
        for chain in self._chains:
            if chain is None:
                return None
            passive, displacement = [], np.eye(4)
            for axis in chain:
                placed = axis.moved(displacement)
                if axis.actuator >= 0:
                    displacement = placed.motion(float(offsets[axis.actuator])) @ displacement
                else:
                    passive.append(placed)
            demands = _demands(passive, displacement @ self._home, self._size)
            if demands is None:
                return None
            found += demands
        return found

    def _chain(self, limb: Limb) -> list[Axis] | None:
        """Axes of a limb from base to platform; None where it has inner loops or geared joints."""
        mechanism = self._mechanism
        edges: dict[str, list[tuple[str, Joint | Loop, bool]]] = {}
        elements: list[tuple[str, str, Joint | Loop]] = []
        for name in limb.joints:
            joint = mechanism.joint_named[name]
            if joint.mimic is not None:
                return None
            elements.append((joint.parent, joint.child, joint))
        elements += [
            (mechanism.loop_named[n].predecessor, mechanism.loop_named[n].successor, mechanism.loop_named[n])
            for n in limb.loops
        ]
        if len(elements) != len(limb.links) + 1:
            return None
        for first, second, element in elements:
            edges.setdefault(first, []).append((second, element, False))
            edges.setdefault(second, []).append((first, element, True))
        ends = set(edges) - set(limb.links)
        base = {mechanism.base_link} | self._fixed_to(mechanism.base_link)
        platform = {mechanism.platform_link} | self._fixed_to(mechanism.platform_link)
        starts, goals = ends & base, ends & platform
        if len(starts) != 1 or len(goals) != 1:
            return None
        at, goal, axes, used = starts.pop(), goals.pop(), list[Axis](), list[Joint | Loop]()
        while at != goal:
            onward = [edge for edge in edges[at] if edge[1] not in used]
            if len(onward) != 1:
                return None
            at, element, backward = onward[0]
            used.append(element)
            freedoms = self._tree_axes(element) if isinstance(element, Joint) else self._loop_axes(element)
            if freedoms is None:
                return None
            if backward:
                freedoms = [Axis(a.slides, a.point, a.direction, a.actuator, -a.sign) for a in reversed(freedoms)]
            axes += freedoms
        return axes if len(used) == len(elements) else None

    def _fixed_to(self, link: str) -> set[str]:
        """Links that fixed joints hold to one."""
        found, size = {link}, 0
        while size < len(found):
            size = len(found)
            for joint in self._mechanism.joints:
                if joint.type is JointType.FIXED and {joint.parent, joint.child} & found:
                    found |= {joint.parent, joint.child}
        return found

    def _tree_axes(self, joint: Joint) -> list[Axis] | None:
        frame = self._poses[joint.parent] @ joint.origin
        direction, point = frame[:3, :3] @ joint.axis, frame[:3, 3]
        names = self._mechanism.actuated_joints
        actuator = names.index(joint.name) if joint.name in names else -1
        if joint.type is JointType.FIXED:
            return []
        if joint.type is JointType.PRISMATIC:
            return [Axis(True, point, direction, actuator)]
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            return [Axis(False, point, direction, actuator)]
        return None

    def _loop_axes(self, loop: Loop) -> list[Axis] | None:
        first = self._poses[loop.predecessor] @ loop.predecessor_frame
        second = self._poses[loop.successor] @ loop.successor_frame
        point, axis, axis2 = first[:3, 3], first[:3, :3] @ loop.axis, second[:3, :3] @ loop.axis2
        turns = {
            LoopType.FIXED: [],
            LoopType.SPHERICAL: [Axis(False, point, unit) for unit in np.eye(3)],
            LoopType.UNIVERSAL: [Axis(False, point, axis), Axis(False, point, axis2)],
            LoopType.REVOLUTE: [Axis(False, point, axis)],
            LoopType.PRISMATIC: [Axis(True, point, axis)],
            LoopType.CYLINDRICAL: [Axis(True, point, axis), Axis(False, point, axis)],
        }
        if loop.type is LoopType.PLANAR:
            across = perpendicular_pair(axis)
            return [Axis(True, point, across[0]), Axis(True, point, across[1]), Axis(False, point, axis)]
        return turns.get(loop.type)


def _demands(axes: list[Axis], platform: Array, size: float) -> list[Demand] | None:
    """Demands of one chain of passive axes, base first, that carries the platform at a pose (4, 4); None if not known.

    | base side | platform side | demands |
    |---|---|---|
    | turns through a point A | turns through a point B, three on one side | B on a sphere about A |
    | one turn | spherical about B | B on a circle: sphere and plane |
    | one slide | spherical about B | B on a line: two planes |
    | two parallel turns, two slides, a turn and a slide across it | spherical about B | B in a plane |
    | nothing | spherical about B | B fixed: three planes |
    | six independent axes | | none |
    | universal about A | one slide | A on a platform line: two platform planes, and the angle of the universal's axes |

    The last five but the free chain hold with base and platform exchanged, too.
    """
    if _rank(axes) == 6:
        return []
    to_platform = inverse_transform(platform)
    for mirrored in (False, True):
        chain = axes[::-1] if mirrored else axes
        if len(chain) >= 3 and _meeting(chain[-3:], size) is not None:
            ball = _meeting(chain[-3:], size)
            assert ball is not None
            found = _held_point(chain[:-3], ball, size)
        elif len(chain) == 3 and chain[-1].slides and _meeting(chain[:2], size) is not None:
            found = _held_line(chain, size)
        else:
            continue
        if found is None:
            continue
        return [_placed(kind, a, b, mirrored, to_platform) for kind, a, b in found]
    return None


Raw = tuple[ConstraintKind, Array, Array]  # as a demand, both vectors in the base frame, values to be measured


def _held_point(rest: list[Axis], ball: Array, size: float) -> list[Raw] | None:
    """Demands on a point of the far body that a chain of axes carries."""
    centre = _meeting(rest, size) if len(rest) >= 2 else None
    if centre is not None:
        return [(ConstraintKind.SPHERE, centre, ball)]
    if len(rest) == 1 and not rest[0].slides:
        axis = rest[0]
        foot = axis.point + axis.direction * float(axis.direction @ (ball - axis.point))
        return [(ConstraintKind.SPHERE, foot, ball), (ConstraintKind.PLANE, axis.direction, ball)]
    moves = np.array([a.direction if a.slides else np.cross(a.direction, (ball - a.point) / size) for a in rest])
    moves = moves.reshape(-1, 3)
    fixed_directions = all(a.slides for a in rest)
    turns = [a.direction for a in rest if not a.slides]
    parallel = all(np.linalg.norm(np.cross(a, b)) < CLOSE for a, b in pairwise(turns))
    across = all(abs(float(a.direction @ turns[0])) < CLOSE for a in rest if a.slides) if turns else True
    _, sizes, right = np.linalg.svd(moves) if len(moves) else (None, np.zeros(0), np.eye(3))
    rank = int(np.sum(sizes > RANK))
    if rank == 3:
        return []
    if fixed_directions:
        return [(ConstraintKind.PLANE, normal, ball) for normal in right[rank:]]
    if len(rest) >= 2 and parallel and across:
        return [(ConstraintKind.PLANE, turns[0], ball)]
    return None


def _held_line(chain: list[Axis], size: float) -> list[Raw] | None:
    """Demands of a universal joint and a slide beyond it: the joint's centre stays on a line of the far body."""
    centre = _meeting(chain[:2], size)
    assert centre is not None
    across = perpendicular_pair(chain[2].direction)
    return [
        (ConstraintKind.MOVING_PLANE, centre, across[0]),
        (ConstraintKind.MOVING_PLANE, centre, across[1]),
        (ConstraintKind.DIRECTION, chain[0].direction, chain[1].direction),
    ]


def _placed(kind: ConstraintKind, near: Array, far: Array, mirrored: bool, to_platform: Array) -> Demand:
    """A demand with each vector in its own frame and its value measured; `mirrored`: near and far are exchanged."""
    R, p = to_platform[:3, :3], to_platform[:3, 3]
    if kind == ConstraintKind.SPHERE:
        base, platform = (far, near) if mirrored else (near, far)
        return kind, base, R @ platform + p, float(np.linalg.norm(near - far))
    if kind == ConstraintKind.DIRECTION:
        base, platform = (far, near) if mirrored else (near, far)
        return kind, base, R @ platform, float(near @ far)
    if kind == ConstraintKind.PLANE and not mirrored:
        return kind, near, R @ far + p, float(near @ far)
    if kind == ConstraintKind.PLANE:  # a platform plane through a base point
        normal = R @ near
        return ConstraintKind.MOVING_PLANE, far, normal, float(normal @ (R @ far + p))
    if not mirrored:
        normal = R @ far
        return kind, near, normal, float(normal @ (R @ near + p))
    return ConstraintKind.PLANE, far, R @ near + p, float(far @ near)


def _meeting(axes: list[Axis], size: float) -> Array | None:
    """Point in which turning axes, no two neighbours of them parallel, all meet; None where they do not."""
    if any(a.slides for a in axes):
        return None
    if any(np.linalg.norm(np.cross(a.direction, b.direction)) < CLOSE for a, b in pairwise(axes)):
        return None
    across = [np.eye(3) - np.outer(a.direction, a.direction) for a in axes]
    matrix, right = np.vstack(across), np.concatenate([m @ a.point for m, a in zip(across, axes, strict=True)])
    point = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(point) if np.linalg.norm(matrix @ point - right) < CLOSE * size else None


def _rank(axes: list[Axis]) -> int:
    """Number of independent freedoms of a chain."""
    if not axes:
        return 0
    centre = np.mean([a.point for a in axes], axis=0)
    size = max(float(np.max([np.linalg.norm(a.point - centre) for a in axes])), 1e-12)
    twists = [
        np.append(a.direction, np.zeros(3))
        if a.slides
        else np.append(np.cross((a.point - centre) / size, a.direction), a.direction)
        for a in axes
    ]
    sizes = np.linalg.svd(np.array(twists), compute_uv=False)
    return int(np.sum(sizes > RANK * sizes[0]))
