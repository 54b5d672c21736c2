# SPDX-License-Identifier: Apache-2.0
"""The robots of docs/examples with their motions: loaded, checked, and run on the simulated machine."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_bringup.main_job import plan_cycle, run_motion, simulated_loop
from pkm_control.loop.control_loop import switch_on
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.simulation import simulate
from pkm_kinematics import check

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RUNS = {
    "packaging_delta": ("packaging_delta_pick.csv", 1000.0),
    "ankle": ("ankle_step.csv", 250.0),
    "ankle_cranks": ("ankle_step.csv", 250.0),
    "hobby_hexapod": ("hobby_hexapod_greeting.csv", 500.0),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_check_has_nothing_against_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(EXAMPLES / f"{name}.urdf.xacro"), "--no-modes", "--all"]) == 0
    said = capsys.readouterr().out
    assert "usable, 0 warnings" in said.splitlines()[0]
    verdicts = said.split("\nVerdicts\n")[1].splitlines()
    assert verdicts
    assert all(line.strip().startswith("ok:") for line in verdicts)


@pytest.mark.parametrize("name", RUNS)
def test_it_runs_its_motion(name: str) -> None:
    motion, rate = RUNS[name]
    loop = simulated_loop(load_mechanism(EXAMPLES / f"{name}.urdf.xacro"), rate)
    planner = MotionPlanner(loop.dynamics, loop.limits)
    job = plan_cycle(planner, motion_named(str(EXAMPLES / motion), loop.kinematics))
    switch_on(loop)
    run_motion(loop, job.approach, recorded=False)
    recording = run_motion(loop, job.cycle)
    assert recording.faults == ()
    assert len(recording) > 0.99 * job.cycle.duration * rate
    off = pose_distance(recording.rows.measured, recording.rows.reference, 0.1)
    assert off.max() < 5e-4  # m, angles at 0.1 m


# numbers of three machines: a small one, one as tall as a person, and one whose platform is as wide as its base
DELTAS = (
    {"base_radius": 0.06, "platform_radius": 0.02, "arm_length": 0.08, "rod_length": 0.2, "arm_mass": 0.03},
    {"base_radius": 0.4, "platform_radius": 0.1, "arm_length": 0.5, "rod_length": 1.3, "rod_mass": 0.6},
    {"base_radius": 0.12, "platform_radius": 0.12, "arm_length": 0.25, "rod_length": 0.6, "motor_torque": 1.3},
)


@pytest.mark.parametrize("numbers", DELTAS, ids=("small", "large", "straight"))
def test_the_delta_follows_from_its_numbers(numbers: dict[str, float], tmp_path: Path) -> None:
    """Home, stops, bodies and drives by hand, from the numbers of the first blocks alone."""
    text = (EXAMPLES / "packaging_delta.urdf.xacro").read_text()
    for name, number in numbers.items():
        text, count = re.subn(rf'(name="{name}" default=)"[^"]*"', rf'\1"{number}"', text)
        assert count == 1
    given = {name: float(value) for name, value in re.findall(r'arg name="(\w+)" default="([\d.e-]+)"', text)}
    path = tmp_path / "delta.urdf.xacro"
    path.write_text(text)
    kinematics = Dynamics(load_mechanism(path)).kinematics
    mechanism = kinematics.mechanism
    base, platform, arm, rod = (
        given[f"{part}"] for part in ("base_radius", "platform_radius", "arm_length", "rod_length")
    )
    np.testing.assert_allclose(kinematics.home[2], -np.sqrt(rod**2 - (base + arm - platform) ** 2), atol=1e-12)
    np.testing.assert_allclose(kinematics.inverse(kinematics.home).actuated, np.zeros(3), atol=1e-9)
    ends = mechanism.joint_named["platform_z"].limits
    stops = mechanism.joint_named["limb1_arm"].limits
    for height, stop in ((ends.upper, stops.lower), (ends.lower, stops.upper)):
        np.testing.assert_allclose(kinematics.inverse([0.0, 0.0, height]).actuated, np.full(3, stop), atol=1e-9)
    masses = sum(link.inertial.mass for link in mechanism.links)
    pin = 7850.0 * np.pi * 0.006**2 * 1.6 * platform
    np.testing.assert_allclose(masses, 3 * given["arm_mass"] + 6 * given["rod_mass"] + given["platform_mass"] + 3 * pin)
    thin_arm = mechanism.link_named["limb1_arm"].inertial
    assert 1.0 < thin_arm.inertia[2, 2] / (given["arm_mass"] * arm**2 / 12.0) < 1.05
    np.testing.assert_allclose(stops.effort, given["motor_torque"] * given["gear_ratio"] * given["gear_efficiency"])
    np.testing.assert_allclose(stops.velocity, given["motor_speed"] * np.pi / 30.0 / given["gear_ratio"])
    assert check.examine(str(path), modes=False).usable


def test_a_delta_whose_arms_turn_past_upright_gets_as_high_as_its_rods_let_it(tmp_path: Path) -> None:
    """Arms of +-100 degrees: highest where the rods fold back along the arms, lowest where they continue them."""
    text = (EXAMPLES / "packaging_delta.urdf.xacro").read_text()
    for name, value in (("arm_lower", "-1.75"), ("arm_upper", "1.75")):
        text, count = re.subn(rf'(name="{name}" default=)"[^"]*"', rf'\1"{value}"', text)
        assert count == 1
    path = tmp_path / "delta.urdf.xacro"
    path.write_text(text)
    ends = load_mechanism(path).joint_named["platform_z"].limits
    np.testing.assert_allclose(ends.upper, -np.sqrt((0.8 - 0.3) ** 2 - 0.15**2), atol=1e-12)
    np.testing.assert_allclose(ends.lower, -np.sqrt((0.8 + 0.3) ** 2 - 0.15**2), atol=1e-12)


def test_hexapod_by_hand() -> None:
    """With level horns every rod has its length, and the platform stands where Pythagoras puts it."""
    kinematics = Dynamics(load_mechanism(EXAMPLES / "hobby_hexapod.urdf.xacro")).kinematics
    servo, corner = np.radians(20.0), np.radians(50.0)
    ball = 0.065 * np.array([np.cos(servo), np.sin(servo)]) + 0.020 * np.array([-np.sin(servo), np.cos(servo)])
    across = 0.055 * np.array([np.cos(corner), np.sin(corner)]) - ball
    np.testing.assert_allclose(kinematics.home[2], np.sqrt(0.130**2 - across @ across), atol=1e-12)
    np.testing.assert_allclose(kinematics.inverse(kinematics.home).actuated, np.zeros(6), atol=1e-9)


def test_ankle_by_hand() -> None:
    """The rods are as long as between the points that both angles put on the foot."""
    kinematics = Dynamics(load_mechanism(EXAMPLES / "ankle.urdf.xacro")).kinematics
    for pitch, roll in ((0.0, 0.0), (0.4, 0.0), (-0.2, 0.15), (0.3, -0.2)):
        cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
        turn = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]]) @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
        lengths = [np.linalg.norm(turn @ [-0.06, y, 0.0] - [-0.06, y, 0.26]) for y in (0.04, -0.04)]
        np.testing.assert_allclose(kinematics.inverse([pitch, roll]).actuated, lengths, atol=1e-12)


@pytest.mark.parametrize("name", ["ankle", "ankle_cranks"])
def test_every_range_of_an_ankle_is_its_own(name: str, tmp_path: Path) -> None:
    """The foot's two axes and the two drives: one property each, and only its joint has it."""
    text = (EXAMPLES / f"{name}.urdf.xacro").read_text()
    drives = "leg" if name == "ankle" else "arm"
    ranges = (
        {"left": (0.21, 0.3), "right": (0.22, 0.31)} if name == "ankle" else {"left": (-1.0, 0.9), "right": (-0.9, 1.1)}
    )
    wanted = {"ankle_pitch": (-0.5, 0.6), "ankle_roll": (-0.2, 0.3)}
    values = {
        "pitch_range": list(wanted["ankle_pitch"]),
        "roll_range": list(wanted["ankle_roll"]),
        "leg_ranges" if name == "ankle" else "crank_ranges": f"dict(left={ranges['left']}, right={ranges['right']})",
    }
    for property_name, value in values.items():
        text, count = re.subn(rf'(name="{property_name}" value=)"[^"]*"', rf'\1"${{{value}}}"', text)
        assert count == 1
    path = tmp_path / f"{name}.urdf.xacro"
    path.write_text(text)
    mechanism = load_mechanism(path)
    for joint, ends in {**wanted, **{f"{side}_{drives}": ends for side, ends in ranges.items()}}.items():
        limits = mechanism.joint_named[joint].limits
        assert (limits.lower, limits.upper) == ends, joint


def test_ankle_with_cranks_by_hand() -> None:
    """Ends of crank and rod are as far apart as at home, where the cranks point straight back."""
    kinematics = Dynamics(load_mechanism(EXAMPLES / "ankle_cranks.urdf.xacro")).kinematics
    motors, feet = [[0.0, 0.045, 0.20], [0.0, -0.045, 0.26]], [[-0.05, 0.045, 0.01], [-0.05, -0.045, 0.01]]
    np.testing.assert_allclose(kinematics.inverse([0.0, 0.0]).actuated, [0.0, 0.0], atol=1e-9)
    for pitch, roll in ((0.0, 0.0), (0.4, 0.0), (-0.2, 0.15), (0.3, -0.2)):
        cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
        turn = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]]) @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
        solution = kinematics.inverse([pitch, roll])
        assert solution.ok
        for motor, foot, crank in zip(motors, feet, solution.actuated, strict=True):
            end = np.array(motor) + 0.05 * np.array([-np.cos(crank), 0.0, -np.sin(crank)])
            length = np.linalg.norm(np.array(foot) - motor + [0.05, 0.0, 0.0])
            np.testing.assert_allclose(np.linalg.norm(turn @ foot - end), length, atol=1e-12)
    # cranks and levers of 5 cm, upright rods: a parallelogram, which passes pitch on as it is and roll by 45 mm to 50
    np.testing.assert_allclose(kinematics.at([0.0, 0.0]).task_jacobian, [[-1.0, -0.9], [-1.0, 0.9]], atol=1e-9)


def test_cranks_that_point_forward(tmp_path: Path) -> None:
    """Rods in front of the ankle: the cranks turn up where those behind turn down."""
    text = (EXAMPLES / "ankle_cranks.urdf.xacro").read_text()
    for old, new in (('"crank_heading" default="${pi}"', '"crank_heading" default="0"'), ("[-0.05, ", "[0.05, ")):
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "ankle.urdf.xacro"
    path.write_text(text)
    kinematics = Dynamics(load_mechanism(path)).kinematics
    np.testing.assert_allclose(kinematics.inverse([0.0, 0.0]).actuated, [0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(kinematics.at([0.0, 0.0]).task_jacobian, [[1.0, -0.9], [1.0, 0.9]], atol=1e-9)


def test_a_foot_that_pitches_and_rolls_yaws_as_the_universal_joint_bids() -> None:
    """The motion space of a branch that turns what it blocks: acceleration at constant speeds of the drives."""
    kinematics = Dynamics(load_mechanism(EXAMPLES / "ankle.urdf.xacro")).kinematics
    speed, step = np.array([0.3, -0.2]), 1e-5
    poses = [kinematics.forward(np.array([0.245, 0.255]) + t * speed, near=kinematics.home) for t in (-step, 0.0, step)]
    twists = [kinematics.at(one.pose, seed=one.joints).platform_twist(speed) for one in poses]
    slope = (twists[2] - twists[0]) / (2.0 * step)
    found = kinematics.at(poses[1].pose, seed=poses[1].joints).platform_acceleration(twists[1], np.zeros(2))
    assert abs(slope[5]) > 1.0
    np.testing.assert_allclose(found, slope, atol=1e-6)


def test_a_falling_foot_moves_the_same_in_every_form() -> None:
    """The task form closes the loops at every step, the joint form integrates the joints: both with the drift."""
    dynamics = Dynamics(load_mechanism(EXAMPLES / "ankle.urdf.xacro"), friction=False)
    kinematics = dynamics.kinematics
    start, twist = kinematics.home, kinematics.at(kinematics.home).task_twists @ [2.0, 1.5]
    times = np.linspace(0.0, 0.15, 4)
    runs = [simulate(dynamics, start, twist, times, unloaded, form=form) for form in ("task", "joint")]
    assert all((run.status == 0).all() for run in runs)
    assert pose_distance(runs[0].pose[-1], start, 1.0) > 0.2
    np.testing.assert_allclose(runs[1].pose, runs[0].pose, atol=1e-7)
    work = [energy(dynamics, pose, rate) for pose, rate in zip(runs[0].pose, runs[0].twist, strict=True)]
    total = [one.kinetic + one.potential for one in work]
    np.testing.assert_allclose(total, total[0], rtol=1e-7)


def unloaded(time: float, pose: Array, twist: Array) -> tuple[Array, Array]:
    return np.zeros(2), np.zeros(6)
