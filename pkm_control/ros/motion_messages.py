# SPDX-License-Identifier: Apache-2.0
"""Conversion between the messages of motions and the follower's types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Inertia, Transform
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory

from pkm_control.controllers.controller import Reference
from pkm_control.conveyor.conveyor import Ride
from pkm_control.loop.followed_motion import Action, Motion, Tolerances
from pkm_control.motion import path_events as events
from pkm_control.motion.path_events import PathEvents
from pkm_control.motion.point_trajectory import MOST_POINTS, MotionPoints, PointTrajectory, PointTrajectoryError
from pkm_control.motion.trajectory import TimedCurve
from pkm_description.mechanism import Array, Inertial
from pkm_description.ros import messages
from pkm_description.rotations import with_unit_quaternions
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import (
    ControllerState,
    OutputEvent,
    Outputs,
    PayloadChange,
    PlatformReference,
    PlatformTrajectory,
    PlatformTrajectoryPoint,
)
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

_UNKNOWN = np.full(7, np.nan)
_TOLERANCES = ("path_position", "path_rotation", "goal_position", "goal_rotation")  # of a goal


def seconds(message: Any) -> float:
    """A time or a duration [s]."""
    return float(message.sec + 1e-9 * message.nanosec)


def duration_message(value: float, kind: type[Duration] | type[Time] = Duration) -> Any:
    """A duration, or a time, of `value` [s]."""
    whole = math.floor(value)
    return kind(sec=whole, nanosec=min(999_999_999, round((value - whole) * 1e9)))


def trajectory_message(motion: MotionPoints, base_link: str, redundant: Sequence[str] = ()) -> PlatformTrajectory:
    """The message of a motion in the base frame, named `base_link`, of a robot with these `redundant` joints."""
    commanded = list(redundant) if motion.poses.shape[1] > 7 else []
    message = PlatformTrajectory(repetitions=motion.repetitions, redundant_names=commanded)
    message.outputs = [
        OutputEvent(time_from_start=duration_message(event.time), name=event.name, value=event.value)
        for event in motion.events.outputs
    ]
    message.payloads = [
        PayloadChange(time_from_start=duration_message(change.time), payload=inertia_message(change.payload))
        for change in motion.events.payloads
    ]
    message.header.frame_id = base_link
    rows = zip(motion.poses, motion.twists, motion.accelerations, motion.times, strict=True)
    message.points = [_point_message(*row) for row in rows]
    if motion.ride is not None:
        message.moving_frame, message.riding = motion.ride.frame, list(motion.ride.instants)
        message.moving_frame_travel, message.moving_frame_start = motion.ride.travel, motion.ride.start
    return message


def _point_message(pose: Array, twist: Array, acceleration: Array, time: float) -> PlatformTrajectoryPoint:
    return PlatformTrajectoryPoint(
        pose=messages.to_pose(pose[:7]),
        twist=messages.to_twist(twist[:6]),
        acceleration=messages.to_acceleration(acceleration[:6]),
        time_from_start=duration_message(float(time)),
        redundant_positions=pose[7:],
        redundant_velocities=twist[6:],
        redundant_accelerations=acceleration[6:],
    )


def _ride_of(message: PlatformTrajectory) -> Ride | None:
    if not message.moving_frame:
        return None
    a, b, c, d = (float(instant) for instant in message.riding)
    return Ride(message.moving_frame, message.moving_frame_travel, message.moving_frame_start, (a, b, c, d))


def inertia_message(payload: Inertial | None) -> Inertia:
    """The message of a payload, all zero where there is none."""
    return Inertia() if payload is None else messages.to_inertia(payload.mass, payload.com, payload.inertia)


def limits_message(limits: ActuatorLimits) -> JointTrajectory:
    """The message of limits: two points, of the least and of the most that is permitted."""
    ends = (-1.0, limits.lower, limits.least_effort), (1.0, limits.upper, limits.most_effort)
    points = [
        JointTrajectoryPoint(
            positions=list(position),
            velocities=list(sign * limits.velocity),
            accelerations=list(sign * limits.acceleration),
            effort=list(effort),
        )
        for sign, position, effort in ends
    ]
    return JointTrajectory(joint_names=list(limits.names), points=points)


def limits_of_message(message: JointTrajectory, described: ActuatorLimits) -> ActuatorLimits:
    """The limits of a message, of a robot whose description says `described`."""
    order = [list(message.joint_names).index(name) for name in described.names]
    least, most = message.points

    def of(values: Any) -> Array:
        return np.array(values)[order]

    return replace(
        described,
        lower=of(least.positions),
        upper=of(most.positions),
        velocity=of(most.velocities),
        acceleration=of(most.accelerations),
    )


def stamp_of(time: float) -> Time:
    """A time of the readings [s] as a stamp."""
    return duration_message(time, Time)


def outputs_message(outputs: Mapping[str, float], events: int, time: float) -> Outputs:
    """The outputs after so many events, at a time of the readings [s]."""
    header = Header(stamp=stamp_of(time))
    return Outputs(header=header, names=list(outputs), values=list(outputs.values()), events=events)


def require_readable(message: PlatformTrajectory | MultiDOFJointTrajectory, base_link: str) -> None:
    """Refuse frames other than `base_link` (RequestError), no points or too many (PointTrajectoryError)."""
    messages.check_frame(message.header, base_link)
    if not message.points:
        raise PointTrajectoryError("the trajectory has no points")
    if len(message.points) > MOST_POINTS:
        raise PointTrajectoryError(
            f"the trajectory has {len(message.points)} points, more than {MOST_POINTS}; give fewer, or in parts"
        )


def points_of(message: PlatformTrajectory, redundant: Sequence[str] = ()) -> MotionPoints:
    """The points of a readable message, in the base frame, for a robot with these redundant joints.
    RequestError: the message does not name all of them, or others, or has too few or too many values.
    """
    points = message.points
    positions, velocities, accelerations = (
        messages.redundant_of(message.redundant_names, points, f"redundant_{what}", redundant, "point")
        for what in messages.BESIDE
    )
    return MotionPoints(
        times=np.array([seconds(point.time_from_start) for point in points]),
        poses=np.hstack([[messages.pose_of(point.pose) for point in points], positions]),
        twists=np.hstack([[messages.twist_of(point.twist) for point in points], velocities]),
        accelerations=np.hstack([[messages.twist_of(point.acceleration) for point in points], accelerations]),
        repetitions=max(1, message.repetitions),
        start=seconds(message.header.stamp),
        events=_events_of(message),
        ride=_ride_of(message),
    )


def _events_of(message: PlatformTrajectory) -> PathEvents:
    return PathEvents(
        tuple(events.OutputEvent(seconds(one.time_from_start), one.name, one.value) for one in message.outputs),
        tuple(events.PayloadChange(seconds(one.time_from_start), payload_of(one.payload)) for one in message.payloads),
    )


def points_of_multi_dof(message: MultiDOFJointTrajectory, platform_link: str) -> MotionPoints:
    """The points of a readable trajectory in the base frame whose one joint has the name `platform_link`.

    Without velocities the points lie on one smooth curve, at rest at both ends; without accelerations these are zero.
    PointTrajectoryError: other joints, or too few or too many values.
    """
    names = list(message.joint_names)
    if names != [platform_link]:
        raise PointTrajectoryError(f"joint_names is {names}; this robot has one such joint, ['{platform_link}']")
    points = message.points
    given = {}
    for field, may_lack in (("transforms", False), ("velocities", True), ("accelerations", True)):
        counts = [len(getattr(point, field)) for point in points]
        wrong = [k for k, count in enumerate(counts) if count != 1 and (count or not may_lack or any(counts))]
        if wrong:
            raise PointTrajectoryError(f"point {wrong[0]}: it has {counts[wrong[0]]} {field}, and there is one joint")
        given[field] = bool(counts[0])
    if given["accelerations"] and not given["velocities"]:
        raise PointTrajectoryError("the points have accelerations without velocities")
    times = np.array([seconds(point.time_from_start) for point in points])
    poses = with_unit_quaternions(np.array([_pose_of_transform(point.transforms[0]) for point in points]))
    twists, accelerations = np.zeros((2, len(points), 6))
    if given["velocities"]:
        twists = np.array([messages.twist_of(point.velocities[0]) for point in points])
    if given["accelerations"]:
        accelerations = np.array([messages.twist_of(point.accelerations[0]) for point in points])
    start = seconds(message.header.stamp)
    if not given["velocities"] and len(points) > 1:
        PointTrajectory(times, poses, twists, accelerations)  # which says what no curve can go through
        _, twists, accelerations = TimedCurve(times, poses).sample(times - times[0])
    return MotionPoints(times, poses, twists, accelerations, start=start)


def _pose_of_transform(transform: Transform) -> tuple[float, ...]:
    p, q = transform.translation, transform.rotation
    return (p.x, p.y, p.z, q.x, q.y, q.z, q.w)


def goal_message(
    motion: MotionPoints, tolerances: Tolerances, base_link: str, age: float = 0.0, redundant: Sequence[str] = ()
) -> FollowPlatformTrajectory.Goal:
    """The goal of a motion, as `trajectory_message`; infinite tolerances unchecked. `age`: since its request [s]."""
    values = {name: getattr(tolerances, name) for name in _TOLERANCES}
    return FollowPlatformTrajectory.Goal(
        trajectory=trajectory_message(motion, base_link, redundant),
        goal_time_tolerance=duration_message(tolerances.goal_time),
        age=age,
        **{f"{name}_tolerance": 0.0 if math.isinf(value) else value for name, value in values.items()},
    )


def tolerances_of(goal: FollowPlatformTrajectory.Goal) -> Tolerances:
    """The tolerances of a goal, in which zero means: no check."""
    values = {name: getattr(goal, f"{name}_tolerance") or math.inf for name in _TOLERANCES}
    return Tolerances(**values, goal_time=seconds(goal.goal_time_tolerance))


def tolerance_problem(goal: FollowPlatformTrajectory.Goal) -> str:
    """Which tolerance of a goal makes no sense; empty where all do."""
    values = {name: getattr(goal, f"{name}_tolerance") for name in _TOLERANCES}
    values["goal_time"] = seconds(goal.goal_time_tolerance)
    if not goal.age >= 0.0:
        return f"age is {goal.age:g}; give the time since the motion was asked for, s"
    bad = [f"{name}_tolerance is {value:g}" for name, value in values.items() if not value >= 0.0]
    return f"{bad[0]}; give zero, which means no check, or a number greater than it" if bad else ""


def reference_numbers(reference: Reference, kinematics: Kinematics) -> Array:
    """What redundant joints do (3 r,), then pose, twist and acceleration (19,)."""
    at = reference.beside(kinematics)
    own = at.pose[:7], at.twist[:6], at.acceleration[:6]
    return np.concatenate((at.pose[7:], at.twist[6:], at.acceleration[6:], *own))


def reference_message(numbers: Array, stamp: Any, base_link: str) -> PlatformReference:
    """The reference of one period: a row of `reference_numbers`."""
    return PlatformReference(
        header=Header(stamp=stamp, frame_id=base_link),
        redundant=numbers[:-19],
        pose=messages.to_pose(numbers[-19:-12]),
        twist=messages.to_twist(numbers[-12:-6]),
        acceleration=messages.to_acceleration(numbers[-6:]),
    )


def state_message(
    action: Action, stamp: Any, kinematics: Kinematics, commands: str = "effort", clearance: float = math.inf
) -> ControllerState:
    """Reference, measurement and command of the controller, NaN where unknown; efforts only where it commands them."""
    header = Header(stamp=stamp, frame_id=kinematics.mechanism.base_link)
    message = ControllerState(header=header, mode=int(action.mode), reason=action.reason, clearance=clearance)
    message.actuated_names = kinematics.actuated_names
    if commands == "effort":
        message.effort = action.command
    message.speed_override = action.speed
    pose, twist, error, wanted = _UNKNOWN, _UNKNOWN[:6], _UNKNOWN[:6], Reference(_UNKNOWN, _UNKNOWN[:6], _UNKNOWN[:6])
    if action.reference is not None and action.measured is not None:
        pose, twist = action.measured.pose, action.measured.twist
        error = displacement_between(pose, action.reference.pose)
        wanted = action.reference.beside(kinematics)
    message.reference = _point_message(wanted.pose, wanted.twist, wanted.acceleration, 0.0)
    message.redundant_names = kinematics.redundant_names
    message.measured_pose = messages.to_pose(pose)
    message.measured_twist = messages.to_twist(twist)
    message.position_error = messages.to_vector(error[:3])
    message.rotation_error = messages.to_vector(error[3:])
    return message


def result_message(motion: Motion) -> FollowPlatformTrajectory.Result:
    """The result of a motion."""
    assert motion.outcome is not None
    return FollowPlatformTrajectory.Result(error_code=int(motion.outcome), error_string=motion.reason, **motion.errors)


def feedback_message(motion: Motion, action: Action, kinematics: Kinematics) -> FollowPlatformTrajectory.Feedback:
    """The progress of a motion."""
    message = FollowPlatformTrajectory.Feedback(
        position_error=motion.position_error, rotation_error=motion.rotation_error
    )
    message.header.frame_id = kinematics.mechanism.base_link
    message.reference.time_from_start = duration_message(motion.elapsed)
    if action.reference is not None and action.measured is not None:
        at = action.reference.beside(kinematics)
        message.reference = _point_message(at.pose, at.twist, at.acceleration, motion.elapsed)
        message.measured_pose = messages.to_pose(action.measured.pose)
    return message
