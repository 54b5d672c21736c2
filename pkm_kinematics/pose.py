# SPDX-License-Identifier: Apache-2.0
"""Poses as (7,) arrays: x y z qx qy qz qw. Order of the quaternion: x, y, z, w."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array


def pose_of(transform: Array) -> Array:
    """Pose (7,) of a homogeneous transform (4, 4); the quaternion has w >= 0."""
    return np.concatenate(
        [transform[:3, 3], Rotation.from_matrix(transform[:3, :3]).as_quat(canonical=True)], dtype=np.float64
    )


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
