# SPDX-License-Identifier: Apache-2.0
"""The twists that limbs and branch leave to the platform, and the acceleration that they impose, pose by pose.

The motion space holds the twists that all limbs allow; for robots such as the 3-PRS it depends on the configuration
("parasitic motion"). Positions must be solved before. Twists and rates are (6,), linear, then angular.

`motion_space` finds it by singular values. For recordings, `null_combinations` and what follows find it in operations
that are the same at every pose: a block with more equations than joints says of the platform alone what its joints
cannot change, combinations of its equations, which as closure forces are wrenches on the platform that do no work in
any possible motion (Joshi and Tsai, "Jacobian analysis of limited-dof parallel manipulators", 2002). Moments count over
the characteristic length. Blocks are inverted before.
"""

from math import sqrt

import numpy as np

from pkm_kinematics.kernels.position.chain import chain_motion
from pkm_kinematics.kernels.position.closures import block_jacobian, joint_row
from pkm_kinematics.kernels.position.positions import closes
from pkm_kinematics.kernels.position.solve_poses import solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import (
    accelerations,
    closure_accelerations,
    invert_blocks,
    move_platform,
    relative_acceleration,
    row_acceleration,
    velocities,
)
from pkm_kinematics.kernels.rates.projection import clear_wrench, gather_block, push, release_block
from pkm_kinematics.kernels.records import BASE, PLATFORM, SPHERICAL
from pkm_kinematics.kernels.regularity import factorise, is_regular, least_norm, reflect, turn_back
from pkm_kinematics.kernels.vectors import add, cross, get, scale, sub
from pkm_runtime.kernels.compiled import allocating, compiled

RANK = 1e-9  # left null vectors of a limb: singular values below this part of the largest. J mixes lengths and angles
NEARLY = 0.9  # of the square of the longest: an axis that is as good as another, but for rounding
INDEPENDENT = 1e-7  # wrenches that span what the platform cannot do, against rounding in overconstrained robots


@allocating
def allowed_twists(model, data, pose):
    """Twists (6, c) that the joints of the platform's own branch allow, at its positions in the data."""
    chain, chain_at = model.chain, data.chain
    allowed = np.zeros((6, chain.shape[0] - 1))
    for i in range(1, chain.shape[0]):
        me = chain_at[i]
        axis = (me.R[0, 2], me.R[1, 2], me.R[2, 2])
        linear = axis if chain[i].prismatic == 1 else cross(axis, sub((pose[0], pose[1], pose[2]), get(me.p)))
        for c in range(3):
            allowed[c, i - 1] = linear[c]
            allowed[3 + c, i - 1] = 0.0 if chain[i].prismatic == 1 else axis[c]
    return allowed


@allocating
def branch_drift(model, data):
    """Acceleration (6,) of the platform, moving as the data says, while the joints of its branch do not accelerate."""
    chain_motion(model, data)
    last = data.chain[model.chain.shape[0] - 1]
    w = get(last.w)
    arm = sub(get(data.state[PLATFORM].p), get(last.p))
    linear = add(get(last.dv), add(cross(get(last.dw), arm), cross(w, cross(w, arm))))
    return np.array((linear[0], linear[1], linear[2], last.dw[0], last.dw[1], last.dw[2]))


@compiled
def write_basis(spanning, basis):
    """Orthonormal basis (6, n) of the space that orthonormal rows (n, 6) span, the same whichever these are.

    Each column is the projection of the first axis whose part across the columns before it is nearly the longest.
    """
    n = basis.shape[1]
    for k in range(n):
        axis, longest = 0, 0.0
        for i in range(6):
            left = 0.0
            for r in range(n):
                left += spanning[r, i] * spanning[r, i]
            for j in range(k):
                left -= basis[i, j] * basis[i, j]
            if left > longest / NEARLY:
                longest = left
                axis = i
        for c in range(6):
            basis[c, k] = 0.0
            for r in range(n):
                basis[c, k] += spanning[r, axis] * spanning[r, c]
        for _ in range(2):  # the second time for rounding
            for j in range(k):
                along = 0.0
                for c in range(6):
                    along += basis[c, j] * basis[c, k]
                for c in range(6):
                    basis[c, k] -= along * basis[c, j]
        squared = 0.0
        for c in range(6):
            squared += basis[c, k] * basis[c, k]
        for c in range(6):
            basis[c, k] /= sqrt(squared)


@allocating
def held_wrenches(model, data, limb):
    """What a limb's closures J qd + G V = 0 say of the platform alone: N (k, m) with N J = 0, and wrenches N G.

    The limb's reciprocal screws (k, 6) act on twists whose angular part is multiplied by the characteristic length.
    """
    blocks = model.blocks
    first, stop = model.limbs[limb, 0], model.limbs[limb, 1]
    n, m = 0, 0
    for b in range(first, stop):
        n += blocks[b].count
        m += blocks[b].rows
    J, G = np.zeros((m, n)), np.zeros((m, 6))
    last = blocks[stop - 1]
    closure_stop = last.closure_start + last.closure_count
    limb_system(model, data, blocks[first].closure_start, closure_stop, blocks[first].start, J, G)
    rank = 0
    U = np.eye(m)
    if n > 0:
        U, values, _ = np.linalg.svd(J)
        for k in range(values.shape[0]):
            if values[k] > RANK * max(values[0], 1e-300):
                rank += 1
    null = np.ascontiguousarray(U[:, rank:].T)
    wrenches = np.dot(null, G)
    wrenches[:, 3:] /= model.task[0].length
    return wrenches, null


@allocating
def constraint_hold(model, data, blocked):
    """The singular value of all limbs' unit constraint wrenches whose vanishing would free one of the `blocked`."""
    if blocked == 0:
        return np.inf
    wrenches = np.zeros((data.rows.shape[0], 6))
    count = 0
    for limb in range(model.limbs.shape[0]):
        W, _ = held_wrenches(model, data, limb)
        if W.shape[0] == 0:
            continue
        _, values, V = np.linalg.svd(W)
        for k in range(values.shape[0]):
            if values[k] > INDEPENDENT:
                wrenches[count] = V[k]
                count += 1
    if count < blocked:
        return 0.0
    _, values, _ = np.linalg.svd(wrenches[:count])
    return values[blocked - 1]


@allocating
def limb_margins(model, data, choice, poses, blocked, hold, regularity):
    """`constraint_hold` and the worst block's reciprocal condition at poses, both (n,); NaN without configuration."""
    for k in range(poses.shape[0]):
        take_seed(model, data, choice.seeds[k if choice.seeds.shape[0] > 1 else 0])
        status, _, _ = solve_pose(model, data, poses[k], choice.branch)
        hold[k] = np.nan
        regularity[k] = np.nan
        if closes(status):
            regularity[k] = invert_blocks(model, data)
            hold[k] = constraint_hold(model, data, blocked)


@allocating
def motion_space(model, data, allowed, twist, space, bias):
    """Motion space (6, mobility), bias acceleration (6,) of least norm at `twist`; `allowed` (6, c) by the branch."""
    closures, blocks, limbs, state, rows = model.closures, model.blocks, model.limbs, data.state, data.rows
    length = model.task[0].length
    scale = np.array((1.0, 1.0, 1.0, length, length, length))
    n_rows = rows.shape[0]
    wrenches = np.zeros((n_rows + 6, 6))  # W: acts on twists whose angular part is multiplied by `length`
    null = np.zeros((n_rows + 6, n_rows))  # combinations of the equations that the wrenches are
    count = 0
    if allowed.shape[1] < 6:
        reciprocal = np.linalg.svd(np.ascontiguousarray(allowed.T) * scale)[2]
        for k in range(allowed.shape[1], 6):
            wrenches[count] = reciprocal[k]
            count += 1
    for limb in range(limbs.shape[0]):
        at = blocks[limbs[limb, 0]].rows_at
        W, combinations = held_wrenches(model, data, limb)
        k, m = combinations.shape
        wrenches[count : count + k] = W
        null[count : count + k, at : at + m] = combinations
        count += k
    V = np.eye(6)
    values = np.zeros(0)
    left = np.zeros((0, 0))
    if count > 0:
        left, values, V = np.linalg.svd(wrenches[:count])
    write_basis(V[6 - space.shape[1] :], space)
    for c in range(6):
        for k in range(space.shape[1]):
            space[c, k] /= scale[c]
    bias[:] = 0.0
    if not np.any(twist != 0.0):
        return
    move_platform(state, twist, np.zeros(6))
    velocities(model, data)
    accelerations(model, data)
    rates = np.zeros(n_rows)
    closure_accelerations(closures, state, rows, rates)
    right = np.dot(null[:count], rates)
    if allowed.shape[1] < 6 and model.task[0].constant == 0:  # the branch turns what it blocks: a universal joint does
        drift = branch_drift(model, data)
        for k in range(6 - allowed.shape[1]):
            for c in range(6):
                right[k] -= wrenches[k, c] * scale[c] * drift[c]
    for k in range(values.shape[0]):
        if values[k] > INDEPENDENT * values[0]:
            share = np.dot(np.ascontiguousarray(left[:, k]), right) / values[k]
            for c in range(6):
                bias[c] -= share * V[k, c] / scale[c]


@allocating
def motion_spaces(model, data, choice, poses, twists, spaces, biases):
    """`motion_space` at poses with twists (n, 6), into spaces (n, 6, mobility), biases (n, 6); NaN where none is."""
    constant = model.task[0].constant == 1
    for k in range(poses.shape[0]):
        take_seed(model, data, choice.seeds[k if choice.seeds.shape[0] > 1 else 0])
        status, _, _ = solve_pose(model, data, poses[k], choice.branch)
        spaces[k] = np.nan
        biases[k] = np.nan
        if not closes(status):
            continue
        if not is_regular(invert_blocks(model, data)):
            continue
        here = model.subspace.copy() if constant else allowed_twists(model, data, poses[k])  # one type: compiled once
        motion_space(model, data, here, twists[k], spaces[k], biases[k])


@compiled
def is_off_space(rates, scale, projector, rounding):
    """Whether rates times `scale` (6,) miss the space of `projector` (6, 6), if any, or are too large to square."""
    size = 0.0
    left = 0.0
    for r in range(6):
        part = rates[r] * scale[r]
        size += part * part
    if not size < np.inf:
        return True
    if projector.shape[0] == 0:
        return False
    for r in range(6):
        part = rates[r] * scale[r]
        for c in range(6):
            part -= projector[r, c] * rates[c] * scale[c]
        left += part * part
    return sqrt(left) > rounding * (1.0 + sqrt(size))


@compiled
def off_space(rates, scale, projector, rounding, off):
    """off (n,): which rates (n, 6) are off a space; the other arguments as in `is_off_space`."""
    for k in range(rates.shape[0]):
        off[k] = is_off_space(rates[k], scale, projector, rounding)


@compiled
def limb_system(model, data, first_closure, stop_closure, first_body, J, G):
    """Fill J (m, n) and G (m, 6) for the closures of a limb whose bodies start at `first_body`, at solved positions."""
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    start = closures[first_closure].rows_at
    for r in range(J.shape[0]):
        for c in range(J.shape[1]):
            J[r, c] = 0.0
        for c in range(6):
            G[r, c] = 0.0
    for k in range(first_closure, stop_closure):
        closure = closures[k]
        point = get(rows[closure.rows_at].point)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            j = closure.successor if side == 0 else closure.predecessor
            while j > PLATFORM:
                if j >= first_body:  # else a redundant joint carries the limb
                    for r in range(closure.rows_at, closure.rows_at + closure.rows):
                        J[r - start, j - first_body] += sign * joint_row(bodies[j], state[j], rows[r], point)
                j = bodies[j].parent
            if j == PLATFORM:
                for r in range(closure.rows_at, closure.rows_at + closure.rows):
                    force = get(rows[r].force)
                    arm = sub(point, get(state[PLATFORM].p))
                    torque = add(get(rows[r].moment), cross(arm, force))
                    for c in range(3):
                        G[r - start, c] += sign * force[c]
                        G[r - start, 3 + c] += sign * torque[c]


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
    """Basis `space` (6, n), orthonormal with rotations times `length`, across `wrenches` (6, 6 - n); a condition."""
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
