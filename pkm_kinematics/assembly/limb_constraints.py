# SPDX-License-Identifier: Apache-2.0
"""Limbs with locked actuators as constraints on a platform with any degrees of freedom: spheres, planes, directions.

A limb without inner loops is a chain of axes from base to platform, whose passive joints decide: a universal and a
spherical joint keep two points at a distance, a hinge and a spherical joint keep a point on a circle, that is on a
sphere and in a plane, and so on (see the table in `chain_constraints`). Six such constraints or more are what
`geometry/rigid_body.py` solves for all poses. A robot with any limb that imposes something else is not recognised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array
from pkm_description.rotations import inverse_transform, rotation_about, transform, transform_from_pose
from pkm_kinematics.assembly.geometry.rigid_body import Constraint, ConstraintKind, gradients
from pkm_kinematics.assembly.geometry.rigid_body import poses as rigid_body_poses
from pkm_kinematics.assembly.method import MethodByRows
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.solve.engine import Engine

CLOSE = 1e-9  # distance over the robot's size, or sine of an angle, that counts as zero
RANK = 1e-6  # relative singular value that counts as zero
ENOUGH = 6  # constraints, for all degrees of freedom of a rigid body


class Constraints(MethodByRows):
    """A platform held by six constraints or more, those of passive joints among them."""

    name = "constraints"

    @cached_property
    def recognised(self) -> bool:
        """Whether the constraints of every limb are known, and there are enough."""
        e = self.engine
        found = self._known(e.home_joints[e.actuated_column])
        return found is not None and len(found) >= ENOUGH

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        kinds, base, platform, values = (np.array(column) for column in zip(*self.constraints(q), strict=True))
        found = rigid_body_poses(kinds, base, platform, values)
        return poses_from(found, found.solutions)

    def rows(self, q: Array, poses: Array) -> Array:
        """See `MethodByRows.rows`."""
        constraints = self.constraints(q)
        return np.array([gradients(constraints, pose) for pose in poses])

    def constraints(self, q: Array) -> list[Constraint]:
        """All constraints with the actuated joints at q (n_actuated,)."""
        return self._known(q) or []

    def _known(self, q: Array) -> list[Constraint] | None:
        """As `constraints`; None where a limb's are not known."""
        e, found = self.engine, list[Constraint]()
        home, offsets = transform_from_pose(e.home), q - e.home_joints[e.actuated_column]
        for chain in self._chains:
            imposed = None if chain is None else chain_constraints(lock(chain, offsets, home), e.size)
            if imposed is None:
                return None
            found += imposed
        return found

    @cached_property
    def _chains(self) -> list[list[Axis] | None]:
        return [limb_chain(self.engine, *limb) for limb in self.engine.tables.limbs]


def chain_constraints(chain: PassiveChain, size: float) -> list[Constraint] | None:
    """What a chain of passive axes imposes on the platform of a robot of `size` [m]; None where that is not known.

    | base side | platform side | constraints |
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
    if _rank(chain.axes) == 6:
        return []
    to_platform = inverse_transform(chain.platform)
    for mirrored in (False, True):
        axes = chain.axes[::-1] if mirrored else chain.axes
        found, ball = None, _meeting(axes[-3:], size) if len(axes) >= 3 else None
        if ball is not None:
            found = _held_point(axes[:-3], ball, size)
        elif len(axes) == 3 and axes[-1].slides:
            found = _held_line(axes, size)
        if found is not None:
            return [_placed(kind, a, b, mirrored, to_platform) for kind, a, b in found]
    return None


Raw = tuple[ConstraintKind, Array, Array]  # as a constraint, both vectors in the base frame, values to be measured


def _held_point(rest: list[Axis], ball: Array, size: float) -> list[Raw] | None:
    """Constraints on a point of the far body that a chain of axes carries; None where they are not known."""
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
    """Constraints of a universal joint, whose centre stays on a line of the far body, and a slide; else None."""
    centre = _meeting(chain[:2], size)
    if centre is None:
        return None
    across = frame_along(chain[2].direction).T
    return [
        (ConstraintKind.MOVING_PLANE, centre, across[0]),
        (ConstraintKind.MOVING_PLANE, centre, across[1]),
        (ConstraintKind.DIRECTION, chain[0].direction, chain[1].direction),
    ]


def _placed(kind: ConstraintKind, near: Array, far: Array, mirrored: bool, to_platform: Array) -> Constraint:
    """A constraint with each vector in its own frame, its value measured; `mirrored`: near and far are exchanged."""
    R, p = to_platform[:3, :3], to_platform[:3, 3]
    if kind == ConstraintKind.SPHERE:
        base, platform = (far, near) if mirrored else (near, far)
        return Constraint(kind, base, R @ platform + p, float(np.linalg.norm(near - far)))
    if kind == ConstraintKind.DIRECTION:
        base, platform = (far, near) if mirrored else (near, far)
        return Constraint(kind, base, R @ platform, float(near @ far))
    if kind == ConstraintKind.PLANE and not mirrored:
        return Constraint(kind, near, R @ far + p, float(near @ far))
    if kind == ConstraintKind.PLANE:  # a platform plane through a base point
        normal = R @ near
        return Constraint(ConstraintKind.MOVING_PLANE, far, normal, float(normal @ (R @ far + p)))
    if not mirrored:
        normal = R @ far
        return Constraint(kind, near, normal, float(normal @ (R @ near + p)))
    return Constraint(ConstraintKind.PLANE, far, R @ near + p, float(far @ near))


def _meeting(axes: list[Axis], size: float) -> Array | None:
    """Common point of turning axes, no two neighbours of them parallel; None where they do not meet in one."""
    if any(a.slides for a in axes):
        return None
    if any(np.linalg.norm(np.cross(a.direction, b.direction)) < CLOSE for a, b in pairwise(axes)):
        return None
    across = [np.eye(3) - np.outer(a.direction, a.direction) for a in axes]
    matrix, right = np.vstack(across), np.concatenate([m @ a.point for m, a in zip(across, axes, strict=True)])
    point = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(point) if np.linalg.norm(matrix @ point - right) < CLOSE * size else None


def _rank(axes: list[Axis]) -> int:
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


@dataclass(frozen=True, eq=False)
class Axis:
    """One degree of freedom of a joint at home, base frame: a turn about a line, or a slide along it."""

    slides: bool
    point: Array
    direction: Array
    actuator: int = -1  # index of the actuator that moves it
    sign: float = 1.0  # of the joint's positive motion, seen from base to platform

    def moved(self, displacement: Array) -> Axis:
        """The axis after a rigid displacement (4, 4)."""
        R, p = displacement[:3, :3], displacement[:3, 3]
        return replace(self, point=R @ self.point + p, direction=R @ self.direction)

    def motion(self, amount: float) -> Array:
        """Rigid displacement (4, 4) by an amount of the joint's motion [rad or m]."""
        if self.slides:
            return transform(self.sign * amount * self.direction, np.eye(3))
        R = rotation_about(self.direction, self.sign * amount)
        return transform(self.point - R @ self.point, R)


@dataclass(frozen=True, eq=False)
class PassiveChain:
    """What is left of a limb with its actuators locked: axes, base first, and the platform's pose (4, 4) on it."""

    axes: list[Axis]
    platform: Array


def limb_chain(engine: Engine, first: int, stop: int) -> list[Axis] | None:
    """Axes at home, base first, of the limb of some blocks; None where it has inner loops or geared joints."""
    tables, blocks = engine.tables, engine.tables.blocks[first:stop]
    bodies = range(blocks["start"][0], blocks["start"][-1] + blocks["count"][-1])
    geared = {column for gear in engine.gears for column in gear[:2]}
    if blocks["closure_count"].sum() != 1 or geared & set(engine.body_column[bodies].tolist()):
        return None
    closure = tables.closures[blocks["closure_start"][-1]]
    ways = []
    for end in ("predecessor", "successor"):
        way = [int(closure[end])]
        while way[-1] > PLATFORM:
            way.append(int(tables.bodies["parent"][way[-1]]))
        ways.append(way)
    backward = ways[0][-1] == PLATFORM
    near, far = reversed(ways) if backward else ways
    if (near[-1], far[-1]) != (BASE, PLATFORM) or len(near) + len(far) != len(bodies) + 2:
        return None
    state = engine.placed(engine.home, engine.home_joints).state

    def axis(i: int, sign: float) -> Axis:
        body, me = tables.bodies[i], state[i]
        return Axis(body["prismatic"] == 1, me["p"].copy(), me["R"][:, 2].copy(), int(body["actuator"]), sign)

    cut = _closure_axes(closure, state)
    chain = [axis(i, 1.0) for i in reversed(near[:-1])]
    return [*chain, *(reversed(cut) if backward else cut), *(axis(i, -1.0) for i in far[:-1])]


def _closure_axes(closure: Any, state: Any) -> list[Axis]:
    """Degrees of freedom of a cut joint, predecessor first."""
    first, second = state[closure["predecessor"]], state[closure["successor"]]
    point = first["p"] + first["R"] @ closure["predecessor_point"]
    x, y, z = (first["R"] @ closure["predecessor_rotation"]).T
    turn = Axis(False, point, z)
    return {
        records.FIXED: [],
        records.SPHERICAL: [Axis(False, point, unit) for unit in np.eye(3)],
        records.UNIVERSAL: [turn, Axis(False, point, (second["R"] @ closure["successor_rotation"])[:, 2])],
        records.REVOLUTE: [turn],
        records.PRISMATIC: [Axis(True, point, z)],
        records.CYLINDRICAL: [Axis(True, point, z), turn],
        records.PLANAR: [Axis(True, point, x), Axis(True, point, y), turn],
    }[int(closure["kind"])]


def lock(chain: list[Axis], offsets: Array, home: Array) -> PassiveChain:
    """A chain with its actuators `offsets` (n_actuated,) [rad or m] away from home, the platform at `home` (4, 4)."""
    passive, displacement = [], np.eye(4)
    for axis in chain:
        placed = axis.moved(displacement)
        if axis.actuator >= 0:
            displacement = placed.motion(float(offsets[axis.actuator])) @ displacement
        else:
            passive.append(placed)
    return PassiveChain(passive, displacement @ home)
