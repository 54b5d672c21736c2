# SPDX-License-Identifier: Apache-2.0
"""Velocities, accelerations and Jacobians of every robot, against Pinocchio and against difference quotients."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pinocchio as pin
import pytest

from bench.states import curve
from pkm_kinematics import Status
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError

STEPS = np.array([-3, -2, -1, 0, 1, 2, 3])
FIRST = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60.0
SECOND = np.array([2, -27, 270, -490, 270, -27, 2]) / 180.0
H = 2e-4  # s; motions change over 0.1 s, so that quotients of sixth order are wrong by much less than rounding


@pytest.mark.by_day("cable_8", "five_bar", "quattro", "tripod_3prs")
def test_rates_against_pinocchio(robot):
    motion = robot.motion
    assert motion.ok.all()
    for k in range(len(robot.states)):
        _, v, vdot = robot.rates(k)
        assert np.abs(robot.q(motion.velocities[k]) - v).max() < 1e-9 * np.abs(v).max()
        assert np.abs(robot.q(motion.accelerations[k]) - vdot).max() < 1e-9 * np.abs(vdot).max()


@pytest.mark.not_for("turning space")  # no closed-form curve of poses; covered by Pinocchio
def test_rates_against_difference_quotients(robot):
    kinematics, states, motion = robot.kinematics, robot.states, robot.motion
    chain = [kinematics.joint_names.index(name) for name in kinematics.task.names]
    # where a limb is nearly stretched, the seventh derivative is what a quotient shows
    chosen = np.flatnonzero(motion.limb_regularity > 0.2)[:40]
    assert len(chosen) == 40
    for k in chosen:
        poses = curve(
            kinematics.mechanism,
            states.joints[k, chain],
            motion.velocities[k, chain],
            motion.accelerations[k, chain],
            STEPS * H,
        )
        solved = kinematics.inverse(poses, seed=states.joints[k])
        assert np.isin(solved.status, (Status.CONVERGED, Status.JOINT_LIMIT)).all()
        velocity, acceleration = FIRST @ solved.joints / H, SECOND @ solved.joints / H**2
        v, a = motion.velocities[k], motion.accelerations[k]
        assert np.abs(velocity - v).max() < 1e-8 * np.abs(v).max()
        assert np.abs(acceleration - a).max() < 1e-5 * np.abs(a).max()


@pytest.mark.not_for("turning space")  # the platform cannot be moved off in any direction
def test_inverse_jacobian_against_difference_quotients(robot):
    kinematics, states = robot.kinematics, robot.states
    for k in range(0, len(states), len(states) // 10):
        S = kinematics.subspace(states.pose[k])
        K, of_task = kinematics.at(states.pose[k]).inverse_jacobian @ S, kinematics.at(states.pose[k]).motion_jacobian
        at = pin.XYZQUATToSE3(states.pose[k])
        h = 5e-4 * states.size / max(np.abs(K).max(), 1.0)  # shorter where the actuators run away
        for c in range(S.shape[1]):
            moved = []
            for step in STEPS:
                shift = step * h * S[:, c]
                moved.append(pin.SE3ToXYZQUAT(pin.SE3(pin.exp3(shift[3:]) @ at.rotation, at.translation + shift[:3])))
            solved = kinematics.inverse(np.array(moved), seed=states.joints[k])
            quotient = FIRST @ solved.actuated / h
            assert np.abs(quotient - K[:, c]).max() < 1e-6 * np.abs(K).max()
            assert np.abs(quotient - of_task[:, c]).max() < 1e-6 * np.abs(of_task).max()


def test_jacobians_undo_each_other(robot):
    kinematics, states = robot.kinematics, robot.states
    pose = states.pose[:200]
    K, J, S = kinematics.at(pose).inverse_jacobian, kinematics.at(pose).forward_jacobian, kinematics.subspace(pose)
    assert np.abs(J @ K @ S - S).max() < 1e-9
    if K.shape[-2] == S.shape[-1]:
        assert np.abs(K @ J - np.eye(K.shape[-2])).max() < 1e-9


def test_forward_jacobian_against_forward_kinematics(robot):
    kinematics, states = robot.kinematics, robot.states
    if len(kinematics.actuated_names) > kinematics.mobility:
        return  # joints of a redundantly actuated robot do not move one by one
    for k in range(0, len(states), len(states) // 4):
        pose = states.pose[k]
        J = kinematics.at(pose).forward_jacobian
        q = kinematics.inverse(pose).actuated
        for c in range(len(q)):
            h = 1e-3 * states.size / max(np.abs(J[:, c]).max(), 1.0)
            found = kinematics.forward(q + np.outer(STEPS * h, np.eye(len(q))[c]), near=pose)
            assert found.ok.all()
            assert np.abs(FIRST @ found.pose[:, :3] / h - J[:3, c]).max() < 1e-6 * np.abs(J).max()
            turns = [pin.log3(pin.XYZQUATToSE3(p).rotation @ pin.XYZQUATToSE3(pose).rotation.T) for p in found.pose]
            assert np.abs(FIRST @ np.array(turns) / h - J[3:, c]).max() < 1e-6 * np.abs(J).max()


def test_platform_twist_undoes_motion(robot):
    states = robot.states
    back = robot.kinematics.at(states.pose).platform_twist(robot.motion.actuated_velocities)
    scale = np.abs(states.twist).max(axis=1, keepdims=True)
    assert (np.abs(back - states.twist) / scale).max() < 1e-9


def test_jacobian_times_twist_is_the_actuated_velocity(robot):
    states = robot.states
    rates = np.einsum("nij,nj->ni", robot.kinematics.at(states.pose).inverse_jacobian, states.twist)
    expected = robot.motion.actuated_velocities
    assert np.abs(rates - expected).max() < 1e-10 * np.abs(expected).max()


def test_jacobian_rate_against_difference_quotients(robot):
    kinematics, states = robot.kinematics, robot.states
    if not kinematics.constant_space:
        with pytest.raises(PkmError, match="depends on the configuration"):
            kinematics.at(states.pose[0]).motion_jacobian_rate(states.twist[0])
        return
    S, ahead = kinematics.subspace(states.pose[0]), np.empty(7)
    chosen = np.flatnonzero(robot.motion.limb_regularity > 0.2)[:20]
    assert len(chosen) == 20
    for k in chosen:
        pose, twist = states.pose[k], states.twist[k]
        quotient = 0.0
        for step, weight in zip(STEPS, FIRST, strict=True):
            shift_pose(pose, twist, H * step, ahead)
            quotient = quotient + weight / H * kinematics.at(ahead, seed=states.joints[k]).motion_jacobian
        rate = kinematics.at(pose, seed=states.joints[k]).motion_jacobian_rate(twist)
        K = kinematics.at(pose, seed=states.joints[k]).motion_jacobian
        # the quotient's seventh derivative, and rounding over H
        assert np.abs(rate - quotient).max() < 1e-7 * np.abs(rate).max() + 1e-11 * np.abs(K).max()
        # and accelerations are what it says
        u, ud = (np.linalg.lstsq(S, x, rcond=None)[0] for x in (twist, states.acceleration[k]))
        found = kinematics.motion(pose, twist, states.acceleration[k], seed=states.joints[k]).actuated_accelerations
        np.testing.assert_allclose(K @ ud + rate @ u, found, atol=1e-10 * np.abs(found).max())


def test_jacobians_next_to_a_stretched_limb_are_right_or_none(of_gallery):
    """Where branches meet, rounding in the joints grows as they come near: a few digits are left, or a status.

    Against the Jacobian of an arm and a forearm, in decimal numbers of 50 digits.
    """
    kinematics = of_gallery["five_bar"].kinematics
    arm, forearm, base = map(Decimal, (0.3, 0.4, -0.125))  # as the numbers of the description are rounded
    reached: list[bool] = []
    with localcontext() as context:
        context.prec = 50
        for short in np.logspace(-1, -16, 31):
            for bearing in (0.5, 0.6, 0.7, 0.8):
                pose = kinematics.home.copy()
                pose[:2] = [-0.125 + (0.7 - short) * np.cos(bearing), (0.7 - short) * np.sin(bearing)]
                moving, found = kinematics.motion(pose, np.zeros(6)), kinematics.at(pose).inverse_jacobian[0, :2]
                assert np.isfinite(found).all() == bool(closes(moving.status))
                reached.append(bool(closes(moving.status)))
                if not reached[-1]:
                    assert short < 1e-10
                    continue
                x, y = Decimal(float(pose[0])) - base, Decimal(float(pose[1]))
                apart = (x * x + y * y).sqrt()
                cosine = (arm * arm + apart * apart - forearm * forearm) / (2 * arm * apart)
                sine = (1 - cosine * cosine).sqrt()
                elbow = arm * (cosine * x - sine * y) / apart, arm * (cosine * y + sine * x) / apart
                along = x - elbow[0], y - elbow[1]
                rate = along[1] * elbow[0] - along[0] * elbow[1]
                exact = np.array([float(along[0] / rate), float(along[1] / rate)])
                assert np.abs(found - exact).max() < 0.03 * np.abs(exact).max()
    assert any(reached)
    assert not all(reached)


def test_a_flat_carpal_wrist_is_singular_however_it_is_rounded(of_gallery):
    """The platform lies in the base, where arms turn freely: what is left of the limbs' regularity is rounding."""
    robot = of_gallery["carpal_wrist"]
    k, d = robot.kinematics, robot.dynamics
    for height in (0.0, 1e-17, -1e-13, 1e-11):
        for tilt in (0.0, 1e-16, 1e-12):
            pose = np.array([0.0, 0.0, height, tilt, 0.0, 0.0, 1.0])
            at = k.at(pose, seed=k.home_joints)
            assert d.gravity(at).status == Status.SINGULAR
            assert np.isnan(at.inverse_jacobian).all()
