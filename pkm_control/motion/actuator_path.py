# SPDX-License-Identifier: Apache-2.0
"""A move in which all actuators run in proportion: the path of robots with a configuration-dependent motion space.

The platform of a 3-PRS or a Tricept cannot go straight from pose to pose: the limbs add parasitic motions in the
directions that they block. Where the actuators go straight from their positions at one end to those at the other,
the platform stays in its motion space by itself, wherever forward kinematics finds it.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.motion.rounded_path import RADIAN_AS_LENGTH, PathSample
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

_POINTS = 65  # where the path is computed; quintics between them are exact to rounding


class ActuatorPath:
    """The path between two poses (7,), base frame, with the interface of `RoundedPath`, without corners between.

    Raises `ValueError` where the poses are the same, or an actuator position on the way has no pose that continues.
    """

    def __init__(self, kinematics: Kinematics, start: Array, end: Array, mode: int | None = None) -> None:
        way = displacement_between(np.asarray(start, np.float64), np.asarray(end, np.float64))
        self.length = float(np.hypot(np.linalg.norm(way[:3]), RADIAN_AS_LENGTH * np.linalg.norm(way[3:])))
        if self.length <= 0.0:
            raise ValueError("step 0 of the path has no length")
        self.corners = np.array((0.0, self.length))
        there = kinematics.inverse(np.vstack([start, end]), mode=mode)
        ends = there.actuated
        self._q, self._rate = np.array(ends[0]), (ends[1] - ends[0]) / self.length
        self._kinematics = kinematics
        parameters = np.linspace(0.0, self.length, _POINTS)
        poses, joints = self._followed(parameters, np.array(start, dtype=np.float64), there.joints[0])
        at = kinematics.at(poses, joints)
        first = at.platform_twist(np.tile(self._rate, (_POINTS, 1)))
        second = at.platform_acceleration(first, np.zeros(len(self._rate)))
        self._knots = parameters, poses, first, second
        self._curve = PointTrajectory(*self._knots)

    def _followed(self, parameters: Array, pose: Array, seed: Array) -> tuple[Array, Array]:
        """Poses (n, 7) and joints (n, n_joints) at parameters (n,), each the continuation of the one before."""
        poses, joints = [], []
        for s in parameters:
            found = self._kinematics.forward(self._q + s * self._rate, near=pose, seed=seed)
            if not closes(found.status):
                raise ValueError(f"no pose {s / self.length:.0%} of the way: {found.reason(0)}")
            pose, seed = np.asarray(found.pose, dtype=np.float64), found.joints
            poses.append(pose)
            joints.append(found.joints)
        return np.array(poses), np.array(joints)

    def back(self) -> ActuatorPath:
        """The reversed path, by the same actuator positions."""
        parameters, poses, first, second = self._knots
        other = copy.copy(self)
        other._q, other._rate = self._q + self.length * self._rate, -self._rate
        other._knots = parameters, poses[::-1].copy(), -first[::-1], second[::-1].copy()
        other._curve = PointTrajectory(*other._knots)
        return other

    def segment(self, s: Array) -> NDArray[np.int64]:
        """Zeros (n,): the path has one step."""
        return np.zeros(len(s), dtype=np.int64)

    def breaks(self) -> Array:
        """Both ends."""
        return self.corners

    def sample(self, s: Array) -> PathSample:
        """The path at parameters (n,) in [0, `length`]."""
        return PathSample(*self._curve.sample(np.clip(np.atleast_1d(s), 0.0, self.length)))
