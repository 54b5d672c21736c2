# SPDX-License-Identifier: Apache-2.0
"""Poses as (7,) arrays: x y z qx qy qz qw. Order of the quaternion: x, y, z, w."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array


def pose_of(transform: Array) -> Array:
    """Pose (7,) of a homogeneous transform (4, 4); the quaternion has w >= 0."""
    return np.concatenate([transform[:3, 3], quaternion_of(transform[:3, :3])], dtype=np.float64)


def quaternion_of(R: Array) -> Array:
    """Unit quaternion (4,) x y z w of a rotation matrix (3, 3), w >= 0, by square roots alone.

    Of the four ways to divide, the one with the largest divisor (Shepperd, "Quaternion from rotation matrix", 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
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


def transform_of(pose: Array) -> Array:
    """Homogeneous transform (4, 4) of a pose (7,)."""
    transform = np.eye(4)
    transform[:3, :3] = Rotation.from_quat(pose[3:]).as_matrix()
    transform[:3, 3] = pose[:3]
    return transform


def distance(first: Array, second: Array, length: float) -> float:
    """Distance [m] of two poses (7,), their angle [rad] counted as an arc of radius `length` [m]."""
    across = min(np.linalg.norm(first[3:] - second[3:]), np.linalg.norm(first[3:] + second[3:]))
    angle = 4.0 * np.arcsin(min(0.5 * float(across), 1.0))
    return float(np.hypot(np.linalg.norm(first[:3] - second[:3]), length * angle))
