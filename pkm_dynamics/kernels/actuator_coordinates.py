# SPDX-License-Identifier: Apache-2.0
"""Equations of motion of the whole graph, with the actuator velocities u (n,) as coordinates: qd = N(q) u.

    (N^T M N) ud = tau - N^T rnea(q, qd, Nd u)

N and the tables are those of `pkm_kinematics/kernels/rates/graph_motion.py`. `ud` (n,) are the actuators'
accelerations, `effort` (n,) their efforts, q (n_bodies,) the joint positions.
"""

from math import isfinite

from pkm_dynamics.kernels.mass_matrix import mass_matrix
from pkm_dynamics.kernels.spring_forces import add_springs
from pkm_dynamics.kernels.wrenches import limb_wrenches
from pkm_kinematics.kernels.dense import solve_positive
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED, SINGULAR
from pkm_kinematics.kernels.rates.graph_motion import close_graph, graph_columns, graph_velocities, motion_here
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block
from pkm_kinematics.kernels.records import BASE
from pkm_runtime.kernels.compiled import compiled


@compiled
def graph_efforts(model, data, effort):
    """Actuator efforts that make the motion in the state."""
    bodies, block, state = model.bodies, model.blocks[0], data.state
    clear_wrench(state[BASE])
    limb_wrenches(bodies, state)
    add_springs(model, state)
    gather_block(bodies, block, state)
    for c in range(effort.shape[0]):
        effort[c] = 0.0
        for i in range(block.start, block.start + block.count):
            effort[c] += state[i].column[c] * state[i].effort


@compiled
def efforts_here(model, data, u, ud, effort):
    """Efforts for actuators moving at u with accelerations ud. Returns a status."""
    status = motion_here(model, data, u, ud)
    if status == CONVERGED:
        graph_efforts(model, data, effort)
    return status


@compiled
def accelerations_here(model, data, u, effort, ud):
    """Accelerations of actuators moving at u under efforts. Returns a status.

    Leaves in the state the velocities of all joints, and their accelerations at constant u.
    """
    n = u.shape[0]
    M = data.system[1, :n, :n]
    for c in range(n):
        ud[c] = 0.0
    status = efforts_here(model, data, u, ud, ud)  # `ud` is read before it is written
    if status != CONVERGED:
        return status
    for c in range(n):
        ud[c] = effort[c] - ud[c]
    mass_matrix(model.bodies, data.state, model.subspace, M)
    return CONVERGED if solve_positive(M, ud, n) else SINGULAR


@compiled
def step_actuators(model, data, runge_kutta, effort, h, q, u, scratch):
    """Advance q and u by `h` [s] under constant efforts. Returns a status; unless CONVERGED, q and u are unchanged.

    Classical Runge-Kutta of order four, else semi-implicit Euler, with all joints integrated and the loops then closed;
    all bodies' positions and velocities are in the state. `scratch` is (6, n_bodies or more).
    """
    state, block = data.state, model.blocks[0]
    n, start, stop = u.shape[0], block.start, block.start + block.count
    at, ud = scratch[0][:n], scratch[1][:n]
    sum_q, sum_u, sum_rates, sum_ud = scratch[2], scratch[3][:n], scratch[4], scratch[5][:n]
    for c in range(n):
        at[c] = u[c]
        sum_ud[c] = 0.0
    for i in range(start, stop):
        state[i].q = q[i]
        sum_rates[i] = 0.0
    for stage in range(4 if runge_kutta else 1):
        status = accelerations_here(model, data, at, effort, ud)
        if status != CONVERGED:
            return status
        if not runge_kutta:
            for c in range(n):
                at[c] = u[c] + h * ud[c]
            graph_velocities(model, data, at)
            for i in range(start, stop):
                state[i].q = q[i] + h * state[i].qd
            break
        weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
        reach = h if stage == 2 else 0.5 * h
        for c in range(n):
            sum_ud[c] += weight * ud[c]
            sum_u[c] = u[c] + (sum_ud[c] if stage == 3 else reach * ud[c])
        for i in range(start, stop):
            sum_rates[i] += weight * state[i].qd
            sum_q[i] = q[i] + (sum_rates[i] if stage == 3 else reach * state[i].qd)
        total = 0.0
        for c in range(n):
            at[c] = sum_u[c]
            total += 0.0 * at[c]
        for i in range(start, stop):
            state[i].q = sum_q[i]
            total += 0.0 * sum_q[i]
        if not isfinite(total):
            return DIVERGED
    status = close_graph(model, data)
    if status != CONVERGED:
        return status
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status
    graph_velocities(model, data, at)
    for c in range(n):
        u[c] = at[c]
    for i in range(start, stop):
        q[i] = state[i].q
    return CONVERGED
