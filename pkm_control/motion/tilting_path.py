# SPDX-License-Identifier: Apache-2.0
"""Paths of platforms whose position can be chosen, while their attitude follows: a Delta as it was built.

Rods of unequal lengths let the platform of a Delta tilt by some milliradians as it travels. Who works with it goes on
to say where it shall be; the attitude that is asked for is taken to the one that the limbs have there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.motion.rounded_path import PathSample, RoundedPath
from pkm_control.space.tool import Tool
from pkm_description.mechanism import Array
from pkm_kinematics import Configuration, Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

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
    """Poses (n, 7) at the same places, with the attitudes that a platform which tilts by itself has there.

    With a tool, it is the tool's point that stays where it is.
    Where it can be there with no attitude near to the one asked for, and for all other robots, they stay as they are.
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


class TiltingPath:
    """Straight lines with rounded corners of the platform's origin, with the interface of `RoundedPath`.

    Raises `ValueError` where the platform cannot be at a place on the way.
    """

    def __init__(self, kinematics: Kinematics, path: RoundedPath) -> None:
        self._path = path
        self.corners = path.corners
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

    def segment(self, s: Array) -> NDArray[np.int64]:
        """As `Path.segment`."""
        return self._path.segment(s)

    def breaks(self) -> Array:
        """As `Path.breaks`."""
        return self._path.breaks()

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
