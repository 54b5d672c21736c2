# SPDX-License-Identifier: Apache-2.0
"""Goals, pauses and stops at random: what is admitted runs within all limits, what is not leaves all as it was."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.loop.followed_motion import Motion
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displace

ROBOTS = ("five_bar", "delta", "gough_stewart", "quattro", "agile_eye", "planar_3rrr", "planar_redundant")
PERIOD = 4e-3  # s


def random_goal(random: np.random.Generator, pose: Array, space: Array, length: float) -> PointTrajectory:
    """A way from a pose through two others in the motion space, with twists of its own, meant well or not."""
    reckless = random.random() < 0.5
    n, mobility = 3, space.shape[1]
    size = length * (0.5 if reckless else 0.05)
    poses = [pose] + [displace(pose, space @ (size * random.normal(size=mobility))) for _ in range(n - 1)]
    twists, accelerations = np.zeros((n, 6)), np.zeros((n, 6))
    twists[1] = space @ ((max(20.0 * length, 10.0) if reckless else 0.05 * length) * random.normal(size=mobility))
    accelerations[1] = space @ ((50.0 if reckless else 0.1) * length * random.normal(size=mobility))
    step = 0.3 if reckless else 0.6
    return PointTrajectory(step * np.arange(n), np.array(poses), twists, accelerations)


@pytest.mark.by_day("planar_redundant")
@pytest.mark.parametrize("name", [*ROBOTS, pytest.param("irsbot2", marks=pytest.mark.slow)])
def test_goals_at_random(steered, name: str) -> None:
    random = np.random.default_rng(11)
    robot = steered(name)
    robot.run(2 * PERIOD)
    k, follower = robot.kinematics, robot.follower
    space = np.asarray(k.subspace(k.home))
    admitted = refused = 0
    for _ in range(8):
        assert follower.mode is Mode.HOLDING
        try:
            trajectory = random_goal(random, follower.hold, space, k.characteristic_length)
        except PointTrajectoryError:  # turned too far
            continue
        refusal = follower.check.refusal(trajectory)
        if refusal:
            assert refusal.startswith("at ")
            refused += 1
            continue
        admitted += 1
        motion = Motion(trajectory, robot.machine.time, braking=follower.check.braking(trajectory))
        follower.follow(motion)
        robot.run(random.uniform(0.1, 0.6) * trajectory.duration)
        what = random.integers(4)
        if what == 0:
            assert follower.pause() == ""
            robot.run(3.0)
            assert robot.actions[-1].mode is Mode.PAUSED
            assert follower.resume() == ""
        elif what == 1:
            assert follower.stop() == ""
        elif what == 2:
            assert follower.set_override(0.5) == ""
        robot.run(trajectory.duration + 3.0)
        follower.set_override(1.0)
        assert motion.outcome is (Outcome.PREEMPTED if what == 1 else Outcome.SUCCESSFUL)
    assert admitted > 0
    assert refused > 0
    deficits = follower.check.deficits(robot.references[::5])
    assert deficits.max() == 0.0, deficits.max(axis=0)
    assert follower.controller.saturations.sum() == 0
