# SPDX-License-Identifier: Apache-2.0
"""A smooth curve in SE(3) that passes through platform poses at given times, from rest to rest."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

from pkm_description.mechanism import Array
from pkm_description.rotations import quaternion_inverse, quaternion_product


class TimedCurve:
    """The spline of degree five through poses (n, 7), base frame, at increasing times (n,) [s], at rest at both ends.

    Four times continuously differentiable, with velocity and acceleration zero at the ends. The attitude is the spline
    of the quaternions (signs chosen for the shorter way) normalised: turning all poses, in either frame, is a rotation
    of R^4 and turns the curve with them, so nothing depends on a choice of axes.
    """

    def __init__(self, times: Array, poses: Array) -> None:
        times = np.asarray(times, dtype=np.float64)
        values = np.array(poses, dtype=np.float64)
        flips = np.where(np.sum(values[1:, 3:] * values[:-1, 3:], axis=1) < 0.0, -1.0, 1.0)
        values[1:, 3:] *= np.cumprod(flips)[:, None]
        self._origin = times[0]
        self.duration = float(times[-1] - times[0])
        rest = [(1, np.zeros(7)), (2, np.zeros(7))]
        self._spline = make_interp_spline(times - self._origin, values, k=5, bc_type=(rest, rest))
        self._rate = self._spline.derivative(1)
        self._acceleration = self._spline.derivative(2)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6), base frame, at times (n,) [s] from the curve's start."""
        value, rate, acceleration = self._spline(times), self._rate(times), self._acceleration(times)
        pose = value.copy()
        norm = np.linalg.norm(value[:, 3:], axis=1, keepdims=True)
        q = value[:, 3:] / norm
        pose[:, 3:] = q
        inverse = quaternion_inverse(q)
        # with u = |u| q: the part of u' across q is |u| q', and omega = 2 q' q*; the part along q drops out of q' q*
        twist, second = np.empty((len(value), 6)), np.empty((len(value), 6))
        twist[:, :3], second[:, :3] = rate[:, :3], acceleration[:, :3]
        along = np.sum(q * rate[:, 3:], axis=1, keepdims=True) / norm
        twist[:, 3:] = 2.0 * quaternion_product(rate[:, 3:], inverse)[:, :3] / norm
        accelerating = quaternion_product(acceleration[:, 3:], inverse)[:, :3]
        second[:, 3:] = 2.0 * accelerating / norm - 2.0 * along * twist[:, 3:]
        return pose, twist, second
