# SPDX-License-Identifier: Apache-2.0
"""Dynamics of kinematically redundant robots, on the whole graph: rows of closed positions, and of motions.

The platform and the redundant joints are coordinates as in `pkm_kinematics/kernels/rates/graph_motion.py`; `motions`
(k, 2 (6 + r)) are their rates and accelerations, `wrenches` (k, 6) act on the platform from outside. `model` has the
platform's mass in its last body. Rows whose status is not CONVERGED are skipped.
"""

from pkm_dynamics.kernels.actuator_coordinates import accelerations_here, graph_efforts
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.rates.graph_motion import move_coordinates, place_row, read_accelerations
from pkm_runtime.kernels.compiled import compiled


@compiled
def add_wrench(found, wrench, sign, effort):
    """effort (n,) += sign J^T wrench: what a wrench (6,) on the platform does to the actuators."""
    for c in range(effort.shape[0]):
        for r in range(6):
            effort[c] += sign * found.jacobian[r, c] * wrench[r]


@compiled
def redundant_efforts(model, data, at, found, positions, motions, wrenches, condition, efforts, status):
    """Efforts (k, n) of the actuators, and the reciprocal condition (k,) of their Jacobian."""
    n = efforts.shape[1]
    for k in range(positions.shape[0]):
        if status[k] != CONVERGED:
            continue
        place_row(data, positions[k])
        u, ud = data.system[3, 0, :n], data.system[3, 1, :n]
        status[k], condition[k] = move_coordinates(model, data, at, found, motions[k], u, ud)
        if status[k] == CONVERGED:
            graph_efforts(model, data, efforts[k])
            add_wrench(found, wrenches[k], -1.0, efforts[k])


@compiled
def redundant_accelerations(model, data, at, found, positions, motions, wrenches, efforts, out, status):
    """Accelerations `out` (k, 6 + r) under efforts (k, n), which are overwritten; those of `motions` must be zero."""
    n = efforts.shape[1]
    for k in range(positions.shape[0]):
        if status[k] != CONVERGED:
            continue
        place_row(data, positions[k])
        u, ud = data.system[3, 0, :n], data.system[3, 1, :n]
        status[k], _ = move_coordinates(model, data, at, found, motions[k], u, ud)
        if status[k] != CONVERGED:
            continue
        add_wrench(found, wrenches[k], 1.0, efforts[k])
        status[k] = accelerations_here(model, data, u, efforts[k], ud)
        if status[k] != CONVERGED:
            continue
        read_accelerations(data, at, out[k])  # while the actuators' velocities are constant
        for c in range(n):
            for r in range(6):
                out[k, r] += found.jacobian[r, c] * ud[c]
            for r in range(at.bodies.shape[0]):
                out[k, 6 + r] += data.state[at.bodies[r]].column[c] * ud[c]
