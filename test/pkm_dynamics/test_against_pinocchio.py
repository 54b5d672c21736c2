# SPDX-License-Identifier: Apache-2.0
"""Inverse and direct dynamics against Pinocchio, for every robot, at 1,000 random states.

Pinocchio has the tree, its own recursion and its own mass matrix; the loops are constraints on its frames. What is
compared has nothing of this suite in it but the description and the positions of the joints, and these close the loops
by Pinocchio's own frame placements.
"""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest

from bench.engines.pinocchio_model import PinocchioRobot, constraint_model
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, frozen
from pkm_dynamics import Distribution, Dynamics

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

# Relative to the largest effort or acceleration of a state. Seen: 1e-13 to 4e-12; the rest is room for other machines.
CLOSE = 1e-9
# The judge projects its equations of motion with an orthonormal null space, and loses what the mass matrix is badly
# conditioned by (2e4 at the worst of 1,000 states of five_dof_3rr_rrr): from the efforts of a known acceleration it
# gets that back to 4e-9, this suite to 2e-11.
CLOSE_TO_THE_JUDGE = 1e-8


def error(found, expected):
    """Largest error of each state over its largest expected value (n,)."""
    return np.abs(found - expected).max(axis=-1) / np.maximum(np.abs(expected).max(axis=-1), 1e-9)


def some_efforts(robot, seed):
    """Random efforts (n, n_actuated) of the size that the states' motion asks for."""
    states = robot.states
    asked = robot.dynamics.inverse(states.pose, states.twist, states.acceleration, distribution=FREE).effort
    return asked + np.abs(asked).max() * np.random.default_rng(seed).uniform(-1, 1, asked.shape)


def test_inverse_dynamics(robot):
    states = robot.states
    found = robot.dynamics.inverse(states.pose, states.twist, states.acceleration, distribution=FREE)
    assert found.ok.all()
    expected = np.array([robot.judge.inverse_dynamics(*robot.rates(k)) for k in range(len(states))])
    assert error(found.effort, expected).max() < CLOSE


def test_direct_dynamics(robot):
    states = robot.states
    effort = some_efforts(robot, 5)
    found = robot.dynamics.direct(states.pose, states.twist, effort)
    assert found.ok.all()
    # The judge's platform on a branch of joints has yaw, pitch and roll, and errs by 1/cos(pitch)^2 more: 1.5e-9 where
    # the Dietmaier platform is pitched by 89.98 degrees. One that turns freely agrees to 1e-13 there, as elsewhere.
    free = PinocchioRobot(robot.kinematics.mechanism, free_platform=True) if robot.kinematics.mobility == 6 else None
    expected = np.empty((len(states), 6))
    for k in range(len(states)):
        if free is None:
            judge, (q, v, _) = robot.judge, robot.rates(k)
        else:
            judge, q = free, free.free_coordinates(robot.kinematics.joint_names, states.joints[k], states.pose[k])
            v = judge.rates(q, states.twist[k], states.acceleration[k])[0]
        expected[k], _ = judge.direct_dynamics(q, v, effort[k])
    assert error(found.acceleration, expected).max() < CLOSE


def test_direct_dynamics_undoes_inverse_dynamics(robot):
    states, dynamics = robot.states, robot.dynamics
    effort = dynamics.inverse(states.pose, states.twist, states.acceleration, distribution=FREE).effort
    back = dynamics.direct(states.pose, states.twist, effort)
    assert back.ok.all()
    assert error(back.acceleration, states.acceleration).max() < CLOSE


def test_inverse_dynamics_undoes_direct_dynamics(robot):
    states = robot.states
    dynamics = Dynamics(robot.kinematics)  # friction and all
    effort = some_efforts(robot, 6)
    if effort.shape[1] > robot.kinematics.mobility:
        # redundant actuators: of all efforts with one effect, the inverse dynamics answers the smallest
        K = robot.kinematics.at(states.pose).inverse_jacobian @ robot.kinematics.subspace(states.pose)
        effort = np.einsum("nij,njk,nk->ni", K, np.linalg.pinv(K), effort)
    acceleration = dynamics.direct(states.pose, states.twist, effort)
    assert acceleration.ok.all()
    back = dynamics.inverse(states.pose, states.twist, acceleration.acceleration, distribution=FREE)
    assert error(back.effort, effort).max() < CLOSE


def test_external_wrench(robot):
    states = robot.states
    rng = np.random.default_rng(7)
    wrench = rng.uniform(-50, 50, (len(states), 6))
    found = robot.dynamics.inverse(
        states.pose, states.twist, states.acceleration, wrench=wrench, distribution=FREE
    ).effort
    answer = robot.dynamics.direct(states.pose, states.twist, found, wrench=wrench).acceleration
    assert error(answer, states.acceleration).max() < CLOSE
    for k in range(0, len(states), len(states) // 50):
        expected = robot.judge.inverse_dynamics(*robot.rates(k), wrench=wrench[k])
        assert error(found[k], expected) < CLOSE
        q, v, _ = robot.rates(k)
        assert error(answer[k], robot.judge.direct_dynamics(q, v, found[k], wrench[k])[0]) < CLOSE_TO_THE_JUDGE


def test_payload(robot):
    states = robot.states
    payload = Inertial(2.5, frozen([0.03, -0.02, 0.08]), frozen([[0.02, 1e-3, 0], [1e-3, 0.03, 2e-3], [0, 2e-3, 0.04]]))
    loaded = PinocchioRobot(
        robot.kinematics.mechanism, pin.Inertia(payload.mass, np.array(payload.com), np.array(payload.inertia))
    )
    found = robot.dynamics.inverse(
        states.pose, states.twist, states.acceleration, payload=payload, distribution=FREE
    ).effort
    answer = robot.dynamics.direct(states.pose, states.twist, found, payload=payload).acceleration
    assert error(answer, states.acceleration).max() < CLOSE
    for k in range(0, len(states), len(states) // 50):
        assert error(found[k], loaded.inverse_dynamics(*robot.rates(k))) < CLOSE


def test_friction(robot):
    """Viscous and Coulomb friction in actuated and passive joints, where every joint that rubs is well in motion."""
    states = robot.states
    dynamics = Dynamics(robot.kinematics)
    rough = [
        k for k, name in enumerate(robot.judge.names)
        if robot.kinematics.mechanism.joint_named.get(name) is not None
        and robot.kinematics.mechanism.joint_named[name].coulomb_friction > 0
    ]  # fmt: skip
    found = dynamics.inverse(states.pose, states.twist, states.acceleration, distribution=FREE).effort
    compared = 0
    for k in range(0, len(states), len(states) // 200):
        q, v, vdot = robot.rates(k)
        if rough and np.abs(v[rough]).min() < 0.03:  # the sign is smoothed over 1e-3 rad/s or m/s
            continue
        compared += 1
        assert error(found[k], robot.judge.inverse_dynamics(q, v, vdot, friction=True)) < CLOSE
        forward = dynamics.direct(states.pose[k], states.twist[k], found[k]).acceleration
        assert error(forward, states.acceleration[k]) < CLOSE
        assert error(forward, robot.judge.direct_dynamics(q, v, found[k], friction=True)[0]) < CLOSE_TO_THE_JUDGE
    assert compared > 20


def test_mass_matrix(robot):
    """The acceleration per unit of wrench at rest is the inverse of the projected mass matrix of the tree."""
    states = robot.states
    chosen = range(0, len(states), len(states) // 20)
    S = robot.kinematics.subspace(states.pose)
    for k in chosen:
        basis, rank = S[k], S.shape[-1]
        still = robot.dynamics.inverse(states.pose[k], distribution=FREE).effort
        unit = np.linalg.pinv(basis).T  # wrenches dual to the basis
        compliance = np.empty((rank, rank))
        for c in range(rank):
            acceleration = robot.dynamics.direct(states.pose[k], np.zeros(6), still, wrench=unit[:, c]).acceleration
            compliance[:, c] = np.linalg.pinv(basis) @ acceleration
        assert np.abs(compliance - compliance.T).max() < 1e-9 * np.abs(compliance).max()
        assert np.linalg.eigvalsh(compliance).min() > 0
        q = robot.q(states.joints[k])
        K = np.column_stack([robot.judge.rates(q, basis[:, c], np.zeros(6))[0] for c in range(rank)])
        projected = K.T @ robot.judge.mass_matrix(q) @ K
        assert np.abs(np.linalg.inv(compliance) - projected).max() < 1e-8 * np.abs(projected).max()


@pytest.mark.parametrize("ratio", [1.0, 55.0, 200.0])
def test_gear_and_rotor(ratio, of_gallery):
    """Rotor inertia counts with the square of the gear ratio, in Pinocchio's `armature` and here."""
    text = of_gallery["delta"].kinematics.mechanism.urdf
    mechanism = load_mechanism(re.sub(r'(name="gear_ratio">)[\d.]+<', rf"\g<1>{ratio}<", text))
    assert mechanism.joint_named["limb1_arm"].drive.gear_ratio == ratio
    robot = of_gallery["delta"]
    judge = PinocchioRobot(mechanism)
    found = Dynamics(mechanism, friction=False).inverse(
        robot.states.pose[:50], robot.states.twist[:50], robot.states.acceleration[:50]
    )
    for k in range(50):
        assert error(found.effort[k], judge.inverse_dynamics(*robot.rates(k))) < CLOSE


def test_the_judge_reads_the_same_file(robot):
    """The Pinocchio model built from the loaded mechanism is the one that Pinocchio's own URDF reader builds."""
    mechanism = robot.kinematics.mechanism
    direct = pin.buildModelFromXML(mechanism.urdf)
    direct.gravity.linear = np.array(mechanism.gravity)
    data = direct.createData()
    judge = robot.judge
    rng = np.random.default_rng(8)
    joint = {name: k for k, name in enumerate(direct.names)}
    spots = [direct.joints[joint[name]].idx_v for name in judge.names]
    armature = np.diag(judge.model.armature)
    for _ in range(5):
        values, rates = rng.uniform(-1, 1, (2, judge.model.nv))
        v = np.zeros(direct.nv)
        v[spots] = values
        q = pin.integrate(direct, pin.neutral(direct), v)  # turning joints without limits are pairs (cos, sin) there
        v[spots] = rates
        M = pin.crba(direct, data, q)
        M = (np.triu(M) + np.triu(M, 1).T)[np.ix_(spots, spots)]
        assert np.abs(M + armature - judge.mass_matrix(values)).max() < 1e-12 * np.abs(M).max()
        bias = pin.nonLinearEffects(direct, data, q, v)[spots]
        assert np.abs(bias - pin.nonLinearEffects(judge.model, judge.data, values, rates)).max() < 1e-10


def test_delta_against_constraint_dynamics(delta):
    """Pinocchio's own constrained forward dynamics, on its own rigid contact models.

    Its proximal solver stops at a residual of 1e-12; what remains is that over the conditioning of the constraints.
    """
    model, data, contacts, constraint_data, settings = constraint_model(delta.judge)
    states = delta.states
    efforts = delta.dynamics.inverse(states.pose, states.twist, states.acceleration).effort
    worst = 0.0
    for k in range(0, len(states), len(states) // 100):
        q, v, vdot = delta.rates(k)
        tau = np.zeros(model.nv)
        tau[delta.judge.actuated] = efforts[k]
        found = pin.constraintDynamics(model, data, q, v, tau, contacts, constraint_data, settings)
        worst = float(np.maximum(worst, np.abs(found - vdot).max() / np.abs(vdot).max()))
    assert worst < 1e-6
