# SPDX-License-Identifier: Apache-2.0
"""Dynamics against MuJoCo: its mass matrix and bias force for every robot, its constrained motion of free platforms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from bench.engines.mujoco_model import MujocoRobot
from pkm_description.mechanism import LoopType


@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_inverse_dynamics_with_its_mass_matrix_and_bias(massive, every):
    """Generalised forces of the tree are MuJoCo's; what the loops allow is spanned by Pinocchio's frames."""
    robot, states = massive, massive.states
    engine = MujocoRobot(robot.kinematics.mechanism, loops=False)
    order = [engine.dof_at[name] for name in robot.judge.names]
    nothing = np.zeros(0)
    for k in range(0, len(states), every):
        q, v, vdot = robot.rates(k)
        engine.set_state(robot.judge.names, q, v, nothing, nothing)
        mujoco.mj_forward(engine.model, engine.data)
        force = (engine.mass_matrix()[np.ix_(order, order)] @ vdot) + engine.data.qfrc_bias[order]
        N = robot.judge.free_directions(q)
        expected = np.linalg.lstsq(N[robot.judge.actuated].T, N.T @ force, rcond=None)[0]
        found = robot.dynamics.inverse(states.pose[k], states.twist[k], states.acceleration[k]).effort
        # massless bodies weigh 1e-12 kg there
        assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max() + 1e-9


@pytest.mark.parametrize("every", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_constrained_acceleration(massive, every):
    """`mj_forward` with connect equalities as rigid as it allows: their impedance of 0.9999 leaves about 1e-4."""
    robot, states = massive, massive.states
    mechanism = robot.kinematics.mechanism
    if any(loop.type is not LoopType.SPHERICAL for loop in mechanism.loops):
        pytest.skip("loops that MuJoCo has no equality for")
    if len(robot.kinematics.task.names) != 6:
        pytest.skip("compared where the platform is a free body")
    engine = MujocoRobot(mechanism, free_platform=True)
    engine.model.opt.tolerance = 1e-14
    at = engine.dof_at["platform"]
    for k in range(0, len(states), every):
        effort = robot.dynamics.inverse(states.pose[k], states.twist[k], states.acceleration[k]).effort
        motion = robot.motion
        engine.set_state(
            robot.kinematics.joint_names, motion.joints[k], motion.velocities[k], states.pose[k], states.twist[k]
        )
        engine.data.qfrc_applied[engine.actuated] = effort
        mujoco.mj_forward(engine.model, engine.data)
        found = engine.data.qacc[at : at + 3]
        scale = np.abs(motion.accelerations[k]).max()
        assert np.abs(found - states.acceleration[k, :3]).max() < 5e-3 * scale
