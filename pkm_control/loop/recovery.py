# SPDX-License-Identifier: Apache-2.0
"""What can be done for a platform that was stopped, or stands where it should not; and for another working mode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.loop.follower import CHANGING, TrajectoryFollower
from pkm_control.loop.jog import LOW
from pkm_control.loop.modes import Mode
from pkm_control.loop.working_mode.mode_change import InMode, ModeChange
from pkm_control.loop.working_mode.mode_way import ModeWays
from pkm_description.errors import PkmError

Array = NDArray[np.float64]


class RecoveryError(PkmError):
    """Nothing can be done; the message says why, and what would help."""


def way_back(follower: TrajectoryFollower) -> Array | None:
    """Where to move a platform that stands outside what it may do.

    Args:
        follower: that holds it.

    Returns:
        The nearest pose (7,) on the way home where all is well, None where it stands well.

    Raises:
        RecoveryError: there is no way.
    """
    if follower.mode in (Mode.WAITING, Mode.STOPPED):
        raise RecoveryError("there is no usable reading, and without one no motion")
    if follower.moving:
        raise RecoveryError("the platform moves; stop it first")
    if follower.change is not None:
        raise RecoveryError(f"{CHANGING}: resume it, or choose the working mode that it came from")
    pose = follower.hold
    if not follower.check.deficits(pose[None]).any():
        return None
    there = follower.jog.way_in(pose)
    if there is None:
        raise RecoveryError("no way home from here keeps the limits; the platform is held where it is, move it by hand")
    return there


def go_back(follower: TrajectoryFollower, pose: Array) -> str:
    """Move there at low speed.

    Args:
        follower: that holds the platform.
        pose: (7,), from `way_back`.

    Returns:
        Why not; empty where it is done.
    """
    return follower.jog_to(pose, LOW)


def plan_change(follower: TrajectoryFollower, label: str) -> ModeChange | None:
    """Plan a change to another working mode at the pose that is held. Takes up to some seconds.

    Args:
        follower: that holds the platform.
        label: of the mode, as `Kinematics.mode_label` gives it.

    Returns:
        The change, for `TrajectoryFollower.begin_change`; None where the robot is in that mode already.

    Raises:
        RecoveryError: there is no such mode, or the platform is not held.
        PkmError: it cannot be changed, with the reason.
    """
    check = follower.check
    k = check.kinematics
    labels = [k.mode_label(mode) for mode in range(k.n_modes)]
    if label not in labels:
        raise RecoveryError(f"there is no working mode '{label}'; there are {', '.join(labels)}")
    mode = labels.index(label)
    if mode == check.mode:
        return None
    if follower.mode is not Mode.HOLDING:
        raise RecoveryError(f"the controller is {follower.mode.name.lower()}; it must hold the platform")
    pose = np.array(follower.hold)
    way = ModeWays(check).find(pose, mode)
    ends = tuple(InMode.of(follower.controller, one, pose, check.space) for one in (check.mode, mode))
    return ModeChange(way, (ends[0], ends[1]), follower.controller)


def continue_change(follower: TrajectoryFollower, label: str) -> str:
    """Go on with a change that was halted on its way, or back to where it came from.

    Args:
        follower: whose change it is.
        label: of the working mode to go to.

    Returns:
        Why not; empty where it is done.
    """
    change = follower.change
    if change is None:
        return "nothing is halted"
    here, there = (follower.check.kinematics.mode_label(end.check.mode) for end in change.ends)
    if label == there:
        return change.resume(follower.override)
    if label == here:
        return change.turn(follower.override)
    return f"the robot is between the working modes {here} and {there}: choose one of them first"


def in_words(change: ModeChange) -> str:
    """What a change will do, for a person.

    Args:
        change: that begins.

    Returns:
        How long it takes, and how far the platform leaves its place.
    """
    way = change.way
    return (
        f"on the way, {way.duration:.1f} s; meanwhile the platform leaves its place by up to "
        f"{1e3 * way.farthest:.1f} mm and {np.degrees(way.turned):.1f} degrees"
    )
