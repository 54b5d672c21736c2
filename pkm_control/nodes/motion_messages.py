# SPDX-License-Identifier: Apache-2.0
"""Between the messages of motions and what the follower takes and gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from numpy.typing import NDArray

from pkm_control.controllers.controller import Reference
from pkm_control.loop.follower import Action, Motion, Tolerances
from pkm_control.motion.point_trajectory import PointTrajectoryError
from pkm_control.operation.motion_points import MOST_POINTS, MotionPoints
from pkm_description.ros import messages
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, PlatformReference, PlatformTrajectory, PlatformTrajectoryPoint
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

Array = NDArray[np.float64]

REFERENCE_NUMBERS = 19  # of one reference: pose, twist, acceleration
_UNKNOWN = np.full(7, np.nan)
_TOLERANCES = ("path_position", "path_rotation", "goal_position", "goal_rotation")  # of a goal


def seconds(message: Any) -> float:
    """Return a time or a duration in s."""
    return float(message.sec + 1e-9 * message.nanosec)


def duration_message(value: float) -> Duration:
    """Return a duration message of `value` s."""
    whole = math.floor(value)
    return Duration(sec=whole, nanosec=min(999_999_999, round((value - whole) * 1e9)))


def trajectory_message(motion: MotionPoints, base_link: str) -> PlatformTrajectory:
    """The message of a motion.

    Args:
        motion: its points, in the base frame.
        base_link: name of that frame.

    Returns:
        The message.
    """
    message = PlatformTrajectory(repetitions=motion.repetitions)
    message.header.frame_id = base_link
    message.points = [
        PlatformTrajectoryPoint(
            pose=messages.to_pose(pose),
            twist=messages.to_twist(twist),
            acceleration=messages.to_acceleration(acceleration),
            time_from_start=duration_message(float(time)),
        )
        for time, pose, twist, acceleration in zip(
            motion.times, motion.poses, motion.twists, motion.accelerations, strict=True
        )
    ]
    return message


def require_readable(message: PlatformTrajectory, base_link: str) -> None:
    """Refuse at a glance what cannot be a motion.

    Args:
        message: the trajectory.
        base_link: the frame that it must be in.

    Raises:
        RequestError: another frame.
        PointTrajectoryError: no points, or more than can be judged in seconds.
    """
    messages.check_frame(message.header, base_link)
    if not message.points:
        raise PointTrajectoryError("the trajectory has no points")
    if len(message.points) > MOST_POINTS:
        raise PointTrajectoryError(
            f"the trajectory has {len(message.points)} points, more than {MOST_POINTS}; give fewer, or in parts"
        )


def points_of(message: PlatformTrajectory) -> MotionPoints:
    """The points of a message that is readable.

    Args:
        message: the trajectory, in the base frame.

    Returns:
        Its points.
    """
    points = message.points
    return MotionPoints(
        times=np.array([seconds(point.time_from_start) for point in points]),
        poses=np.array([messages.pose_of(point.pose) for point in points]),
        twists=np.array([messages.twist_of(point.twist) for point in points]),
        accelerations=np.array([messages.twist_of(point.acceleration) for point in points]),
        repetitions=max(1, message.repetitions),
        start=seconds(message.header.stamp),
    )


def goal_message(motion: MotionPoints, tolerances: Tolerances, base_link: str) -> FollowPlatformTrajectory.Goal:
    """The goal of a motion.

    Args:
        motion: its points, in the base frame.
        tolerances: infinite ones are not checked.
        base_link: name of the base frame.

    Returns:
        The message.
    """
    t = tolerances
    within = [
        0.0 if math.isinf(value) else value
        for value in (t.path_position, t.path_rotation, t.goal_position, t.goal_rotation)
    ]
    return FollowPlatformTrajectory.Goal(
        trajectory=trajectory_message(motion, base_link),
        path_position_tolerance=within[0],
        path_rotation_tolerance=within[1],
        goal_position_tolerance=within[2],
        goal_rotation_tolerance=within[3],
        goal_time_tolerance=duration_message(t.goal_time),
    )


def tolerances_of(goal: FollowPlatformTrajectory.Goal) -> Tolerances:
    """Return the tolerances of a goal, in which zero means: no check."""
    return Tolerances(
        goal.path_position_tolerance or math.inf,
        goal.path_rotation_tolerance or math.inf,
        goal.goal_position_tolerance or math.inf,
        goal.goal_rotation_tolerance or math.inf,
        seconds(goal.goal_time_tolerance),
    )


def tolerance_problem(goal: FollowPlatformTrajectory.Goal) -> str:
    """Return which tolerance of a goal makes no sense; empty where all do."""
    values = {name: getattr(goal, f"{name}_tolerance") for name in _TOLERANCES}
    values["goal_time"] = seconds(goal.goal_time_tolerance)
    bad = [f"{name}_tolerance is {value:g}" for name, value in values.items() if not value >= 0.0]
    return f"{bad[0]}; give zero, which means no check, or a number greater than it" if bad else ""


def reference_message(numbers: Array, stamp: Any, base_link: str) -> PlatformReference:
    """Return the reference of one period: pose, twist and acceleration, `REFERENCE_NUMBERS` in a row."""
    message = PlatformReference(
        pose=messages.to_pose(numbers[:7]),
        twist=messages.to_twist(numbers[7:13]),
        acceleration=messages.to_acceleration(numbers[13:]),
    )
    message.header.stamp = stamp
    message.header.frame_id = base_link
    return message


def state_message(action: Action, stamp: Any, kinematics: Kinematics, commands: str = "effort") -> ControllerState:
    """Return what the controller wants, sees and does: NaN where it does not know; efforts where it commands them."""
    message = ControllerState(mode=int(action.mode), reason=action.reason)
    message.header.stamp = stamp
    message.header.frame_id = kinematics.mechanism.base_link
    message.actuated_names = kinematics.actuated_names
    if commands == "effort":
        message.effort = action.command
    message.speed_override = action.speed
    pose, twist, error, wanted = _UNKNOWN, _UNKNOWN[:6], _UNKNOWN[:6], Reference(_UNKNOWN, _UNKNOWN[:6], _UNKNOWN[:6])
    if action.reference is not None and action.measured is not None:
        pose, twist, wanted = action.measured.pose, action.measured.twist, action.reference
        error = displacement_between(pose, wanted.pose)
    message.reference.pose = messages.to_pose(wanted.pose)
    message.reference.twist = messages.to_twist(wanted.twist)
    message.reference.acceleration = messages.to_acceleration(wanted.acceleration)
    message.measured_pose = messages.to_pose(pose)
    message.measured_twist = messages.to_twist(twist)
    message.position_error = messages.to_vector(error[:3])
    message.rotation_error = messages.to_vector(error[3:])
    return message


def result_message(motion: Motion) -> FollowPlatformTrajectory.Result:
    """Return what became of a motion."""
    assert motion.outcome is not None
    rms = motion.rms
    return FollowPlatformTrajectory.Result(
        error_code=int(motion.outcome),
        error_string=motion.reason,
        rms_position_error=float(rms[0]),
        max_position_error=float(motion.largest[0]),
        rms_rotation_error=float(rms[1]),
        max_rotation_error=float(motion.largest[1]),
    )


def feedback_message(motion: Motion, action: Action, kinematics: Kinematics) -> FollowPlatformTrajectory.Feedback:
    """Return how a motion goes."""
    message = FollowPlatformTrajectory.Feedback(
        position_error=motion.position_error, rotation_error=motion.rotation_error
    )
    message.header.frame_id = kinematics.mechanism.base_link
    message.reference.time_from_start = duration_message(motion.elapsed)
    if action.reference is not None and action.measured is not None:
        message.reference.pose = messages.to_pose(action.reference.pose)
        message.reference.twist = messages.to_twist(action.reference.twist)
        message.reference.acceleration = messages.to_acceleration(action.reference.acceleration)
        message.measured_pose = messages.to_pose(action.measured.pose)
    return message
