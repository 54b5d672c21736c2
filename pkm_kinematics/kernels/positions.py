# SPDX-License-Identifier: Apache-2.0
"""Positions of every body for a given platform pose, block after block."""

from math import cos, isfinite, sin

from pkm_kinematics.kernels.closed_form import read_angles, solve_closed_form
from pkm_kinematics.kernels.closures import block_residual, invert_block, turned_over, worse, write_rows
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.placement import place_body
from pkm_kinematics.kernels.records import CLOSED_FORM

# Status codes, as in pkm_kinematics.status.
CONVERGED, UNREACHABLE, JOINT_LIMIT, SINGULAR, DIVERGED, INVALID_INPUT = range(6)

# A closure counts as closed below this gap [m, and 1 for directions]: far above rounding (1e-15 of a metre-sized
# robot), far below any machine's accuracy.
CLOSED = 1e-10
NEWTON_ITERATIONS = 50
ROUNDING = 1e-15  # a gap that no step makes smaller
AT_REST = 1e-13  # rad or m: a step this short is rounding
LONGEST_STEP = 0.5  # rad or m, per joint and iteration: keeps Newton's method on the branch it started on


@compiled
def write_block_rows(closures, block, state, rows):
    """Write the equations of all closures of a block; returns the largest gap."""
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        write_rows(closures, state, rows, k)
    return block_residual(closures, block, rows)


@compiled
def place_block(bodies, block, state):
    """Place the bodies of a block from their joint positions q."""
    for i in range(block.start, block.start + block.count):
        me = state[i]
        if bodies[i].prismatic == 0:
            me.c = cos(me.q)
            me.s = sin(me.q)
        place_body(bodies, state, i)


@compiled
def solve_newton(bodies, closures, block, state, rows, work):
    """Positions of a block by Newton's method from the joint positions in the state: (residual, iterations)."""
    m = block.rows
    residual = 0.0
    for iteration in range(NEWTON_ITERATIONS):
        place_block(bodies, block, state)
        residual = write_block_rows(closures, block, state, rows)
        if residual < ROUNDING or not isfinite(residual):
            return residual, iteration
        invert_block(bodies, closures, block, state, rows, work)
        largest = 0.0
        for j in range(block.count):
            step = 0.0
            for r in range(m):
                step -= work[block.inverse_at + j * m + r] * rows[block.rows_at + r].gap
            state[block.start + j].qdd = step
            largest = max(largest, abs(step))
        if not isfinite(largest):
            return residual, iteration
        shorten = min(1.0, LONGEST_STEP / largest) if largest > 0.0 else 1.0
        for j in range(block.count):
            state[block.start + j].q += shorten * state[block.start + j].qdd
        if largest < AT_REST:
            place_block(bodies, block, state)
            return write_block_rows(closures, block, state, rows), iteration + 1
    place_block(bodies, block, state)
    return write_block_rows(closures, block, state, rows), NEWTON_ITERATIONS


@compiled
def solve_positions(bodies, closures, blocks, state, rows, work, mode, angles):
    """Solve all joint positions for the platform pose in the state.

    `mode` is the index of a working mode, or -1 for the one nearest to the joint positions in the state; with `angles`
    false, turning joints get cosine and sine but no angle. Returns (status, residual, iterations).
    """
    worst = 0.0
    iterations = 0
    status = CONVERGED
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.solver == CLOSED_FORM:
            branch = -1 if mode < 0 else (mode // block.stride) % block.branches
            solve_closed_form(bodies, closures, block, state, branch)
            if angles:
                read_angles(bodies, state, block.start, block.start + block.count)
            residual = write_block_rows(closures, block, state, rows)
            if not residual < CLOSED:
                status = UNREACHABLE
        else:
            residual, done = solve_newton(bodies, closures, block, state, rows, work)
            iterations = max(iterations, done)
            if residual < CLOSED and turned_over(closures, block, state):
                residual = 2.0  # the distance of two opposed directions
            if not residual < CLOSED:  # it came to rest where the gap is smallest, or it never came to rest
                status = UNREACHABLE if done < NEWTON_ITERATIONS else DIVERGED
        worst = worse(worst, residual)
    return status, worst, iterations
