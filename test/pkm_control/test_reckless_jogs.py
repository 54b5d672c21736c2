# SPDX-License-Identifier: Apache-2.0
"""Jogs, stops and pauses at random never throw a robot: the simulated machine itself is looked at."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid

from bench.reckless.jogs import JOGS, OVER, ROBOTS, STOPS, JoggedRobot, Tally
from pkm_control.loop.followed_motion import Motion
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displace


def require_well(tally: Tally) -> None:
    assert tally.well, (tally.speed, tally.effort, tally.beyond, tally.notes)


def test_some_jogs_and_stops_throw_nothing() -> None:
    require_well(JoggedRobot("five_bar").trials(1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_no_jog_and_no_stop_throws_a_robot(name: str) -> None:
    require_well(JoggedRobot(name).trials(JOGS, STOPS))


@pytest.mark.by_day((0.0, 0.0, -0.1), (-0.2, 0.1, 0.0))
@pytest.mark.parametrize(
    ("way", "why"), [((-0.1, 0.0, 0.0), "effort"), ((0.0, 0.0, -0.1), "effort"), ((-0.2, 0.1, 0.0), "noise")]
)
def test_a_hexapod_is_not_dropped_at_its_border(way: tuple[float, float, float], why: str) -> None:
    """Its legs lose hold of it beyond: it was dropped there by what braking before them took."""
    robot = JoggedRobot("gough_stewart")
    twist = np.array((*way, 0.0, 0.0, 0.0))
    while robot.machine.time < 9.0 and not robot.follower.jog.blocked and not robot.fell:
        assert robot.follower.steer(twist, robot.machine.time) == ""
        robot.run(0.1)
    assert why in robot.follower.jog.blocked
    robot.rest("jog")
    robot.judge("jog")
    require_well(robot.tally)
    assert robot.machine.pose[2] > 0.15
    assert np.abs(robot.machine.twist).max() < 1e-4


def bounded(home: Array, way: Array, seconds: float) -> PointTrajectory:
    """A motion whose acceleration is as large as it gets almost all the time."""
    fine, ramp = np.linspace(0.0, 1.0, 20001), 0.06
    speeding = np.clip(fine / ramp, 0.0, 1.0) * np.clip((0.5 - fine) / ramp, 0.0, 1.0)
    acceleration = speeding - speeding[::-1]
    velocity = cumulative_trapezoid(acceleration, fine, initial=0.0)
    place = cumulative_trapezoid(velocity, fine, initial=0.0)
    s, size = fine[::50], place[-1]
    velocity[-1] = 0.0
    poses = np.array([displace(home, way * one / size) for one in place[::50]])
    twists, accelerations = np.outer(velocity, way) / size / seconds, np.outer(acceleration, way) / size / seconds**2
    return PointTrajectory(s * seconds, poses, twists[::50], accelerations[::50])


@pytest.mark.by_day(0.7)
@pytest.mark.parametrize("at", [0.3, 0.45, 0.7])
def test_a_stop_takes_no_more_than_the_drives_have(at: float) -> None:
    """Of a motion that takes nearly all of them: it is stopped as soon as that leaves some."""
    robot = JoggedRobot("delta")
    robot.begin(1)
    way = np.array((0.15, 0.0, -0.05, 0.0, 0.0, 0.0))
    follower = robot.follower
    for seconds in np.geomspace(3.0, 0.05, 90):
        faster = bounded(robot.home, way, float(seconds))
        if follower.check.refusal(faster):
            break
        motion = faster
    braking = follower.check.braking(motion)
    _, twist, acceleration = motion.sample(times := np.linspace(0.0, motion.duration, 300))
    pose = motion.sample(times)[0]
    for rate in (0.1, 0.5, 0.8, 1.0):
        changes = np.array([braking.at(float(time), rate) for time in times])[:, None]
        for side in (-1.0, 1.0):
            pushed = rate**2 * acceleration + side * changes * twist
            efforts = np.abs(np.asarray(robot.dynamics.inverse(pose, rate * twist, pushed).effort))
            assert (efforts / robot.limits.effort).max() < OVER
    robot.tally.effort = 0.0
    follower.follow(Motion(motion, follower.time + 0.02, braking=braking))
    robot.run(0.02 + at * motion.duration)
    asked = robot.machine.time
    follower.stop()
    robot.rest("stop")
    robot.judge("stop")
    require_well(robot.tally)
    assert robot.machine.time - asked < 1.0
