# SPDX-License-Identifier: Apache-2.0
"""Robots with redundant joints under control: held at home, following the platform, or commanded."""

from __future__ import annotations

import mmap
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.cli import main
from pkm_bringup.main_job import plan_cycle, run_motion, simulated_loop
from pkm_client import Robot
from pkm_control.loop.between_processes import Rows, Texts
from pkm_control.loop.control_loop import switch_on
from pkm_control.loop.running_loop import situation_of
from pkm_control.loop_settings import Setup
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory, PointTrajectoryError
from pkm_control.motion.rounded_path import RoundedPath
from pkm_control.motion.trajectory import TimedCurve
from pkm_control.operator_interface import ADAPTIVE, COMPUTED_TORQUE, PD_GRAVITY, POSITION
from pkm_description import load_mechanism
from pkm_description.mechanism import Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Status
from pkm_runtime.errors import PkmError
from pkm_viewer.report.report import margins_along
from test.oracles.redundant_robots import (
    CASES,
    REDUNDANT,
    hexapods_in_series,
    on_a_rail,
    planar_3prrr,
    planar_on_a_rail,
)

from .conftest import running_nodes

ALONG = np.array([0.6, 0.8, 0.0])  # the rail


def following(text: str, **follows: str) -> Mechanism:
    """A robot whose redundant joints follow the platform."""
    root = ET.fromstring(load_mechanism(text).urdf)
    pkm = root.find("pkm")
    assert pkm is not None
    for joint, share in follows.items():
        ET.SubElement(pkm, "redundant", joint=joint, follows=share)
    return load_mechanism(ET.tostring(root, encoding="unicode"))


def shifted(pose: np.ndarray, by: np.ndarray) -> np.ndarray:
    return pose + np.append(by, np.zeros(4))


@pytest.mark.by_day("Delta on a rail", "planar 3-PRRR with six drives")
@pytest.mark.parametrize("case", CASES)
def test_the_platform_moves_and_redundant_joints_stay(case: str) -> None:
    with Robot.simulated(load_mechanism(REDUNDANT[case][0]()), False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        goal = shifted(k.home, 0.03 * k.task.subspace[:3, 0])
        robot.move_to(goal)
        assert np.abs(robot.state.pose - goal).max() < 1e-4
        at_home = k.home_joints[k.engine.redundant_column]
        joints = k.forward([robot.state.positions[name] for name in k.actuated_names], near=goal).joints
        assert np.abs(joints[k.engine.redundant_column] - at_home).max() < 1e-4


@pytest.mark.slow
@pytest.mark.by_day(COMPUTED_TORQUE)
@pytest.mark.parametrize(("law", "close"), [(COMPUTED_TORQUE, 5e-4), (PD_GRAVITY, 1e-2), (POSITION, 1e-9)])
def test_a_rail_carries_a_delta_far_beyond_its_reach(law: str, close: float) -> None:
    """PD feeds no acceleration forward, and ends its motion some millimetres behind."""
    mechanism = following(on_a_rail("delta"), rail="0.6 0.8 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0, controller=law)) as robot:
        k = robot.kinematics
        goal = shifted(k.home, 0.7 * ALONG)
        robot.move_to(goal)
        assert abs(robot.state.positions["rail"] - 0.7) < close
        assert np.abs(robot.state.pose - goal).max() < close
        robot.move_to(shifted(k.home, 0.7 * ALONG + 0.05 * np.array([-0.8, 0.6, 0.0])))
        assert abs(robot.state.positions["rail"] - 0.7) < close


def test_what_follows_does_so_in_kinematics_and_dynamics() -> None:
    mechanism = following(planar_on_a_rail(locked=False), rail="0.5 0 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        dynamics = Dynamics(k)
        pose = shifted(k.home, np.array([0.2, 0.01, 0.0]))
        at = k.inverse(pose)
        assert abs(float(at.redundant[0]) - 0.1) < 1e-12
        twist = np.array([0.3, -0.1, 0.0, 0.0, 0.0, 0.2])
        asked = at.motion(twist).velocities[k.engine.redundant_column]
        assert abs(float(asked[0]) - 0.15) < 1e-12
        same = dynamics.inverse(pose, np.append(twist, 0.15), np.zeros(7)).effort
        assert np.abs(dynamics.inverse(pose, twist).effort - same).max() < 1e-9
        assert float(k.inverse(pose, seed=k.inverse(np.append(pose, 0.0)).joints).redundant[0]) == 0.0


def test_a_plan_minds_the_limits_of_the_rail() -> None:
    mechanism = following(on_a_rail("delta"), rail="0.6 0.8 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        home = robot.kinematics.home
        assert Status(int(robot.kinematics.inverse(shifted(home, 1.3 * ALONG)).status)) is Status.JOINT_LIMIT
        with pytest.raises(PkmError, match="rail"):
            robot.move_to(shifted(home, 1.3 * ALONG))


def test_laws_that_do_not_know_redundant_joints_are_refused() -> None:
    with pytest.raises(PkmError, match=r"the law .adaptive.:.*redundant joints: limb1_slider"):
        Robot.simulated(load_mechanism(planar_3prrr(locked=False)), False, Setup(controller=ADAPTIVE))


# Redundant joints commanded


def placed(robot: Robot, near: np.ndarray) -> np.ndarray:
    """Where the redundant joints are, by the drives."""
    k = robot.kinematics
    joints = k.forward([robot.state.positions[name] for name in k.actuated_names], near=near).joints
    return np.asarray(joints[k.engine.redundant_column])


@pytest.mark.by_day(COMPUTED_TORQUE)
@pytest.mark.parametrize(("law", "close"), [(COMPUTED_TORQUE, 5e-4), (PD_GRAVITY, 1e-2), (POSITION, 1e-9)])
def test_a_rail_is_commanded_and_stays(law: str, close: float) -> None:
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0, controller=law)) as robot:
        home = np.array(robot.kinematics.home)
        robot.move_to(home, redundant={"rail": 0.1})  # the platform stands
        assert abs(robot.state.positions["rail"] - 0.1) < close
        assert np.abs(robot.state.pose - home).max() < close
        goal = shifted(home, 0.7 * ALONG)
        robot.move_to(goal, redundant={"rail": 0.65})
        assert robot.state.redundant == {"rail": 0.65}
        assert np.abs(robot.state.pose - goal).max() < close
        goal = shifted(goal, np.array([0.05, 0.0, -0.05]))
        robot.move_to(goal)  # of the rail nothing is said: it stays
        assert np.abs(robot.state.pose - goal).max() < close
        robot.jog((0.1, 0.0, 0.0), seconds=0.5)
        assert robot.state.pose[0] > goal[0] + 0.02
        assert abs(robot.state.positions["rail"] - 0.65) < close
        inverse = robot.solve_ik(robot.state.reference)
        assert abs(float(inverse.redundant[0]) - 0.65) < 1e-12


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(  # passive joints, with units of both
            hexapods_in_series(locked=False), {"stage/x": 0.25, "stage/yaw": 0.05}, marks=pytest.mark.slow
        ),
        (planar_3prrr(locked=False), {"limb1_slider": 0.05, "limb3_slider": -0.04}),
        (planar_on_a_rail(locked=False), {"rail": 0.2}),
    ],
)
def test_redundant_joints_of_all_kinds_move_while_the_platform_stands(text: str, wanted: dict[str, float]) -> None:
    with Robot.simulated(load_mechanism(text), False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        expected = dict(zip(k.redundant_names, k.home_joints[k.engine.redundant_column].tolist(), strict=True)) | wanted
        robot.move_to(k.home, redundant=wanted)
        assert np.abs(robot.state.pose - k.home).max() < 1e-4
        assert np.abs(placed(robot, np.array(k.home)) - list(expected.values())).max() < 1e-4


@pytest.mark.slow
def test_what_follows_goes_on_from_where_it_was_commanded_to() -> None:
    mechanism = following(on_a_rail("delta"), rail="0.6 0.8 0")
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        home = np.array(robot.kinematics.home)
        robot.move_to(home, redundant={"rail": 0.1})
        robot.move_to(shifted(home, 0.4 * ALONG))
        assert abs(robot.state.positions["rail"] - 0.5) < 5e-4
        robot.jog(tuple(-0.1 * ALONG), seconds=0.5)
        gone = float((robot.state.pose - home)[:3] @ ALONG)
        assert gone < 0.38
        assert abs(robot.state.positions["rail"] - gone - 0.1) < 5e-4


@pytest.mark.slow
def test_a_paused_motion_of_a_rail_goes_on_after_a_jog() -> None:
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0)) as robot:
        goal = shifted(robot.kinematics.home, 0.5 * ALONG)
        task = robot.move_to(goal, 0.5, redundant={"rail": 0.5}, block=False)
        robot.wait(0.4)
        robot.pause()
        halted = robot.state.redundant["rail"]
        assert 0.01 < halted < 0.45
        robot.jog((0.0, 0.0, 0.1), seconds=0.3)
        assert abs(robot.state.positions["rail"] - halted) < 1e-3
        robot.resume()
        task.result()
        assert abs(robot.state.positions["rail"] - 0.5) < 5e-4
        assert np.abs(robot.state.pose - goal).max() < 5e-4


def test_a_rail_is_held_where_it_is_found() -> None:
    """Drives that were off hold it there, not at home's place, and it is no other working mode."""
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0)) as robot:
        goal = shifted(robot.kinematics.home, 0.6 * ALONG)
        robot.move_to(goal, redundant={"rail": 0.6})
        robot.disable()
        robot.wait(1.0)
        robot.enable()
        robot.wait(0.5)
        assert robot.state.known
        assert abs(robot.state.redundant["rail"] - 0.6) < 1e-2
        assert abs(robot.state.positions["rail"] - robot.state.redundant["rail"]) < 1e-3
        robot.move_to(goal, redundant={"rail": 0.5})
        assert abs(robot.state.positions["rail"] - 0.5) < 5e-4


def test_plans_keep_the_limits_of_the_rail() -> None:
    mechanism = load_mechanism(on_a_rail("delta"))
    dynamics = Dynamics(mechanism)
    k, limits = dynamics.kinematics, ActuatorLimits.of(mechanism)
    planner = MotionPlanner(dynamics, limits, reserve=0.1)
    there = np.append(shifted(k.home, 0.8 * ALONG), 0.8)
    plan = planner.between(k.home, there)
    sample = plan.sample(np.linspace(0.0, plan.duration, 3001))
    at = k.at(sample.pose)
    speeds = np.abs(at.motion(sample.twist).actuated_velocities)
    efforts = np.abs(dynamics.inverse(at, sample.twist, sample.acceleration).effort)
    assert np.allclose(speeds[:, k.actuated_names.index("rail")], np.abs(sample.twist[:, 6]), atol=1e-9)
    assert (speeds <= 0.9 * limits.velocity * (1.0 + 1e-6)).all()
    assert (efforts <= 0.9 * limits.effort * (1.0 + 1e-6)).all()
    assert plan.duration < 0.6  # and it is no slow motion
    assert "limited by effort of rail" in plan.notes[0]
    assert np.abs(sample.pose[-1] - there).max() < 1e-9
    with Robot.simulated(mechanism, False, Setup(rate=500.0)) as robot:
        with pytest.raises(PkmError, match="rail"):
            robot.move_to(shifted(k.home, 0.95 * ALONG), redundant={"rail": 1.05})
        with pytest.raises(PkmError, match="limb"):
            robot.move_to(k.home, redundant={"rail": 0.95})  # beyond the reach of the limbs
        assert abs(robot.state.positions["rail"]) < 1e-4


def test_what_cannot_be_commanded_is_refused_by_name() -> None:
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0)) as robot:
        home = robot.kinematics.home
        for wanted, words in (
            ({"rails": 0.1}, "'rails' is no redundant joint; there are rail"),
            ({"rail": float("nan")}, "rail is nan; give a finite number"),
        ):
            with pytest.raises(PkmError, match=words):
                robot.move_to(home, redundant=wanted)
        with pytest.raises(PkmError, match="nearest"):
            robot.move_to(home, redundant={"rail": 0.1}, nearest=True)
        known = robot.state
        robot._backend.state = lambda: replace(known, redundant={})  # type: ignore[method-assign]
        with pytest.raises(PkmError, match="it is not known where rail is"):
            robot.move_to(home, redundant={"rail": 0.1})
    none = pytest.raises(PkmError, match="'rail' is no redundant joint; there are none")
    with Robot.simulated("delta", False, Setup(rate=500.0)) as robot, none:
        robot.move_to(robot.kinematics.home, redundant={"rail": 0.1})


@pytest.mark.slow
def test_columns_of_motion_files(tmp_path: Path) -> None:
    file = tmp_path / "rail.csv"
    file.write_text(
        "# frame: home\nx [m], y [m], z [m], rail [mm]\n0,0,0,0\n0,0,0,100\n0.3,0.4,0,500\n0.3,0.4,-0.05,450\n"
    )
    timed = tmp_path / "timed.csv"
    timed.write_text(
        "# frame: home\nx [m], y [m], z [m], rail [m], time [s]\n0,0,0,0,0\n0.03,0.04,0,0.1,1\n0,0,0,0,2\n"
    )
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0)) as robot:
        home = np.array(robot.kinematics.home)
        robot.follow(file)
        assert abs(robot.state.positions["rail"] - 0.45) < 5e-4
        assert np.abs(robot.state.pose - shifted(home, np.array([0.3, 0.4, -0.05]))).max() < 5e-4
        robot.follow(timed)  # first the way back, of the rail, too
        assert abs(robot.state.positions["rail"]) < 5e-4
        assert np.abs(robot.state.pose - home).max() < 5e-4
        robot.follow(file, 2)  # as a cycle
        assert abs(robot.state.positions["rail"]) < 5e-4
        for text, words in (
            (
                "x [m], y [m], z [m], rail [deg]\n0,0,0,0\n0,0,0,1\n",
                r"'rail': has the unit \[deg\].*write \[m\] or \[mm\]",
            ),
            (
                "# frame: conveyor\nx [m], y [m], z [m], rail [m]\n0,0,0,0\n0,0,0,1\n",
                "'rail': is not commanded in the frame",
            ),
            ("# frame: home\nx [m], y [m], z [m], rail [m]\n0,0,0,0\n0,0,0,1.2\n", "rail"),
            ("# frame: home\nx [m], y [m], z [m], rail [m]\n0,0,0,0\n0,0,0,0\n", "repeats the waypoint"),
        ):
            file.write_text(text)
            with pytest.raises(PkmError, match=words):
                robot.follow(file)


def test_curves_with_redundant_joints_have_their_own_derivatives() -> None:
    """The rates behind pose and twist, by differences."""
    rng = np.random.default_rng(3)
    n, h = 5, 1e-5
    poses = rng.normal(size=(n, 9))
    poses[:, 3:7] /= np.linalg.norm(poses[:, 3:7], axis=1)[:, None]
    poses[1:, 3:7] = poses[0, 3:7]
    times = np.array([0.0, 0.3, 0.7, 1.1, 2.0])
    points = PointTrajectory(times, poses, rng.normal(size=(n, 8)), rng.normal(size=(n, 8)))
    rounded = RoundedPath(poses, np.array([0.2, 0.1, 0.3]))
    s = rounded.length * np.array([0.1, 0.3, 0.52, 0.9])
    path, before, after = (rounded.sample(s + by) for by in (0.0, -h, h))
    assert np.abs((after.pose - before.pose)[:, 7:] / (2 * h) - path.first[:, 6:]).max() < 1e-8
    assert np.abs((after.first - before.first)[:, 6:] / (2 * h) - path.second[:, 6:]).max() < 1e-7
    for curve in (points, TimedCurve(times, poses)):
        at = np.array([0.11, 0.52, 0.9, 1.7])
        pose, twist, acceleration = curve.sample(at)
        (before, slower, _), (after, faster, _) = curve.sample(at - h), curve.sample(at + h)
        assert np.abs((after - before)[:, 7:] / (2 * h) - twist[:, 6:]).max() < 1e-6
        assert np.abs((faster - slower)[:, 6:] / (2 * h) - acceleration[:, 6:]).max() < 1e-5
        assert np.abs(curve.sample(times)[0][:, 7:] - poses[:, 7:]).max() < 1e-12
        assert pose.shape == (4, 9)
    one = points.between(0.52, 0.9)
    assert np.array_equal(one.pose, points.sample(np.array([0.52]))[0][0])
    assert np.array_equal(one.acceleration, points.sample(np.array([0.9]))[2][0])


def test_points_that_say_nothing_of_the_rail_leave_it_where_it_is() -> None:
    """As goals over ROS do: what the loop's process tells of the rail comes with the held pose."""
    with Robot.simulated(load_mechanism(on_a_rail("delta")), False, Setup(rate=500.0)) as robot:
        k = robot.kinematics
        home = np.array(k.home)
        robot.move_to(home, redundant={"rail": 0.1})
        loop = robot._backend.loop  # type: ignore[attr-defined]
        now = situation_of(loop, 0.0)
        rows = Rows(mmap.mmap(-1, 1 << 23), len(k.actuated_names), len(k.joint_names), 1)
        rows.clear()
        for hold in (now.held, now.held[:7]):
            rows.write(replace(now, hold=hold), None, now.state.lifecycle, Texts(), 0, 0.0)
            row = rows.newest
            assert row is not None
            assert np.array_equal(rows.situation(row).held, hold)
        assert abs(now.held[7] - 0.1) < 1e-12
        goal = np.vstack([home, shifted(home, np.array([0.0, 0.0, -0.05]))])
        points = MotionPoints(np.array([0.0, 1.0]), goal, np.zeros((2, 6)), np.zeros((2, 6)))
        path = points.beside(k, now.held).trajectory(k, now.held, 0.005)
        assert np.abs(path.poses[:, 7] - 0.1).max() < 1e-12
        elsewhere = np.hstack([goal, [[0.2], [0.2]]])
        jump = MotionPoints(points.times, elsewhere, np.zeros((2, 7)), np.zeros((2, 7)))
        with pytest.raises(PointTrajectoryError, match=r"point 0: rail is 0\.1 from where it is"):
            jump.trajectory(k, now.held, 0.005)


def test_a_report_of_a_commanded_rail_has_the_margins_of_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "rail.csv"
    file.write_text("# frame: home\nx [m], y [m], z [m], rail [m]\n0,0,0,0.05\n0.3,0.4,0,0.55\n")
    mechanism = load_mechanism(on_a_rail("delta"))
    dynamics = Dynamics(mechanism)
    planner = MotionPlanner(dynamics, ActuatorLimits.of(mechanism))
    job = plan_cycle(planner, motion_named(str(file), dynamics.kinematics))
    loop = simulated_loop(mechanism, 500.0, dynamics)
    switch_on(loop)
    run_motion(loop, job.approach, recorded=False)
    recording = run_motion(loop, job.cycle)
    assert not recording.faults
    rail = recording.rows.positions[:, dynamics.kinematics.actuated_names.index("rail")]
    assert abs(rail[0] - 0.05) < 5e-4
    assert abs(rail.max() - 0.55) < 5e-3
    margins = margins_along(dynamics.kinematics, recording)
    assert np.ptp(margins.type1) < 1e-2 * margins.type1.max()  # the limbs travel with the rail, and keep their shape
    assert np.ptp(margins.stop) < 1e-2


@pytest.mark.slow
def test_a_rail_is_commanded_over_ros(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a command, a motion file and a call; the joint states have it, and what says nothing of it leaves it there."""
    with running_nodes("rail", on_a_rail("delta")), Robot.connect("rail", timeout=120.0) as robot:
        home, rail = robot.kinematics.home, robot.state.redundant
        assert rail == {"rail": 0.0}
        to = [*(str(value) for value in shifted(home, 0.3 * ALONG)[:3]), "--namespace", "rail"]
        assert main(["move", *to, "--joint", "rail=0.3"]) == 0
        state = robot.state
        assert abs(state.positions["rail"] - 0.3) < 1e-3
        assert abs(state.redundant["rail"] - 0.3) < 1e-9
        assert np.abs(state.pose - shifted(home, 0.3 * ALONG)).max() < 1e-3
        robot.move_to(shifted(home, 0.25 * ALONG))
        assert abs(robot.state.redundant["rail"] - 0.3) < 1e-9
        file = tmp_path / "along.csv"
        file.write_text(
            "# frame: home\nx [m], y [m], z [m], rail [m]\n0.15,0.2,0,0.3\n0.15,0.2,0,0.1\n", encoding="utf-8"
        )
        robot.follow(str(file))
        assert abs(robot.state.positions["rail"] - 0.1) < 1e-3
        assert np.abs(robot.state.pose - shifted(home, 0.25 * ALONG)).max() < 1e-3
        capsys.readouterr()
        for words, reason in (("rail=2", "rail"), ("lift=1", "'lift' is no redundant joint; there are rail")):
            assert main(["move", *to, "--joint", words]) == 1
            assert reason in capsys.readouterr().err
