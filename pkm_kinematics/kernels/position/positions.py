# SPDX-License-Identifier: Apache-2.0
"""Positions of every body for a given platform pose, block after block."""

from math import cos, inf, isfinite, sin

from pkm_kinematics.kernels.model_and_data import SLOWEST, SOLVED, VECTORS
from pkm_kinematics.kernels.position.closed_form import read_angles, solve_closed_form
from pkm_kinematics.kernels.position.closures import block_residual, closed, invert_block, turned_over, write_rows
from pkm_kinematics.kernels.position.placement import place_body
from pkm_kinematics.kernels.records import CLOSED_FORM, NEWTON
from pkm_runtime.kernels.compiled import compiled, nan_max

# Status codes, as in pkm_kinematics.status.
CONVERGED, UNREACHABLE, JOINT_LIMIT, SINGULAR, DIVERGED, INVALID_INPUT = range(6)
NOT_CONNECTED = 8

NEWTON_ITERATIONS = 50
ROUNDING = 1e-15  # of the robot's size: a gap that no step makes smaller
NEXT = 0.2  # rad, and of the robot's size: what is found farther away than this need not be the next solution
ROUNDED = 1e-9  # rad, and of the robot's size: corrections whose ratios are those of rounding errors
AT_REST = 1e-13  # rad, and of the robot's size: a step this short is rounding
LONGEST_STEP = 0.5  # the same, per joint and iteration: keeps Newton's method on the branch it started on


@compiled
def closes(status):
    """Whether a status comes with a configuration: its loops are closed."""
    return status in (CONVERGED, JOINT_LIMIT)


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
def solve_newton(model, data, block):
    """Positions of a block by Newton's method from the joint positions in the state: (residual, iterations).

    Raises the row SLOWEST of the vectors to the largest ratio of a correction to the one before, or to infinity where
    one is longer than NEXT, for `follows`.
    """
    bodies, closures, state, rows, work = model.bodies, model.closures, data.state, data.rows, data.work
    slowest = data.system[VECTORS, SLOWEST]
    m = block.rows
    residual = 0.0
    previous = inf
    for iteration in range(NEWTON_ITERATIONS):
        place_block(bodies, block, state)
        residual = write_block_rows(closures, block, state, rows)
        if residual < ROUNDING * block.size or not isfinite(residual):
            return residual, iteration
        invert_block(model, data, block)
        largest = 0.0
        for j in range(block.count):
            step = 0.0
            for r in range(m):
                step -= work[block.inverse_at + j * m + r] * rows[block.rows_at + r].gap
            state[block.start + j].qdd = step
            unit = block.size if bodies[block.start + j].prismatic == 1 else 1.0
            largest = max(largest, abs(step) / unit)
        if not isfinite(largest):
            return residual, iteration
        if largest > ROUNDED:
            slowest[0] = max(slowest[0], inf if largest > NEXT else largest / previous)
        previous = largest
        shorten = min(1.0, LONGEST_STEP / largest) if largest > 0.0 else 1.0
        for j in range(block.count):
            state[block.start + j].q += shorten * state[block.start + j].qdd
        if largest < AT_REST:
            place_block(bodies, block, state)
            return write_block_rows(closures, block, state, rows), iteration + 1
    place_block(bodies, block, state)
    return write_block_rows(closures, block, state, rows), NEWTON_ITERATIONS


@compiled
def behind_iterated(model, b):
    """Whether block b closes on a block solved by iteration, which may have other solutions."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    block = blocks[b]
    for other in range(b):
        before = blocks[other]
        if before.solver != NEWTON:
            continue
        if other >= block.limb_first:
            return True
        for k in range(block.closure_start, block.closure_start + block.closure_count):
            for side in range(2):
                j = closures[k].successor if side == 0 else closures[k].predecessor
                while j > 0:
                    if before.start <= j < before.start + before.count:
                        return True
                    j = bodies[j].parent
    return False


@compiled
def solve_positions(model, data, mode, angles):
    """Solve all joint positions for the platform pose in the state: (status, residual, iterations).

    `mode` is a working mode, -1 for the nearest to the state, SOLVED for the joint positions in the state themselves;
    without `angles`, turning joints get no angle q.
    """
    bodies, closures, blocks, state, rows = model.bodies, model.closures, model.blocks, data.state, data.rows
    worst = 0.0
    iterations = 0
    status = CONVERGED
    if mode == SOLVED:
        for b in range(blocks.shape[0]):
            place_block(bodies, blocks[b], state)
            worst = nan_max(worst, write_block_rows(closures, blocks[b], state, rows))
        if not isfinite(worst):  # NaN stands for the joints where there is no configuration
            status = UNREACHABLE
        return status, worst, iterations
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.solver == CLOSED_FORM:
            branch = -1 if mode < 0 else (mode // block.stride) % block.branches
            solve_closed_form(bodies, closures, block, state, branch)
            if angles:
                read_angles(bodies, state, block.start, block.start + block.count)
            residual = write_block_rows(closures, block, state, rows)
            if not closed(block, residual) and status == CONVERGED:
                status = NOT_CONNECTED if behind_iterated(model, b) else UNREACHABLE
        else:
            residual, done = solve_newton(model, data, block)
            iterations = max(iterations, done)
            if closed(block, residual) and turned_over(closures, block, state):
                residual = 2.0 * block.size  # the distance of two opposed directions
            # it came to rest where the gap is smallest, which says nothing of elsewhere, or it never came to rest
            if not closed(block, residual) and status == CONVERGED:
                status = NOT_CONNECTED if done < NEWTON_ITERATIONS else DIVERGED
        worst = nan_max(worst, residual)
    return status, worst, iterations
