# SPDX-License-Identifier: Apache-2.0
"""What robots do when nobody says what, and moves of robots that cannot go straight."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.motion.files.default_motion import default_motion, tour
from pkm_control.motion.motion_space_paths import ActuatorPath
from pkm_control.motion.planning import MotionPlanner
from pkm_description import load_mechanism, robot_names
from pkm_description.corrections import Displacement, corrected
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics


@pytest.mark.parametrize("name", [name for name in robot_names() if name != "griffis_duffy"])
def test_every_robot_has_a_motion_that_it_can_reach(name: str) -> None:
    kinematics = Kinematics(load_mechanism(name))
    motion = default_motion(kinematics)
    assert np.all(kinematics.inverse(motion.poses, mode=0).status == 0)
    moved = np.abs(motion.poses - motion.poses[0]).max()
    assert moved > 0.01  # m, or a quaternion's element: something to see


def test_the_delta_picks_and_the_five_bar_tours() -> None:
    assert default_motion(Kinematics(load_mechanism("delta"))).source == "pick_and_place.csv"
    assert default_motion(Kinematics(load_mechanism("five_bar"))).source == "tour"


def test_a_tour_visits_both_sides_of_every_freedom_and_keeps_away_from_singularities() -> None:
    kinematics = Kinematics(load_mechanism("planar_3rrr"))
    motion = tour(kinematics)
    assert len(motion) == 1 + 2 * 2 * kinematics.mobility
    home, there = kinematics.singularity(kinematics.home), kinematics.singularity(motion.poses)
    assert there.type2.min() > 0.3 * home.type2
    trajectory = MotionPlanner(Dynamics(kinematics), ActuatorLimits.of(kinematics.mechanism)).plan(motion)
    sample = trajectory.sampled(500.0)
    assert np.all(kinematics.inverse(sample.pose, mode=0).status == 0)
    assert np.linalg.norm(sample.twist[:, :3], axis=1).max() < 0.5 * (1.0 + 1e-6)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("five_bar", ["end along +x", "end along -x", "end along +y", "end along -y"]),
        ("agile_eye", ["end about +x", "end about -x", "end about +y", "end about -y", "end about +z", "end about -z"]),
    ],
)
def test_ends_of_a_tour_are_called_by_where_they_are(name: str, labels: list[str]) -> None:
    motion = tour(Kinematics(load_mechanism(name)))
    assert sorted(set(motion.labels) - {"home"}) == sorted(labels)
    assert motion.describe_way(0, 1) == f"tour, home to {motion.labels[1]}"
    for label, pose in zip(motion.labels, motion.poses - motion.poses[0], strict=True):
        if label != "home":
            moved = pose[:3] if "along" in label else pose[3:6]
            assert np.argmax(np.abs(moved)) == "xyz".index(label[-1])
            assert (moved["xyz".index(label[-1])] > 0.0) == (label[-2] == "+")


def test_actuators_run_in_proportion_on_the_way_of_a_robot_that_cannot_go_straight() -> None:
    kinematics = Kinematics(load_mechanism("tripod_3prs"))
    home = kinematics.home
    q = np.array(kinematics.inverse(home).actuated)
    end = kinematics.forward(q + np.array((0.03, -0.01, 0.02)), near=home).pose
    path = ActuatorPath(kinematics, home, end)
    s = np.linspace(0.0, path.length, 41)
    sample = path.sample(s)
    along = kinematics.inverse(sample.pose)
    assert np.all(along.status == 0)  # in the motion space, to 1e-6 m and rad
    share = (along.actuated - q) / np.array((0.03, -0.01, 0.02))
    np.testing.assert_allclose(share, np.tile((s / path.length)[:, None], (1, 3)), atol=1e-7)
    # rates are the derivatives of the poses: central differences, whose own error is of the order of the step squared
    h = 1e-4 * path.length
    before, after = path.sample(s[1:-1] - h), path.sample(s[1:-1] + h)
    scale = np.abs(sample.first).max()
    np.testing.assert_allclose((after.pose - before.pose)[:, :3] / (2 * h), sample.first[1:-1, :3], atol=1e-6 * scale)
    change = (after.first - before.first) / (2 * h)
    np.testing.assert_allclose(change, sample.second[1:-1], atol=1e-4 * np.abs(change).max())


def test_a_path_back_is_the_path_the_other_way_round() -> None:
    kinematics = Kinematics(load_mechanism("tripod_3prs"))
    home = np.asarray(kinematics.home)
    end = np.asarray(kinematics.forward(kinematics.inverse(home).actuated + np.array((0.01, -0.02, 0.015))).pose)
    there = ActuatorPath(kinematics, home, end)
    back, again = there.back(), ActuatorPath(kinematics, end, home)
    s = np.linspace(0.0, there.length, 41)
    for one, other in ((back, again), (back.back(), there)):
        for name in ("pose", "first", "second"):
            np.testing.assert_allclose(getattr(one.sample(s), name), getattr(other.sample(s), name), atol=1e-8)


@pytest.mark.parametrize("off", [1e-7, 1e-3])
def test_the_tour_of_a_calibrated_five_bar_is_as_large_as_that_of_the_drawn_one(off: float) -> None:
    """Its arms meet beside the platform's origin then, which is no measure of its size."""
    drawn = load_mechanism("five_bar")
    loops = [Displacement(loop.name, "successor", np.array([off, 0.0, 0.0, 0.0, 0.0, 0.0])) for loop in drawn.loops]
    built, kinematics = Kinematics(corrected(drawn, loops)), Kinematics(drawn)
    assert built.characteristic_length == pytest.approx(kinematics.characteristic_length, rel=0.01)
    sizes = [np.ptp(tour(one).poses[:, :2], axis=0) for one in (built, kinematics)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)
