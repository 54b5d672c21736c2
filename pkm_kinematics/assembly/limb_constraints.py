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

import numpy as np

from pkm_description.graph import rigid_with
from pkm_description.joint_geometry import frame_along
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Joint, JointType, Limb, Loop, LoopType, Mechanism
from pkm_description.rotations import inverse_transform, rotation_about, transform
from pkm_kinematics.assembly.geometry.rigid_body import Constraint, ConstraintKind, gradients
from pkm_kinematics.assembly.geometry.rigid_body import poses as rigid_body_poses
from pkm_kinematics.assembly.method import MethodByRows
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from

CLOSE = 1e-9  # distance over the robot's size, or sine of an angle, that counts as zero
RANK = 1e-6  # relative singular value that counts as zero
ENOUGH = 6  # constraints, for all degrees of freedom of a rigid body


class Constraints(MethodByRows):
    """A platform held by six constraints or more, those of passive joints among them."""

    name = "constraints"

    @cached_property
    def recognised(self) -> bool:
        """Whether the constraints of every limb are known, and there are enough."""
        found = self._known(self._chains.actuated_home)
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
        locked = self._chains.locked(q)
        if locked is None:
            return None
        found: list[Constraint] = []
        for chain in locked:
            imposed = chain_constraints(chain, self._chains.size)
            if imposed is None:
                return None
            found += imposed
        return found

    @cached_property
    def _chains(self) -> LimbChains:
        return LimbChains(self.engine.mechanism)


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


class LimbChains:
    """The limbs of a mechanism as chains of axes at home, actuators at `actuated_home` there; `size` is in m."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
        at_home = model.reduced(mechanism.home_joints)
        poses, _ = model.forward(at_home)
        self._poses = {name: poses[k] for name, k in model.link_index.items()}
        places = np.array([pose[:3, 3] for pose in self._poses.values()])
        self.size = float(np.max(np.linalg.norm(places - places.mean(axis=0), axis=1))) or 1.0
        self._home = self._poses[mechanism.platform_link]
        joints = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self.actuated_home: Array = np.array([model.value(joint, at_home)[0] for joint in joints])
        self._chains = [self._chain(limb) for limb in mechanism.limbs]

    def locked(self, q: Array) -> list[PassiveChain] | None:
        """The chains with the actuated joints at q (n_actuated,); None where a limb is no chain."""
        offsets = q - self.actuated_home
        found = []
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
            found.append(PassiveChain(passive, displacement @ self._home))
        return found

    def _chain(self, limb: Limb) -> list[Axis] | None:
        """Axes of a limb from base to platform; None where it has inner loops or geared joints."""
        mechanism = self._mechanism
        joints = [mechanism.joint_named[name] for name in limb.joints]
        loops = [mechanism.loop_named[name] for name in limb.loops]
        if any(joint.mimic is not None for joint in joints) or len(joints) + len(loops) != len(limb.links) + 1:
            return None
        elements: list[tuple[str, str, Joint | Loop]] = [(joint.parent, joint.child, joint) for joint in joints]
        elements += [(loop.predecessor, loop.successor, loop) for loop in loops]
        edges: dict[str, list[tuple[str, Joint | Loop, bool]]] = {}
        for first, second, element in elements:
            edges.setdefault(first, []).append((second, element, False))
            edges.setdefault(second, []).append((first, element, True))
        ends = set(edges) - set(limb.links)
        starts = ends & rigid_with(mechanism.joints, mechanism.base_link)
        goals = ends & rigid_with(mechanism.joints, mechanism.platform_link)
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
            axes += [replace(a, sign=-a.sign) for a in reversed(freedoms)] if backward else freedoms
        return axes if len(used) == len(elements) else None

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
            across = frame_along(axis).T
            return [Axis(True, point, across[0]), Axis(True, point, across[1]), Axis(False, point, axis)]
        return turns.get(loop.type)
