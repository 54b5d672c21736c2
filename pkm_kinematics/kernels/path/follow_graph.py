# SPDX-License-Identifier: Apache-2.0
"""As `follow.py`, on the whole graph: for configuration-dependent motion spaces, and sides that no closed form takes.

The graph needs neither a motion space nor a working mode. J0, J (rows * count,) and A (count, count) are scratch for
its one block, positions (n_bodies,).
"""

from math import atan2, cos, inf, isfinite, sin, sqrt

import numpy as np

from pkm_kinematics.kernels.compiled_rotations import write_quaternion
from pkm_kinematics.kernels.dense import determinant_sign, gram
from pkm_kinematics.kernels.path.follow import (
    CORRECTIONS,
    LONGEST_TURN,
    SHORTEST,
    STEP_BEGAN,
    STEPS,
    contracts,
    keep,
    longest_part,
    put_back,
    settled,
)
from pkm_kinematics.kernels.position.closures import block_jacobian, closed, invert_block, turned_over
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    INVALID_INPUT,
    SINGULAR,
    closes,
    place_block,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.graph_motion import place_row, read_graph
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import add, get, matmul, put, rotate
from pkm_runtime.kernels.compiled import allocating, compiled


@compiled
def same_side_of_graph(block, work, J0, J, A):
    """Whether J0 and J are on one side of the singularities; joints without a row in the pseudo-inverse `work` rest."""
    m = block.rows
    n = block.count
    gram(J0.reshape(m, n), J.reshape(m, n), A)
    for j in range(n):
        at_rest = True
        for r in range(m):
            at_rest = at_rest and work[block.inverse_at + j * m + r] == 0.0
        if at_rest:
            for i in range(n):
                A[i, j] = A[j, i] = 0.0
            A[j, j] = 1.0
    return determinant_sign(A, n) > 0.0


@compiled
def step_by_graph(model, data, block, size, J0, J, A):
    """Newton's method on all joints of a block that are not held: (followed, residual, iterations)."""
    bodies, closures, state, rows, work = model.bodies, model.closures, data.state, data.rows, data.work
    previous = inf
    m = block.rows
    block_jacobian(model, data, block, J0, 0)
    for iteration in range(1, CORRECTIONS + 1):
        place_block(bodies, block, state)
        write_block_rows(closures, block, state, rows)
        if not is_regular(invert_block(model, data, block)):
            return False, 0.0, iteration
        squares = 0.0
        turn = 0.0
        for j in range(block.count):
            correction = 0.0
            for r in range(m):
                correction -= work[block.inverse_at + j * m + r] * rows[block.rows_at + r].gap
            i = block.start + j
            state[i].qdd = correction
            if bodies[i].prismatic == 1:
                squares += correction * correction
            else:
                squares += (size * correction) ** 2
                turn = max(turn, abs(correction))
        step = sqrt(squares)
        if not (isfinite(step) and turn < LONGEST_TURN and contracts(step, previous, size)):
            return False, 0.0, iteration
        for i in range(block.start, block.start + block.count):
            state[i].q += state[i].qdd
        if settled(step, previous, size):
            place_block(bodies, block, state)
            residual = write_block_rows(closures, block, state, rows)
            block_jacobian(model, data, block, J, 0)
            same = same_side_of_graph(block, work, J0, J, A)
            return same and closed(block, residual), residual, iteration
        previous = step
    return False, 0.0, CORRECTIONS


@allocating
def follow_graph(model, data, size, actuators, q):
    """As `follow_pose`, on the whole graph from the closed configuration in the state: (status, residual, iterations).

    The bodies `actuators` (n_actuated,) go to q, turning ones by the shortest way. The one block's `idle` must be the
    number of joints that the closures leave free with the actuators held.
    """
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    block = model.blocks[0]
    J0, J = np.empty(block.rows * block.count), np.empty(block.rows * block.count)
    A = np.empty((block.count, block.count))
    span = np.empty(q.shape[0])
    for a in range(q.shape[0]):
        i = actuators[a]
        span[a] = q[a] - state[i].q
        if bodies[i].prismatic == 0:
            span[a] = atan2(sin(span[a]), cos(span[a]))
    longest, cap = longest_part(bodies, span)
    done = 0.0
    part = cap
    iterations = 0
    for _ in range(STEPS):
        place_block(bodies, block, state)
        write_block_rows(closures, block, state, rows)
        keep(state, STEP_BEGAN)
        left = 1.0 - done - part
        for a in range(q.shape[0]):
            state[actuators[a]].q = q[a] - left * span[a]
        followed, residual, count = step_by_graph(model, data, block, size, J0, J, A)
        iterations += count
        if followed:
            if left <= 0.0:
                return CONVERGED, residual, iterations
            done += part
            part = min(2.0 * part, cap, 1.0 - done)
            continue
        part *= 0.5
        put_back(state, STEP_BEGAN)
        if part < SHORTEST:
            break
    return SINGULAR, (1.0 - done) * longest, iterations


@allocating
def follow_graphs(model, data, size, actuators, q, last, tail, out):
    """`follow_graph` of rows from the joints in `out`, the platform at `tail` (4, 4) in the body `last`."""
    state, R = data.state, data.system[0]  # scratch, and at least of this size
    me = state[last]
    for k in range(q.shape[0]):
        place_row(data, out.joints[k])
        out.status[k], out.residual[k], out.iterations[k] = follow_graph(model, data, size, actuators, q[k])
        if out.status[k] == CONVERGED and turned_over(model.closures, model.blocks[0], state):
            out.status[k] = DIVERGED
        for i in range(state.shape[0]):
            out.joints[k, i] = state[i].q
        if out.status[k] == CONVERGED:
            put(out.pose[k], add(get(me.p), rotate(me.R, (tail[0, 3], tail[1, 3], tail[2, 3]))))
            matmul(me.R, tail, R)
            write_quaternion(R, out.pose[k, 3:])


@allocating
def track_graph(model, data, size, places, q, u, positions, motion):
    """Move the closed `positions` (n_bodies,) to actuators at q with rates u (n_actuated,): (status, gap, iterations).

    `motion` counts where CONVERGED or JOINT_LIMIT, else positions stay.
    """
    state = data.state
    for a in range(q.shape[0]):
        if not abs(q[a]) < places.farthest[a]:
            return INVALID_INPUT, np.nan, 0
    place_row(data, positions)
    status, residual, iterations = follow_graph(model, data, size, places.actuators, q)
    if status != CONVERGED:
        return status, residual, iterations
    if turned_over(model.closures, model.blocks[0], state):
        return DIVERGED, residual, iterations
    status = read_graph(model, data, places, u, motion)
    if closes(status):
        for i in range(state.shape[0]):
            positions[i] = state[i].q
    return status, residual, iterations
