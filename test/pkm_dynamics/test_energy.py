# SPDX-License-Identifier: Apache-2.0
"""Conservation laws: the work of the actuators is the gain of energy, static efforts are the slope of the weights."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest

from bench.states import chain_pose, home_coordinates
from pkm_dynamics import Distribution, Dynamics
from pkm_kinematics import Status

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
PIECES = 8


def platform_motion(robot, t, start, reach):
    """Pose, twist and acceleration at time t in [0, 1] of a curve that leaves `start` by up to `reach` (k,)."""
    k = np.arange(1, len(start) + 1)
    w = 2.0 + 0.7 * k
    c = start + reach * np.sin(w * t + 0.4 * k)
    u = reach * w * np.cos(w * t + 0.4 * k)
    du = -reach * w**2 * np.sin(w * t + 0.4 * k)
    mechanism = robot.kinematics.mechanism
    pose = chain_pose(mechanism, c)
    judge = robot.judge
    q, v, vdot = np.zeros((3, judge.model.nv))
    chain = [judge.column[name] for name in robot.kinematics.task.names]
    q[chain], v[chain], vdot[chain] = c, u, du
    J, drift = judge.platform_rows(q, v)
    return pose, J @ v, J @ vdot + drift


@pytest.mark.not_for("turning space")  # no closed-form curve of poses
def test_work_is_the_gain_of_energy(robot):
    """Power of actuators and external wrench, integrated along a trajectory, against Pinocchio's energies.

    Gauss-Legendre quadrature is exact here to rounding: this is the rate of energy without a difference quotient.
    """
    start = home_coordinates(robot.kinematics)
    reach = 0.2 * robot.states.size * np.ones(len(start))
    edges = np.linspace(0.0, 1.0, PIECES + 1)
    times = np.concatenate([[0.0], *(a + 0.5 * (NODES + 1) * (b - a) for a, b in itertools.pairwise(edges)), [1.0]])
    pose, twist, acceleration = (
        np.array(x) for x in zip(*(platform_motion(robot, t, start, reach) for t in times), strict=True)
    )
    wrench = np.array([5.0, -3.0, 4.0, 0.5, 0.2, -0.7])
    effort = robot.dynamics.inverse(pose, twist, acceleration, wrench=wrench, distribution=FREE).effort
    motion = robot.kinematics.motion(pose, twist, acceleration)
    assert motion.ok.all()
    power = np.sum(effort * motion.actuated_velocities, axis=1) + twist @ wrench
    weights = np.concatenate([[0.0], np.tile(WEIGHTS, PIECES) * 0.5 / PIECES, [0.0]])
    energies = []
    for k in (0, -1):
        q = robot.q(motion.joints[k])
        energies.append(robot.judge.energy(q, robot.judge.rates(q, twist[k], acceleration[k])[0]))
    scale = np.sum(weights * np.abs(power))
    assert abs(np.sum(weights * power) - (energies[1] - energies[0])) < 1e-9 * scale


def test_friction_only_takes_energy(robot):
    states = robot.states
    with_friction = (
        Dynamics(robot.kinematics).inverse(states.pose, states.twist, states.acceleration, distribution=FREE).effort
    )
    without = robot.dynamics.inverse(states.pose, states.twist, states.acceleration, distribution=FREE).effort
    power = np.sum((with_friction - without) * robot.motion.actuated_velocities, axis=1)
    assert power.min() > -1e-9


@pytest.mark.not_for("turning space")  # the platform cannot be moved off in any direction
def test_static_efforts_are_the_gradient_of_potential_energy(robot):
    """Difference quotient of sixth order of Pinocchio's potential energy; its error is 1e-10 of the energy's size."""
    states = robot.states
    judge = robot.judge
    steps, weights = np.array([-3, -2, -1, 1, 2, 3]), np.array([-1, 9, -45, 45, -9, 1]) / 60.0
    for k in range(0, len(states), len(states) // 10):
        gravity = robot.dynamics.inverse(states.pose[k], distribution=FREE).effort
        K = robot.kinematics.at(states.pose[k]).inverse_jacobian
        S = robot.kinematics.subspace(states.pose[k])
        h = 2e-3 * robot.states.size / max(np.abs(K @ S).max(), 1.0)  # shorter where the actuators run away
        wanted = (K @ S).T @ gravity
        found = np.empty_like(wanted)
        heights = []
        for c in range(S.shape[1]):
            energies = []
            for step in steps:
                shift = step * h * S[:, c]
                at = pin.XYZQUATToSE3(states.pose[k])
                moved = pin.SE3(pin.exp3(shift[3:]) @ at.rotation, at.translation + shift[:3])
                solved = robot.kinematics.inverse(pin.SE3ToXYZQUAT(moved), seed=states.joints[k])
                assert solved.status in (Status.CONVERGED, Status.JOINT_LIMIT)
                energies.append(judge.potential_energy(robot.q(solved.joints)))
            found[c] = weights @ energies / h
            heights += energies
        # rounding of an energy over the step, and the sixth derivative's share
        noise = 1e-15 * max(np.abs(heights).max(), 1.0) / h
        assert np.abs(found - wanted).max() < 30 * noise + 1e-7 * np.abs(wanted).max()


def test_delta_has_a_threefold_axis_and_mirrors(delta):
    """Turning a motion by 120 degrees shifts the efforts by one limb; mirroring it swaps the other two."""
    states, dynamics = delta.states, delta.dynamics
    effort = dynamics.inverse(states.pose, states.twist, states.acceleration).effort

    def transformed(M):
        pose = states.pose.copy()
        pose[:, :3] = pose[:, :3] @ M.T
        twist, acceleration = states.twist.copy(), states.acceleration.copy()
        twist[:, :3], acceleration[:, :3] = twist[:, :3] @ M.T, acceleration[:, :3] @ M.T
        return dynamics.inverse(pose, twist, acceleration).effort

    c, s = np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)
    turned = transformed(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]))
    mirrored = transformed(np.diag([1.0, -1.0, 1.0]))  # limb 1 lies in the plane y = 0
    scale = np.abs(effort).max()
    assert np.abs(turned - np.roll(effort, 1, axis=1)).max() < 1e-11 * scale
    assert np.abs(mirrored - effort[:, [0, 2, 1]]).max() < 1e-11 * scale


def test_delta_at_rest_by_hand(delta):
    """At home the arms are level, and each carries its own weight and, at its tip, all that hangs on its elbow."""
    found = delta.dynamics.gravity(delta.kinematics.home).effort
    g, arm, com, pin_mass, rod, platform, length = 9.81, 3.47, 0.17224, 0.226, 0.525, 2.916, 0.420
    moment = g * (arm * com + (pin_mass + 2 * rod + platform / 3) * length)
    assert np.abs(np.abs(found) - moment).max() < 1e-9 * moment
    assert np.ptp(found) < 1e-12 * moment
