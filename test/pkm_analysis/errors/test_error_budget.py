# SPDX-License-Identifier: Apache-2.0
"""Error budgets against machines whose parts are off, and tolerances that reach what is asked of them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_analysis import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.errors.allocation import WORST, allocate
from pkm_analysis.errors.error_budget import CLEARANCE, SENSORS, THERMAL, ErrorModel, _farthest, sampled_errors
from pkm_analysis.errors.tolerances import Tolerances, read_tolerances
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_runtime.errors import ConfigurationError
from pkm_runtime.sweeps import Sweeps

LEGS = range(1, 7)


def model(name: str, tolerances: Tolerances, count: int = 5, **more) -> ErrorModel:
    return ErrorModel(AnalysedRobot(load_mechanism(name)), tolerances, count=count, **more)


def test_the_worst_case_is_that_of_all_signs() -> None:
    random = np.random.default_rng(0)
    effects, offset = random.standard_normal((3, 3, 9)), random.standard_normal((3, 3))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=9))).T
    every = np.linalg.norm(offset[:, :, None] + effects @ signs, axis=1).max(axis=1)
    np.testing.assert_allclose(
        _farthest(effects, offset, np.zeros((3, 0, 3, 3)), np.zeros((3, 3)))[0], every, rtol=1e-12
    )


def test_a_sensor_moves_the_platform_as_forward_kinematics_says() -> None:
    budget = model("delta", Tolerances(lengths=0.0, angles=0.0, sensors=1e-4)).budget()
    kinematics = Kinematics(load_mechanism("delta"))
    assert {one.kind for one in budget.sources} == {SENSORS}
    q = kinematics.inverse(budget.poses).actuated
    for one in budget.sources:
        k = kinematics.actuated_names.index(one.name.removeprefix("sensor of "))
        moved = q.copy()
        moved[:, k] += 1e-4
        there = kinematics.forward(moved, near=budget.poses).pose
        np.testing.assert_allclose(there[:, :3] - budget.poses[:, :3], one.effects[:, :3], atol=1e-7)


def test_a_gear_that_is_off_moves_the_platform_by_a_share_of_the_drives_angle(tmp_path: Path) -> None:
    file = tmp_path / "tolerances.yaml"
    file.write_text("lengths: 0 mm\nangles: 0 deg\nratios: 0.05 %\n")
    budget = model("delta", read_tolerances(file)).budget()
    kinematics = Kinematics(load_mechanism("delta"))
    there = kinematics.at(budget.poses)
    assert len(budget.sources) == 3
    for one in budget.sources:
        k = kinematics.actuated_names.index(one.name.replace(": ratio of ", "_"))
        expected = 5e-4 * there.actuated[:, None, k] * there.forward_jacobian[:, :, k]
        np.testing.assert_allclose(one.effects, expected, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["delta", *(pytest.param(one, marks=pytest.mark.slow) for one in ("gough_stewart", "planar_3rrr"))]
)
def test_machines_at_random_spread_as_first_order_says(name: str) -> None:
    found = sampled_errors(model(name, Tolerances(lengths=2e-5, angles=1e-5), count=2), 400)
    ratio = found.rms[:, 0] / found.expected[:, 0]
    assert np.abs(ratio - 1.0).max() < 0.12  # 400 machines: one standard deviation is 3 %
    budget = model(name, Tolerances(lengths=2e-5, angles=1e-5), count=2).budget()
    assert (found.errors[:, :, 0] <= 1.001 * budget.worst[:, 0]).all()


def test_machines_at_random_are_the_same_for_any_number_of_cores(tmp_path: Path) -> None:
    found = []
    for cores, journal in ((1, None), (2, tmp_path / "journal"), (2, tmp_path / "journal")):
        robot = AnalysedRobot(load_mechanism("five_bar"), sweeps=Sweeps(cores=cores, journal=journal))
        found.append(sampled_errors(ErrorModel(robot, Tolerances(), count=2), 40).errors)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[1], found[2])


def test_a_robot_that_grows_evenly_moves_its_platform_by_its_own_growth() -> None:
    """All lengths longer by one part in 10,000: so is the platform's distance, attitudes stay."""
    found = model("gough_stewart", Tolerances(lengths=0.0, angles=0.0, change=10.0, expansion=1e-5)).budget()
    (growth,) = found.sources
    assert growth.kind == THERMAL
    # The legs' variable lengths are read by sensors that do not grow; only home's slide of zero leaves all similar.
    mechanism = load_mechanism("hexa")  # all lengths are of bodies
    evenly = ErrorModel(
        AnalysedRobot(mechanism), Tolerances(lengths=0.0, angles=0.0, change=10.0, expansion=1e-5), count=4
    )
    (whole,) = evenly.budget().sources
    np.testing.assert_allclose(whole.effects[:, :3], 1e-4 * evenly.poses[:, :3], atol=1e-12)
    np.testing.assert_allclose(whole.effects[:, 3:], 0.0, atol=1e-12)


def test_play_lets_the_platform_sink_and_jumps_where_a_leg_changes_from_push_to_pull() -> None:
    """Under its weight, play lowers the platform; a load upward that outweighs it lifts it (Parenti-Castelli, 2002)."""
    play = Tolerances(lengths=0.0, angles=0.0, clearance=1e-5)
    down = model("gough_stewart", play, count=1).budget()
    assert all(one.kind == CLEARANCE and one.one_way for one in down.sources)
    lift = np.array([[0.0, 0.0, 5000.0, 0.0, 0.0, 0.0]])
    up = model("gough_stewart", play, count=1, wrench=lift).budget()
    assert down.systematic[0, 2] < -1e-5
    assert up.systematic[0, 2] > 1e-5


def test_play_does_the_work_that_the_load_does() -> None:
    """Principle of virtual work: without weight, load times displacement is the sum of forces times clearances."""
    weightless = AnalysedRobot(replace(load_mechanism("gough_stewart"), gravity=np.zeros(3)))
    load = np.array([[300.0, -200.0, -1000.0, 50.0, 20.0, -30.0]])
    balls = {f"limb{k}_ball": 1e-5 for k in range(1, 7)}
    asked = ErrorModel(weightless, Tolerances(lengths=0.0, angles=0.0, clearance=balls), count=1, wrench=load)
    reactions = weightless.dynamics.reactions(asked.poses, wrench=load)
    forces = sum(float(np.linalg.norm(reactions.of(name)[0, :3])) for name in balls)
    assert float(load[0] @ asked.budget().systematic[0]) == pytest.approx(1e-5 * forces, rel=1e-9)


def test_the_command_says_where_play_jumps_along_a_motion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a leg's force along itself, by the reactions, changes its sign; with a load, at other places or nowhere."""
    file = tmp_path / "play.yaml"
    balls = "".join(f"  limb{k}_ball: 10 um\n" for k in LEGS)
    file.write_text(f"lengths: 0 mm\nangles: 0 deg\nclearance:\n{balls}")
    words = ["gough_stewart", "errors", "--motion", "circle", "--tolerances", str(file), "--json"]
    mechanism, places = load_mechanism("gough_stewart"), {}
    robot = AnalysedRobot(mechanism)
    for load in (0.0, 100.0, -1e5):
        assert main([*words, *(["--wrench", "0", "0", str(load)] if load else [])]) == 0
        answer = json.loads(capsys.readouterr().out)
        poses, wrench = np.array(answer["poses"]), np.array([0.0, 0.0, load, 0.0, 0.0, 0.0])
        reactions = robot.dynamics.reactions(poses, wrench=wrench)
        found = {(jump["after"], name) for jump in answer["jumps"] for name in jump["joints"]}
        expected = set()
        for k in LEGS:
            foot = mechanism.joint_named[f"limb{k}_first"].origin[:3, 3]
            on_plate = mechanism.loop_named[f"limb{k}_ball"].successor_frame[:3, 3].copy()
            leg = poses[:, :3] + Rotation.from_quat(poses[:, 3:]).apply(on_plate) - foot
            push = (reactions.of(f"limb{k}_ball")[:, :3] * leg).sum(axis=1)
            expected |= {(int(at), f"limb{k}_ball") for at in np.flatnonzero(push[1:] * push[:-1] < 0.0)}
        assert found == expected
        systematic = np.array(answer["systematic"])
        for jump in answer["jumps"]:
            step = systematic[jump["after"] + 1] - systematic[jump["after"]]
            np.testing.assert_allclose(jump["twist"], step, atol=0.3 * np.linalg.norm(step))
        places[load] = found
    assert places[0.0]
    assert places[0.0] != places[100.0]
    assert not places[-1e5]


def test_the_cheapest_tolerances_reach_what_is_asked_and_nothing_cheaper_does() -> None:
    graded = Tolerances(lengths=1e-4, angles=0.0, grades=((1.0, 1.0), (0.5, 2.0), (0.1, 10.0)))
    asked = model("five_bar", graded, count=4)
    coarse, fine = asked.budget(), 0.0
    goal = 0.6 * float(coarse.expected[:, 0].max())
    found = allocate(asked, goal)
    assert found.reached <= goal
    assert found.costs.sum() > found.coarsest
    effects = np.array([np.linalg.norm(one.twists[:, :3], axis=1) for one in found.sources])
    reached = np.sqrt(((effects * found.tolerances[:, None]) ** 2 / 3.0).sum(axis=0)).max()
    assert reached == pytest.approx(found.reached)
    for k in range(len(found.sources)):  # no single source can do with the next coarser grade
        coarser = found.tolerances.copy()
        coarser[k] = {1.0: np.inf, 0.5: 1.0, 0.1: 0.5}[round(coarser[k] / found.sources[k].size, 6)] * found.sources[
            k
        ].size
        fine = np.sqrt(((effects * coarser[:, None]) ** 2 / 3.0).sum(axis=0)).max()
        assert not np.isfinite(fine) or fine > goal or effects[k].max() == 0.0
    worst = allocate(asked, 3.0 * goal, WORST)
    assert worst.reached <= 3.0 * goal


def test_what_cannot_be_reached_is_said_with_what_can() -> None:
    with pytest.raises(AnalysisError, match="the finest grades reach"):
        allocate(model("five_bar", Tolerances()), 1e-9)


def test_the_command_prints_numbers_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tolerances.yaml"
    file.write_text(
        "lengths: 0.05 mm\nangles: 0.01 deg\nsensors: 0.005 deg\nclearance: 0.01 mm\n"
        'thermal: {change: 5}\nparameters: {"*: length of *_rod": 0.02 mm}\n'
    )
    words = ["delta", "errors", "--tolerances", str(file), "--at", "x=0.1", "--machines", "20", "--json"]
    assert main([*words, "--picture", str(tmp_path / "errors.png")]) == 0
    answer = json.loads(capsys.readouterr().out)
    rods = [one for one in answer["sources"] if one["name"].endswith("_rod")]
    assert len(rods) == 6
    assert all(one["tolerance"] == pytest.approx(2e-5) for one in rods)
    assert {one["kind"] for one in answer["sources"]} == {"geometry", "sensors", "clearance", "thermal"}
    assert sum(one["share"] for one in answer["sources"]) == pytest.approx(1.0)
    assert (tmp_path / "errors.png").stat().st_size > 10_000


def test_coordinates_of_a_platform_that_tilts_in_moving_are_a_pose(capsys: pytest.CaptureFixture[str]) -> None:
    """With the coordinates that follow from those given, as for its stiffness."""
    assert main(["tripod_3prs", "errors", "--at", "roll=0.1", "--json"]) == 0
    (pose,) = json.loads(capsys.readouterr().out)["poses"]
    assert Rotation.from_quat(pose[3:]).as_euler("xyz")[0] == pytest.approx(0.1)
    assert pose[0] != 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lengths: 0.05\n", "no text|no unit"),
        ("lengths: 0.05 deg\n", "is no unit of it"),
        ("ratios: 0.001\n", "write '0.001 %'"),
        ("ratios: 0.1 mm\n", "is no unit of it"),
        ("lengths: -1 mm\n", "negative"),
        ("length: 1 mm\n", "did you mean 'lengths'"),
        ('parameters: {"nothing": 1 mm}\n', "no parameter of the robot has such a name"),
        ("sensors: {limb9_arm: 0.1 deg}\n", "there is none"),
        ("sensors: 0.01 mm\n", "sensors of 'limb1_arm': its readings are in rad, not in m"),
        (
            "sensors: {limb1_arm: 0.01 mm}\n",
            "its readings are in rad, not in m; give its error as 'limb1_arm: 0.01 deg'",
        ),
        ("clearance: 0.01 deg\n", "clearance: 'deg' is no unit of it"),
        ("clearance: {limb1_a_elbow: 0.01 deg}\n", "'deg' is no unit of it"),
        ("thermal: {change: 10, bodies: {limb1_arn: 1e-6}}\n", "expansion of 'limb1_arn': there is none"),
        ("grades: [[0, 1]]\n", "not positive"),
        ("distribution: triangular\n", "is unknown"),
        ("thermal: {warm: 1}\n", "thermal"),
    ],
)
def test_tolerances_that_cannot_be_read_say_where(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "tolerances.yaml"
    file.write_text(text)
    with pytest.raises((AnalysisError, ConfigurationError), match=problem):
        model("delta", read_tolerances(file))


def test_errors_beyond_first_order_are_warned_of() -> None:
    for lengths, warned in ((5e-5, False), (5e-2, True)):
        assert ("too large for first order" in str(model("delta", Tolerances(lengths=lengths)).budget())) == warned


def test_a_robot_with_redundant_drives_is_refused_by_name() -> None:
    with pytest.raises(AnalysisError, match="no pose fits all their readings"):
        model("cable_8", Tolerances())


def test_where_drives_do_not_hold_the_platform_errors_have_no_bound() -> None:
    with pytest.raises(AnalysisError, match=r"griffis_duffy.*its drives do not hold the platform"):
        model("griffis_duffy", Tolerances())
