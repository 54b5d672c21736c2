# SPDX-License-Identifier: Apache-2.0
"""Dynamics against MuJoCo: its mass matrix and bias force for every robot, its constrained motion of free platforms."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.engines.mujoco_model import MujocoRobot
from pkm_description.mechanism import LoopType
from pkm_dynamics import Distribution

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them


@pytest.mark.by_day("cable_8", "delta", "gough_stewart", "tripod_3prs")
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.slow)])
def test_inverse_dynamics_with_its_mass_matrix_and_bias(robot, every):
    """Generalised forces of the tree are MuJoCo's; what the loops allow is spanned by Pinocchio's frames."""
    states = robot.states
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
        found = robot.dynamics.inverse(
            states.pose[k], states.twist[k], states.acceleration[k], distribution=FREE
        ).effort
        # rounding grows with the condition near a singularity; massless bodies weigh 1e-12 kg there
        allowed = 1e-9 * max(10.0, np.linalg.cond(N[robot.judge.actuated]))
        assert np.abs(found - expected).max() < allowed * np.abs(expected).max() + 1e-9


# Whose platform is a free body, with loops that MuJoCo has an equality for: all closed by ball joints.
FREE_ON_BALLS = [
    "cable_8", "carpal_wrist", "dietmaier", "eclipse2", "gough_stewart", "gough_stewart_7", "hexa", "hexaglide",
    "spatial_4dof_5legs", "tripod_3prs",
]  # fmt: skip


def test_no_robot_that_mujoco_can_judge_is_left_out(of_gallery, kinds):
    found = {
        name
        for name, robot in of_gallery.items()
        if len(robot.kinematics.task.names) == 6
        and all(loop.type is LoopType.SPHERICAL for loop in robot.kinematics.mechanism.loops)
    }
    assert found - set(kinds["singular everywhere"]) == set(FREE_ON_BALLS)


@pytest.mark.by_day("gough_stewart", "tripod_3prs")
@pytest.mark.parametrize("robot", FREE_ON_BALLS, indirect=True)
@pytest.mark.parametrize("every", [50, pytest.param(1, marks=pytest.mark.slow)])
def test_constrained_acceleration(robot, every):
    """The equations that `mj_forward` solves for connect equalities, without their softness R.

    MuJoCo solves J a + R f = a_ref, M (a - a_free) = J^T f, and lets R be 1e-4 of what the constraints weigh at best.
    Next to a constraint singularity, in the direction that the limbs lose hold of, that is more than J M^-1 J^T, and no
    extrapolation over R tells the rigid motion. So R is left out of the equations, all else in which is MuJoCo's; what
    rounding leaves then grows with the condition of J against the mass matrix.
    """
    states, motion = robot.states, robot.motion
    engine = MujocoRobot(robot.kinematics.mechanism, free_platform=True)
    data, at = engine.data, engine.dof_at["platform"]
    for k in range(0, len(states), every):
        effort = robot.dynamics.inverse(
            states.pose[k], states.twist[k], states.acceleration[k], distribution=FREE
        ).effort
        engine.set_state(
            robot.kinematics.joint_names, motion.joints[k], motion.velocities[k], states.pose[k], states.twist[k]
        )
        data.qfrc_applied[engine.actuated] = effort
        mujoco.mj_forward(engine.model, data)
        scale = np.abs(motion.accelerations[k]).max()
        J = np.reshape(data.efc_J, (data.nefc, -1))
        soft = J @ data.qacc + data.efc_R * data.efc_force
        assert np.abs(soft - data.efc_aref).max() < 1e-9 * (1.0 + np.abs(data.efc_aref).max())  # that is what it solves
        L = np.linalg.cholesky(engine.mass_matrix())
        weighed = np.linalg.solve(L, J.T).T
        missing, _, _, values = np.linalg.lstsq(weighed, data.efc_aref - J @ data.qacc_smooth, rcond=1e-9)
        assert values[-1] > 1e-5 * values[0]
        rigid = data.qacc_smooth + np.linalg.solve(L.T, missing)
        linear, angular = np.split(states.acceleration[k], 2)
        expected = np.concatenate([linear, Rotation.from_quat(states.pose[k, 3:]).inv().apply(angular)])  # body axes
        assert np.abs(rigid[at : at + 6] - expected).max() < 1e-11 * values[0] / values[-1] * scale
