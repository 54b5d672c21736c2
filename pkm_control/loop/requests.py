# SPDX-License-Identifier: Apache-2.0
"""All requests to a running control loop, executed between two periods in the loop's thread.

Each takes the loop first. Operator requests return why not, in words; empty where they succeed.
"""

from __future__ import annotations

import math
import time

import numpy as np

from pkm_control.control_errors import GoalError
from pkm_control.conveyor.conveyor import BeltState
from pkm_control.loop.control_loop import ControlLoop
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.follower import CHANGING, HALTED, TrajectoryFollower
from pkm_control.loop.jogging import LOW
from pkm_control.loop.mode_change import InMode, ModeChange
from pkm_control.loop.mode_transition import ModeTransition
from pkm_control.operator_interface import TOOK_OVER, Outcome
from pkm_description.mechanism import Array
from pkm_hardware.machine import Lifecycle
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_runtime.errors import PkmError

FARTHEST = 600.0  # s: a start later than that is taken for a mistake, such as that of another clock
WENT_OFF = "the drives went off since it was asked for: ask again"
PAUSED = "the controller is paused: resume or stop first"


# Power of the drives


enable = ControlLoop.enable
disable = ControlLoop.disable
emergency_stop = ControlLoop.emergency_stop
reset = ControlLoop.reset


# What moves


def pause(loop: ControlLoop) -> str:
    """Halt on the path."""
    return loop.follower.pause()


def resume(loop: ControlLoop) -> str:
    """Go on after a halt."""
    return loop.follower.resume()


def stop(loop: ControlLoop, reason: str = "the operator stopped it") -> str:
    """Decelerate on the way; a platform at rest is stopped already. Homing, led by the machine, ends drives off."""
    if loop.machine.lifecycle is Lifecycle.ACTIVE and not loop.machine.readable:
        return loop.disable(reason)
    loop.stops += 1
    loop.follower.stop(reason)
    return ""


def take_over(loop: ControlLoop) -> str:
    """As `stop`, for another motion that begins there; refused while the working mode is changed."""
    if loop.follower.change is not None:
        return HALTED if loop.follower.paused else CHANGING
    return stop(loop, TOOK_OVER)


def stops(loop: ControlLoop) -> int:
    """How often the loop was stopped, or its drives disabled, until now."""
    return loop.stops


def set_override(loop: ControlLoop, fraction: float) -> str:
    """Run motions at a fraction (0 to 1) of their planned speed."""
    return loop.follower.set_override(fraction)


def steer(loop: ControlLoop, twist: Array) -> str:
    """Jog at a twist (6,) [m/s, rad/s], base axes, for a short time."""
    return loop.follower.steer(twist, loop.machine.time)


def jog_to(loop: ControlLoop, pose: Array) -> str:
    """Move to a reachable pose (7,), base frame."""
    return loop.follower.jog_to(pose)


def relocate(loop: ControlLoop) -> str:
    """Look for the platform with the next reading; what is answered is from where, in words."""
    return loop.follower.relocate()


def place(loop: ControlLoop, pose: Array, joints: Array) -> str:
    """Tell the controller where the platform is: its pose (7,), and the joints (n_joints,) there."""
    loop.follower.locator.place(pose, joints)
    return ""


def pose_unknown(loop: ControlLoop) -> str:
    """Why readings do not tell in which assembly mode the platform is; empty where they do."""
    return loop.follower.locator.assembly.pose_unknown


def go_back(loop: ControlLoop, pose: Array) -> str:
    """Move to a pose (7,) from `operator.recovery_pose`, at low speed."""
    return loop.follower.jog_to(pose, LOW)


def begin_change(loop: ControlLoop, way: ModeTransition, stops: int) -> str:
    """Change the working mode on a planned way, unless there were more `stops` since it was requested."""
    if loop.stops != stops:
        return "it was stopped during the search for a path to the other working mode: ask again"
    try:
        return loop.follower.begin_change(change_on(loop.follower, way))
    except PkmError as error:
        return str(error)


def change_on(follower: TrajectoryFollower, way: ModeTransition) -> ModeChange:
    """The change along a way from `operator.plan_change`; PkmError: singular there."""
    check, pose = follower.check, way.pose
    ends = tuple(InMode.of(follower.controller, one, pose, check.space) for one in (check.mode, way.mode))
    return ModeChange(way, (ends[0], ends[1]), follower.controller)


def continue_change(loop: ControlLoop, label: str) -> str:
    """Go on with a halted change, or back, to the working mode of `label`."""
    follower = loop.follower
    change = follower.change
    if change is None:
        return "nothing is halted"
    here, there = (follower.check.kinematics.mode_label(end.check.mode) for end in change.ends)
    if label == there:
        return change.resume(follower.override)
    if label == here:
        return change.turn(follower.override)
    return f"the robot is between the working modes {here} and {there}: choose one of them first"


def require_ready(loop: ControlLoop) -> None:
    """Refuse a motion (GoalError) while the working mode is changed, or while a motion is paused."""
    refuse_while(loop.follower.change is not None, loop.follower.paused)


def refuse_while(changing: bool, paused: bool) -> None:
    """`require_ready` for those who have only the loop's situation."""
    if changing:
        raise GoalError(HALTED if paused else CHANGING)
    if paused:
        raise GoalError(PAUSED)


def begin(
    loop: ControlLoop, motion: Motion, pose: Array, tolerance: float, delay: float, asked: float = math.inf
) -> None:
    """Follow a motion that was checked from a pose (7 + r,), from which the platform may have moved by a tolerance [m,
    rad]. A `start` of 0 means at once, `delay` [s] from now. GoalError: it cannot be followed any more, also where the
    drives went off since it was `asked` for [s, monotonic clock].
    """
    follower = loop.follower
    if asked <= loop.went_off:
        raise GoalError(WENT_OFF)
    require_ready(loop)
    hold = follower.hold
    beside = np.zeros(0) if len(pose) != len(hold) else pose[7:] - hold[7:]
    if follower.moving or np.abs(np.append(displacement_between(pose, hold), beside)).max() > tolerance:
        raise GoalError("the platform was moved while the trajectory was checked")
    now = follower.time
    if motion.start != 0.0 and motion.start < now:
        raise GoalError(f"the trajectory should have started {now - motion.start:.3f} s ago")
    if motion.start > now + FARTHEST:
        raise GoalError(f"the trajectory starts in {motion.start - now:.6g} s, more than {FARTHEST:g} s ahead")
    motion.start = motion.start or now + delay
    follow(follower, motion)


def follow(follower: TrajectoryFollower, motion: Motion) -> None:
    """Follow a motion, which has to come near its goal, unless the law gives way to what pushes the platform."""
    if not follower.controller.yields:
        motion.tolerances = follower.stray.goal(motion.tolerances)
    follower.follow(motion)


def withdraw(loop: ControlLoop, number: int) -> None:
    """Bring the motion of a number to rest on its path, if it is followed."""
    run = loop.follower.run
    if run is not None and run.motion.number == number:
        loop.follower.stop("cancelled")


def end(loop: ControlLoop, reason: str) -> None:
    """End what moves at once; the platform is held at its reference."""
    loop.follower.end(Outcome.PREEMPTED, reason)


# Inputs


def belt_state(loop: ControlLoop, name: str) -> BeltState:
    """The present state of a belt."""
    return loop.follower.belts[name].state(loop.follower.time)


def hear_belt(loop: ControlLoop, name: str, stamp: float, reading: float) -> None:
    """Take a reading of a belt's encoder, in its unit, with its stamp on the machine's clock [s]."""
    loop.follower.belts[name].hear(stamp, reading)


def set_gains(loop: ControlLoop, natural_frequency: float, damping: float) -> None:
    """Change the gains of the law: natural frequency [rad/s], and damping, 1 where critical."""
    loop.controller.set_gains(natural_frequency, damping)


def hear_machine(loop: ControlLoop, state: str) -> None:
    """Take the life-cycle state of a machine in another process."""
    if state != Lifecycle.ACTIVE.value and loop.follower.machine.followed:
        loop.went_off = time.monotonic()
    loop.follower.machine.hear(state)


def expect_machine(loop: ControlLoop) -> None:
    """Wait a while for the life-cycle state of a machine in another process."""
    loop.follower.machine.expect(loop.machine.time)
