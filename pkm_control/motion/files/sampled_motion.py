# SPDX-License-Identifier: Apache-2.0
"""A motion file as plain arrays, for callers that need the motion and plan nothing.

`pkm analyse ROBOT predict` finds this module by its name, as `pkm` finds its commands: analyses import no control.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.rounded_path import RoundedPath
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits, PlatformLimits
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_kinematics import Kinematics

RATE = 1000.0  # Hz


class RoundedMotion(NamedTuple):
    """The path of a motion: straight lines through poses, rounded about the inner ones."""

    poses: Array  # (n, 7) base frame
    radii: Array  # (n,) m: how far before and after each the path may leave the straight line


def rounded_motion(kinematics: Kinematics, name: str, closed: bool = False) -> RoundedMotion:
    """The path of a motion file, whatever its speed, by a path, the name of a shipped motion, or "auto".

    `closed` adds a way back where it ends elsewhere than it begins. Raises `MotionFileError` where the file cannot be
    used, or its path is not of this kind.
    """
    motion = motion_named(name, kinematics).in_base(np.asarray(kinematics.home, dtype=np.float64))
    if motion.times is not None and not motion.straight:
        problem = "its path is one smooth curve through points with times"
        raise MotionFileError(motion.source, None, None, problem, "say '# path: straight'")
    if motion.of_tool or not kinematics.constant_space:
        what = "its poses are of a tool" if motion.of_tool else "the robot does not go straight"
        raise MotionFileError(
            motion.source, None, None, f"{what}: its path does not consist of straight lines", "use a box of poses"
        )
    poses, blends = np.array(motion.poses), np.array(motion.blends)
    if closed and np.linalg.norm(poses[-1] - poses[0]) > 1e-9:
        poses, blends = np.vstack([poses, poses[:1]]), np.append(blends, 0.0)
    apart = np.append(True, np.abs(np.diff(poses, axis=0)).max(axis=1) > 1e-12)  # standing still is no way
    poses, blends = poses[apart], blends[apart]
    if len(poses) < 2:
        return RoundedMotion(poses, np.zeros(len(poses)))
    return RoundedMotion(poses, RoundedPath(poses, blends[1:-1]).radii)


class SampledMotion(NamedTuple):
    """A motion at samples, base frame."""

    times: Array  # (n,) s
    poses: Array  # (n, 7)
    twists: Array  # (n, 6)
    accelerations: Array  # (n, 6)
    notes: tuple[str, ...]  # what limits its speed
    wrench: (
        Array | None
    )  # (n, 6) N, N m: what the payloads that the file says do to the platform; None: it says nothing


def sampled_motion(
    dynamics: Dynamics, name: str, payload: Inertial | None = None, closed: bool = False
) -> SampledMotion:
    """Samples of a motion file.

    Times that the file gives are kept, whatever limits they break: the caller checks those. Without times the motion is
    as fast as the limits of the description allow.

    Args:
        name: a path, the name of a shipped motion, or "auto".
        payload: of the platform, where the file says nothing of it.
        closed: add a way back where it ends elsewhere.

    Raises:
        PkmError: the file cannot be used, or the robot cannot do it.
    """
    motion = motion_named(name, dynamics.kinematics)
    limits, platform = ActuatorLimits.of(dynamics.mechanism), PlatformLimits()
    if motion.times is not None:
        free = np.full(len(limits.names), np.inf)
        limits = replace(limits, velocity=free, acceleration=free, effort=free, effort_range=None)
        motion, platform = replace(motion, limits=PlatformLimits.none()), PlatformLimits.none()
    planner = MotionPlanner(dynamics.kinematics, dynamics, limits, platform, USUAL_RESERVE, payload)
    trajectory = (planner.plan_closed if closed else planner.plan)(motion)
    steps = max(int(np.ceil(trajectory.duration * RATE)), 1)
    at = trajectory.sample(np.linspace(0.0, trajectory.duration, steps + 1))
    wrench: Array | None = None
    if trajectory.events.payloads:
        carried, state = trajectory.events.carried(at.times, None), (at.pose, at.twist, at.acceleration)
        wrench = carried.wrench(dynamics.mechanism.gravity, *state)
        wrench = np.zeros((len(at), 6)) if wrench is None else wrench
    return SampledMotion(at.times, at.pose, at.twist, at.acceleration, tuple(trajectory.notes), wrench)
