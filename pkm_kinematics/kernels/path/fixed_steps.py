# SPDX-License-Identifier: Apache-2.0
"""Newton's method in steps that straight-line code is recorded of: of iterated limbs, and of linkages.

Cosines and sines are turned along by 2 atan(d / 2) for a correction d, which is d but for its cube. `start` (2 n,) has
of each body of the blocks solved by iteration its cosine and sine, or its position.
"""

from math import atan2, inf, nan
from typing import Any

import numpy as np

from pkm_kinematics.kernels.compiled_rotations import write_displacement
from pkm_kinematics.kernels.dense import all_finite, copy
from pkm_kinematics.kernels.model_and_data import VECTORS
from pkm_kinematics.kernels.path.carry_on import LAST, PATH, SHORT, STEP, inverse_carried, step_length
from pkm_kinematics.kernels.path.follow import CONTRACTION
from pkm_kinematics.kernels.position.chain import near
from pkm_kinematics.kernels.position.closed_form import read_angles
from pkm_kinematics.kernels.position.closures import invert_block
from pkm_kinematics.kernels.position.placement import place_body
from pkm_kinematics.kernels.position.positions import CONVERGED, NEXT, ROUNDED, write_block_rows
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.kernels.binding import ByAddress, arrays_type, call_code
from pkm_runtime.kernels.compiled import compiled

WHOLE = 2  # steps with a Jacobian of their own
AGAIN = 2  # further ones with the last: each divides the error by that before it
# rad, and of the robot's size: after a last correction below it, what is left is below AT_REST. The second correction
# then was below the cube root of it, which is by what the steps with the same Jacobian shrink.
SETTLED = 1e-10


@compiled
def place_iterated(bodies, block, state):
    """Place a block's bodies from cosines, sines and positions in the state."""
    for i in range(block.start, block.start + block.count):
        place_body(bodies, state, i)


@compiled
def turn_along(body, me, change):
    """Move a joint by a correction, without a trigonometric function."""
    if body.prismatic == 1:
        me.q += change
        return
    half = 0.5 * change
    square = half * half
    scale = 1.0 / (1.0 + square)
    c = me.c
    s = me.s
    me.c = ((1.0 - square) * c - change * s) * scale
    me.s = ((1.0 - square) * s + change * c) * scale


@compiled
def correct_joints(model, data, block):
    """Move a block's joints by its gaps and its inverse; the largest correction [rad, and of the robot's size]."""
    largest = 0.0
    for j in range(block.count):
        change = 0.0
        for r in range(block.rows):
            change -= data.work[block.inverse_at + j * block.rows + r] * data.rows[block.rows_at + r].gap
        body = model.bodies[block.start + j]
        turn_along(body, data.state[block.start + j], change)
        largest = max(largest, abs(change) / (block.size if body.prismatic == 1 else 1.0))
    return largest


@compiled
def newton_in_fixed_steps(model, data, block, rounded=ROUNDED, settled=SETTLED):
    """As `solve_newton`; a residual of infinity where corrections do not shrink. Bounds are coarser for floats."""
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    allowed = NEXT
    largest = 0.0
    for step in range(WHOLE + AGAIN):
        place_iterated(bodies, block, state)
        write_block_rows(closures, block, state, rows)
        if step < WHOLE:
            invert_block(model, data, block)
        largest = correct_joints(model, data, block)
        if not largest <= allowed:
            return inf, step
        allowed = max(CONTRACTION * largest, rounded)
    if not largest <= settled:
        return inf, WHOLE + AGAIN
    place_iterated(bodies, block, state)
    return write_block_rows(closures, block, state, rows), WHOLE + AGAIN


@compiled
def read_iterated(model, data, start):
    """Write where the limbs are to `start`."""
    at = 0
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            for i in range(block.start, block.start + block.count):
                slides = model.bodies[i].prismatic == 1
                start[at] = data.state[i].q if slides else data.state[i].c
                start[at + 1] = 0.0 if slides else data.state[i].s
                at += 2


@compiled
def set_off(model, data, pose, start):
    """`read_iterated`; False where the pose is too far from that of the call before for one step, as in `approach`."""
    vectors = data.system[VECTORS]
    write_displacement(vectors[LAST], pose, vectors[PATH])
    if not step_length(vectors[PATH], model.task[0].size) < SHORT * STEP:
        return False
    read_iterated(model, data, start)
    return True


@compiled
def put_joint(bodies, state, i, end, at):
    """Put a joint where `end` has it from index `at` on: its cosine and sine, or its position. The next index."""
    if bodies[i].prismatic == 1:
        state[i].q = end[at]
    else:
        state[i].c = end[at]
        state[i].s = end[at + 1]
    return at + 2


@compiled
def settle(model, data, pose, end):
    """Put the limbs where the code found them, `end` (2 n,) as `start`, and remember the pose."""
    bodies, state, at = model.bodies, data.state, 0
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            for i in range(block.start, block.start + block.count):
                at = put_joint(bodies, state, i, end, at)
            read_angles(bodies, state, block.start, block.start + block.count)
    copy(pose, data.system[VECTORS, LAST, :7])


FARTHER = 2.0  # times the way before: no more is foreseen
FINE = 1e-11  # rad, and of the robot's size: a last correction by which a gap that counts as open does not close
CALLS = 3  # of code that takes two steps
SQUARE = 6  # number of a way behind its displacement


class Limbs(ByAddress):
    """Where iterated limbs and drives are between calls of straight-line code, and its scratch."""

    _f, _i = np.float64, np.int64
    kind = arrays_type(
        "Limbs",
        False,
        last=(_f, 1),
        start=(_f, 1),
        end=(_f, 1),
        way=(_f, 1),
        changes=(_f, 1),
        turning=(_i, 1),
        drives=(_i, 2),
        angles=(_f, 1),
    )
    last: Any  # (2 n,), as `start`
    start: Any
    end: Any  # where they get, drives of other limbs, and the numbers of `TwoSteps`
    way: Any  # (7,) displacement to the last pose, and its square; 0 where it is not known
    changes: Any  # (n,) of the joints along it
    turning: Any  # (n,)
    drives: Any  # (n_actuated, 3) where in `end` each is, its body, and whether it turns
    angles: Any  # (n_actuated,) of the drives


@compiled
def product_of_ways(first, second, size):
    """Product of two displacements (6,), shifts over `size` [m]."""
    shift = first[0] * second[0] + first[1] * second[1] + first[2] * second[2]
    return shift / (size * size) + first[3] * second[3] + first[4] * second[4] + first[5] * second[5]


@compiled
def go_on(limbs, path, size):
    """Put `start` where joints get if they move as in the call before, by how far the pose goes on the same way."""
    start, last, way, changes = limbs.start, limbs.last, limbs.way, limbs.changes
    copy(last, start)
    share = product_of_ways(path, way, size) / way[SQUARE] if way[SQUARE] > 0.0 else 0.0
    if share == 0.0 or not abs(share) < FARTHER:
        return
    for j in range(changes.shape[0]):
        change, c, s = share * changes[j], last[2 * j], last[2 * j + 1]
        if limbs.turning[j] == 0:
            start[2 * j] = c + change
        else:
            square = 0.25 * change * change
            scale = 1.0 / (1.0 + square)
            start[2 * j] = ((1.0 - square) * c - change * s) * scale
            start[2 * j + 1] = ((1.0 - square) * s + change * c) * scale


@compiled
def arrived(code, limbs, pose):
    """Whether the code closes the limbs at a pose, from `start` to `end`."""
    end, at = limbs.end, limbs.end.shape[0] - 2
    for _ in range(CALLS):
        if call_code(code, pose, limbs.start, end) != CONVERGED:
            return False
        if end[at] < FINE:
            return end[at + 1] < 1.0
        copy(end[: limbs.start.shape[0]], limbs.start)
    return False


@compiled
def keep_way(limbs, path, size):
    """Take `end` for where the limbs are, and remember how they got there."""
    last, end, way = limbs.last, limbs.end, limbs.way
    copy(path[:SQUARE], way)
    way[SQUARE] = product_of_ways(path, path, size)
    for j in range(limbs.changes.shape[0]):
        c, s = end[2 * j], end[2 * j + 1]
        limbs.changes[j] = s * last[2 * j] - c * last[2 * j + 1] if limbs.turning[j] == 1 else c - last[2 * j]
        last[2 * j], last[2 * j + 1] = c, s


@compiled
def inverse_in_steps(code, model, data, limbs, branch, pose, out):
    """As `inverse_carried`, by straight-line code where that closes the limbs, which are then in `limbs` alone."""
    drives, angles, end = limbs.drives, limbs.angles, limbs.end
    path, size = data.system[VECTORS, PATH], model.task[0].size
    write_displacement(data.system[VECTORS, LAST], pose, path)
    if step_length(path, size) < SHORT * STEP:
        go_on(limbs, path, size)
        if arrived(code, limbs, pose):
            keep_way(limbs, path, size)
            for a in range(angles.shape[0]):
                at = drives[a, 0]
                q = end[at]
                if drives[a, 2] == 1:
                    q = near(atan2(end[at + 1], q), angles[a])
                angles[a] = out[a] = q
            copy(pose, data.system[VECTORS, LAST, :7])
            return CONVERGED
    limbs.way[SQUARE] = 0.0
    return inverse_behind(model, data, limbs, branch, pose, out)


@compiled
def inverse_behind(model, data, limbs, branch, pose, out):
    """`inverse_carried` from where `limbs` are, which end where it does."""
    bodies, state, at = model.bodies, data.state, 0
    for a in range(limbs.angles.shape[0]):
        state[limbs.drives[a, 1]].q = limbs.angles[a]
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            for i in range(block.start, block.start + block.count):
                at = put_joint(bodies, state, i, limbs.last, at)
            read_angles(bodies, state, block.start, block.start + block.count)
    status = inverse_carried(model, data, branch, pose, out)
    read_iterated(model, data, limbs.last)
    for a in range(limbs.angles.shape[0]):
        limbs.angles[a] = state[limbs.drives[a, 1]].q
    return status


LOST = 1e-2  # a second correction above it, dimensionless: the step was too long
SOLVED = 1e-9  # a last correction below it: the next would be below rounding
SQUARED = 1e-7  # a last correction by derivatives of its own below it: what is left is its square
CORRECTIONS = 6
SHORTEST = 1.0 / 64.0  # of the way from where a linkage was: it is tried at once, else in 2, 4, ... equal parts
TRIES = 80  # of parts of a way, at most: those of the shortest, and what failed before
FOLDS, INVALID, FAR = 3, 5, 8  # SINGULAR, INVALID_INPUT and NOT_CONNECTED of `pkm_kinematics.status.Status`


@compiled
def one_part(code, states, kept, inputs, results):
    """Lead a linkage to the inputs, if it is near; its state stays as it was where that fails."""
    n = (inputs.shape[0] - states) // 3
    state, way = inputs[n : n + states], inputs[2 * n + states :]
    copy(state, kept)
    for _ in range(CORRECTIONS):
        if call_code(code, inputs, results) != CONVERGED or not results[states] < LOST:
            break
        copy(results, state)
        for k in range(n):
            way[k] = 0.0
        if results[states] < SQUARED:
            return CONVERGED if is_regular(results[states + 1]) else FOLDS
    copy(kept, state)
    return FAR


@compiled
def in_parts(code, states, begin, kept, inputs, results, q):
    """Lead a linkage straight from `begin` (n + states,) to q (n,), in as many parts as it takes."""
    n = q.shape[0]
    copy(begin, inputs[: n + states])
    done, part, status = 0.0, 1.0, FAR
    for _ in range(TRIES):
        aim = done + part
        for k in range(n):
            inputs[k] = q[k] if aim >= 1.0 else begin[k] + aim * (q[k] - begin[k])
            inputs[2 * n + states + k] = inputs[k] - begin[k] - done * (q[k] - begin[k])
        status = one_part(code, states, kept, inputs, results)
        if status != FAR:
            done = aim
            if aim >= 1.0:
                break
        else:
            part *= 0.5
            if part < SHORTEST:
                break
    return status if done >= 1.0 else FAR


@compiled
def to_outputs(code, states, begins, kept, inputs, results, q, effort, position, output_effort):
    """Positions (m,) and efforts (m,) of outputs for positions (n,) and efforts (n,) of the inputs.

    Returns a status and the margin to a fold, which nears zero before one. With any other status than CONVERGED the
    outputs are NaN. `begins` (2, n + states) has where the linkage was, inputs and states, kept where it is lost,
    and home: where no straight way leads on from the first, one from there is tried. The other arrays are scratch.
    """
    n, m = q.shape[0], position.shape[0]
    for k in range(n):
        inputs[n + states + k] = effort[k]
    finite = all_finite(q) and all_finite(effort)
    for k in range(m):
        position[k] = output_effort[k] = nan
    if not finite:
        return INVALID, nan
    status = in_parts(code, states, begins[0], kept, inputs, results, q)
    if status == FAR:
        status = in_parts(code, states, begins[1], kept, inputs, results, q)
    if status == FAR:
        return status, nan
    copy(inputs, begins[0])
    if status == CONVERGED and not all_finite(results[states + 2 : states + 2 + 2 * m]):
        status = INVALID  # efforts so large that they overflow
    if status == CONVERGED:
        for k in range(m):
            position[k] = results[states + 2 + k]
            output_effort[k] = results[states + 2 + m + k]
    return status, results[states + 1]


@compiled
def begin_at_random(numbers, lowest, width, terms, coefficients, term, columns):
    """Inputs and starts of a linkage, `columns` (3 n + d, rows), from `numbers` (3 n, rows), uniform from 0 to 1.

    Inputs are `lowest` + `width` times these, starts a polynomial of `coefficients` (d, m) by `terms` (m, 3), products
    of positions from -1 to 1, -1 for none.
    """
    # The innermost loops go along rows, so that the compiler vectorises them.
    n, rows = numbers.shape[0] // 3, numbers.shape[1]
    for k in range(3 * n):
        for r in range(rows):
            columns[k, r] = lowest[k] + width[k] * numbers[k, r]
    for k in range(n):
        for r in range(rows):
            numbers[k, r] = 2.0 * numbers[k, r] - 1.0 if width[k] > 0.0 else 0.0
    for j in range(coefficients.shape[0]):
        for r in range(rows):
            columns[3 * n + j, r] = coefficients[j, 0]
    for t in range(1, terms.shape[0]):
        one, two, three = terms[t]
        for r in range(rows):
            term[r] = numbers[one, r]
        if two >= 0:
            for r in range(rows):
                term[r] *= numbers[two, r]
        if three >= 0:
            for r in range(rows):
                term[r] *= numbers[three, r]
        for j in range(coefficients.shape[0]):
            factor = coefficients[j, t]
            if factor != 0.0:
                for r in range(rows):
                    columns[3 * n + j, r] += factor * term[r]


@compiled
def write_states(joints, kept, columns, first, states):
    """Write joints (3, k, rows) of the rows `kept` to `states` (3, n, names) from row `first` on, in some columns."""
    for what in range(joints.shape[0]):
        for r in range(kept.shape[0]):
            for k in range(columns.shape[0]):
                states[what, first + r, columns[k]] = joints[what, k, kept[r]]
