# SPDX-License-Identifier: Apache-2.0
"""Loop closure equations in plain NumPy, for loading: to check loops, find home and count degrees of freedom.

Coordinates q (size,) are those of every moving joint that mimics no other, one per degree of freedom
(`joint_geometry.py`). Steps differ from differences of coordinates in the angles of a floating joint only: there a step
is a rotation vector in the joint frame, which has no singular attitude. The solvers for control are in
`pkm_kinematics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pkm_description.joint_geometry import child_frame, frame_along, freedoms, position_at
from pkm_description.mechanism import Array, Coupling, Joint, JointType, Link, Loop, LoopType
from pkm_description.rotations import cross, rotation_from_vector, skew, vector_from_rotation


class ClosureModel:
    """Forward kinematics of the tree, residuals and Jacobian of the loops.

    The characteristic `length` [m] makes positions and angles comparable: residuals and columns of the Jacobian are
    dimensionless (positions and translational coordinates over `length`). `size` is the number of coordinates, `slices`
    gives those of each joint. `joints` are in topological order from the link `base`.
    """

    def __init__(
        self,
        links: Sequence[Link],
        joints: Sequence[Joint],
        loops: Sequence[Loop],
        base: str,
        couplings: Sequence[Coupling] = (),
    ) -> None:
        self.joints = tuple(joints)
        self.loops = tuple(loops)
        self.couplings = tuple(couplings)
        self.links = tuple(links)
        names = [base] + [joint.child for joint in joints]
        self.link_index = {name: i for i, name in enumerate(names)}
        self.free = tuple(j for j in joints if j.type is not JointType.FIXED and j.mimic is None)
        self.slices: dict[str, slice] = {}
        start = 0
        for joint in self.free:
            self.slices[joint.name] = slice(start, start + joint.type.dof)
            start += joint.type.dof
        self.size = start
        self._rank = {joint.child: k for k, joint in enumerate(self.joints)}
        self._steps = {joint.name: _step_directions(joint) for joint in self.joints}
        lengths = [float(np.linalg.norm(j.origin[:3, 3])) for j in self.joints]
        for loop in self.loops:
            lengths += [float(np.linalg.norm(f[:3, 3])) for f in (loop.predecessor_frame, loop.successor_frame)]
        self.length = max((one for one in lengths if one > ROUNDED), default=1.0)
        self.scale = np.ones(self.size)
        for joint in self.free:
            self.scale[self.slices[joint.name]] = [self.length if f.slides else 1.0 for f in freedoms(joint)]

    def value(self, joint: Joint, q: Array) -> Array:
        """Coordinates of a joint, (dof,); a mimic joint follows its leader."""
        if joint.mimic is not None:
            leader = q[self.slices[joint.mimic.joint]]
            return np.asarray(joint.mimic.multiplier * leader + joint.mimic.offset)
        if joint.type is JointType.FIXED:
            return np.zeros(0)
        return np.asarray(q[self.slices[joint.name]])

    def reduced(self, values: Array) -> Array:
        """Coordinates (size,) from those of all moving joints in the order of the tree, without mimic joints."""
        parts, start = [], 0
        for joint in self.joints:
            if joint.name in self.slices:
                parts.append(values[start : start + joint.type.dof])
            start += joint.type.dof
        return np.concatenate(parts) if parts else np.zeros(0)

    def positions(self, q: Array) -> Array:
        """Positions of all moving joints in the order of the tree, mimic joints included, from coordinates (size,)."""
        values = [self.value(joint, q) for joint in self.joints if joint.type is not JointType.FIXED]
        return np.concatenate(values) if values else np.zeros(0)

    def leading_to(self, links: Iterable[str]) -> tuple[Joint, ...]:
        """The joints on the ways from the base to some links, in the order of the tree."""
        ranks: set[int] = set()
        for link in links:
            at = self._rank.get(link)
            while at is not None and at not in ranks:
                ranks.add(at)
                at = self._rank.get(self.joints[at].parent)
        return tuple(self.joints[k] for k in sorted(ranks))

    def forward(self, q: Array, joints: Sequence[Joint] | None = None) -> tuple[Array, Array]:
        """Poses (n_links, 4, 4) in the base frame, by `link_index`, and twists (n_columns, 6) of joint coordinates.

        Twists are at the base's origin, base frame, linear, then angular, for each coordinate, mimic joints included.
        `joints`, a result of `leading_to`, limits the placed joints; links that none of them carries get no pose.
        """
        poses = np.empty((len(self.link_index), 4, 4))
        poses[0] = np.eye(4)
        columns: list[Array] = []
        for joint in self.joints if joints is None else joints:
            frame = poses[self.link_index[joint.parent]] @ joint.origin
            if joint.type is JointType.FIXED:
                poses[self.link_index[joint.child]] = frame
                continue
            poses[self.link_index[joint.child]] = moved = frame @ child_frame(joint, self.value(joint, q))
            R, point = frame[:3, :3], moved[:3, 3]
            # Rotations act at the moved joint origin (it differs from the frame's for planar and floating joints).
            for linear, angular in self._steps[joint.name]:
                omega = R @ angular
                columns.append(np.concatenate((R @ linear - cross(omega, point), omega)))
        return poses, np.array(columns).reshape(-1, 6)

    def twists(self, columns: Array, joints: Sequence[Joint] | None = None) -> Array:
        """Twists (n_links, 6, size) per unit of each coordinate at the base origin; zero for links not placed."""
        result = np.zeros((len(self.link_index), 6, self.size))
        position = 0
        for joint in self.joints if joints is None else joints:
            row = self.link_index[joint.child]
            result[row] = result[self.link_index[joint.parent]]
            for offset in range(joint.type.dof):
                if joint.mimic is not None:
                    result[row][:, self.slices[joint.mimic.joint].start] += joint.mimic.multiplier * columns[position]
                else:
                    result[row][:, self.slices[joint.name].start + offset] += columns[position]
                position += 1
        return result

    def pose_of(self, link: str, q: Array) -> Array:
        """Pose (4, 4) of a link in the base frame."""
        return np.array(self.forward(q, self.leading_to([link]))[0][self.link_index[link]])

    def closure(self, q: Array, loops: Sequence[Loop | Coupling] | None = None) -> tuple[Array, Array]:
        """Dimensionless residuals (m,) of loops (6 - dof each), couplings (1 each), and Jacobian (m, size)."""
        given = (*self.loops, *self.couplings) if loops is None else loops
        counted = [one for one in given if isinstance(one, Loop)]
        joints = self.placed_for(counted)
        poses, columns = self.forward(q, joints)
        twists = self.twists(columns, joints)
        residuals, rows = [], []
        for loop in counted:
            first, second = self.link_index[loop.predecessor], self.link_index[loop.successor]
            residual, row = loop_equations(
                loop,
                poses[first] @ loop.predecessor_frame,
                poses[second] @ loop.successor_frame,
                twists[second] - twists[first],
                self.length,
            )
            residuals.append(residual)
            rows.append(row * self.scale)
        for one in given:
            if isinstance(one, Coupling):
                gap, slopes = one.at(
                    lambda name: float(q[self.slices[name]][0]), lambda name: float(self.scale[self.slices[name]][0])
                )
                row = np.zeros((1, self.size))
                for name, slope in slopes.items():
                    row[0, self.slices[name]] = slope
                residuals.append(np.array([gap]))
                rows.append(row)
        if not rows:
            return np.zeros(0), np.zeros((0, self.size))
        return np.concatenate(residuals), np.vstack(rows)

    def placed_for(self, loops: Sequence[Loop]) -> tuple[Joint, ...]:
        """Joints that move the links of some loops, so that one limb does not place the others."""
        return self.leading_to(link for loop in loops for link in (loop.predecessor, loop.successor))

    def pose_error(self, q: Array, link: str, target: Array) -> tuple[Array, Array]:
        """Dimensionless residual (6,), linear, then angular, of a link at a pose (4, 4), and Jacobian (6, size)."""
        pose = self.pose_of(link, q)
        residual = np.concatenate(
            (
                (pose[:3, 3] - target[:3, 3]) / self.length,
                target[:3, :3] @ vector_from_rotation(target[:3, :3].T @ pose[:3, :3]),
            )
        )
        return residual, self.twist_map(link, q)

    def twist_map(self, link: str, q: Array) -> Array:
        """Twist (6, size) of a link at its origin per unit of each coordinate, dimensionless: linear, then angular."""
        joints = self.leading_to([link])
        poses, columns = self.forward(q, joints)
        twist = self.twists(columns, joints)[self.link_index[link]]
        origin = poses[self.link_index[link]][:3, 3]
        linear = twist[:3] - skew(origin) @ twist[3:]
        return np.vstack((linear / self.length, twist[3:])) * self.scale

    def joint_map(self, names: Sequence[str]) -> Array:
        """Rows (n, size) that select the coordinates of single-coordinate joints."""
        rows = np.zeros((len(names), self.size))
        for row, name in enumerate(names):
            rows[row, self.slices[name]] = 1.0
        return rows


def _step_directions(joint: Joint) -> list[tuple[Array, Array]]:
    """Linear and angular velocity in the joint frame per coordinate of a step."""
    zero = np.zeros(3)
    if joint.type is JointType.FLOATING:
        return [(unit, zero) for unit in np.eye(3)] + [(zero, unit) for unit in np.eye(3)]
    # the turning degree of freedom comes last: what moves before it does not change its axis
    return [(f.axis, zero) if f.slides else (zero, f.axis) for f in freedoms(joint)]


def loop_equations(loop: Loop, first: Array, second: Array, twist: Array, length: float) -> tuple[Array, Array]:
    """Dimensionless residual (m,) of a loop and rows (m, size), m = 6 - dof of the cut joint.

    `first` and `second` (4, 4) are its frames on predecessor and successor in the base frame, `twist` (6, size) the
    successor's relative velocity at the base's origin, `length` the characteristic length [m].
    """
    rotation = first[:3, :3]
    point = second[:3, 3]
    # Velocity of the successor's loop origin as seen from the predecessor, in the predecessor's loop frame.
    linear = rotation.T @ (twist[:3] - skew(point) @ twist[3:]) / length
    gap = rotation.T @ (point - first[:3, 3]) / length
    kind = loop.type
    if kind is LoopType.SPHERICAL:
        return gap, linear
    angular = rotation.T @ twist[3:]
    relative = rotation.T @ second[:3, :3]
    axis, image = loop.axis, relative @ loop.axis2
    across = frame_along(axis).T[:2]
    if kind is LoopType.UNIVERSAL:
        return np.append(gap, axis @ image), np.vstack((linear, cross(image, axis) @ angular))
    held = {LoopType.REVOLUTE: np.eye(3), LoopType.CYLINDRICAL: across, LoopType.PLANAR: axis[None]}.get(kind)
    if held is not None:
        tilt, tilt_rows = _alignment(axis, image, across, angular)
        return np.concatenate((held @ gap, tilt)), np.vstack((held @ linear, tilt_rows))
    turn = vector_from_rotation(relative)
    if kind is LoopType.PRISMATIC:
        return np.concatenate((across @ gap, turn)), np.vstack((across @ linear, angular))
    return np.concatenate((gap, turn)), np.vstack((linear, angular))


def _alignment(axis: Array, image: Array, across: Array, angular: Array) -> tuple[Array, Array]:
    """Angle between two directions that should coincide, as two components across `axis`, and its rate."""
    sine_vector = cross(axis, image)
    sine = float(np.linalg.norm(sine_vector))
    angle = float(np.arctan2(sine, axis @ image))
    if sine > 1e-9:
        return across @ sine_vector * (angle / sine), across @ angular
    # Antiparallel directions are as open as can be, and any direction leads out of it.
    return (across @ sine_vector if angle < 1.0 else np.array([np.pi, 0.0])), across @ angular


def advance(model: ClosureModel, q: Array, step: Array) -> Array:
    """Coordinates after a dimensionless step (size,), rotation vectors in the angles of floating joints."""
    moved = q + step * model.scale
    for joint in model.free:
        if joint.type is JointType.FLOATING:
            block = model.slices[joint.name]
            frame = child_frame(joint, moved[block])
            turn = rotation_from_vector(step[block][3:])
            frame[:3, :3] = turn @ child_frame(joint, q[block])[:3, :3]
            moved[block] = position_at(joint, frame)
    return moved


ROUNDED = 1e-12  # m: a shorter length is 0, as in a wrist all of whose axes meet
# Singular values below this part of the largest count as zero. Closed configurations are exact to 1e-12; a generic
# one, 0.05 away from home, is at least about 1e-4 away from a singularity at home.
RANK = 1e-7


def null_space(matrix: Array) -> Array:
    """Orthonormal basis (n, k) of the null space of a matrix (m, n) with entries of order one."""
    if matrix.shape[0] == 0:
        return np.eye(matrix.shape[1])
    _, values, rows = np.linalg.svd(matrix)
    held = int((values > RANK * max(1.0, float(values.max(initial=0.0)))).sum())
    return np.asarray(rows[held:].T)


def rank(matrix: Array) -> int:
    """Rank of a matrix (m, n) with entries of order one."""
    if matrix.size == 0:
        return 0
    return int((np.linalg.svd(matrix, compute_uv=False) > RANK).sum())


def independent(columns: Array, least: float) -> list[int]:
    """Columns of a matrix (m, n) of which more than `least` is no combination of earlier ones: Gram-Schmidt, twice.

    Of matrices (places, m, n): those of which that is so in every one.
    """
    stack = columns if columns.ndim == 3 else columns[None]
    bases, found = [np.empty((stack.shape[1], 0)) for _ in stack], []
    for k in range(stack.shape[2]):
        rests = list(stack[:, :, k])
        for _ in range(2):
            rests = [rest - basis @ (basis.T @ rest) for basis, rest in zip(bases, rests, strict=True)]
        lengths = [float(np.linalg.norm(rest)) for rest in rests]
        if min(lengths) > least:
            added = zip(bases, rests, lengths, strict=True)
            bases = [np.column_stack([basis, rest / length]) for basis, rest, length in added]
            found.append(k)
    return found
