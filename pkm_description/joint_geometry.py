# SPDX-License-Identifier: Apache-2.0
"""The geometry of a tree joint: its degrees of freedom by name and axis, and the child link's frame at a position.

A joint is a chain of slides and turns about axes, and its position is one number [m or rad] for each:

    revolute, continuous, prismatic   <joint>                                           the joint's own axis
    planar                            <joint>/x, /y, /angle                             `frame_along(axis)`
    floating                          <joint>/x, /y, /z, then /yaw, /pitch, /roll       Rz(yaw) Ry(pitch) Rx(roll)

Slides come first, so that they are along axes of the joint frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array, Described, Joint, JointType, Mechanism
from pkm_description.rotations import (
    cross,
    inverse_transform,
    rotation_about,
    rpy_from_rotation,
    skew,
    transform,
    vector_from_rotation,
)

HERE = np.eye(4)


@dataclass(frozen=True, eq=False)
class Freedom:
    """One degree of freedom: slide along, or turn about, the unit `axis` (3,) in the frame moved by those before it."""

    name: str
    slides: bool
    axis: Array


def frame_along(axis: Array) -> Array:
    """Rotation (3, 3) whose z axis is a non-zero direction (3,); the identity for the z axis.

    Its x axis is the old one projected onto the plane across `axis`; the old y axis instead, where `axis` is within 26
    degrees of the x axis.
    """
    z = axis / np.linalg.norm(axis)
    near = np.eye(3)[1 if abs(z[0]) > 0.9 else 0]
    x = near - z * float(z @ near)
    x /= np.linalg.norm(x)
    return np.column_stack((x, cross(z, x), z))


def transform_along(axis: Array) -> Array:
    """Transform (4, 4) that turns by `frame_along`."""
    return transform(np.zeros(3), frame_along(axis))


def freedoms(joint: Joint) -> tuple[Freedom, ...]:
    """Degrees of freedom of a joint in the order of its position; none for a fixed joint."""
    if joint.type is JointType.FIXED:
        return ()
    if joint.type is JointType.PLANAR:
        x, y, normal = frame_along(joint.axis).T
        return (
            Freedom(f"{joint.name}/x", True, x),
            Freedom(f"{joint.name}/y", True, y),
            Freedom(f"{joint.name}/angle", False, normal),
        )
    if joint.type is JointType.FLOATING:
        return floating_freedoms(f"{joint.name}/")
    return (Freedom(joint.name, joint.type is JointType.PRISMATIC, joint.axis),)


def floating_freedoms(prefix: str) -> tuple[Freedom, ...]:
    """The degrees of freedom of a free body: x, y, z, yaw, pitch, roll, named with a prefix."""
    x, y, z = np.eye(3)
    slides = tuple(Freedom(f"{prefix}{name}", True, axis) for name, axis in (("x", x), ("y", y), ("z", z)))
    turns = tuple(Freedom(f"{prefix}{name}", False, axis) for name, axis in (("yaw", z), ("pitch", y), ("roll", x)))
    return slides + turns


def child_frame(joint: Joint, position: Array) -> Array:
    """Frame (4, 4) of the child link in the joint frame at a position (dof,) [m, rad]."""
    frame = HERE.copy()  # sooner than `np.eye`
    for freedom, value in zip(freedoms(joint), position, strict=True):
        if freedom.slides:
            frame[:3, 3] += frame[:3, :3] @ freedom.axis * value
        else:
            frame[:3, :3] = frame[:3, :3] @ rotation_about(freedom.axis, float(value))
    return frame


def value_of(joint: Joint, freedom: str, values: Mapping[str, Array]) -> Array:
    """Positions (...) along a degree of freedom; a geared joint without some has those of its leader."""
    if joint.mimic is None or freedom in values:
        return np.asarray(values[freedom])
    return np.asarray(joint.mimic.multiplier * values[joint.mimic.joint] + joint.mimic.offset)


def link_frames(mechanism: Mechanism, platform: Array, values: Mapping[str, Array]) -> dict[str, Array]:
    """Frames (..., 4, 4) of the links in the base frame, from the platform's and positions (...) of limbs' joints.

    Of the links on the platform's branch there are those fixed to the base or to the platform.
    """
    chain = {*mechanism.virtual_chain}
    found = {mechanism.base_link: np.broadcast_to(np.eye(4), platform.shape), mechanism.platform_link: platform}
    for joint in mechanism.joints:
        fixed = joint.type is JointType.FIXED
        if joint.child in found or joint.parent not in found or (joint.name in chain and not fixed):
            continue
        at = np.array(found[joint.parent] @ joint.origin)
        for freedom in freedoms(joint):
            value = value_of(joint, freedom.name, values)
            if freedom.slides:
                at[..., :3, 3] += value[..., None] * (at[..., :3, :3] @ freedom.axis)
            else:
                K, angle = skew(freedom.axis), value[..., None, None]
                turn = np.eye(3) + np.sin(angle) * K + 2.0 * np.sin(0.5 * angle) ** 2 * (K @ K)
                at[..., :3, :3] = at[..., :3, :3] @ turn
        found[joint.child] = at
    for joint in reversed(mechanism.joints):  # what is fixed before the platform on its branch
        if joint.type is JointType.FIXED and joint.child in found and joint.parent not in found:
            found[joint.parent] = found[joint.child] @ inverse_transform(joint.origin)
    return found


def position_at(joint: Joint, frame: Array) -> Array:
    """Position (dof,) for the child's frame (4, 4), the inverse of `child_frame`, angles within pi of zero."""
    if joint.type is JointType.FLOATING:
        return np.concatenate((frame[:3, 3], rpy_from_rotation(frame[:3, :3])[::-1]))
    # where the joint cannot reach the frame, each degree of freedom takes its own part of it
    turned = vector_from_rotation(frame[:3, :3])
    return np.array([f.axis @ (frame[:3, 3] if f.slides else turned) for f in freedoms(joint)])


def home_positions(mechanism: Described) -> dict[str, float]:
    """Home position [m, rad] of every degree of freedom by name, in the order of `Mechanism.home_joints`."""
    names = [freedom.name for joint in mechanism.joints for freedom in freedoms(joint)]
    return dict(zip(names, map(float, mechanism.home_joints), strict=True))
