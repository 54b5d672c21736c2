# SPDX-License-Identifier: Apache-2.0
"""The motion space at a pose by the limbs' constraint wrenches, in operations that are the same at every pose.

What `motion_space` finds by singular values, for recordings. A block with more equations than joints says of the
platform alone what its joints cannot change: combinations of its equations, which as closure forces are wrenches on the
platform that do no work in any possible motion (Joshi and Tsai, "Jacobian analysis of limited-dof parallel
manipulators", 2002). Moments count over the characteristic length. Blocks are inverted before.
"""

from pkm_kinematics.kernels.position.closures import block_jacobian
from pkm_kinematics.kernels.rates.motion import relative_acceleration, row_acceleration
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block, push, release_block
from pkm_kinematics.kernels.records import BASE, PLATFORM, SPHERICAL
from pkm_kinematics.kernels.regularity import factorise, least_norm, reflect, turn_back
from pkm_kinematics.kernels.vectors import add, get, scale
from pkm_runtime.kernels.compiled import compiled


@compiled
def null_combinations(model, data, block, weights, null):
    """Combinations `null` (m - n, m) of a block's m equations that no joint of n changes; scratch `weights` (n,)."""
    m, n = block.rows, block.count
    block_jacobian(model, data, block, data.work, block.scratch_at)
    A = data.work[block.scratch_at : block.scratch_at + m * n].reshape(m, n)
    for k in range(n):
        reflect(A, m, n, k, weights)
    for i in range(m - n):
        for r in range(m):
            null[i, r] = 0.0
        null[i, n + i] = 1.0
        turn_back(A, m, n, weights, null[i])


@compiled
def constraint_wrench(model, data, b, combination, out):
    """The wrench (6,) on the platform of closure forces in a combination (m,) of block b's equations."""
    bodies, closures, blocks = model.bodies, model.closures, model.blocks
    state, rows, work = data.state, data.rows, data.work
    block, platform = blocks[b], state[PLATFORM]
    clear_wrench(platform)
    for i in range(blocks[block.limb_first].start, block.start + block.count):
        clear_wrench(state[i])
        state[i].effort = 0.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        force = (0.0, 0.0, 0.0)
        moment = (0.0, 0.0, 0.0)
        for r in range(closure.rows_at, closure.rows_at + closure.rows):
            share = combination[r - block.rows_at]
            force = add(force, scale(share, get(rows[r].force)))
            moment = add(moment, scale(share, get(rows[r].moment)))
        point = get(rows[closure.rows_at].point)
        if closure.successor_anchor != BASE:
            push(state[closure.successor_anchor], force, moment, point)
        if closure.predecessor_anchor != BASE:
            push(state[closure.predecessor_anchor], scale(-1.0, force), scale(-1.0, moment), point)
    for c in range(b - 1, block.limb_first - 1, -1):
        gather_block(bodies, blocks[c], state)
        release_block(closures, blocks[c], state, rows, work)
    for r in range(3):
        out[r] = platform.force[r]
        out[3 + r] = platform.torque[r] / model.task[0].length


@compiled
def combined_acceleration(model, data, block, combination):
    """Second rate of a combination (m,) of a block's equations at the motion in the state, whatever its joints do."""
    state, rows = data.state, data.rows
    rate = 0.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = model.closures[k]
        opening, turning = relative_acceleration(closure, state, rows)
        for r in range(closure.rows_at, closure.rows_at + closure.rows):
            if closure.kind == SPHERICAL:
                second = opening[r - closure.rows_at]
            else:
                second = row_acceleration(closure, state, rows, r, opening, turning)
            rate += combination[r - block.rows_at] * second
    return rate


@compiled
def space_across(wrenches, length, inverse, weights, space):
    """Basis `space` (6, n), orthonormal with rotations times `length`, across `wrenches` (6, 6 - n), then factorised.

    Returns the wrenches' reciprocal condition.
    """
    n = space.shape[1]
    k = 6 - n
    condition = factorise(wrenches, 6, k, inverse, weights)
    for c in range(n):
        column = space[:, c]
        for r in range(6):
            column[r] = 0.0
        column[k + c] = 1.0
        turn_back(wrenches, 6, k, weights, column)
        for r in range(3, 6):
            column[r] /= length
    return condition


@compiled
def onto_space(space, length, rates):
    """Move a twist or acceleration (6,) to the nearest one in a space of `space_across`."""
    n = space.shape[1]
    first = rates[0], rates[1], rates[2], rates[3], rates[4], rates[5]
    for r in range(6):
        rates[r] = 0.0
    for c in range(n):
        along = 0.0
        for r in range(3):
            along += space[r, c] * first[r] + (length * length) * space[3 + r, c] * first[3 + r]
        for r in range(6):
            rates[r] += along * space[r, c]


@compiled
def least_motion(wrenches, length, inverse, weights, rates, out):
    """The least motion (6,) that takes `rates` (k,) of the combinations, or their gaps, to zero."""
    least_norm(wrenches, 6, rates.shape[0], inverse, weights, rates, out)
    for r in range(3):
        out[r] = -out[r]
        out[3 + r] = -out[3 + r] / length
