# SPDX-License-Identifier: Apache-2.0
"""The equations of motion of the whole graph, whose actuated joints are the coordinates u: qd = N(q) u.

    (N^T M N) ud = tau - N^T rnea(q, qd, Nd u)

The tables are those of the whole graph with the actuators held: one block, the platform's branch among its bodies.
Holding the actuators determines it where a limb is stretched or folded as well, so that nothing here is singular in a
singularity of type 1. Where it is of type 2, N grows without bounds, and a status says so.
"""

from math import isfinite

from pkm_dynamics.kernels.mass_matrix import mass_matrix
from pkm_dynamics.kernels.wrenches import limb_wrenches
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.dense import solve_positive
from pkm_kinematics.kernels.position.closures import closed, invert_block, joint_row
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    SINGULAR,
    place_block,
    solve_newton,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.motion import coast, correct, relative_acceleration, row_acceleration
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block
from pkm_kinematics.kernels.rates.solve_motion import NEARLY_SINGULAR
from pkm_kinematics.kernels.records import BASE
from pkm_kinematics.kernels.vectors import add, cross, get, put, scale, sub


@compiled
def graph_columns(model, data):
    """Place all bodies by the joint positions in the state, and write N: every joint's `column`. Returns a status."""
    bodies, closures, block = model.bodies, model.closures, model.blocks[0]
    state, rows, work = data.state, data.rows, data.work
    n, m = model.subspace.shape[1], block.rows
    place_block(bodies, block, state)
    write_block_rows(closures, block, state, rows)
    if not invert_block(model, data, block) > NEARLY_SINGULAR:
        return SINGULAR
    for i in range(block.start, block.start + block.count):
        for c in range(n):
            state[i].column[c] = 0.0
        if bodies[i].actuator >= 0:
            state[i].column[bodies[i].actuator] = 1.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        point = get(rows[closure.rows_at].point)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            j = closure.successor if side == 0 else closure.predecessor
            while j >= block.start:
                a = bodies[j].actuator
                if a >= 0:
                    for r in range(closure.rows_at, closure.rows_at + closure.rows):
                        rate = sign * joint_row(bodies[j], state[j], rows[r], point)
                        for i in range(block.count):
                            at = block.inverse_at + r - block.rows_at + i * m
                            state[block.start + i].column[a] -= work[at] * rate
                j = bodies[j].parent
    return CONVERGED


@compiled
def graph_velocities(model, data, u):
    """Velocities of all joints and bodies for actuator velocities u (n,), N written before."""
    bodies, block, state = model.bodies, model.blocks[0], data.state
    for i in range(block.start, block.start + block.count):
        me = state[i]
        parent = state[bodies[i].parent]
        rate = 0.0
        for c in range(u.shape[0]):
            rate += me.column[c] * u[c]
        me.qd = rate
        slide = scale(rate, (me.R[0, 2], me.R[1, 2], me.R[2, 2]))
        w = get(parent.w)
        v = add(get(parent.v), cross(w, sub(get(me.p), get(parent.p))))
        if bodies[i].prismatic == 1:
            put(me.w, w)
            put(me.v, add(v, slide))
        else:
            put(me.w, add(w, slide))
            put(me.v, v)


@compiled
def graph_accelerations(model, data, ud):
    """Accelerations of all joints and bodies for actuator accelerations ud (n,), velocities computed before."""
    bodies, closures, block = model.bodies, model.closures, model.blocks[0]
    state, rows, work = data.state, data.rows, data.work
    m = block.rows
    stop = block.start + block.count
    for i in range(block.start, stop):
        a = bodies[i].actuator
        state[i].qdd = ud[a] if a >= 0 else 0.0
        coast(bodies, state, i)
    correct(bodies, block, state)
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        opening, turning = relative_acceleration(closure, state, rows)
        for r in range(closure.rows_at, closure.rows_at + closure.rows):
            rate = row_acceleration(closure, state, rows, r, opening, turning)
            for i in range(block.count):
                if bodies[block.start + i].actuator < 0:
                    state[block.start + i].qdd -= work[block.inverse_at + r - block.rows_at + i * m] * rate
    for i in range(block.start, stop):
        coast(bodies, state, i)
    correct(bodies, block, state)


@compiled
def graph_efforts(model, data, effort):
    """Efforts (n,) of the actuators that make the motion in the state."""
    bodies, block, state = model.bodies, model.blocks[0], data.state
    clear_wrench(state[BASE])
    limb_wrenches(bodies, state)
    gather_block(bodies, block, state)
    for c in range(effort.shape[0]):
        effort[c] = 0.0
        for i in range(block.start, block.start + block.count):
            effort[c] += state[i].column[c] * state[i].effort


@compiled
def motion_here(model, data, u, ud):
    """The motion of all joints and bodies for u and ud (n,), at the joint positions in the state. Returns a status."""
    status = graph_columns(model, data)
    if status != CONVERGED:
        return status
    graph_velocities(model, data, u)
    graph_accelerations(model, data, ud)
    return CONVERGED


@compiled
def efforts_here(model, data, u, ud, effort):
    """Efforts (n,) that give actuators moving at u the accelerations ud, both (n,). Returns a status."""
    status = motion_here(model, data, u, ud)
    if status == CONVERGED:
        graph_efforts(model, data, effort)
    return status


@compiled
def accelerations_here(model, data, u, effort, ud):
    """Accelerations ud (n,) of actuators moving at u under efforts (n,). Returns a status.

    Afterwards the state holds the velocities of all joints; its accelerations are those while u is constant.
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
def close_graph(model, data):
    """Close the loops with the actuators where they are, from joint positions that have drifted. Returns a status."""
    residual, _ = solve_newton(model, data, model.blocks[0])
    return CONVERGED if closed(model.blocks[0], residual) else DIVERGED


@compiled
def step_actuators(model, data, runge_kutta, effort, h, q, u, scratch):
    """Advance joint positions q (n_bodies,) and actuator velocities u (n,) by h [s] under constant efforts (n,).

    The classical method of Runge and Kutta of order four, else semi-implicit Euler. All joints are integrated; after
    the step their loops are closed. Returns a status, and q and u are left alone where that is not CONVERGED.
    `scratch` is (6, n_bodies or more). Afterwards the state holds positions and velocities of all bodies.
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
