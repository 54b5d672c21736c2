# SPDX-License-Identifier: Apache-2.0
"""A robot's default motion: the pick-and-place cycle where it can, else a tour of its degrees of freedom."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.motion_file import MotionFile, read_motion_file, task_chain_of
from pkm_control.motion.files.shipped import AUTO
from pkm_control.motion.motion_space_paths import possible_poses, tilts_by_itself
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.rounded_path import RoundedPath
from pkm_control.tool import read_tools
from pkm_description.loops.mobility import axes
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits, PlatformLimits
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.compiled_rotations import displace

_HOME_MODE = 0
_SAMPLES = 16  # poses on the way to the end of an excursion at which it must be reachable
_HALVINGS = 8  # of an excursion that is too far
_SHARE = 0.7  # of the reachable excursion that is made: a distance from limits and singularities
_LENGTH, _TURN = 0.5, 0.6  # first excursion tried: characteristic lengths, and rad
_NEAR = 0.3  # of the distance from singularities that home has: the excursion keeps that much
_GENTLE = PlatformLimits(0.5, 5.0, 100.0, 2.0, 20.0, 400.0)


def motion_named(name: str, kinematics: Kinematics, tool_file: str = "") -> MotionFile:
    """The motion file of a path or a shipped motion's name, or the robot's default motion for "auto". Raises `PkmError`
    where it, or the file of tools, cannot be read; an empty `tool_file` means no tools.
    """
    if name == AUTO:
        return default_motion(kinematics)
    e, chain = kinematics.engine, task_chain_of(kinematics.mechanism)
    redundant = dict(zip(e.redundant_names, e.joint_turning[e.redundant_column].tolist(), strict=True))
    return read_motion_file(name, kinematics.home, chain, read_tools(tool_file), redundant)


def default_motion(kinematics: Kinematics) -> MotionFile:
    """The pick-and-place cycle, base frame, where every waypoint is reachable from home, else the tour."""
    home = np.asarray(kinematics.home, dtype=np.float64)
    cycle = read_motion_file("pick_and_place").in_base(home)
    straight = kinematics.constant_space or tilts_by_itself(kinematics)
    ways = [start + (end - start) * share for start, end in pairwise(cycle.poses) for share in np.linspace(0.0, 1.0, 9)]
    reached = straight and _reachable(kinematics, possible_poses(kinematics, np.array(ways)))
    return cycle if reached else tour(kinematics)


def tour(kinematics: Kinematics) -> MotionFile:
    """A motion that leads the platform out and back along each degree of freedom, to both sides, at gentle speed.

    Degrees of freedom are the columns of the task subspace at home. In a configuration-dependent motion space an
    excursion is that of the actuators which begins in that direction. Excursions that have no room are left out.
    """
    home = np.asarray(kinematics.home, dtype=np.float64)
    stations, labels = [home], ["home"]
    sizes = np.repeat((1.0, kinematics.characteristic_length), 3)
    for direction in np.asarray(kinematics.subspace(home)).T:
        turns = np.linalg.norm(direction[:3]) < 1e-9
        unit = direction / np.linalg.norm(direction[3:] if turns else direction[:3])
        for sign in (1.0, -1.0):
            end = _excursion(kinematics, sign * unit, _TURN if turns else _LENGTH * kinematics.characteristic_length)
            if end is not None:
                stations += [end, home]
                labels += [f"end {axes(sign * direction * sizes)}", "home"]
    return MotionFile.through("tour", np.array(stations), tuple(labels), _GENTLE)


def _excursion(kinematics: Kinematics, unit: Array, longest: float) -> Array | None:
    home = np.asarray(kinematics.home, dtype=np.float64)
    margins = kinematics.singularity(home)
    for halving in range(_HALVINGS):
        shares = np.linspace(0.0, longest * 0.5**halving, _SAMPLES + 1)[1:]
        poses = _poses_along(kinematics, home, unit, shares)
        if poses is None or not _reachable(kinematics, poses):
            continue
        there = kinematics.singularity(poses)
        if np.all(there.type1 > _NEAR * margins.type1) and np.all(there.type2 > _NEAR * margins.type2):
            return np.array(poses[math.floor(_SHARE * _SAMPLES)])
    return None


def _poses_along(kinematics: Kinematics, home: Array, unit: Array, shares: Array) -> Array | None:
    if kinematics.constant_space:
        return np.array([displace(home, share * unit) for share in shares])
    q = np.asarray(kinematics.inverse(home, mode=_HOME_MODE).actuated)
    rates = np.asarray(kinematics.motion(home, unit, mode=_HOME_MODE).actuated_velocities)
    poses, pose = [], home
    for share in shares:
        found = kinematics.forward(q + share * rates, near=pose)
        if int(found.status) != Status.CONVERGED:
            return None
        pose = np.asarray(found.pose, dtype=np.float64)
        poses.append(pose)
    return np.array(poses)


def _reachable(kinematics: Kinematics, poses: Array) -> bool:
    return bool(np.all(np.asarray(kinematics.inverse(poses, mode=_HOME_MODE).status) == Status.CONVERGED))


RATE = 1000.0  # Hz


class RoundedMotion(NamedTuple):
    """The path of a motion: straight lines through poses, rounded about the inner ones."""

    poses: Array  # (n, 7) base frame
    radii: Array  # (n,) m: how far before and after each the path may leave the straight line


def rounded_motion(kinematics: Kinematics, name: str, closed: bool = False) -> RoundedMotion:
    """The path of a motion file, whatever its speed; its name is as in `sampled_motion`.

    `closed` adds a way back where it ends elsewhere than it begins. `MotionFileError`: unusable, or not of this kind.
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
    wrench: Array | None  # (n, 6) N, N m: of the payloads that the file says on the platform; None: it says nothing
    payload: float  # kg, the most on the way


def sampled_motion(
    dynamics: Dynamics, name: str, payload: Inertial | None = None, closed: bool = False
) -> SampledMotion:
    """Samples of a motion file, by a path, the name of a shipped motion, or "auto".

    Times that the file gives are kept, whatever limits they break: the caller checks those. Without times the motion is
    as fast as the limits of the description allow. `payload` counts where the file says nothing of it; `closed` adds a
    way back where it ends elsewhere. PkmError: the file cannot be used, or the robot cannot do it.
    """
    motion = motion_named(name, dynamics.kinematics)
    limits, platform = ActuatorLimits.of(dynamics.mechanism), PlatformLimits()
    if motion.times is not None:
        free = np.full(len(limits.names), np.inf)
        limits = replace(limits, velocity=free, acceleration=free, effort=free, effort_range=None)
        motion, platform = replace(motion, limits=PlatformLimits.none()), PlatformLimits.none()
    planner = MotionPlanner(dynamics, limits, platform, USUAL_RESERVE, payload)
    trajectory = (planner.plan_closed if closed else planner.plan)(motion)
    steps = max(int(np.ceil(trajectory.duration * RATE)), 1)
    at = trajectory.sample(np.linspace(0.0, trajectory.duration, steps + 1))
    wrench, masses = None, [payload]
    if trajectory.events.payloads:
        masses = [change.payload for change in trajectory.events.payloads]
        carried, state = trajectory.events.carried(at.times, None), (at.pose, at.twist, at.acceleration)
        wrench = carried.wrench(dynamics.mechanism.gravity, *state)
        wrench = np.zeros((len(at), 6)) if wrench is None else wrench
    most = max(0.0 if one is None else one.mass for one in masses)
    return SampledMotion(at.times, at.pose, at.twist, at.acceleration, tuple(trajectory.notes), wrench, most)
