# SPDX-License-Identifier: Apache-2.0
"""Rotations and poses; a quaternion is x y z w, of unit length, a pose (7,) is x y z qx qy qz qw.

A rotation (3, 3) maps coordinates of the turned frame to the fixed one. A rotation vector (3,) [rad] is along the axis
and as long as the angle; rpy (3,) [rad] is URDF's roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll). A transform is
homogeneous (4, 4). Frames are right-handed, lengths in m. `pkm_kinematics/kernels/compiled_rotations.py` has what
compiled code and a control period need.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pkm_description.mechanism import Array

EXACTLY = 1e-12  # a quaternion this near to unit length has it: kernels divide by the rest
UNIT = 1e-3  # a quaternion this near to unit length is meant to have it: single precision, and four figures by hand


# the one place of this decision
def with_unit_quaternions(poses: Array) -> Array:
    """Poses (n, 7), or longer, with nearly unit quaternions normalised; others stay for solvers to refuse."""
    if len(poses) == 1:  # most calls
        x, y, z, w = poses[0, 3:7].tolist()
        if abs(x * x + y * y + z * z + w * w - 1.0) < EXACTLY:
            return poses
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", poses[:, 3:7], poses[:, 3:7]))
        off = np.abs(lengths - 1.0)
        nearly = (off < UNIT) & (off > EXACTLY)
    if not nearly.any():
        return poses
    poses = poses.copy()
    poses[nearly, 3:7] /= lengths[nearly, None]
    return poses


def skew(vector: Array) -> Array:
    """Matrices (..., 3, 3) of the cross products with vectors (..., 3): `skew(a) @ b == cross(a, b)`; also complex."""
    x, y, z = np.asarray(vector).T
    zero = 0.0 * x
    return np.array([[zero, z, -y], [-z, zero, x], [y, -x, zero]]).T


def cross(u: Array, v: Array) -> Array:
    """Cross product (3,) of two vectors (3,), in a tenth of the time that `numpy.cross` takes for one."""
    a, b, c = u.tolist()
    d, e, f = v.tolist()
    return np.array([b * f - c * e, c * d - a * f, a * e - b * d])


def rotation_about(axis: Array, angle: float) -> Array:
    """Rotation (3, 3) about the unit vector `axis` (3,) by `angle` [rad] (Rodrigues' formula)."""
    x, y, z = axis.tolist()
    s, t = float(np.sin(angle)), 2.0 * float(np.sin(0.5 * angle)) ** 2  # t = 1 - cos(angle), better rounded
    return np.array(
        [
            [1.0 - t * (y * y + z * z), t * x * y - s * z, t * x * z + s * y],
            [t * x * y + s * z, 1.0 - t * (x * x + z * z), t * y * z - s * x],
            [t * x * z - s * y, t * y * z + s * x, 1.0 - t * (x * x + y * y)],
        ]
    )


def rotation_from_vector(vector: Array) -> Array:
    """Rotations (..., 3, 3) of rotation vectors (..., 3): the exponential map of SO(3)."""
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    K, small = skew(vector), angle < 1e-8
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 1.0, np.sin(safe) / safe)
    b = np.where(small, 0.5, 2.0 * np.sin(0.5 * safe) ** 2 / safe**2)
    return np.asarray(np.eye(3) + a * K + b * (K @ K))


def vector_from_rotation(rotation: Array) -> Array:
    """Rotation vector (3,) of a rotation (3, 3): the logarithm of SO(3), of length at most pi."""
    quaternion = quaternion_from_rotation(rotation)
    sine = float(np.linalg.norm(quaternion[:3]))
    if sine < 1e-12:
        return np.asarray(2.0 * quaternion[:3])
    return np.asarray(quaternion[:3] * (2.0 * np.arctan2(sine, quaternion[3]) / sine))


def rotation_from_rpy(rpy: Array) -> Array:
    """Rotation (3, 3) of roll, pitch, yaw (3,)."""
    x, y, z = np.eye(3)
    return rotation_about(z, rpy[2]) @ rotation_about(y, rpy[1]) @ rotation_about(x, rpy[0])


def rpy_from_rotation(rotation: Array) -> Array:
    """Roll, pitch, yaw (3,) [rad] of a rotation (3, 3), pitch within a right angle of zero.

    At a pitch of a right angle only the sum or difference of roll and yaw is determined: there yaw is zero.
    """
    upright = np.hypot(rotation[1, 0], rotation[0, 0]) < 1e-15
    yaw = 0.0 if upright else float(np.arctan2(rotation[1, 0], rotation[0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = float(np.arctan2(-rotation[2, 0], c * rotation[0, 0] + s * rotation[1, 0]))
    # what is left when the yaw is taken off turns about the y and x axes alone
    roll = float(np.arctan2(s * rotation[0, 2] - c * rotation[1, 2], c * rotation[1, 1] - s * rotation[0, 1]))
    return np.array([roll, pitch, yaw])


def quaternion_product(first: Array, second: Array) -> Array:
    """Products (..., 4) of quaternions (..., 4), or of pure ones (x, y, z, 0): the rotation `second`, then `first`."""
    x, y, z, w = np.asarray(first).T
    a, b, c, d = np.asarray(second).T
    return np.array(
        [
            w * a + x * d + y * c - z * b,
            w * b + y * d + z * a - x * c,
            w * c + z * d + x * b - y * a,
            w * d - x * a - y * b - z * c,
        ]
    ).T


def quaternion_inverse(quaternion: Array) -> Array:
    """Inverses (..., 4) of unit quaternions (..., 4)."""
    return np.asarray(quaternion * (-1.0, -1.0, -1.0, 1.0))


def rotation_from_quaternion(quaternion: Array) -> Array:
    """Rotation (3, 3) of a quaternion (4,) of any length but zero."""
    x, y, z, w = (quaternion / np.linalg.norm(quaternion)).tolist()
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def quaternion_from_rotation(rotation: Array) -> Array:
    """Unit quaternion x y z w (4,), w >= 0, of a rotation (3, 3), by square roots alone.

    Of the four ways to divide, the one with the largest divisor (Shepperd, "Quaternion from rotation matrix", 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    squares = (1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i, 1.0 + a + e + i)  # 4 x^2, 4 y^2, 4 z^2, 4 w^2
    largest = max(range(4), key=squares.__getitem__)
    if largest == 0:
        q = np.array([squares[0], d + b, c + g, h - f])
    elif largest == 1:
        q = np.array([d + b, squares[1], h + f, c - g])
    elif largest == 2:
        q = np.array([c + g, h + f, squares[2], d - b])
    else:
        q = np.array([h - f, c - g, d - b, squares[3]])
    if q[3] < 0.0:
        q = -q
    return np.asarray(q / sqrt(q @ q))


def transform(position: Array, rotation: Array) -> Array:
    """Transforms (..., 4, 4) from positions (..., 3) and rotations (..., 3, 3)."""
    result = np.zeros((*rotation.shape[:-2], 4, 4))
    result[..., :3, :3] = rotation
    result[..., :3, 3] = position
    result[..., 3, 3] = 1.0
    return result


def inverse_transform(frame: Array) -> Array:
    """Inverses (..., 4, 4) of transforms (..., 4, 4)."""
    R = np.swapaxes(frame[..., :3, :3], -1, -2)
    return transform(-(R @ frame[..., :3, 3:])[..., 0], R)


def pose_from_transform(frame: Array) -> Array:
    """Pose (7,) of a transform (4, 4); the quaternion has w >= 0."""
    return np.concatenate([frame[:3, 3], quaternion_from_rotation(frame[:3, :3])], dtype=np.float64)


def transform_from_pose(pose: Array) -> Array:
    """Transform (4, 4) of a pose (7,)."""
    return transform(pose[:3], rotation_from_quaternion(pose[3:]))


def pose_distance(first: Array, second: Array, length: float) -> Array:
    """Distances (...,) [m] of poses (..., 7); angles count as arcs of radius `length` [m]."""
    apart, opposite = first - second, first[..., 3:] + second[..., 3:]
    apart, opposite = apart * apart, opposite * opposite
    across = np.sqrt(np.minimum(apart[..., 3:].sum(axis=-1), opposite.sum(axis=-1)))
    angle = 4.0 * np.arcsin(np.minimum(0.5 * across, 1.0))
    return np.sqrt(apart[..., :3].sum(axis=-1) + (length * angle) ** 2)


def transform_from_wxyz(pos: Array, wxyz: Array) -> Array:
    """Transform (4, 4) from a position (3,) and a quaternion w x y z, as MuJoCo orders it, of any length."""
    return transform(np.asarray(pos, dtype=np.float64), rotation_from_quaternion(np.roll(wxyz, -1)))


def wxyz_from_rotation(rotation: Array) -> list[float]:
    """Unit quaternion w x y z, as MuJoCo orders it, of a rotation (3, 3)."""
    x, y, z, w = quaternion_from_rotation(rotation).tolist()
    return [w, x, y, z]
