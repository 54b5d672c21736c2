# SPDX-License-Identifier: Apache-2.0
"""Distances between tools and places are never too large; goals, jogs, and their ends stay away; recovery leads out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from pkm_bringup.simulate_command import main as simulate
from pkm_client import Robot
from pkm_client.client_errors import RefusedError
from pkm_control.keep_out import KeepOuts, RoundedBox, read_keep_outs
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop_settings import Setup
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.operator_interface import Mode
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_quaternion, rotation_from_vector
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_runtime.errors import ConfigurationError, PkmError

PERIOD = 4e-3  # s
TEXT = """
margin: 0.005
keep_outs:
  wall: {center: [0.3, 0, -0.9], size: [0.2, 1, 1]}
  post: {from: [0, -0.2, -1.2], to: [0, -0.2, -0.7], radius: 0.02}
tool:
  gripper: {from: [0, 0, 0], to: [0, 0, -0.05], radius: 0.02}
"""
EVERYDAY = ("delta", "five_bar")
OTHERS = ("gough_stewart", "quattro", "planar_3rrr", "irsbot2", "planar_redundant", "hexaglide", "tripod_3prs", "h4")
MORE = ("tricept", "linear_delta", "agile_eye", "orthoglide")


def random_box(random: np.random.Generator) -> RoundedBox:
    rotation = rotation_from_vector(random.normal(size=3))
    half = random.uniform(0.0, 0.3, 3) * (random.random(3) < 0.7)
    rows = tuple((r[0], r[1], r[2]) for r in rotation)
    x, y, z = random.normal(scale=0.4, size=3)
    return RoundedBox((x, y, z), (half[0], half[1], half[2]), rows, random.uniform(0.0, 0.1))


def judged(a: RoundedBox, b: RoundedBox) -> float:
    """Distance of two rounded boxes by bounded least squares."""
    axes = np.hstack([np.array(a.rotation), -np.array(b.rotation)])
    half = np.array([*a.half, *b.half]) + 1e-12
    found = lsq_linear(axes, np.array(b.centre) - np.array(a.centre), (-half, half), tol=1e-14)
    return float(np.sqrt(2.0 * found.cost)) - a.radius - b.radius


def test_distances_are_those_of_another_method_and_never_more() -> None:
    random = np.random.default_rng(3)
    pose = np.array([0.1, -0.2, 0.3, *(np.array([0.1, 0.2, 0.3, 0.9]) / np.linalg.norm([0.1, 0.2, 0.3, 0.9]))])
    turned = rotation_from_quaternion(pose[3:])
    apart = 0
    for _ in range(120):
        tool, place = random_box(random), random_box(random)
        x, y, z = pose[:3] + turned @ np.array(tool.centre)
        rows = tuple((r[0], r[1], r[2]) for r in turned @ np.array(tool.rotation))
        expected = judged(RoundedBox((x, y, z), tool.half, rows, tool.radius), place)
        found = float(KeepOuts({"a": place}, [tool]).clearance(pose[None])[0][0])
        rounding = tool.radius + place.radius
        assert found < expected + 1e-6
        if expected > -rounding + 1e-3:  # the boxes without their rounding are apart
            assert found == pytest.approx(expected, abs=2e-3)
            apart += 1
        else:
            assert found < -rounding + 2e-3
    assert apart > 40


def test_a_thin_place_is_not_jumped_over() -> None:
    sheet = KeepOuts({"sheet": RoundedBox((0.0, 0.0, 0.0), (1e-4, 1.0, 1.0))})
    ends = np.zeros((2, 7))
    ends[:, 6], ends[0, 0], ends[1, 0] = 1.0, -0.05, 0.05
    lacks = sheet.lacks(ends, sheet.margin)
    assert lacks[0] == 0.0
    assert lacks[1] > 0.8 * sheet.margin


def written(folder: Path, text: str) -> str:
    path = folder / "space.yaml"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.slow
def test_goals_and_jogs_stay_away_and_say_from_what(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    space = read_keep_outs(path)
    assert space is not None
    with Robot.simulated("delta", realtime=False, setup=Setup(keep_out_file=path)) as robot:
        robot.move_to([0.0, 0.0, -0.9])
        with pytest.raises(RefusedError, match="the tool comes too near to 'wall'"):
            robot.move_to([0.19, 0.0, -0.9])
        with pytest.raises(RefusedError, match="'post'"):
            robot.move_to([0.0, -0.3, -0.9])
        robot.move_to([0.17, 0.0, -0.9])
        robot.jog(linear=(0.1, 0.0, 0.0), seconds=1.0)
        clear = float(space.clearance(robot.state.pose[None])[0][0])
        assert 0.005 - 1e-5 < clear < 0.008
        assert "'wall'" in robot.jog(linear=(0.1, 0.0, 0.0), seconds=0.5).result().reason
        robot.jog(linear=(-0.1, 0.0, 0.0), seconds=0.5)
        assert robot.state.pose[0] < 0.15


def test_a_tool_inside_may_only_leave(of_gallery) -> None:
    built = of_gallery["delta"]
    home = np.array(built.kinematics.home)
    x, y, z = home[:3] + np.array([0.05, 0.0, 0.0])
    space = KeepOuts({"box": RoundedBox((x, y, z), (0.06, 0.06, 0.06))})
    check = CurveCheck(built.dynamics, ActuatorLimits.of(built.kinematics.mechanism), space=space)
    assert "'box'" in check.standing(home)
    still = np.zeros((2, 6))

    def way(by: float) -> PointTrajectory:
        return PointTrajectory(
            np.array([0.0, 1.0]), np.array([home, displace(home, np.array([by, *[0.0] * 5]))]), still, still
        )

    assert check.refusal(way(-0.05)) == ""
    assert "'box'" in check.refusal(way(0.05))
    assert "as far outside" in check.refusal(way(0.0)) or "'box'" in check.refusal(way(0.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("margin: 0.005", "margin: 0"), "margin: 0 is outside its range"),
        (("size: [0.2, 1, 1]", "size: [0.2, -1, 1]"), "keep_outs.wall: a box at"),
        (("radius: 0.02}\ntool", "radios: 0.02}\ntool"), "keep_outs.post.radios: no such key; did you mean 'radius'"),
        (("center: [0.3, 0, -0.9], ", ""), "keep_outs.wall.center: is missing"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_keep_outs(written(tmp_path, TEXT.replace(*change)))
    assert message in str(caught.value)


def reckless(random: np.random.Generator, pose: Array, space: Array, length: float) -> PointTrajectory:
    """A way through random poses, short or far beyond everything."""
    n = int(random.integers(2, 4))
    size = length * float(random.choice([0.05, 0.2, 0.6, 3.0]))
    poses = [pose]
    for _ in range(n - 1):
        poses.append(displace(poses[-1], space @ (size * random.normal(size=space.shape[1]))))
    twists = np.zeros((n, 6))
    twists[1:-1] = space @ random.normal(scale=length * float(random.choice([0.0, 0.2, 20.0])), size=space.shape[1])
    return PointTrajectory(float(random.choice([0.2, 0.5])) * np.arange(n), np.array(poses), twists, np.zeros((n, 6)))


def attack(built, steered, name: str, count: int) -> tuple[int, int]:
    """Send reckless goals, and jog without care; return how many of the goals were admitted and refused.

    What the machine did is judged apart from what refused: by the limits of the description, the sign of the direct
    Jacobian's determinant, and the distance from the keep-out.
    """
    random = np.random.default_rng(5)
    k = built.kinematics
    length = k.characteristic_length
    home = np.array(k.home)
    basis = np.asarray(k.subspace(home))
    away = basis[:3].sum(axis=1) / np.linalg.norm(basis.sum(axis=1))
    x, y, z = home[:3] + length * (away if away.any() else np.eye(3)[0])  # beside a wrist, whose point stays
    keep = KeepOuts({"box": RoundedBox((x, y, z), (0.3 * length, 0.3 * length, 0.3 * length))})
    robot = steered(name, keep)
    follower, done, refused = robot.follower, 0, 0
    clear_at_home = float(keep.clearance(home[None])[0][0])
    robot.run(2 * PERIOD)
    for i in range(count):
        if i % 4 == 3:
            twist = basis @ random.normal(scale=length, size=basis.shape[1])
            for _ in range(10):
                follower.steer(twist, robot.machine.time)
                robot.run(0.04)
            follower.stop()
            robot.run(0.5)
        elif not k.constant_space:  # where straight lines leave the motion space: moves to a pose
            there = displace(follower.hold, basis @ random.normal(scale=0.3 * length, size=basis.shape[1]))
            try:
                problem = follower.jog_to(follower.jog.nearest(there, follower.hold))
            except PkmError:
                problem = "far from all that the platform can take"
            done, refused = done + (not problem), refused + bool(problem)
            robot.run(1.0)
            follower.stop()
            robot.run(0.5)
        else:
            try:
                goal = reckless(random, follower.hold, basis, length)
            except PointTrajectoryError:
                continue
            if follower.check.refusal(goal):
                refused += 1
                continue
            done += 1
            follower.follow(Motion(goal, robot.machine.time, braking=follower.check.braking(goal)))
            robot.run(goal.duration + 0.05)
        assert follower.mode in (Mode.HOLDING, Mode.JOGGING)
        if len(robot.actions) > 2000:
            judge(robot, keep, clear_at_home)
            robot.actions.clear()
            robot.run(PERIOD)
    judge(robot, keep, clear_at_home)
    return done, refused


def judge(robot, keep: KeepOuts, clear_at_home: float) -> None:
    """Nothing that the machine was seen to do is outside what it may."""
    k = robot.kinematics
    seen = [one.measured for one in robot.actions if one.measured is not None]
    lower, upper = k.engine.ranges.limits
    joints = np.array([one.joints for one in seen])
    room = np.where(np.isfinite(upper - lower), 2e-3, 0.0)
    assert ((joints > lower - room) & (joints < upper + room)).all()
    poses = np.array([one.pose for one in seen[::5]])
    found = k.singularity(poses)
    signs = np.asarray(found.determinant_sign)
    assert (signs == signs[0]).all() or not np.isfinite(signs).all()
    assert np.nanmin(found.type2) > 0.0
    assert keep.clearance(poses)[0].min() > min(keep.margin, clear_at_home) - 2e-3


@pytest.mark.parametrize("name", EVERYDAY)
def test_reckless_motions(name: str, of_gallery, steered) -> None:
    done, refused = attack(of_gallery[name], steered, name, 6)
    assert done > 0
    assert refused > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EVERYDAY, *OTHERS, *MORE])
def test_very_many_reckless_motions(name: str, of_gallery, steered) -> None:
    done, refused = attack(of_gallery[name], steered, name, 1000)
    assert done > 100
    assert refused > 100 or not of_gallery[name].kinematics.constant_space


def test_a_motion_file_through_a_place_is_refused_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, motion = tmp_path / "space.yaml", tmp_path / "way.csv"
    file.write_text(TEXT.replace("[0.3, 0, -0.9]", "[0.25, 0, -0.9]"))
    motion.write_text("# frame: home\nx [mm], y [mm], z [mm]\n0, 0, 0\n0, 50, 0\n150, 50, 0\n")
    options = ["--keep-out-file", str(file), "--motion", str(motion), "--no-page"]
    assert simulate(["delta", *options]) == 1
    said = capfd.readouterr().err
    assert "way.csv, line 5" in said
    assert "the tool comes too near to 'wall'" in said
