# SPDX-License-Identifier: Apache-2.0
"""Rotations and homogeneous transforms in the conventions of URDF. Right-handed frames, angles in rad."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array


def skew(vector: Array) -> Array:
    """Matrix (3, 3) of the cross product: `skew(a) @ b == cross(a, b)`."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_about(axis: Array, angle: float) -> Array:
    """Rotation matrix (3, 3) about the unit vector `axis` (3,) by `angle` [rad] (Rodrigues' formula)."""
    k = skew(axis)
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * (k @ k)


def rotation_from_vector(vector: Array) -> Array:
    """Rotation matrix (3, 3) of a rotation vector (3,) [rad]: the exponential map of SO(3)."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3) + skew(vector)
    return rotation_about(vector / angle, angle)


def vector_from_rotation(rotation: Array) -> Array:
    """Rotation vector (3,) [rad] of a rotation matrix (3, 3): the logarithm of SO(3), of length at most pi."""
    # By way of the unit quaternion: 4 q q^T has its largest, hence best conditioned, diagonal entry in some row.
    r = rotation
    trace = float(np.trace(r))
    outer = np.empty((4, 4))
    outer[0] = [1.0 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
    outer[1:, 0] = outer[0, 1:]
    outer[1:, 1:] = r + r.T + (1.0 - trace) * np.eye(3)
    row = outer[int(np.argmax(np.diag(outer)))]
    quaternion = row / np.linalg.norm(row)
    if quaternion[0] < 0.0:
        quaternion = -quaternion
    length = float(np.linalg.norm(quaternion[1:]))
    if length < 1e-12:
        return np.asarray(2.0 * quaternion[1:])
    return np.asarray(quaternion[1:] * (2.0 * np.arctan2(length, quaternion[0]) / length))


def rotation_from_rpy(rpy: Array) -> Array:
    """Rotation matrix (3, 3) of URDF's roll, pitch, yaw [rad]: Rz(yaw) Ry(pitch) Rx(roll)."""
    x, y, z = np.eye(3)
    return rotation_about(z, rpy[2]) @ rotation_about(y, rpy[1]) @ rotation_about(x, rpy[0])


def transform(xyz: Array, rotation: Array) -> Array:
    """Homogeneous transform (4, 4) from a translation (3,) [m] and a rotation (3, 3)."""
    result = np.eye(4)
    result[:3, :3] = rotation
    result[:3, 3] = xyz
    return result


def inverse_transform(pose: Array) -> Array:
    """Inverse (4, 4) of a homogeneous transform (4, 4)."""
    return transform(-pose[:3, :3].T @ pose[:3, 3], pose[:3, :3].T)


def perpendicular_pair(direction: Array) -> tuple[Array, Array]:
    """Two unit vectors (3,) that form a right-handed frame with the unit vector `direction` as the third axis.

    For the z axis they are the x and y axes, so that a planar joint about z moves along x and y.
    """
    reference = np.array([1.0, 0.0, 0.0]) if abs(direction[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    first = reference - direction * float(direction @ reference)
    first /= np.linalg.norm(first)
    return first, np.cross(direction, first)
