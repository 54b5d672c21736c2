# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics against difference quotients of it, for every robot.

The quotients are of sixth order along curves of poses. Their error is that of rounding, 1e-15 of an effort over the
step, and the sixth power of the step; both stay below 1e-7 of the largest derivative of a state.
"""

from __future__ import annotations

import numpy as np
import pytest

from bench.strange_robots import SOLVED
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, frozen
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import displace

SOME = slice(0, 200, 67)
STEPS, WEIGHTS = np.array([-3, -2, -1, 1, 2, 3]), np.array([-1, 9, -45, 45, -9, 1]) / 60.0
FASTER = 0.01  # m/s^2 or rad/s^2: efforts are linear in accelerations, but for cables that reach a bound
CLOSE = 1e-6
TOO_SMALL = "a millimetre tall"  # its whole workspace is smaller than the boxes that random motions are drawn from


def asked(robot):
    s = robot.states
    if not robot.kinematics.mechanism.one_way_actuators.any():
        return s.pose[SOME], s.twist[SOME], s.acceleration[SOME]
    slow = s.pose, 0.05 * s.twist, 0.05 * s.acceleration  # cables only pull, and only so hard
    held = np.flatnonzero(robot.dynamics.inverse(*slow).ok)[:3]
    assert len(held) == 3
    return tuple(x[held] for x in slow)


def metric(kinematics):
    """Square of the weights that make rotations speeds: (6,)."""
    return np.array([1.0, 1.0, 1.0, *3 * [kinematics.engine.characteristic_length]]) ** 2


def followed(kinematics, S, pose, seed, twist, acceleration):
    """Twist and acceleration at a pose whose components in S are those given, as the motion space there allows."""
    if kinematics.constant_space:
        return twist, acceleration
    dual = (S * metric(kinematics)[:, None]).T
    there = kinematics.engine.spaces.at_one(pose, seed)[0]
    V = there @ np.linalg.solve(dual @ there, dual @ twist)
    bias = kinematics.engine.spaces.at_one(pose, seed, V)[1]
    return V, there @ np.linalg.solve(dual @ there, dual @ (acceleration - bias)) + bias


def moved(kinematics, pose, S, c, step, K, seed):
    """A pose off by `step` along S[:, c], to first order; where the motion space turns, by the actuators."""
    if kinematics.constant_space:
        return displace(np.array(pose), step * S[:, c])
    joints = kinematics.modes.choose(pose[None], seed).seeds[0]
    target = joints[kinematics.engine.actuated_column] + step * K[:, c]
    return kinematics.forward(target, near=pose).pose


def quotients(dynamics, pose, twist, acceleration, seed, h, **outside):
    """Derivatives (m, n) by pose, twist and acceleration, by differences."""
    k = dynamics.kinematics
    S, K = k.engine.spaces.at_one(pose, seed)[0], k.at(pose, seed).motion_jacobian
    speed = max(np.linalg.norm(twist), 1e-3)

    def effort(at, V, A):
        answer = dynamics.inverse(dynamics.kinematics.at(at, seed=seed), *followed(k, S, at, seed, V, A), **outside)
        assert answer.status == Status.CONVERGED
        return answer.effort

    found = []
    for c in range(S.shape[1]):
        by_pose = [effort(moved(k, pose, S, c, s * h, K, seed), twist, acceleration) for s in STEPS]
        by_twist = [effort(pose, twist + s * 0.05 * speed * S[:, c], acceleration) for s in STEPS]
        more = FASTER * S[:, c]
        ahead = effort(pose, twist, acceleration + more) - effort(pose, twist, acceleration - more)
        found.append((WEIGHTS @ by_pose / h, WEIGHTS @ by_twist / (0.05 * speed), 0.5 * ahead / FASTER))
    return [np.array(x).T for x in zip(*found, strict=True)]


def step_for(kinematics, pose, seed, size):
    """A step in the pose, shorter where the actuators run away, and where a limb is nearly stretched."""
    regularity = min(float(kinematics.singularity(pose, seed).limb_regularity), 1.0)
    return 2e-3 * regularity * size / max(np.abs(kinematics.at(pose, seed).motion_jacobian).max(), 1.0)


def check(dynamics, pose, twist, acceleration, seed, size, **outside):
    found = dynamics.inverse_derivatives(dynamics.kinematics.at(pose, seed=seed), twist, acceleration, **outside)
    assert found.status == Status.CONVERGED
    plain = dynamics.inverse(dynamics.kinematics.at(pose, seed=seed), twist, acceleration, **outside).effort
    assert found.effort == pytest.approx(plain, rel=1e-12)
    h = step_for(dynamics.kinematics, pose, seed, size)
    wanted = quotients(dynamics, pose, twist, acceleration, seed, h, **outside)
    for what, steps in (("pose", h), ("twist", 0.05 * np.linalg.norm(twist)), ("acceleration", FASTER)):
        ours, theirs = getattr(found, what), wanted[("pose", "twist", "acceleration").index(what)]
        noise = 1e-13 * np.abs(plain).max() / max(steps, 1e-6)
        assert np.abs(ours - theirs).max() < CLOSE * np.abs(theirs).max() + noise, what


def test_against_differences(robot):
    for pose, twist, acceleration in zip(*asked(robot), strict=True):
        seed = robot.kinematics.inverse(pose).joints
        check(robot.dynamics, pose, twist, acceleration, seed, robot.states.size)


def test_cables_at_a_bound_stay_there(of_gallery):
    """At the tension that keeps a cable taut, nothing changes; the others answer for it."""
    robot = of_gallery["cable_8"]
    pose, twist, acceleration = (x[0] for x in asked(robot))
    found = robot.dynamics.inverse_derivatives(pose, twist, acceleration)
    slack = np.isclose(found.effort, -20.0, rtol=1e-12)
    assert 1 <= slack.sum() <= 2  # two efforts are to spare
    assert not found.pose[slack].any()
    assert found.pose[~slack].all()


def test_by_acceleration_it_is_the_mass_matrix(robot):
    """K_a^T (d tau / d acceleration) = K^T M K, which a test of its own compares with Pinocchio's."""
    for pose, twist, acceleration in zip(*asked(robot), strict=True):
        K = robot.kinematics.at(pose).motion_jacobian
        found = K.T @ robot.dynamics.inverse_derivatives(pose, twist, acceleration).acceleration
        M = robot.dynamics.mass_matrix(pose)
        assert np.abs(found - M).max() < 1e-9 * np.abs(M).max()


@pytest.mark.parametrize("name", ["gough_stewart", "delta", "tricept"])
def test_with_a_payload_and_a_wrench(of_gallery, name):
    robot = of_gallery[name]
    payload = Inertial(2.5, frozen([0.03, -0.02, 0.08]), frozen([[0.02, 1e-3, 0], [1e-3, 0.03, 2e-3], [0, 2e-3, 0.04]]))
    wrench = np.array([5.0, -3.0, 4.0, 0.5, 0.2, -0.7])
    pose, twist, acceleration = (x[0] for x in asked(robot))
    seed = robot.kinematics.inverse(pose).joints
    check(robot.dynamics, pose, twist, acceleration, seed, robot.states.size, wrench=wrench, payload=payload)


@pytest.mark.parametrize("name", ["five_bar", "delta", "gough_stewart", "planar_redundant"])
def test_friction(of_gallery, name):
    """Viscous and smoothed Coulomb friction, at speeds from far below the smoothing to far above: short steps here."""
    robot = of_gallery[name]
    dynamics = Dynamics(robot.kinematics)
    pose, twist, acceleration = (x[0] for x in asked(robot))
    S = robot.kinematics.subspace(pose)
    for slow in (1e-4, 1e-2, 1.0):
        h = 1e-5 * slow * np.linalg.norm(twist)
        if slow < 1.0:
            h = min(h, 3e-5)
        found = dynamics.inverse_derivatives(pose, slow * twist, acceleration).twist
        for c in range(S.shape[1]):
            efforts = [dynamics.inverse(pose, slow * twist + s * h * S[:, c], acceleration).effort for s in STEPS]
            wanted = WEIGHTS @ efforts / h
            noise = 1e-14 * np.abs(efforts).max() / h
            assert np.abs(found[:, c] - wanted).max() < 1e-5 * np.abs(found).max() + noise


@pytest.mark.parametrize("name", sorted(set(SOLVED) - {TOO_SMALL}))
def test_strange_robots(name):
    """Joints that spin idly, platforms that hang on limbs, doubled joints."""
    dynamics = Dynamics(load_mechanism(SOLVED[name]), friction=False)
    kinematics = dynamics.kinematics
    motions = random_motions(kinematics, 2, seed=3)
    for pose, twist, acceleration in zip(motions.pose, motions.twist, motions.acceleration, strict=True):
        seed = kinematics.inverse(pose).joints
        check(dynamics, pose, twist, acceleration, seed, motions.size)


def test_shapes_and_statuses(delta):
    pose = np.tile(delta.kinematics.home, (2, 3, 1))
    pose[1, 2, 2] -= 5.0
    found = delta.dynamics.inverse_derivatives(pose)
    assert found.pose.shape == found.twist.shape == found.acceleration.shape == (2, 3, 3, 3)
    assert found.status[1, 2] == Status.UNREACHABLE
    assert np.isnan(found.pose[1, 2]).all()
    assert np.isfinite(found.pose[found.ok]).all()
    assert found.effort.shape == (2, 3, 3)
