# SPDX-License-Identifier: Apache-2.0
"""Recovery of a platform that was stopped or is outside its limits, and changes of the working mode."""

from __future__ import annotations

import numpy as np

from pkm_control.loop.follower import HALTED, TrajectoryFollower
from pkm_control.loop.mode_change import InMode, ModeChange
from pkm_control.loop.mode_transition import ModeTransition, ModeTransitions
from pkm_control.loop.modes import Mode
from pkm_control.loop.running_loop import RunningLoop
from pkm_description.mechanism import Array
from pkm_hardware.machine import Lifecycle
from pkm_runtime.errors import PkmError


class RecoveryError(PkmError):
    """Nothing can be done; the message says why, and what would help."""


def recovery_pose(running: RunningLoop) -> Array | None:
    """The nearest good pose (7,) on the way home; None where the platform is within limits. RecoveryError: no way."""
    now = running.situation
    if now.mode in (Mode.WAITING, Mode.STOPPED):
        if now.state.lifecycle is Lifecycle.INACTIVE:
            raise RecoveryError("the drives are off: enable them (pkm enable), and the platform is held where it is")
        if now.state.lifecycle is Lifecycle.FAULT:
            why = now.state.fault or now.action.reason
            raise RecoveryError(f"the drives are off ({why}): reset the machine (pkm reset), then enable them")
        raise RecoveryError("there is no usable reading, so nothing can move")
    if now.moving:
        raise RecoveryError("the platform moves; stop it first")
    if now.changing:
        raise RecoveryError(HALTED)
    pose = now.held
    if not running.check.deficits(pose[None]).any():
        return None
    there = running.jog.way_in(pose)
    if there is None:
        raise RecoveryError(
            "no path home from here keeps the limits; the platform is held where it is, move it by hand"
        )
    return there


def plan_change(running: RunningLoop, label: str) -> ModeTransition | None:
    """Plan a change to another working mode at the held pose, which takes up to some seconds; None: already there.
    `label` is that of `Kinematics.mode_label`. RecoveryError: no such mode, or not held; PkmError: the reason why not.
    """
    check, now = running.check, running.situation
    k = check.kinematics
    labels = [k.mode_label(mode) for mode in range(k.n_modes)]
    if label not in labels:
        raise RecoveryError(f"there is no working mode '{label}'; there are {', '.join(labels)}")
    mode = labels.index(label)
    if mode == check.mode:
        return None
    if now.mode is not Mode.HOLDING:
        raise RecoveryError(f"the controller is {now.mode.name.lower()}; it must hold the platform")
    return ModeTransitions(check).find(np.array(now.held), mode)


def change_on(follower: TrajectoryFollower, way: ModeTransition) -> ModeChange:
    """The change along a way from `plan_change`, for `TrajectoryFollower.begin_change`; PkmError: singular there."""
    check, pose = follower.check, way.pose
    ends = tuple(InMode.of(follower.controller, one, pose, check.space) for one in (check.mode, way.mode))
    return ModeChange(way, (ends[0], ends[1]), follower.controller)


def continue_change(follower: TrajectoryFollower, label: str) -> str:
    """Go on with a halted change, or back, to the working mode of `label`; why not, empty where it is done."""
    change = follower.change
    if change is None:
        return "nothing is halted"
    here, there = (follower.check.kinematics.mode_label(end.check.mode) for end in change.ends)
    if label == there:
        return change.resume(follower.override)
    if label == here:
        return change.turn(follower.override)
    return f"the robot is between the working modes {here} and {there}: choose one of them first"


def in_words(way: ModeTransition) -> str:
    """How long a change takes, and how far the platform leaves its place, for a person."""
    return (
        f"on the way, {way.duration:.1f} s; meanwhile the platform leaves its place by up to "
        f"{1e3 * way.farthest:.1f} mm and {np.degrees(way.turned):.1f} degrees"
    )
