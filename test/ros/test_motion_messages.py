# SPDX-License-Identifier: Apache-2.0
"""Motions as messages and back; and what a MultiDOFJointTrajectory may lack, and what it may not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Transform, Twist, Vector3
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from pkm_control.motion.path_events import OutputEvent, PathEvents, PayloadChange
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory, PointTrajectoryError
from pkm_control.ros import motion_messages
from pkm_control.ros.motion_messages import duration_message, points_of_multi_dof
from pkm_description.mechanism import Inertial

HOME = np.array((0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0))


def test_events_come_back_as_they_were_sent() -> None:
    still = np.zeros((2, 6))
    body = Inertial(0.5, np.array((0.0, 0.1, -0.2)), np.diag((1.0, 2.0, 2.5)) + 0.1)
    events = PathEvents(
        (OutputEvent(0.25, "gripper", 1.0), OutputEvent(1.0, "lamp", 0.5)),
        (PayloadChange(0.5, body), PayloadChange(1.0, None)),
    )
    motion = MotionPoints(np.array((0.0, 1.0)), np.tile(HOME, (2, 1)), still, still, 3, events=events)
    back = motion_messages.points_of(motion_messages.trajectory_message(motion, "base")).events
    assert back.outputs == events.outputs
    assert [change.time for change in back.payloads] == [0.5, 1.0]
    came = back.payloads[0].payload
    assert came is not None
    assert came.mass == 0.5
    np.testing.assert_allclose(came.com, body.com)
    np.testing.assert_allclose(came.inertia, body.inertia)
    assert back.payloads[1].payload is None


def message(n: int = 3, velocities: bool = False, accelerations: bool = False) -> MultiDOFJointTrajectory:
    found = MultiDOFJointTrajectory(joint_names=["platform"])
    for k in range(n):
        point = MultiDOFJointTrajectoryPoint(time_from_start=duration_message(0.5 * k))
        place, attitude = Vector3(x=0.01 * k, y=0.002 * k * k, z=0.5), Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
        point.transforms = [Transform(translation=place, rotation=attitude)]
        point.velocities = [Twist(linear=Vector3(x=0.02 if 0 < k < n - 1 else 0.0))] if velocities else []
        point.accelerations = [Twist(linear=Vector3(y=0.1 if 0 < k < n - 1 else 0.0))] if accelerations else []
        found.points.append(point)
    return found


def test_points_without_velocities_lie_on_a_smooth_curve() -> None:
    points = points_of_multi_dof(message(), "platform")
    curve = PointTrajectory(points.times, points.poses, points.twists, points.accelerations)
    times = np.linspace(0.0, 1.0, 2001)
    pose, twist, acceleration = curve.sample(times)
    np.testing.assert_allclose(pose[[0, 1000, 2000], :2], ((0.0, 0.0), (0.01, 0.002), (0.02, 0.008)), atol=1e-12)
    assert np.abs(twist[[0, -1]]).max() < 1e-12
    assert np.linalg.norm(twist[1000]) > 0.02  # it does not stop on the way
    assert np.abs(np.diff(acceleration, axis=0)).max() < 0.01  # nor jerk


def test_rates_are_taken_where_they_are_given() -> None:
    points = points_of_multi_dof(message(velocities=True), "platform")
    np.testing.assert_allclose(points.twists[1], (0.02, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert not points.accelerations.any()
    points = points_of_multi_dof(message(velocities=True, accelerations=True), "platform")
    np.testing.assert_allclose(points.accelerations[1], (0.0, 0.1, 0.0, 0.0, 0.0, 0.0))
    one = points_of_multi_dof(message(1), "platform")
    assert len(one) == 1
    assert not one.twists.any()


def changed(change: Callable[[MultiDOFJointTrajectory], None], **given: bool) -> MultiDOFJointTrajectory:
    found = message(**given)
    change(found)
    return found


def _name(names: list[str]) -> Callable[[MultiDOFJointTrajectory], None]:
    return lambda m: setattr(m, "joint_names", names)


def _point(field: str, value: object, k: int = 1) -> Callable[[MultiDOFJointTrajectory], None]:
    return lambda m: setattr(m.points[k], field, value)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (changed(_name([])), r"joint_names is \[\]"),
        (changed(_name(["tool"])), r"joint_names is \['tool'\]; this robot has one such joint, \['platform'\]"),
        (changed(_name(["platform", "platform"])), "joint_names"),
        (changed(_point("transforms", [])), "point 1: it has 0 transforms"),
        (changed(_point("transforms", [Transform()] * 2)), "point 1: it has 2 transforms"),
        (changed(_point("velocities", []), velocities=True), "point 1: it has 0 velocities"),
        (changed(_point("velocities", [Twist()] * 2), velocities=True), "point 1: it has 2 velocities"),
        (changed(_point("velocities", [Twist()])), "point 0: it has 0 velocities"),
        (changed(_point("accelerations", [Twist()], 0), velocities=True), "point 1: it has 0 accelerations"),
        (message(accelerations=True), "accelerations without velocities"),
        (changed(_point("time_from_start", duration_message(0.0))), "point 1: its time 0 s is not after"),
        (changed(_point("transforms", [Transform(rotation=Quaternion(w=0.0))])), "quaternion has length 0"),
        (changed(_point("transforms", [Transform(translation=Vector3(x=float("nan")))])), "its pose is not finite"),
    ],
)
def test_what_cannot_be_a_motion(bad: MultiDOFJointTrajectory, words: str) -> None:
    with pytest.raises(PointTrajectoryError, match=words):
        points_of_multi_dof(bad, "platform")
