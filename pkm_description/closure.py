# SPDX-License-Identifier: Apache-2.0
"""Loop closure equations of a description in plain NumPy: used once, when a description is loaded.

It serves to check that the loops close, to find the home configuration and to count freedoms. The solvers that run
in a loop live in `pkm_kinematics`.

Coordinates: one per moving joint that mimics no other; three for a planar joint (along the two directions of
`perpendicular_pair(axis)`, then about the axis), six for a floating one (translation in the parent's joint frame,
rotation vector).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pkm_description.mechanism import Array, Joint, JointType, Link, Loop, LoopType
from pkm_description.transforms import (
    perpendicular_pair,
    rotation_about,
    rotation_from_vector,
    transform,
    vector_from_rotation,
)


class ClosureModel:
    """Forward kinematics of the tree, residuals and Jacobian of the loops.

    `length` [m] is the characteristic length that makes positions and angles comparable: residuals and the columns of
    the Jacobian are dimensionless (positions over `length`; translational coordinates in units of `length`).
    """

    def __init__(self, links: Sequence[Link], joints: Sequence[Joint], loops: Sequence[Loop], base: str) -> None:
        self.joints = tuple(joints)
        self.loops = tuple(loops)
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
        self.length = self._characteristic_length()
        self.scale = np.ones(self.size)
        for joint in self.free:
            block = self.slices[joint.name]
            if joint.type is JointType.PRISMATIC:
                self.scale[block] = self.length
            elif joint.type is JointType.PLANAR:
                self.scale[block.start : block.start + 2] = self.length
            elif joint.type is JointType.FLOATING:
                self.scale[block.start : block.start + 3] = self.length

    def _characteristic_length(self) -> float:
        lengths = [float(np.linalg.norm(j.origin[:3, 3])) for j in self.joints]
        for loop in self.loops:
            lengths += [float(np.linalg.norm(f[:3, 3])) for f in (loop.predecessor_frame, loop.successor_frame)]
        return max(lengths, default=0.0) or 1.0

    def value(self, joint: Joint, q: Array) -> Array:
        """Coordinates of a joint, (dof,); a mimic joint follows its leader."""
        if joint.mimic is not None:
            leader = q[self.slices[joint.mimic.joint]]
            return np.asarray(joint.mimic.multiplier * leader + joint.mimic.offset)
        if joint.type is JointType.FIXED:
            return np.zeros(0)
        return np.asarray(q[self.slices[joint.name]])

    def reduced(self, values: Array) -> Array:
        """Coordinates (size,) from those of all moving joints in the order of the tree: mimic joints are left out."""
        parts, start = [], 0
        for joint in self.joints:
            if joint.name in self.slices:
                parts.append(values[start : start + joint.type.dof])
            start += joint.type.dof
        return np.concatenate(parts) if parts else np.zeros(0)

    def forward(self, q: Array) -> tuple[Array, Array]:
        """Pose of every link (n_links, 4, 4) and twist per joint column in base coordinates.

        The second array (n_joint_columns, 6) has one row per coordinate of each joint, mimic joints included, as
        (linear velocity of the point at the base origin, angular velocity).
        """
        poses = np.empty((len(self.link_index), 4, 4))
        poses[0] = np.eye(4)
        columns: list[Array] = []
        for joint in self.joints:
            frame = poses[self.link_index[joint.parent]] @ joint.origin
            motion, local = _joint_motion(joint, self.value(joint, q))
            poses[self.link_index[joint.child]] = frame @ motion
            for linear, angular in local:
                omega = frame[:3, :3] @ angular
                # Rotations act at the moved joint origin (it differs from the frame's for planar and floating joints).
                point = frame[:3, :3] @ motion[:3, 3] + frame[:3, 3]
                columns.append(np.concatenate((frame[:3, :3] @ linear - np.cross(omega, point), omega)))
        return poses, np.array(columns).reshape(-1, 6)

    def twists(self, columns: Array) -> Array:
        """Twists (n_links, 6, size) of all links per unit of each coordinate, in the base frame at its origin."""
        result = np.zeros((len(self.link_index), 6, self.size))
        position = 0
        for joint in self.joints:
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
        return np.array(self.forward(q)[0][self.link_index[link]])

    def closure(self, q: Array, loops: Sequence[Loop] | None = None) -> tuple[Array, Array]:
        """Residuals (m,) and their Jacobian (m, size) of the given loops (all by default), dimensionless."""
        poses, columns = self.forward(q)
        twists = self.twists(columns)
        residuals, rows = [], []
        for loop in self.loops if loops is None else loops:
            first, second = self.link_index[loop.predecessor], self.link_index[loop.successor]
            residual, row = loop_equations(
                loop,
                poses[first] @ loop.predecessor_frame,
                poses[second] @ loop.successor_frame,
                twists[second] - twists[first],
                self.length,
            )
            residuals.append(residual)
            rows.append(row)
        if not rows:
            return np.zeros(0), np.zeros((0, self.size))
        return np.concatenate(residuals), np.vstack(rows) * self.scale

    def pose_error(self, q: Array, link: str, target: Array) -> tuple[Array, Array]:
        """Residual (6,) of a link's pose against `target` (4, 4), and its Jacobian (6, size), dimensionless."""
        poses, columns = self.forward(q)
        twist = self.twists(columns)[self.link_index[link]]
        pose = poses[self.link_index[link]]
        linear = twist[:3] - np.cross(pose[:3, 3], twist[3:], axisa=0, axisb=0, axisc=0)
        residual = np.concatenate(
            (
                (pose[:3, 3] - target[:3, 3]) / self.length,
                target[:3, :3] @ vector_from_rotation(target[:3, :3].T @ pose[:3, :3]),
            )
        )
        return residual, np.vstack((linear / self.length, twist[3:])) * self.scale


def _joint_motion(joint: Joint, value: Array) -> tuple[Array, list[tuple[Array, Array]]]:
    """Transform (4, 4) of a joint, and per coordinate its (linear, angular) velocity in the joint frame."""
    zero = np.zeros(3)
    axis = joint.axis
    if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
        return transform(zero, rotation_about(axis, float(value[0]))), [(zero, axis)]
    if joint.type is JointType.PRISMATIC:
        return transform(axis * value[0], np.eye(3)), [(axis, zero)]
    if joint.type is JointType.PLANAR:
        first, second = perpendicular_pair(axis)
        moved = transform(first * value[0] + second * value[1], rotation_about(axis, float(value[2])))
        return moved, [(first, zero), (second, zero), (zero, axis)]
    if joint.type is JointType.FLOATING:
        moved = transform(value[:3], rotation_from_vector(value[3:]))
        # Columns of the rotation are rates of a local rotation vector: Newton steps are composed, not added.
        local = [(unit, zero) for unit in np.eye(3)] + [(zero, unit) for unit in np.eye(3)]
        return moved, local
    return np.eye(4), []


def loop_equations(loop: Loop, first: Array, second: Array, twist: Array, length: float) -> tuple[Array, Array]:
    """Equations of one loop: residual (m,) and rows (m, size), with m = 6 - freedoms of the cut joint.

    `first` and `second` (4, 4) are the loop frames of predecessor and successor in the base frame, `twist` (6, size)
    is the velocity of the successor relative to the predecessor at the base origin.
    """
    rotation = first[:3, :3]
    point = second[:3, 3]
    # Velocity of the successor's loop origin as seen from the predecessor, in the predecessor's loop frame.
    linear = rotation.T @ (twist[:3] - np.cross(point, twist[3:], axisa=0, axisb=0, axisc=0)) / length
    angular = rotation.T @ twist[3:]
    gap = rotation.T @ (point - first[:3, 3]) / length
    relative = rotation.T @ second[:3, :3]
    axis, image = loop.axis, relative @ loop.axis2
    across = np.array(perpendicular_pair(axis))
    kind = loop.type
    if kind is LoopType.SPHERICAL:
        return gap, linear
    if kind is LoopType.UNIVERSAL:
        return np.append(gap, axis @ image), np.vstack((linear, np.cross(image, axis) @ angular))
    if kind is LoopType.REVOLUTE:
        tilt, tilt_rows = _alignment(axis, image, across, angular)
        return np.concatenate((gap, tilt)), np.vstack((linear, tilt_rows))
    if kind is LoopType.CYLINDRICAL:
        tilt, tilt_rows = _alignment(axis, image, across, angular)
        return np.concatenate((across @ gap, tilt)), np.vstack((across @ linear, tilt_rows))
    if kind is LoopType.PLANAR:
        tilt, tilt_rows = _alignment(axis, image, across, angular)
        return np.append(axis @ gap, tilt), np.vstack((axis @ linear, tilt_rows))
    turn = vector_from_rotation(relative)
    if kind is LoopType.PRISMATIC:
        return np.concatenate((across @ gap, turn)), np.vstack((across @ linear, angular))
    return np.concatenate((gap, turn)), np.vstack((linear, angular))


def _alignment(axis: Array, image: Array, across: Array, angular: Array) -> tuple[Array, Array]:
    """Angle between two directions that shall coincide, as two components across `axis`, and its rate."""
    sine_vector = np.cross(axis, image)
    sine = float(np.linalg.norm(sine_vector))
    angle = float(np.arctan2(sine, axis @ image))
    if sine > 1e-9:
        return across @ sine_vector * (angle / sine), across @ angular
    # Parallel is closed; antiparallel is as open as can be, and any direction leads out of it.
    return (np.zeros(2) if angle < 1.0 else np.array([np.pi, 0.0])), across @ angular


def advance(model: ClosureModel, q: Array, step: Array) -> Array:
    """Coordinates after a dimensionless `step` (size,); rotations of floating joints are composed."""
    moved = q + step * model.scale
    for joint in model.free:
        if joint.type is JointType.FLOATING:
            block = slice(model.slices[joint.name].start + 3, model.slices[joint.name].stop)
            turned = rotation_from_vector(step[block]) @ rotation_from_vector(q[block])
            moved[block] = vector_from_rotation(turned)
    return moved
