# SPDX-License-Identifier: Apache-2.0
"""A Delta as it was built tilts by itself: places that are asked for are kept, and attitudes follow."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_client import Robot
from pkm_control.motion.files.default_motion import default_motion
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.motion_space_paths import possible_poses, tilts_by_itself
from pkm_control.motion.planning import MotionPlanner
from pkm_control.tool import Tool
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits, PlatformLimits
from pkm_kinematics import Kinematics

CORRECTIONS = """
robot: delta
displacements:
  - joint: limb1_arm
    translation: [0.0008, -0.0005, 0.001]
    rotation: [0.001, 0, -0.0008]
  - joint: limb2_arm
    rotation: [-0.001, 0.0007, 0.0009]
  - loop: limb1_a_ball
    frame: successor
    translation: [0.0006, 0.001, -0.0004]
  - loop: limb3_b_ball
    frame: successor
    translation: [-0.001, 0.0003, 0.0007]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mechanism:
    file = tmp_path_factory.mktemp("corrections") / "delta.yaml"
    file.write_text(CORRECTIONS)
    return load_mechanism("delta", {"corrections": str(file)})


@pytest.fixture(scope="module")
def kinematics(built: Mechanism) -> Kinematics:
    return Kinematics(built)


def places(kinematics: Kinematics, *moves: tuple[float, float, float]) -> Array:
    """Poses (n, 7) at places beside home, upright as a Delta's are drawn."""
    return np.array([[*(kinematics.home[:3] + move), 0.0, 0.0, 0.0, 1.0] for move in moves])


def test_which_robots_do(kinematics: Kinematics) -> None:
    assert tilts_by_itself(kinematics)
    for drawn in ("delta", "tripod_3prs", "tricept", "gough_stewart"):
        assert not tilts_by_itself(Kinematics(load_mechanism(drawn))), drawn


def test_places_are_kept(kinematics: Kinematics) -> None:
    wanted = places(kinematics, (0.0, 0.0, 0.0), (0.1, -0.05, 0.04), (-0.2, 0.1, -0.02))
    assert not kinematics.inverse(wanted).ok.any()
    found = possible_poses(kinematics, wanted)
    assert found[:, :3] == pytest.approx(wanted[:, :3], abs=1e-10)
    assert kinematics.inverse(found).ok.all()
    assert 1e-4 < np.abs(found[:, 3:6]).max() < 0.02
    turned = wanted.copy()
    turned[:, 3:] = [0.0, 0.2, 0.0, 0.96**0.5]
    assert np.array_equal(possible_poses(kinematics, turned), turned)  # nobody means an upright platform by that
    assert possible_poses(Kinematics(load_mechanism("delta")), wanted) is wanted
    far = places(kinematics, (2.0, 0.0, 0.0))
    assert np.array_equal(possible_poses(kinematics, far), far)


def test_a_tools_point_is_where_one_says(kinematics: Kinematics) -> None:
    tool = Tool("gripper", np.array([0.05, 0.0, -0.1, 0.0, 0.0, 0.0, 1.0]), 0.0, np.zeros(3))
    wanted = places(kinematics, (0.1, -0.05, 0.04))
    found = possible_poses(kinematics, wanted, tool)
    assert tool.on_platform(found)[:, :3] == pytest.approx(tool.on_platform(wanted)[:, :3], abs=1e-8)
    assert kinematics.inverse(found).ok.all()


def test_lines_are_straight_and_corners_round(kinematics: Kinematics, built: Mechanism) -> None:
    planner = MotionPlanner(Dynamics(kinematics), ActuatorLimits.of(built))
    way = places(kinematics, (0.0, 0.0, 0.0), (0.1, 0.0, 0.05), (0.1, 0.1, 0.05))
    blends = np.array([0.0, 0.02, 0.0])
    motion = MotionFile.through("way", way, ("a", "b", "c"), PlatformLimits.none(), blends=blends)
    sample = planner.plan(motion).sampled(1000.0)
    aside = np.linalg.norm(np.cross(sample.pose[:, :3] - way[0, :3], [2 / 5**0.5, 0, 1 / 5**0.5]), axis=1)
    assert aside[sample.pose[:, 0] < way[1, 0] - 0.02].max() < 1e-9
    speed = np.linalg.norm(sample.twist[:, :3], axis=1)
    assert (speed[len(speed) // 4 : -len(speed) // 4] > 0.05).all()  # no stop at the corner
    exists = np.array([kinematics.nearest(pose).pose for pose in sample.pose[::20]])
    assert sample.pose[::20] == pytest.approx(exists, abs=1e-8)
    step = np.diff(sample.pose[:, :3], axis=0) * 1000.0
    assert step == pytest.approx(0.5 * (sample.twist[1:, :3] + sample.twist[:-1, :3]), abs=5e-3 * speed.max())
    assert kinematics.motion(sample.pose[::50], sample.twist[::50], sample.acceleration[::50]).ok.all()


def test_its_default_motion_is_a_deltas(kinematics: Kinematics) -> None:
    assert default_motion(kinematics).source == default_motion(Kinematics(load_mechanism("delta"))).source


def test_it_runs(built: Mechanism) -> None:
    with Robot.simulated(built, realtime=False) as robot:
        there = robot.kinematics.home[:3] + np.array([0.05, 0.02, 0.03])
        robot.move_to(there)
        assert robot.state.pose[:3] == pytest.approx(there, abs=2e-5)
        robot.jog(linear=(0.05, 0.0, 0.0), seconds=0.3)
        assert robot.state.pose[0] > there[0] + 0.01
        assert robot.solve_ik(there).ok
