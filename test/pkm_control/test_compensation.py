# SPDX-License-Identifier: Apache-2.0
"""A controller with a robot's compliance leads the platform of the elastic robot to where it is asked to be.

The judge of links and bearings is the elastic structure of the analysis, solved at the joints that were commanded,
which the controller's table knows at other poses only; that of drives is a simulated machine whose drives give way.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.stiffness.stiffness_files import poses_along, poses_over, write_table
from pkm_control.controllers.controller import Measured, Reference
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.guard import guard_of
from pkm_control.motion.compensation import SETTLES, Compensation, ComplianceTable, read_compliance
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.files.default_motion import sampled_motion
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.status import closes
from pkm_runtime.errors import ConfigurationError
from test.oracles.sprung_robots import sprung

PERIOD = 1e-3
WRENCH = np.array([20.0, -10.0, 5.0, 0.0, 0.0, 0.0])
PAYLOAD = Inertial(mass=2.0)
DRIVES = 2e4  # N m/rad: of a soft gear
SOME = {"spatial_4dof_5legs": 360}  # poses of a table: enough for what is asked of it here; others 80


def measured_at(kinematics: Kinematics, pose: np.ndarray) -> Measured:
    at = kinematics.at_one(pose)
    actuated = np.asarray(kinematics.inverse(pose).actuated)
    still = np.zeros(len(actuated))
    return Measured(actuated, still, pose, np.zeros(6), np.asarray(at.joints), np.asarray(at.forward_jacobian))


@pytest.mark.by_day("sprung delta")
@pytest.mark.parametrize(
    ("name", "drives"),
    [
        ("delta", 1e5),
        ("sprung delta", 1e5),
        pytest.param("linear_delta", 1e6, marks=pytest.mark.slow),
        pytest.param("orthoglide", 1e6, marks=pytest.mark.slow),
        pytest.param("gough_stewart", 1e7, marks=pytest.mark.slow),
        ("planar_redundant", 1e5),
        ("tricept", 1e6),
        pytest.param("tripod_3prs", 1e6, marks=pytest.mark.slow),
        pytest.param("two_tpr", 1e6, marks=pytest.mark.slow),
        pytest.param("spatial_4dof_5legs", 1e6, marks=pytest.mark.slow),
    ],
)
def test_the_elastic_platform_is_where_it_was_asked(name: str, drives: float, tmp_path: Path) -> None:
    """With a payload that the file does not know, within 2 % of what it would be off; seen: at most 0.8 %.

    What counts is what is off in directions in which the platform can move; the last four turn these with the pose.
    """
    analysis = Analysis(sprung(name.split()[1]) if " " in name else load_mechanism(name), stiffness=drives)
    k = analysis.robot.kinematics
    dynamics = Dynamics(k)
    motion = sampled_motion(dynamics, "auto")
    file = tmp_path / "compliance.json"
    told = write_table(analysis.stiffnesses, poses_along(motion.poses)[: SOME.get(name, 80)], file, 0.0, WRENCH)
    assert told.miss < 1e-3 * told.largest
    table = read_compliance(str(file), k)
    assert table is not None
    controller = make_controller("position", dynamics, ActuatorLimits.of(k.mechanism), PERIOD)
    controller.load(PAYLOAD)
    scale = np.array(3 * [1.0] + 3 * [k.characteristic_length])
    for pose in motion.poses[:: len(motion.poses) // 6]:
        compensation, measured = Compensation(table, controller), measured_at(k, pose)
        compensation.seen(measured)
        command = compensation.command(controller.law, Reference.at_rest(pose), measured, PERIOD)
        motors = np.asarray(k.forward(command, seed=measured.joints).pose).reshape(7)
        assert closes(k.at_one(table.unbent(pose[None], np.zeros(6))[0]).status)  # what motions are checked at
        off, possible = [], table.possible(pose[None])[0]
        for commanded in (pose, motors):
            elastic = analysis.stiffness(commanded, payload=PAYLOAD.mass, wrench=WRENCH)
            platform = displace(commanded, elastic.sag + elastic.deflection)
            off.append(np.linalg.norm(scale * (possible @ displacement_between(pose, platform))))
        assert off[0] > 1e-6
        assert off[1] < 0.02 * off[0]


@pytest.mark.slow
def test_a_box_is_interpolated_and_outside_nothing_is_known(tmp_path: Path) -> None:
    analysis = Analysis(load_mechanism("delta"), stiffness=2e5)
    file, ranges = tmp_path / "box.json", {"x": (-0.2, 0.2), "y": (-0.2, 0.2), "z": (-1.0, -0.8)}
    told = write_table(analysis.stiffnesses, poses_over(analysis.robot, ranges), file, 1.0, None)
    assert "328 poses" in str(told)
    assert told.miss < 0.01 * told.largest
    table = read_compliance(str(file), analysis.robot.kinematics)
    assert table is not None
    inside = np.array([0.13, -0.07, -0.93, 0.0, 0.0, 0.0, 1.0])
    found = analysis.stiffness(inside, payload=1.0)
    sag, compliance = found.with_rigid_drives()
    weight = np.array([0.0, 0.0, -9.80665, 0.0, 0.0, 0.0])
    force = np.array([30.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    expected = table.possible(inside[None])[0] @ (sag + compliance @ (weight + force))
    assert table.displacement(inside[None], force)[0] == pytest.approx(expected, abs=2e-7)
    assert np.linalg.norm(expected[:3]) > 1e-5
    far = inside + np.array([0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0])
    assert not table.displacement(far[None], force).any()


def soft(name: str, stiffness: float, rotor: float = 2e-5) -> str:
    """The text of a robot whose drives have a stiffness and rotors, and no other limits of speed."""
    text = load_mechanism(name).urdf
    text = re.sub(r'<param name="(gear_ratio|rotor_inertia|stiffness)">[^<]*</param>', "", text)
    more = f'<param name="stiffness">{stiffness}</param><param name="gear_ratio">30</param>'
    more += f'<param name="rotor_inertia">{rotor}</param>'
    return re.sub(r'(<command_interface name="(?:position|effort)"\s*/>)', rf"\1{more}", text, count=0)


class Loop:
    """A follower, with what its robot's drives give way or without, and a machine whose drives do."""

    def __init__(
        self,
        law: str,
        flexible: bool,
        compensated: bool,
        drives: float = DRIVES,
        rotor: float = 2e-5,
        pace: float = 120.0,
        name: str = "delta",
    ) -> None:
        mechanism = load_mechanism(soft(name, drives, rotor))
        self.kinematics = k = Kinematics(mechanism)
        dynamics, limits = Dynamics(k), ActuatorLimits.of(mechanism)
        mode = CommandMode.POSITION if law == "position" else CommandMode.EFFORT
        self.machine = SimulatedMachine(dynamics, limits, command_mode=mode, payload=PAYLOAD, flexible=flexible)
        controller = make_controller(law, dynamics, limits, PERIOD, pace)
        controller.load(PAYLOAD)
        table = None
        if compensated:  # its links are rigid
            poses, nothing = np.array([k.home]), np.zeros((1, 6))
            soft_drives = dict.fromkeys(k.actuated_names, drives)
            table = ComplianceTable(k, poses, nothing, np.zeros((1, 6, 6)), np.zeros(6), soft_drives)
        guard = guard_of(controller.commands, limits, 5 * PERIOD, controller.weight)
        self.follower = TrajectoryFollower(k, controller, guard, 0.5 * PERIOD, compliance=table)
        self.machine.configure()
        self.machine.activate()
        self.places: list[np.ndarray] = []
        self.seen: list[float] = []

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / PERIOD)):
            state = self.machine.read()
            action = self.follower.update(state.time, state.time, state.positions, state.velocities)
            assert action.mode is not Mode.STOPPED, action.reason
            assert action.measured is not None
            self.places.append(self.machine.pose[:3].copy())
            self.seen.append(float(np.linalg.norm(self.machine.pose[:3] - action.measured.pose[:3])))
            self.machine.write(action.command)
            self.machine.step(PERIOD)
            assert not self.machine.fault

    def move(self) -> None:
        home = np.array(self.kinematics.home)
        end = home.copy()
        end[:3] += 0.15, -0.1, -0.06
        ways = np.array([home, end, home])
        self.follower.follow(
            Motion(
                PointTrajectory(np.array([0.0, 0.5, 1.0]), ways, np.zeros((3, 6)), np.zeros((3, 6))), self.machine.time
            )
        )
        self.run(1.3)


@pytest.mark.slow
@pytest.mark.by_day("position")
@pytest.mark.parametrize(("law", "left"), [("position", 0.3), ("computed_torque", 0.15)])
def test_drives_that_give_way_are_led_ahead(law: str, left: float) -> None:
    """Compared with a machine whose drives are rigid, which has all other errors of its drives, too.

    In motion more is left of drives with position loops, which do not know the payload, and answer the windup itself.
    """
    rigid, elastic, led = (Loop(law, flexible, led) for flexible, led in ((False, False), (True, False), (True, True)))
    for loop in (rigid, elastic, led):
        loop.run(0.3)
        del loop.places[:], loop.seen[:]
        loop.move()
    ideal = np.array(rigid.places)
    off, better = (np.linalg.norm(np.array(one.places) - ideal, axis=1) for one in (elastic, led))
    assert off.max() > 4e-4
    assert better.max() < left * off.max()
    assert better[-1] < 0.01 * off[-1]  # at rest
    assert max(led.seen) < 0.15 * max(elastic.seen)  # nor does the controller see the platform where it is not


BETWEEN, ROTOR = 4e4, 2.0  # N/m and kg: spring and motor of a slide


def on_spring() -> Dynamics:
    """A robot that moves along x by one slide alone, whose motor is behind a spring."""
    text = load_mechanism("tripteron").urdf
    more = f'<param name="stiffness">{BETWEEN}</param><param name="rotor_inertia">{ROTOR}</param></joint>'
    at = text.index('<joint name="limb_x_slider">', text.index("<ros2_control"))
    return Dynamics(Kinematics(load_mechanism(text[:at] + text[at:].replace("</joint>", more, 1))), friction=False)


def moved_mass(dynamics: Dynamics) -> float:
    home = np.array(dynamics.kinematics.home)
    pushed, rest = (dynamics.inverse(home, np.zeros(6), size * np.eye(6)[0]).effort[0] for size in (1.0, 0.0))
    return float(pushed - rest) - ROTOR


def two_masses(state: np.ndarray, effort: float, mass: float, damping: float) -> None:
    """Move places and rates (4,) of motor and mass on by a period, in 50 steps."""
    h = PERIOD / 50
    for _ in range(50):
        pull = BETWEEN * (state[0] - state[1]) + damping * (state[2] - state[3])
        state[2:] += h * np.array([(effort - pull) / ROTOR, pull / mass])
        state[:2] += h * state[2:]


def test_a_motor_before_a_spring_is_accelerated_ahead_of_its_mass() -> None:
    """Two masses and a spring without damping take (m + J) a + (J m / k) a'': the motor's lead is the second part.

    Led by the model alone along a bump of 5 mm; seen: 7 um are left of 53 um.
    """
    dynamics = on_spring()
    k, mass = dynamics.kinematics, moved_mass(dynamics)
    controller = make_controller("computed_torque", dynamics, ActuatorLimits.of(k.mechanism), PERIOD)
    home, seconds = np.array(k.home), 0.4
    nothing, drives = np.zeros((1, 6)), {k.actuated_names[0]: BETWEEN}
    table = ComplianceTable(k, home[None], nothing, np.zeros((1, 6, 6)), np.zeros(6), drives)
    bump = 5e-3 * np.poly1d([4.0, 0.0]) ** 6 * np.poly1d([-1.0, 1.0]) ** 6
    x, v, a = (bump.deriv(n) * seconds**-n for n in range(3))
    measured, off = measured_at(k, home), dict[bool, float]()
    for led in (False, True):
        compensation, state, away = Compensation(table, controller), np.zeros(4), []
        compensation.seen(measured)
        for n in range(round(seconds / PERIOD)):
            at, middle = n * PERIOD / seconds, (n + 0.5) * PERIOD / seconds
            reference = Reference(displace(home, axis(x(at))), axis(v(at)), axis(a(middle)))
            effort = compensation.command(controller.foreseen, reference, measured, PERIOD)
            ahead = float((effort - controller.foreseen(reference, measured))[0])
            two_masses(state, (mass + ROTOR) * float(a(middle)) + led * ahead, mass, 0.0)
            away.append(abs(state[1] - x((n + 1) * PERIOD / seconds)))
        off[led] = max(away)
    assert off[False] > 4e-5
    assert off[True] < 0.2 * off[False]


def axis(size: float) -> np.ndarray:
    return float(size) * np.eye(6)[0]


def test_a_simulated_machine_with_a_rotor_behind_a_spring_is_two_masses() -> None:
    """Pushed to and fro, damped by 5 ms times the stiffness. Its steps are of 1 ms, which costs 3 % here."""
    dynamics = on_spring()
    limits, mass, state = ActuatorLimits.of(dynamics.mechanism), moved_mass(dynamics), np.zeros(4)
    machine = SimulatedMachine(dynamics, limits, flexible=True)
    machine.configure()
    machine.activate()
    start, weight, rest = machine.read().positions, dynamics.gravity(machine.pose).effort, machine.windup.copy()
    places, wound = [], []
    for n in range(200):
        push = 60.0 * np.cos(2.0 * np.pi * 10.0 * n * PERIOD)
        two_masses(state, push, mass, 0.005 * BETWEEN)
        machine.write(weight + push * np.eye(3)[0])
        machine.step(PERIOD)
        places.append((machine.read().positions[0] - start[0], state[0]))
        wound.append((machine.windup[0] - rest[0], state[0] - state[1]))
    for ours, theirs in (np.array(one).T for one in (places, wound)):
        assert np.abs(ours - theirs).max() < 0.05 * np.ptp(theirs)


@pytest.mark.slow
def test_heavy_rotors_are_led_ahead_in_a_simulated_machine() -> None:
    """Rotors of 1 kg m^2 at the joint, behind soft gears, under a loop too slow to make up for it."""
    found = []
    for flexible, compensated, led in ((False, False, False), (True, True, False), (True, True, True)):
        loop = Loop("computed_torque", flexible, compensated, drives=5e3, rotor=1.1e-3, pace=20.0)
        if loop.follower.compensation is not None and not led:
            loop.follower.compensation._accelerated = lambda passed: np.zeros(3)  # type: ignore[method-assign]
        loop.run(0.3)
        loop.places.clear()
        loop.move()
        found.append(np.array(loop.places))
    off, better = (np.linalg.norm(one - found[0], axis=1) for one in found[1:])
    assert better.max() < 0.7 * off.max()
    assert better.mean() < 0.7 * off.mean()


def test_turning_the_drives_on_moves_nothing() -> None:
    """The platform is held where it is found, not by the windup beside it."""
    loop = Loop("position", True, True)
    before = loop.machine.pose.copy()
    loop.run(0.02)
    assert np.linalg.norm(loop.machine.pose[:3] - before[:3]) < 0.2 * np.linalg.norm(loop.machine.windup * 0.3)


def test_a_payload_is_compensated_without_a_jump() -> None:
    loop = Loop("computed_torque", True, True)
    loop.run(0.1)
    compensation = loop.follower.compensation
    assert compensation is not None
    before = compensation.windup.copy()
    loop.follower.controller.load(Inertial(mass=4.0))
    loop.run(PERIOD)
    first = np.abs(compensation.windup - before).max()
    loop.run(8.0 * SETTLES)
    whole = np.abs(compensation.windup - before).max()
    assert whole > 1e-4
    assert first < 2.0 * PERIOD / SETTLES * whole


@pytest.mark.slow
def test_a_table_leaves_out_poses_beyond_the_joints_ranges(tmp_path: Path) -> None:
    """What the controller would refuse is not written."""
    analysis, file = Analysis(load_mechanism("tripod_3prs"), stiffness=1e6), tmp_path / "table.json"
    poses = poses_over(analysis.robot, {"z": (0.2, 0.3)})
    inside = analysis.robot.kinematics.inverse(poses).status == 0
    assert 50 < inside.sum() < len(poses)
    told = write_table(analysis.stiffnesses, poses, file, 0.0, WRENCH)
    assert told.poses + told.checks == inside.sum()
    assert read_compliance(str(file), analysis.robot.kinematics) is not None


def test_a_table_beside_singularities_is_not_written(tmp_path: Path) -> None:
    analysis, file = Analysis(load_mechanism("planar_3rrr"), stiffness=1e5), tmp_path / "table.json"
    poses = poses_over(analysis.robot, {"x": (0.2, 0.8), "y": (0.1, 0.5), "yaw": (-0.8, 0.8)})
    with pytest.raises(AnalysisError, match=r"at 0\.\S+ 0\.\S+ 0 m the platform gives way by \S+ mm; give ranges"):
        write_table(analysis.stiffnesses, poses, file, 0.0, None)
    assert not file.exists()


def test_limits_are_those_of_the_pose_that_is_led_to() -> None:
    """At the end of its range a platform that sags must be led beyond it, which is refused before it is run."""
    mechanism = load_mechanism("linear_delta")
    k = Kinematics(mechanism)
    dynamics, limits = Dynamics(k), ActuatorLimits.of(mechanism)
    home = np.array(k.home)
    highest, up = home.copy(), np.array([0.0, 0.0, 1e-3, 0.0, 0.0, 0.0])
    check = CurveCheck(dynamics, limits)
    while not check.standing(displace(highest, up)):
        highest = displace(highest, up)
    sag = np.array([0.0, 0.0, -3e-3, 0.0, 0.0, 0.0])
    poses = np.array([home, highest])
    table = ComplianceTable(k, poses, np.tile(sag, (2, 1)), np.zeros((2, 6, 6)), np.zeros(6), {})
    assert CurveCheck(dynamics, limits, compliance=table).standing(home) == ""
    assert "range" in CurveCheck(dynamics, limits, compliance=table).standing(highest)
    controller = make_controller("position", dynamics, limits, PERIOD)
    compensation = Compensation(table, controller)
    guard = guard_of("position", limits, 5 * PERIOD, controller.weight)
    for far, said in ((displace(home, 1e4 * up), ""), (home + np.eye(7)[0] * 10.0, "not finite")):
        command = compensation.command(controller.law, Reference.at_rest(far), measured_at(k, home), PERIOD)
        verdict = guard.check(0.0, {"measured state": 0.0}, command, home)
        assert said in verdict.reason
        assert verdict.withhold_command or (verdict.command == limits.upper).all()


def test_another_working_mode_is_refused() -> None:
    loop = Loop("computed_torque", True, True)
    loop.run(0.05)
    loop.follower.controller.load(None)
    way = SimpleNamespace(way=SimpleNamespace(pose=loop.follower.hold))
    assert "one working mode" in loop.follower.begin_change(way)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"robot": "hexa"}, "for 'hexa'"),
        ({"poses": []}, "poses"),
        ({"poses": [[0, 0, -0.8, 0, 0, 0, 2]]}, "no unit length"),
        ({"sag": [[0, 0, 1, 0, 0]]}, "sag"),
        ({"sag": [[0, 0, -90.0, 0, 0, 0]]}, "no small displacement"),
        ({"sag": [[0, 0, -0.0012, 0, 0, 0]]}, "at pose 1 it is 1.2 mm, and the whole weight moves it 0"),
        ({"poses": [[3, 0, -0.8, 0, 0, 0, 1]]}, "pose 1 is not possible for the robot"),
        ({"compliance": "soft"}, "compliance"),
        ({"compliance": [[[float("nan")] * 6] * 6]}, "finite"),
        ({"compliance": np.eye(6)[None].tolist()}, "a force as large as the robot's weight moves the platform by"),
        ({"load": [0, 0]}, "load"),
        ({"drives": {"limb1_arm": -1}}, "greater than zero"),
        ({"drives": {"limb9_arm": 1e5}}, "no drive 'limb9_arm'"),
        (None, "no JSON"),
        ([], "no table"),
    ],
)
def test_files_that_make_no_sense(change: dict[str, object] | list[int] | None, said: str, tmp_path: Path) -> None:
    k = Kinematics(load_mechanism("delta"))
    good = {"robot": "delta", "load": [0.0] * 6, "drives": {}, "poses": [list(map(float, k.home))]}
    good |= {"sag": [[0.0] * 6], "compliance": np.zeros((1, 6, 6)).tolist()}
    file = tmp_path / "table.json"
    file.write_text(json.dumps(good))
    assert read_compliance(str(file), k) is not None
    assert read_compliance("", k) is None
    wrong = {**good, **change} if isinstance(change, dict) else change
    file.write_text("{" if wrong is None else json.dumps(wrong))
    with pytest.raises(ConfigurationError, match=said):
        read_compliance(str(file), k)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_compliance(str(tmp_path / "none.json"), k)


@pytest.mark.slow
def test_a_platform_whose_directions_turn_is_led_along_a_motion() -> None:
    """The machine with drives that give way, led and not, against one with rigid drives."""
    places = []
    for flexible, led in ((False, False), (True, False), (True, True)):
        loop = Loop("position", flexible, led, drives=1e5, name="tripod_3prs")
        motion = sampled_motion(loop.follower.controller.dynamics, "auto")
        some = np.flatnonzero(motion.times < 1.0)[::5]
        rows = motion.poses[some], motion.twists[some], motion.accelerations[some]
        points = PointTrajectory(motion.times[some], *rows)
        loop.run(0.2)
        loop.places.clear()
        loop.follower.follow(Motion(points, loop.machine.time))
        loop.run(0.8)
        places.append(np.array(loop.places))
    off, better = (np.linalg.norm(one - places[0], axis=1) for one in places[1:])
    assert off.max() > 1e-4
    assert better.max() < 0.3 * off.max()


def test_redundant_drives_of_a_platform_whose_directions_turn_are_refused() -> None:
    k = SimpleNamespace(constant_space=False, actuated_names=("a", "b"), mobility=1)
    nothing = np.zeros((1, 6))
    with pytest.raises(ValueError, match="change with the pose, and its drives are redundant"):
        ComplianceTable(k, np.zeros((1, 7)), nothing, np.zeros((1, 6, 6)), nothing[0], {})  # type: ignore[arg-type]
