# SPDX-License-Identifier: Apache-2.0
"""Positions of every body for a given platform pose, block after block."""

from math import cos, inf, isfinite, sin

from pkm_kinematics.kernels.model_and_data import SLOWEST, SOLVED, VECTORS
from pkm_kinematics.kernels.position.closed_form import read_angles, solve_closed_form
from pkm_kinematics.kernels.position.closures import block_residual, close_step, closed, turned_over, write_rows
from pkm_kinematics.kernels.position.placement import place_body
from pkm_kinematics.kernels.records import CLOSED_FORM, NEWTON
from pkm_runtime.kernels.compiled import compiled, nan_max

# Status codes, as in pkm_kinematics.status.
CONVERGED, UNREACHABLE, JOINT_LIMIT, SINGULAR, DIVERGED, INVALID_INPUT = range(6)
NOT_CONNECTED = 8

NEWTON_ITERATIONS = 50
ROUNDING = 1e-15  # of the robot's size: a gap that no step makes smaller
CLEAN = 4e-15  # the same, near it
NEXT = 0.2  # rad, and of the robot's size: what is found farther away than this need not be the next solution
ROUNDED = 1e-9  # rad, and of the robot's size: corrections whose ratios are those of rounding errors
AT_REST = 1e-13  # rad, and of the robot's size: a step this short is rounding
# The same: after a correction this short, by this factor shorter than the one before, derivatives are kept, unless gaps
# do not shrink.
AGAIN, FAST = 1e-3, 0.1
SQUARED, SMALL = 1e-7, 1e-13  # the same: a correction, and what it seems to leave, that may be the last
SERIES = 1e-2  # rad: a step whose sine and cosine are few terms of their series
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
def step_block(bodies, block, state, part):
    """Move the joints of a block by a part of the step in qdd, and place its bodies."""
    for i in range(block.start, block.start + block.count):
        me = state[i]
        step = part * me.qdd
        me.q += step
        if bodies[i].prismatic == 0:
            if abs(step) < SERIES:
                square = step * step
                versine = square * (0.5 - square / 24.0)
                sine = step - step * square * (1.0 / 6.0 - square / 120.0)
                c, s = me.c, me.s
                me.c = c - (versine * c + sine * s)
                me.s = s - (versine * s - sine * c)
            else:
                me.c = cos(me.q)
                me.s = sin(me.q)
        place_body(bodies, state, i)


@compiled
def solve_newton(model, data, block):
    """Positions of a block by Newton's method from the joint positions in the state: (residual, iterations).

    Raises the row SLOWEST of the vectors to the largest ratio of a correction to the one before, or to infinity where
    one is longer than NEXT, for `follows`.
    """
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    slowest = data.system[VECTORS, SLOWEST]
    residual = 0.0
    previous, ratio, left = inf, inf, inf
    place_block(bodies, block, state)
    for iteration in range(NEWTON_ITERATIONS + 1):
        last, residual = residual, write_block_rows(closures, block, state, rows)
        # the next step would be as much shorter than the last as the gap is smaller
        done = left < SMALL and residual < CLEAN * block.size and residual * previous < AT_REST * last
        done = done or residual < ROUNDING * block.size or previous < AT_REST
        if done or not isfinite(residual) or iteration == NEWTON_ITERATIONS:
            return residual, iteration
        anew = previous > AGAIN or ratio > FAST or residual > FAST * previous * block.size
        close_step(model, data, block, anew)
        largest = 0.0
        for j in range(block.count):
            unit = block.size if bodies[block.start + j].prismatic == 1 else 1.0
            largest = nan_max(largest, abs(state[block.start + j].qdd) / unit)
        if not isfinite(largest):
            return residual, iteration
        if largest > ROUNDED:
            slowest[0] = max(slowest[0], inf if largest > NEXT else largest / previous)
        ratio = largest / previous
        if iteration > 0 and largest < SQUARED:  # errors that shrink by squares, or in proportion
            left = largest * ratio * (ratio if anew else 1.0)
        previous = largest
        step_block(bodies, block, state, min(1.0, LONGEST_STEP / largest) if largest > 0.0 else 1.0)
    return residual, NEWTON_ITERATIONS


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
