# SPDX-License-Identifier: Apache-2.0
"""What the limbs say of one pose: whether they reach it, distances to joint limits and to singularities.

No branch depends on the pose, so that the kernel can be recorded as straight-line code. All numbers are signed,
positive inside and negative outside, so that borders can be found between two poses.

Extreme singular values: A = K^T K is squared again and again, which leaves the directions of its largest eigenvalue;
its inverse likewise gives those of the smallest. The singular value is the length of K x for such a direction x: in a
cluster of nearly equal ones any direction gives one that lies among them. The largest is accurate to 1e-5 of itself,
the smallest to 1e-5 of itself or of the largest: A is K squared, which loses what is smaller than the root of rounding.
"""

from math import atan2, floor, isnan, sqrt

from pkm_kinematics.kernels.position.chain import read_chain
from pkm_kinematics.kernels.position.closed_form import solve_closed_form, turn_from_home
from pkm_kinematics.kernels.position.closures import closed, invert_block, turned_over
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import solve_newton, write_block_rows
from pkm_kinematics.kernels.position.solve_poses import LIMIT_SLACK, take_seed
from pkm_kinematics.kernels.rates.projection import anchor_twist, joint_columns
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.kernels.regularity import factorise, orientation
from pkm_kinematics.kernels.vectors import dot, get
from pkm_runtime.kernels.compiled import compiled, select_gt

# Singular values closer to each other than one part in 2^SQUARINGS are not told apart: the error is a third of a part.
SQUARINGS = 14
ROUNDING = 1e-12  # of the trace: added to the diagonal, so that a singular matrix has an inverse too
TAU = 6.283185307179586
UNLIMITED = 1e12  # rad or m: a limit beyond it is none
# What is written of each pose. REACH: the least of the blocks: 1 - C^2 / (A^2 + B^2) where A cos q + B sin q = C is to
# be solved, which is 0 where a limb is stretched or folded; -gap / size of a block that stays open. REACH_AT: that
# block. LIMIT: distance of a joint from its limit, the least [rad], of sliding joints in characteristic lengths.
# LIMIT_AT: twice the number of its body, one more where it is the upper limit. TYPE1, TYPE2, HOLD, REGULARITY are those
# of `pkm_kinematics.solve.singularity`, TYPE2 with the sign of the determinant where there is one.
REACH, REACH_AT, LIMIT, LIMIT_AT, TYPE1, TYPE2, HOLD, REGULARITY, REGULARITY_AT = range(9)
WIDTH = 9


@compiled
def invert_symmetric(A, n, out):
    """Inverse of the leading (n, n) part of a positive definite A by Gauss-Jordan elimination without pivots."""
    for r in range(n):
        for c in range(n):
            out[r, c] = A[r, c]
    for k in range(n):
        pivot = 1.0 / out[k, k]
        for c in range(n):
            if c != k:
                out[k, c] = out[k, c] * pivot
        for r in range(n):
            if r != k:
                factor = out[r, k]
                for c in range(n):
                    if c != k:
                        out[r, c] = out[r, c] - factor * out[k, c]
                out[r, k] = -(factor * pivot)
        out[k, k] = pivot


@compiled
def square_often(P, n, scratch):
    """Reduce a symmetric P to the projection on the directions of its largest eigenvalues."""
    for _ in range(SQUARINGS):
        trace = P[0, 0]
        for k in range(1, n):
            trace = trace + P[k, k]
        scale = 1.0 / trace
        for r in range(n):
            for c in range(r, n):
                P[r, c] = scale * P[r, c]
                P[c, r] = P[r, c]
        for r in range(n):
            for c in range(r, n):
                value = P[r, 0] * P[0, c]
                for k in range(1, n):
                    value = value + P[r, k] * P[k, c]
                scratch[r, c] = value
        for r in range(n):
            for c in range(r, n):
                P[r, c] = scratch[r, c]


@compiled
def length_along(K, m, P, n, x):
    """Length of K x (m, n) for a unit vector x in the range of the projection P, whose upper triangle is used."""
    best = P[0, 0]
    for r in range(n):
        x[r] = P[0, r]
    for k in range(1, n):
        size = P[k, k]
        for r in range(n):
            entry = P[k, r] if k < r else P[r, k]
            x[r] = select_gt(size, best, entry, x[r])
        best = select_gt(size, best, size, best)
    whole = x[0] * x[0]
    for r in range(1, n):
        whole = whole + x[r] * x[r]
    total = 0.0
    for i in range(m):
        value = K[i, 0] * x[0]
        for r in range(1, n):
            value = value + K[i, r] * x[r]
        total = total + value * value
    return sqrt(total / whole)


@compiled
def extreme_singular_values(K, m, n, scratch):
    """Smallest and largest singular value of the leading (m, n) part of K, m >= n; `scratch` is (4, w, w), w >= n."""
    A, P, Q, more = scratch[0], scratch[1], scratch[2], scratch[3]
    trace = 0.0
    for r in range(n):
        for c in range(r, n):
            value = K[0, r] * K[0, c]
            for i in range(1, m):
                value = value + K[i, r] * K[i, c]
            A[r, c] = value
            A[c, r] = value
        trace = trace + A[r, r]
    if n == 1:
        length = sqrt(A[0, 0])
        return length, length
    for r in range(n):
        for c in range(n):
            P[r, c] = A[r, c]
    square_often(P, n, more)
    largest = length_along(K, m, P, n, more[0])
    for r in range(n):
        A[r, r] = A[r, r] + ROUNDING * trace
    invert_symmetric(A, n, Q)
    square_often(Q, n, more)
    return length_along(K, m, Q, n, more[0]), largest


@compiled
def turn_joints(bodies, closures, block, state, side):
    """Set revolute joints from cosine and sine, in the turn nearest to the last, or to home (see `turn_from_home`)."""
    for i in range(block.start, block.start + block.count):
        if bodies[i].prismatic == 0:
            me = state[i]
            q = atan2(me.s, me.c)
            if i == block.driver and not isnan(block.bend):
                home = me.q
                me.q = q
                me.q = turn_from_home(bodies, closures, block, state, side, home)
            else:
                me.q = q + TAU * floor((me.q - q) / TAU + 0.5)


@compiled
def place_limbs(model, data, branch, out):
    """Positions of all joints for the platform pose in the state; writes REACH and REACH_AT."""
    bodies, closures, blocks, state, rows = model.bodies, model.closures, model.blocks, data.state, data.rows
    reach = 1.0
    at = 0.0
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.solver == CLOSED_FORM:
            side = -1 if branch < 0 else (branch // block.stride) % block.branches
            margin = solve_closed_form(bodies, closures, block, state, side)
            turn_joints(bodies, closures, block, state, side)
            residual = write_block_rows(closures, block, state, rows)
            at = select_gt(reach, margin, float(b), at)
            reach = min(reach, margin)
            if not closed(block, residual):
                at = select_gt(reach, 0.0, float(b), at)
                reach = min(reach, -residual / block.size)
        else:
            residual, _ = solve_newton(model, data, block)
            if closed(block, residual) and turned_over(closures, block, state):
                residual = block.size
            if not closed(block, residual):
                at = select_gt(reach, -residual / block.size, float(b), at)
                reach = min(reach, -residual / block.size)
    out[REACH] = reach
    out[REACH_AT] = at


@compiled
def limit_slack(model, data, out):
    """Distance of the nearest joint from its limits; writes LIMIT and LIMIT_AT."""
    bodies, state = model.bodies, data.state
    per_metre = 1.0 / model.task[0].length
    size = model.task[0].size
    least = UNLIMITED
    at = -1.0
    for i in range(2, bodies.shape[0]):
        scale = per_metre if bodies[i].prismatic == 1 else 1.0
        rounding = LIMIT_SLACK * size if bodies[i].prismatic == 1 else LIMIT_SLACK
        if bodies[i].lower > -UNLIMITED:
            slack = scale * (state[i].q - bodies[i].lower + rounding)
            at = select_gt(least, slack, 2.0 * i, at)
            least = min(least, slack)
        if bodies[i].upper < UNLIMITED:
            slack = scale * (bodies[i].upper + rounding - state[i].q)
            at = select_gt(least, slack, 2.0 * i + 1.0, at)
            least = min(least, slack)
    out[LIMIT] = least
    out[LIMIT_AT] = at


@compiled
def blocked_gram(model, data, first_closure, stop_closure, f, twist, N):
    """What a limb opposes to each blocked velocity: N = R^T R (b, b) for the openings R of its closures.

    The platform moves by columns f, f + 1, ... of the model's subspace, and the limb's joints, whose columns are in the
    state, follow as they can. `twist` (6, 6) is scratch.
    """
    bodies, closures, subspace, state, rows = (model.bodies, model.closures, model.subspace, data.state, data.rows)
    n = subspace.shape[1]
    for r in range(n - f):
        for c in range(n - f):
            N[r, c] = 0.0
    for k in range(first_closure, stop_closure):
        closure = closures[k]
        for r in range(6):
            for c in range(n):
                twist[r, c] = 0.0
        point = get(rows[closure.rows_at].point)
        anchor_twist(bodies, state, point, closure.successor, 1.0, subspace, twist)
        anchor_twist(bodies, state, point, closure.predecessor, -1.0, subspace, twist)
        for e in range(closure.rows_at, closure.rows_at + closure.rows):
            force = get(rows[e].force)
            moment = get(rows[e].moment)
            for c in range(f, n):
                rate = dot(force, (twist[0, c], twist[1, c], twist[2, c]))
                rate += dot(moment, (twist[3, c], twist[4, c], twist[5, c]))
                N[n - f, c - f] = rate
            for r in range(n - f):
                for c in range(n - f):
                    N[r, c] = N[r, c] + N[n - f, r] * N[n - f, c]


@compiled
def add_projection(N, rank, b, G):
    """Add to G (b, b) the projection on the range of N, of known rank; N is overwritten."""
    for _ in range(rank):
        best = N[0, 0]
        for r in range(b):
            N[b, r] = N[0, r]
        for k in range(1, b):
            size = N[k, k]
            for r in range(b):
                N[b, r] = select_gt(size, best, N[k, r], N[b, r])
            best = select_gt(size, best, size, best)
        # v N / |v| deflated: with v the column of the largest diagonal entry `best`, v v^T / best is what it spans
        for r in range(b):
            for c in range(b):
                N[r, c] = N[r, c] - N[b, r] * N[b, c] / best
        # unit vector of the part of v that the vectors before have not yet spanned
        for r in range(b):
            N[b + 1, r] = N[b, r]
            for c in range(b):
                N[b + 1, r] = N[b + 1, r] - G[b + r, c] * N[b, c]
        whole = N[b + 1, 0] * N[b + 1, 0]
        for r in range(1, b):
            whole = whole + N[b + 1, r] * N[b + 1, r]
        for r in range(b):
            for c in range(b):
                share = N[b + 1, r] * N[b + 1, c] / whole
                G[r, c] = G[r, c] + share
                G[b + r, c] = G[b + r, c] + share


@compiled
def pose_margins(model, data, f, ranks, scratch, out):
    """Distances from singularities at solved positions; writes TYPE1 to REGULARITY_AT.

    Columns of the model's subspace (6, n): f unit velocities of the platform in the motion space, then n - f unit
    velocities that the limbs block; `ranks` (limbs,) says how many of these each limb blocks. `scratch` is (8, 14, 14).

    TYPE1 and TYPE2 are speeds in the worst direction: of the platform at unit drive speed, and of a drive at unit
    platform speed. They are singular values with units, not criteria of singularity; the only criterion is
    `kernels/regularity.py`'s, in REGULARITY.
    """
    bodies, blocks, state = model.bodies, model.blocks, data.state
    regularity = 1.0
    at = 0.0
    for b in range(blocks.shape[0]):
        value = invert_block(model, data, blocks[b])
        at = select_gt(regularity, value, float(b), at)
        regularity = min(regularity, value)
    out[REGULARITY] = regularity
    out[REGULARITY_AT] = at
    twist, K = scratch[4], scratch[5]
    joint_columns(model, data, twist)
    m = model.task[0].actuators
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            for c in range(f):
                K[a, c] = state[i].column[c]
    smallest, largest = extreme_singular_values(K, m, f, scratch)
    sign = 1.0
    if m == f:
        A, inverse = scratch[0], scratch[1]
        for r in range(f):
            for c in range(f):
                A[r, c] = K[r, c]
        factorise(A, f, f, inverse, scratch[2, 0])
        sign = orientation(inverse, f)
    out[TYPE1] = 1.0 / largest
    out[TYPE2] = sign * smallest
    blocked = model.subspace.shape[1] - f
    out[HOLD] = UNLIMITED
    if blocked > 0:
        N, G = scratch[6], scratch[7]
        for r in range(2 * blocked):
            for c in range(blocked):
                G[r, c] = 0.0
        for k in range(model.limbs.shape[0]):
            first, stop = model.limbs[k, 0], model.limbs[k, 1]
            opened = blocks[first].closure_start
            shut = blocks[stop - 1].closure_start + blocks[stop - 1].closure_count
            if ranks[k] > 0:
                for r in range(blocked):
                    for c in range(blocked):
                        G[blocked + r, c] = 0.0
                blocked_gram(model, data, opened, shut, f, twist, N)
                add_projection(N, ranks[k], blocked, G)
        hold, _ = extreme_singular_values(G, blocked, blocked, scratch)
        out[HOLD] = sqrt(hold)  # G = W^T W for the limbs' unit wrenches W, one below the other


@compiled
def pose_quantities(model, data, branch, f, ranks, pose, scratch, out):
    """All numbers for a pose (7,) in the motion space, with joints near those in the state."""
    place_platform(data.state, pose)
    place_limbs(model, data, branch, out)
    limit_slack(model, data, out)
    if f > 0:
        pose_margins(model, data, f, ranks, scratch, out)


@compiled
def pose_quantities_many(model, data, branch, f, ranks, poses, seeds, scratch, out):
    """`pose_quantities` for poses (n, 7) near joint positions `seeds` (1 or n, n_joints) into out (n, WIDTH)."""
    for k in range(poses.shape[0]):
        take_seed(model, data, seeds[k if seeds.shape[0] > 1 else 0])
        pose_quantities(model, data, branch, f, ranks, poses[k], scratch, out[k])


@compiled
def branch_positions(model, data, R, p, seeds, out):
    """Positions out (n, k) at rotations R (n, 3, 3) and origins p (n, 3), in the turns nearest to seeds (k,)."""
    state = data.chain
    for row in range(p.shape[0]):
        for i in range(1, state.shape[0]):
            state[i].q = seeds[i - 1]
        read_chain(model, data, R[row], p[row])
        for i in range(1, state.shape[0]):
            out[row, i - 1] = state[i].q
