# SPDX-License-Identifier: Apache-2.0
"""Between the messages of motions and what the follower takes and gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from numpy.typing import NDArray

from pkm_control.loop.follower import Action, Motion, Tolerances
from pkm_control.motion.curve_check import rounded
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.motion.trajectory import TrajectorySample
from pkm_description.ros import messages
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, PlatformReference, PlatformTrajectory, PlatformTrajectoryPoint
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.status import closes

Array = NDArray[np.float64]

MOST_POINTS = 50_000  # of one trajectory
REFERENCE_NUMBERS = 19  # of one reference: pose, twist, acceleration


def seconds(message: Any) -> float:
    """Return a time or a duration in s."""
    return float(message.sec + 1e-9 * message.nanosec)


def duration_message(value: float) -> Duration:
    """Return a duration message of `value` s."""
    whole = math.floor(value)
    return Duration(sec=whole, nanosec=min(999_999_999, round((value - whole) * 1e9)))


def trajectory_message(sample: TrajectorySample, base_link: str, repetitions: int = 1) -> PlatformTrajectory:
    """Return sampled motion as a message."""
    message = PlatformTrajectory(repetitions=repetitions)
    message.header.frame_id = base_link
    message.points = [
        PlatformTrajectoryPoint(
            pose=messages.to_pose(pose),
            twist=messages.to_twist(twist),
            acceleration=messages.to_acceleration(acceleration),
            time_from_start=duration_message(float(time)),
        )
        for time, pose, twist, acceleration in zip(
            sample.times, sample.pose, sample.twist, sample.acceleration, strict=True
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


def trajectory_of(
    message: PlatformTrajectory, kinematics: Kinematics, pose: Array, start_tolerance: float
) -> PointTrajectory:
    """The trajectory of a message, from where the platform is.

    Args:
        message: whose first point may lie in the future; the way there is then part of the motion.
        kinematics: of the robot.
        pose: of the platform (7,), base frame.
        start_tolerance: from there to a first point that is to be taken at once [m and rad].

    Returns:
        The trajectory, whose points can be reached; what lies between them is judged elsewhere.

    Raises:
        RequestError: the frame is another one.
        PointTrajectoryError: the points are no motion, one is out of reach, or the first is too far away.
    """
    require_readable(message, kinematics.mechanism.base_link)
    points = message.points
    times = [seconds(point.time_from_start) for point in points]
    poses = [messages.pose_of(point.pose) for point in points]
    twists = [messages.twist_of(point.twist) for point in points]
    accelerations = [messages.twist_of(point.acceleration) for point in points]
    inserted = times[0] > 0.0
    if inserted:  # the way to the first point is part of the motion
        times, poses = [0.0, *times], [pose, *poses]
        twists, accelerations = [np.zeros(6), *twists], [np.zeros(6), *accelerations]
    trajectory = PointTrajectory(
        np.array(times), np.array(poses), np.array(twists), np.array(accelerations), max(1, message.repetitions)
    )
    jump = displacement_between(pose, trajectory.poses[0])
    if np.linalg.norm(jump[:3]) > start_tolerance or np.linalg.norm(jump[3:]) > start_tolerance:
        raise PointTrajectoryError(
            f"point 0 is {1e3 * np.linalg.norm(jump[:3]):.1f} mm and {np.linalg.norm(jump[3:]):.3g} rad from where the"
            " platform is; begin there, or give the first point a time greater than zero"
        )
    answer = kinematics.inverse(rounded(kinematics, trajectory.poses))
    bad = np.flatnonzero(~closes(answer.status))
    if bad.size:
        raise PointTrajectoryError(f"point {bad[0] - inserted}: {answer.reason(int(bad[0]))}")
    return trajectory


def tolerances_of(goal: FollowPlatformTrajectory.Goal) -> Tolerances:
    """Return the tolerances of a goal, in which zero means: no check."""
    return Tolerances(
        goal.path_position_tolerance or math.inf,
        goal.path_rotation_tolerance or math.inf,
        goal.goal_position_tolerance or math.inf,
        goal.goal_rotation_tolerance or math.inf,
        seconds(goal.goal_time_tolerance),
    )


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
    """Return what the controller wants, sees and does; efforts are none where it commands something else."""
    message = ControllerState(mode=int(action.mode), reason=action.reason)
    message.header.stamp = stamp
    message.header.frame_id = kinematics.mechanism.base_link
    message.actuated_names = kinematics.actuated_names
    if commands == "effort":
        message.effort = action.command
    message.speed_override = action.speed
    if action.reference is not None and action.measured is not None:
        message.reference.pose = messages.to_pose(action.reference.pose)
        message.reference.twist = messages.to_twist(action.reference.twist)
        message.reference.acceleration = messages.to_acceleration(action.reference.acceleration)
        message.measured_pose = messages.to_pose(action.measured.pose)
        message.measured_twist = messages.to_twist(action.measured.twist)
        error = displacement_between(action.measured.pose, action.reference.pose)
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
    if action.reference is not None and action.measured is not None:
        message.reference.pose = messages.to_pose(action.reference.pose)
        message.reference.twist = messages.to_twist(action.reference.twist)
        message.reference.acceleration = messages.to_acceleration(action.reference.acceleration)
        message.measured_pose = messages.to_pose(action.measured.pose)
    return message
