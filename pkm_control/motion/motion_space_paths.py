# SPDX-License-Identifier: Apache-2.0
"""Paths of platforms that cannot go straight from pose to pose: their motion space depends on the configuration.

The limbs of a 3-PRS or a Tricept add parasitic motions in the directions that they block. Where the actuators go
straight from their positions at one end to those at the other, the platform stays in its motion space by itself,
wherever forward kinematics finds it: `ActuatorPath`.

Rods of unequal lengths let the platform of a Delta as it was built tilt by some milliradians as it travels. Who works
with it goes on to say where it shall be; the attitude that is asked for is taken to the one that the limbs have there:
`TiltingPath`.
"""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.motion.rounded_path import RADIAN_AS_LENGTH, PathBeside, PathSample, RoundedPath
from pkm_control.tool import Tool
from pkm_description.mechanism import Array
from pkm_kinematics import Configuration, Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

_KNOTS = 65  # where the path is computed; quintics between them are exact to rounding


class ActuatorPath:
    """The path between two poses (7,), base frame, with the interface of `RoundedPath`, without corners between. Raises
    `ValueError` where the poses are the same, or an actuator position on the way has no pose that continues.
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
        parameters = np.linspace(0.0, self.length, _KNOTS)
        poses, joints = self._followed(parameters, np.array(start, dtype=np.float64), there.joints[0])
        at = kinematics.at(poses, joints)
        first = at.platform_twist(np.tile(self._rate, (_KNOTS, 1)))
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


_LITTLE = 0.3  # rad, by which the platform turns on a way as long as the robot; those that are drawn to tilt do by 1
_NEAR = 0.1  # rad, between the attitude asked for and the one that follows
_SAME = 1e-12  # of the robot's size
_STEPS = 4  # to a position; the first leaves a thousandth of what attitude and position share
_END = 1e-9  # of a path, before its end, where its slope fades out
_POINTS = 17  # of a stretch of one character; quintics between them are exact to rounding


def tilts_by_itself(kinematics: Kinematics) -> bool:
    """Whether the platform can be at any position near home, and hardly turns on the way, but not as one asks."""
    if kinematics.constant_space:
        return False
    space = np.asarray(kinematics.subspace(kinematics.home))
    if space.shape[-1] < 3 or np.linalg.svd(space[:3], compute_uv=False)[2] < 1e-3:
        return False
    turn = space[3:] @ np.linalg.pinv(space[:3])
    return bool(np.linalg.norm(turn, 2) * kinematics.engine.size < _LITTLE)


def possible_poses(kinematics: Kinematics, poses: Array, tool: Tool | None = None) -> Array:
    """Poses (n, 7) at the same places, of the tool's point where one is given, with the attitudes that a platform which
    tilts by itself has there; as they are where none is near the one asked for, and for all other robots.
    """
    if not tilts_by_itself(kinematics):
        return poses
    wanted = np.asarray(poses, dtype=np.float64)
    found = _followed(kinematics, wanted)[0]
    for _ in range(_STEPS if tool is not None and tool.offset else 0):
        assert tool is not None
        moved = found.copy()
        moved[:, :3] += tool.on_platform(wanted)[:, :3] - tool.on_platform(found)[:, :3]
        found = _followed(kinematics, moved)[0]
    turns = [np.linalg.norm(displacement_between(a, b)[3:]) for a, b in zip(poses, found, strict=True)]
    return np.where(np.array(turns)[:, None] < _NEAR, found, poses)  # NaN is not near


def _followed(kinematics: Kinematics, wanted: Array) -> tuple[Array, Array]:
    """Poses (n, 7) at wanted positions and joints (n, n_joints), NaN where there are none."""
    poses, joints = np.full_like(wanted, np.nan), np.full((len(wanted), len(kinematics.joint_names)), np.nan)
    seed: Array | None = None
    for k, pose in enumerate(wanted):
        there = pose.copy()
        for _ in range(_STEPS):
            found = kinematics.nearest(there, seed)
            if not found.ok:
                break
            off = float(np.linalg.norm(found.pose[:3] - pose[:3]))
            poses[k], joints[k], seed = found.pose, found.joints, np.array(found.joints)
            if off < _SAME * kinematics.engine.size:
                break
            there[3:] = found.pose[3:]
    return poses, joints


class TiltingPath(PathBeside):
    """Straight lines with rounded corners, as `RoundedPath`; ValueError where the platform cannot be on the way."""

    def __init__(self, kinematics: Kinematics, path: RoundedPath) -> None:
        super().__init__(path)
        parts = [np.linspace(a, b, _POINTS)[1:] for a, b in pairwise(path.breaks())]
        parameters = np.concatenate([[0.0], *parts])
        line = path.sample(np.minimum(parameters, (1.0 - _END) * path.length))
        poses, joints = _followed(kinematics, line.pose)
        bad = np.flatnonzero(~np.isfinite(poses).all(axis=1))
        if bad.size:
            raise ValueError(f"the limbs do not reach the pose at {parameters[bad[0]] / path.length:.0%} of the way")
        at = kinematics.at(poses, joints)
        first = _fitted(at, line.first)
        still = at.platform_acceleration(first, np.zeros((len(poses), len(kinematics.actuated_names))))
        second = still + _fitted(at, line.second - still)
        self._curve = PointTrajectory(parameters, poses, first, second)

    def sample(self, s: Array) -> PathSample:
        """The path at parameters (n,)."""
        return PathSample(*self._curve.sample(np.clip(np.atleast_1d(s), 0.0, self._path.length)))


def _fitted(at: Configuration, wanted: Array) -> Array:
    """Possible twists (n, 6) whose linear part is the wanted one, and whose angular part is as near as can be."""
    space = np.asarray(at.subspace)
    inverse = np.linalg.pinv(space[:, :3])
    chosen = inverse @ wanted[:, :3, None]
    if space.shape[-1] > 3:
        free = np.eye(space.shape[-1]) - inverse @ space[:, :3]
        left = wanted[:, 3:, None] - space[:, 3:] @ chosen
        chosen = chosen + free @ np.linalg.pinv(space[:, 3:] @ free, rcond=1e-6) @ left
    return np.asarray((space @ chosen)[..., 0])
