# SPDX-License-Identifier: Apache-2.0
"""Simulation in three forms: energy, closed loops, agreement with each other and with Pinocchio, singularities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.transform import Rotation

from bench.engines.pinocchio_model import PinocchioRobot
from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_dynamics.simulation import pose_rate, simulate, unit
from pkm_kinematics import Kinematics, Status
from pkm_runtime.errors import PkmError

FORMS = ["task", "joint", "actuator"]
# Singular everywhere; without actuators in hold, its platform would move off in every direction.
LEFT_OUT = {"griffis_duffy"}
QUICK = [("task", name) for name in ("delta", "five_bar", "gough_stewart", "agile_eye", "planar_redundant", "hexa")]
QUICK += [("joint", name) for name in ("delta", "gough_stewart", "orthoglide", "tricept")]
FREQUENCY = 10.0  # rad/s of the slowest motion on the springs
STIFFER = {"capaman": 20.0, "carpal_wrist": 20.0, "wrist_3ruu": 40.0}  # on cranks, which gravity would turn over
WIDER = {"spatial_4dof_5legs": 1.0}  # part of the box of regular poses that the motion takes, which there is tiny


@dataclass(frozen=True, eq=False)
class Sprung:
    """A robot on springs at home, weights held by constant efforts: every load has a potential."""

    dynamics: Dynamics
    twist: Array  # (6,) to start with
    stiffness: float  # N/m
    turning_stiffness: float  # N m/rad
    hold: Array  # (n_actuated,)

    def stretched(self, pose):
        home = self.dynamics.kinematics.home
        turned = Rotation.from_quat(pose[3:]) * Rotation.from_quat(home[3:]).inv()
        return pose[:3] - home[:3], turned.as_rotvec()

    def load(self, _time, pose, _twist):
        shift, turn = self.stretched(pose)
        return self.hold, np.concatenate([-self.stiffness * shift, -self.turning_stiffness * turn])

    def energy(self, run):
        """Kinetic energy at the start, and the total at every instant (k,)."""
        found = energy(self.dynamics, self.dynamics.kinematics.at(run.pose, seed=run.joints), run.twist)
        total = found.total.copy()
        for k, pose in enumerate(run.pose):
            shift, turn = self.stretched(pose)
            total[k] += 0.5 * self.stiffness * shift @ shift + 0.5 * self.turning_stiffness * turn @ turn
        total -= run.joints[:, self.dynamics.kinematics.engine.actuated_column] @ self.hold
        return found.kinetic[0], total


def radius_of_gyration(S, M):
    """Length [m] at which turning takes as much force as shifting; 0 where the platform does not do both."""
    shifts, turns = np.linalg.norm(S[:3], axis=0) ** 2, np.linalg.norm(S[3:], axis=0) ** 2
    if min(shifts.sum(), turns.sum()) < 1e-6:
        return 0.0
    return float(np.sqrt(np.diag(M) @ turns / turns.sum() / (np.diag(M) @ shifts / shifts.sum())))


def sprung(name):
    """Springs stiff enough for a motion of a tenth of the robot's range."""
    kinematics = Kinematics(load_mechanism(name))
    dynamics = Dynamics(kinematics, friction=False)
    home = kinematics.home
    S, M = kinematics.subspace(home), dynamics.mass_matrix(home)
    length = radius_of_gyration(S, M) or kinematics.engine.characteristic_length
    scale = np.array([1.0, 1.0, 1.0, length, length, length])
    mass = np.linalg.eigvals(np.linalg.solve((S * scale[:, None]).T @ (S * scale[:, None]), M)).real.max()
    twist = S @ np.random.default_rng(0).normal(size=S.shape[1])
    frequency = STIFFER.get(name, FREQUENCY)
    twist *= WIDER.get(name, 0.1) * frequency * random_motions(kinematics, 1).size / np.linalg.norm(twist * scale)
    stiffness = frequency**2 * mass
    return Sprung(dynamics, twist, stiffness, stiffness * length**2, dynamics.gravity(home).effort)


def keeps_its_energy(name, form, duration):
    robot = sprung(name)
    home = robot.dynamics.kinematics.home
    run = simulate(
        robot.dynamics, home, robot.twist, np.linspace(0, duration, 11), robot.load, form=form, tolerance=1e-11
    )
    assert run.ok.all(), run.notices
    kinetic, total = robot.energy(run)
    assert np.abs(total - total[0]).max() < 1e-8 * kinetic * max(1.0, duration / 3.0)  # each step errs by 1e-11
    moved = np.abs(run.pose - home).max()
    assert moved > 1e-3  # it did move
    judge = PinocchioRobot(robot.dynamics.mechanism)
    for joints in run.joints:
        assert judge.closure_gap(judge.coordinates(robot.dynamics.kinematics.joint_names, joints)) < 1e-9
    return run


@pytest.mark.by_day("agile_eye", "planar_redundant", "tricept")
@pytest.mark.parametrize(("form", "name"), QUICK)
def test_energy_is_kept_for_three_seconds(form, name):
    """Springs, weights and constant efforts: 1e-8 of the kinetic energy at the start may go; the loops stay closed."""
    keeps_its_energy(name, form, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in robot_names() if name not in LEFT_OUT])
def test_energy_is_kept_for_ten_seconds_by_all(form, name):
    keeps_its_energy(name, form, 10.0)


@pytest.mark.by_day("planar_redundant")
@pytest.mark.parametrize("name", ["five_bar", "gough_stewart", "planar_redundant", "tricept"])
def test_the_three_forms_agree(name):
    """Each is accurate to the tolerance of a step, 1e-11, times the steps and what the motion makes of them."""
    runs = [keeps_its_energy(name, form, 0.5) for form in FORMS]
    for other in runs[1:]:
        assert other.pose == pytest.approx(runs[0].pose, abs=1e-7)
        assert other.twist == pytest.approx(runs[0].twist, abs=1e-6)
        assert other.joints == pytest.approx(runs[0].joints, abs=1e-6)
    assert runs[0].notices == ()


@pytest.mark.by_day("gough_stewart_7", "tripod_3prs")
@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart_7", "tripod_3prs"])
def test_against_pinocchio_in_joint_coordinates(name):
    """Pinocchio's tree under constraints, integrated in its own coordinates: the same pose after 0.1 s."""
    kinematics = Kinematics(load_mechanism(name))
    dynamics = Dynamics(kinematics, friction=False)
    judge = PinocchioRobot(kinematics.mechanism)
    home = kinematics.home
    effort = 1.1 * dynamics.gravity(home).effort + 0.5
    twist = 0.2 * kinematics.subspace(home) @ np.ones(kinematics.mobility)
    wrench = np.array([3.0, -2.0, 1.0, 0.1, 0.0, 0.2])
    times = [0.0, 0.1]
    run = simulate(dynamics, home, twist, times, lambda t, pose, velocity: (effort, wrench))
    start = kinematics.motion(home, twist)
    q = judge.coordinates(kinematics.joint_names, start.joints)
    v = judge.coordinates(kinematics.joint_names, start.velocities)

    def rates(_t, y):
        q, v = np.split(y, 2)
        return np.concatenate([v, judge.direct_dynamics(q, v, effort, wrench)[1]])

    theirs = scipy.integrate.solve_ivp(rates, times, np.append(q, v), method="DOP853", rtol=1e-11, atol=1e-11)
    end = judge.platform_pose(theirs.y[: len(q), -1])
    moved = np.abs(run.pose[-1, :3] - home[:3]).max()
    assert moved > 1e-3
    assert np.abs(end.translation - run.pose[-1, :3]).max() < 1e-8
    assert np.abs(end.rotation - Rotation.from_quat(run.pose[-1, 3:]).as_matrix()).max() < 1e-8


@pytest.mark.parametrize("form", FORMS)
def test_through_a_type_2_singularity(form):
    """A five-bar is pushed down between its elbows: forms with the platform's velocity pass, and say so; one cannot."""
    dynamics = Dynamics(load_mechanism("five_bar"))
    kinematics = dynamics.kinematics
    heights = np.linspace(kinematics.home[1], 0.0, 2000)
    poses = np.tile(kinematics.home, (2000, 1))
    poses[:, 1] = heights
    signs = kinematics.singularity(poses).determinant_sign
    where = heights[int(np.argmax(signs != signs[0]))]
    times = np.linspace(0.0, 0.4, 401)
    push = np.array([0.0, -2.0, 0.0, 0.0, 0.0, 0.0])
    run = simulate(
        dynamics, kinematics.home, [0, -1.0, 0, 0, 0, 0], times, lambda t, p, v: (np.zeros(2), push), form=form
    )
    assert "near a type 2 singularity" in run.notices[0]
    reached = run.pose[run.ok]
    if form == "actuator":
        assert run.notices[-1].endswith("ended, the actuators no longer control the platform")
        assert not run.ok.all()
        assert np.isnan(run.pose[~run.ok]).all()
        assert (run.status[~run.ok] == Status.SINGULAR).all()
        assert 0.0 <= reached[-1, 1] - where < 0.01
    else:
        assert len(run.notices) == 2
        assert "passed through" in run.notices[1]
        assert run.ok.all()
        crossing = times[int(np.argmax(reached[:, 1] < where))]
        assert run.least_margin_time == pytest.approx(crossing, abs=0.003)
        assert run.least_margin < 0.01 * run.slowest_actuation[0]


@pytest.mark.parametrize(("form", "lost"), [("joint", 1e-3), ("actuator", 1e-8)])
def test_through_a_type_1_singularity(form, lost):
    """A five-bar thrown sideways stretches one limb, which swings through. Rates per twist have a pole there."""
    dynamics = Dynamics(load_mechanism("five_bar"), friction=False)
    kinematics = dynamics.kinematics
    times = np.linspace(0.0, 0.9, 91)
    run = simulate(dynamics, kinematics.home, [1.0, 0, 0, 0, 0, 0], times, form=form, tolerance=1e-9)
    assert run.ok.all(), run.notices
    elbow = run.joints[:, kinematics.joint_names.index("left_elbow")]
    assert elbow[0] * elbow[-1] < 0.0
    assert np.abs(np.diff(elbow)).max() < 0.5
    total = energy(dynamics, kinematics.at(run.pose, seed=run.joints), run.twist).total
    np.testing.assert_allclose(total, total[0], rtol=lost)
    assert [notice.split("s: ")[1] for notice in run.notices] == [
        "passed through a type 1 singularity into another working mode"
    ]


def test_a_robot_that_is_singular_everywhere_is_simulated():
    dynamics = Dynamics(load_mechanism("griffis_duffy"))
    run = simulate(dynamics, dynamics.kinematics.home, np.zeros(6), [0.0, 0.01, 0.02])
    assert run.ok.all()
    assert "type 2 singularity" in run.notices[0]


@pytest.mark.parametrize("name", ["delta", "tricept"])
def test_no_notice_far_from_singularities(name):
    robot = sprung(name)
    run = simulate(robot.dynamics, robot.dynamics.kinematics.home, robot.twist, [0.0, 0.2], robot.load, form="joint")
    assert run.notices == ()
    assert run.least_margin > 0.2 * run.slowest_actuation[0]
    assert run.steps > 0
    assert run.evaluations > 10 * run.steps


def test_a_motion_that_leaves_the_workspace_ends():
    """The Delta thrown upwards and sideways, its motors off: its rods come to an end."""
    dynamics = Dynamics(load_mechanism("delta"), friction=False)
    home = dynamics.kinematics.home
    pull = np.array([0.0, 0.0, -400.0, 0.0, 0.0, 0.0])
    run = simulate(dynamics, home, np.zeros(6), np.linspace(0.0, 2.0, 21), lambda t, p, v: (np.zeros(3), pull))
    assert run.ok[0]
    assert not run.ok.all()
    assert "ended" in run.notices[-1]
    first = int(np.argmin(run.ok))
    assert np.isnan(run.pose[first:]).all()
    assert np.isfinite(run.pose[:first]).all()
    assert (run.status[first:] != Status.CONVERGED).all()


def test_quaternion_turns_as_the_rotation_vector_says():
    """At constant angular velocity the rotation after t is exp(t w), past every angle that others stop at."""
    w = np.array([0.3, 2.0, -0.7])
    start = unit(np.array([1.0, 2.0, 3.0, 0.1, -0.4, 0.2, 0.8]))
    solved = scipy.integrate.solve_ivp(
        lambda t, y: pose_rate(y, np.append([0.1, 0.2, 0.3], w)), (0.0, 5.0), start, rtol=1e-12, atol=1e-12
    )
    expected = Rotation.from_rotvec(5.0 * w) * Rotation.from_quat(start[3:])
    turned = Rotation.from_quat(unit(solved.y[:, -1])[3:])
    assert (turned * expected.inv()).magnitude() < 1e-9
    assert solved.y[:3, -1] == pytest.approx([1.5, 3.0, 4.5])


def test_what_cannot_be_simulated(delta):
    home = delta.kinematics.home
    far = home + np.array([0, 0, -5.0, 0, 0, 0, 0])
    with pytest.raises(PkmError, match="cannot start there"):
        simulate(delta.dynamics, far, np.zeros(6), [0.0, 1.0])
    with pytest.raises(PkmError, match="cannot start there"):
        simulate(delta.dynamics, home, [0, 0, 0, 1.0, 0, 0], [0.0, 1.0])
    with pytest.raises(PkmError, match="increasing"):
        simulate(delta.dynamics, home, np.zeros(6), [0.0, 0.0])
    with pytest.raises(PkmError, match="task, joint, actuator"):
        simulate(delta.dynamics, home, np.zeros(6), [0.0, 1.0], form="both")


@pytest.mark.parametrize("name", ["five_bar", "delta", "gough_stewart"])
def test_a_load_is_a_pair_of_efforts_and_a_wrench(name):
    """Two efforts of two drives are no such pair, nor three of three."""
    dynamics = Dynamics(load_mechanism(name))
    k, m = dynamics.kinematics, len(dynamics.kinematics.actuated_names)
    efforts, wrench = np.zeros(m), np.zeros(6)
    wrong = (efforts, [0.0] * m, (*efforts,), (wrench[:5], wrench), (efforts, wrench[:3]), (efforts, wrench, 0.0), None)
    for given in wrong:
        with pytest.raises(PkmError, match=rf"load: expected a pair, the efforts of shape \({m},\) and .* \(6,\)"):
            simulate(dynamics, k.home, np.zeros(6), [0.0, 1e-3], lambda *_, given=given: given)
    with pytest.raises(PkmError, match="load: not finite at 0 s"):
        simulate(dynamics, k.home, np.zeros(6), [0.0, 1e-3], lambda *_: (np.full(m, np.nan), wrench))
    for given in ((efforts, wrench), [list(efforts), list(wrench)]):
        assert simulate(dynamics, k.home, np.zeros(6), [0.0, 1e-3], lambda *_, given=given: given).ok.all()
