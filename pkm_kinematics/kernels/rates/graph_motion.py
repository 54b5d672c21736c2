# SPDX-License-Identifier: Apache-2.0
"""How all joints of the whole graph move with the actuators, which are the coordinates u (n,): qd = N(q) u.

The tables are those of the whole graph with the actuators held: one block, the platform's branch among its bodies. This
needs no motion space and is regular where a limb is stretched or folded (type 1). At a singularity of type 2, N grows
without bounds, and a status says so.
"""

from pkm_kinematics.kernels.position.closures import closed, invert_block, joint_row
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    SINGULAR,
    place_block,
    solve_newton,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.motion import (
    bias_acceleration,
    correct,
    move_body,
    relative_acceleration,
    row_acceleration,
)
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import get
from pkm_runtime.kernels.compiled import compiled


@compiled
def graph_columns(model, data):
    """Place all bodies by the joint positions in the state, and write N: every joint's `column`. Returns a status."""
    bodies, closures, block = model.bodies, model.closures, model.blocks[0]
    state, rows, work = data.state, data.rows, data.work
    n, m = model.subspace.shape[1], block.rows
    place_block(bodies, block, state)
    write_block_rows(closures, block, state, rows)
    if not is_regular(invert_block(model, data, block)):
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
        rate = 0.0
        for c in range(u.shape[0]):
            rate += state[i].column[c] * u[c]
        state[i].qd = rate
        move_body(bodies, state, i)


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
        bias_acceleration(bodies, state, i)
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
        bias_acceleration(bodies, state, i)
    correct(bodies, block, state)


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
def close_graph(model, data):
    """Close the loops with the actuators where they are, from joint positions that have drifted. Returns a status."""
    residual, _ = solve_newton(model, data, model.blocks[0])
    return CONVERGED if closed(model.blocks[0], residual) else DIVERGED
