# SPDX-License-Identifier: Apache-2.0
"""What the suite is timed against: the same work, on the same model, in the best way found for each peer.

Inverse kinematics is given to every peer for nothing: positions, velocities and accelerations of all joints are ready.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pinocchio as pin
from scipy.linalg import qr
from scipy.linalg.lapack import dgesv

from bench.engines.mujoco_model import MujocoRobot
from bench.engines.pinocchio_model import PinocchioRobot, constraint_model
from pkm_description.mechanism import Array


def pinocchio_inverse_dynamics(robot: PinocchioRobot, q: Array, v: Array, vdot: Array) -> Callable[[], Array]:
    """Efforts by RNEA, the constraint Jacobian J, and one dense solve of `J^T lambda + B tau = rnea`.

    J is Pinocchio's for all loops at once; rows that repeat others are left out, chosen beforehand. LAPACK's `dgesv` is
    called directly, which is faster than `numpy.linalg.solve`.
    """
    model, data, constraints, constraint_data, _ = constraint_model(robot)
    pairs = list(zip(constraints, constraint_data, strict=True))

    def jacobian() -> Array:
        pin.computeJointJacobians(model, data, q)
        for constraint, its_data in pairs:
            constraint.calc(model, data, its_data)
        return pin.getConstraintsJacobian(model, data, constraints, constraint_data)

    m = len(robot.actuated)
    independent = model.nv - m
    rows = np.sort(qr(jacobian().T, pivoting=True, mode="r")[1][:independent])
    A = np.zeros((model.nv, model.nv), order="F")
    A[robot.actuated, range(independent, model.nv)] = 1.0

    def call() -> Array:
        force = pin.rnea(model, data, q, v, vdot)
        A[:, :independent] = jacobian()[rows].T
        solution: Array = dgesv(A, force)[2]
        return solution[independent:]

    return call


def pinocchio_direct_dynamics(
    robot: PinocchioRobot, q: Array, v: Array, effort: Array, accuracy: float, iterations: int
) -> tuple[Callable[[], Array], pin.ProximalSettings]:
    """Joint accelerations by `pinocchio.constraintDynamics`, and the settings of its proximal solver."""
    model, data, constraints, constraint_data, _ = constraint_model(robot)
    settings = pin.ProximalSettings(accuracy, 1e-10, iterations)
    tau = np.zeros(model.nv)
    tau[robot.actuated] = effort

    def call() -> Array:
        return pin.constraintDynamics(model, data, q, v, tau, constraints, constraint_data, settings)

    return call, settings


def mujoco_forward(robot: MujocoRobot) -> Callable[[], None]:
    """`mj_forward` at the state that the robot's data holds."""
    model, data, forward = robot.model, robot.data, mujoco.mj_forward
    return lambda: forward(model, data)


def mujoco_step(robot: MujocoRobot) -> Callable[[], None]:
    """`mj_step` from the state that the robot's data holds."""
    model, data, step = robot.model, robot.data, mujoco.mj_step
    return lambda: step(model, data)


def numpy_tracking(
    base: Array, platform: Array, lengths: Array, near: Array, steps: int = 3
) -> Callable[[], tuple[Array, Array]]:
    """Forward kinematics of a 6-UPS by Newton's method in NumPy, from a pose `near` (7,): origin and rotation (3, 3).

    As one would write it: unit vectors of the legs, the Jacobian from them, `numpy.linalg.solve`, Rodrigues' formula.
    It stops after a given number of steps, without looking whether it has converged.
    """
    start = pin.XYZQUATToSE3(near).rotation
    rows = np.empty((6, 6))

    def call() -> tuple[Array, Array]:
        p, R = near[:3], start
        for _ in range(steps):
            arms = platform @ R.T
            legs = p + arms - base
            length = np.sqrt(np.einsum("ij,ij->i", legs, legs))
            n = legs / length[:, None]
            rows[:, :3] = n
            rows[:, 3:] = np.cross(arms, n)
            step = np.linalg.solve(rows, lengths - length)
            p = p + step[:3]
            x, y, z = step[3:]
            S = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            angle2 = x * x + y * y + z * z
            angle = np.sqrt(angle2)
            if angle > 1e-12:
                R = R + (np.sin(angle) / angle) * (S @ R) + ((1.0 - np.cos(angle)) / angle2) * (S @ (S @ R))
        return p, R

    return call
