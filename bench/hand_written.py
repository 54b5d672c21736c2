# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of two robots written for them alone: what the general kernels are held against."""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np

from pkm_runtime.kernels.compiled import compiled

# cos and sin of the three limbs' directions
DIRECTIONS = np.array([[cos(2 * pi * k / 3), sin(2 * pi * k / 3)] for k in range(3)])


@compiled
def delta(base, platform, arm, rod, directions, pose, q):
    """Arm angles q (3,) of a Delta with its elbows outside; positive angles lower the arms. Returns 0, or 1."""
    for k in range(3):
        c = directions[k, 0]
        s = directions[k, 1]
        x = c * pose[0] + s * pose[1] + platform - base
        y = c * pose[1] - s * pose[0]
        z = pose[2]
        rr = x * x + z * z
        d = (rr + y * y + arm * arm - rod * rod) / (2.0 * arm)
        if d * d > rr:
            return 1
        h = sqrt(rr - d * d)
        q[k] = atan2(-z * d - x * h, x * d - z * h)
    return 0


@compiled
def six_ups(base_points, platform_points, offsets, pose, q):
    """Leg extensions q (6,) of a Gough-Stewart platform: lengths less `offsets`. Returns 0."""
    x, y, z, w = pose[3], pose[4], pose[5], pose[6]
    for k in range(6):
        px, py, pz = platform_points[k, 0], platform_points[k, 1], platform_points[k, 2]
        tx, ty, tz = 2.0 * (y * pz - z * py), 2.0 * (z * px - x * pz), 2.0 * (x * py - y * px)
        dx = pose[0] + px + w * tx + y * tz - z * ty - base_points[k, 0]
        dy = pose[1] + py + w * ty + z * tx - x * tz - base_points[k, 1]
        dz = pose[2] + pz + w * tz + x * ty - y * tx - base_points[k, 2]
        q[k] = sqrt(dx * dx + dy * dy + dz * dz) - offsets[k]
    return 0
