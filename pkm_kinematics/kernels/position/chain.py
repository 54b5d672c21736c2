# SPDX-License-Identifier: Apache-2.0
"""The platform's own branch: the coordinates in which its pose is written, and the poses that it allows.

The branch is a table of bodies like a limb's, base to platform; its last body carries the platform frame. Sliding
joints come first, turning joints after them, read in closed form as the angles of up to three successive rotations
about given axes. R (3, 3) and p (3,) are the platform's rotation and origin, `tail` (3, 3) its turn in the last body.
"""

from math import atan2, cos, floor, inf, sin, sqrt

from pkm_kinematics.kernels.model_and_data import BRANCH_SCRATCH
from pkm_kinematics.kernels.position.closed_form import turn_to
from pkm_kinematics.kernels.position.closures import inverse_of_tall
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.kernels.rates.motion import bias_acceleration
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.kernels.vectors import add, cross, dot, get, matmul, put, rotate, rotate_back, sub
from pkm_runtime.kernels.compiled import compiled, is_zero, select_gt

TAU = 6.283185307179586
OUTSIDE = 1e3  # rad nearer to the seed that weigh as much as a rad outside of a range


@compiled
def near(q, seed):
    """The angle q in the turn nearest to `seed`."""
    return q + TAU * floor((seed - q) / TAU + 0.5)


@compiled
def read_turns(chain, first, state, tail, R):
    """Angles of the turning joints from body `first` on; near-degenerate middle angles leave the first joint."""
    last = chain.shape[0] - 1
    count = last - first + 1
    if count <= 0:
        return
    carrier = state[chain[first].parent].R
    if count == 1:
        me = state[first]
        F = chain[first].rotation
        x = rotate_back(carrier, column_of_product(R, tail, 0))
        x = rotate_back(F, x)
        set_angle(state, first, near(atan2(x[1], x[0]), me.q))
        return
    # aim the axis of the last joint: Rz(q1) T Rz(q2) d = u, in the first joint's frame
    F = chain[first].rotation
    u = rotate_back(F, rotate_back(carrier, column_of_product(R, tail, 2)))
    T = chain[first + 1].rotation
    if count == 2:
        d = (T[0, 2], T[1, 2], T[2, 2])
        q1 = near(atan2(d[0] * u[1] - d[1] * u[0], d[0] * u[0] + d[1] * u[1]), state[first].q)
        set_angle(state, first, q1)
        place_body(chain, state, first)
        turn_last(chain, last, state, tail, R)
        return
    before = state[first].q, state[first + 1].q, state[last].q
    q1, q2 = nearest_two_of_three(chain, first, before, u, T)
    turn_three(chain, first, state, tail, R, q1, q2)
    off = outside(chain[first], q1) + outside(chain[first + 1], q2) + outside(chain[last], state[last].q)
    if is_zero(off):
        return
    w = rotate_back(F, rotate_back(carrier, column_of_product(R, tail, 0)))
    q1, q2 = first_two_of_three(chain, first, before, u, w, T)
    set_angle(state, last, before[2])
    turn_three(chain, first, state, tail, R, q1, q2)


@compiled
def turn_three(chain, first, state, tail, R, q1, q2):
    """Turn the first two of three joints to angles, and the last one to where the platform is."""
    set_angle(state, first, q1)
    place_body(chain, state, first)
    set_angle(state, first + 1, q2)
    place_body(chain, state, first + 1)
    turn_last(chain, first + 2, state, tail, R)


@compiled
def turn_last(chain, last, state, tail, R):
    """Turn the last joint to where the platform is."""
    x = rotate_back(state[last - 1].R, column_of_product(R, tail, 0))
    x = rotate_back(chain[last].rotation, x)
    set_angle(state, last, near(atan2(x[1], x[0]), state[last].q))


@compiled
def two_ways(chain, first, before, u, T):
    """Two ways to aim the third joint's z at u: first angle, middle one, cosine and sine of the first, of each."""
    F, seed = chain[first + 2].rotation, before[0]
    d = (F[0, 2], F[1, 2], F[2, 2])
    A = T[0, 2] * u[0] + T[1, 2] * u[1]
    B = T[0, 2] * u[1] - T[1, 2] * u[0]
    if A * A + B * B <= 1e-20:  # any first angle does
        c, s = cos(seed), sin(seed)
        after = middle_angle(u, T, d, c, s, before[1])
        return seed, after, c, s, seed, after, c, s
    C = d[2] - T[2, 2] * u[2]
    c1, s1, _ = turn_to(A, B, C, 1.0)
    c2, s2, _ = turn_to(A, B, C, -1.0)
    after_1, after_2 = middle_angle(u, T, d, c1, s1, before[1]), middle_angle(u, T, d, c2, s2, before[1])
    return near(atan2(s1, c1), seed), after_1, c1, s1, near(atan2(s2, c2), seed), after_2, c2, s2


@compiled
def nearest_two_of_three(chain, first, before, u, T):
    """Of two ways to aim the third joint's z at u, the one with the two angles nearer to those before."""
    a, after_a, _, _, b, after_b, _, _ = two_ways(chain, first, before, u, T)
    farther = abs(a - before[0]) + abs(after_a - before[1]) - abs(b - before[0]) - abs(after_b - before[1])
    return select_gt(farther, 0.0, b, a), select_gt(farther, 0.0, after_b, after_a)


@compiled
def first_two_of_three(chain, first, before, u, w, T):
    """Of two ways to aim the third joint's z at u and x at w, the one whose angles are in their ranges, or nearer."""
    last = chain[first + 2]
    a, after_a, c1, s1, b, after_b, c2, s2 = two_ways(chain, first, before, u, T)
    far_a = abs(a - before[0]) + abs(after_a - before[1])
    far_b = abs(b - before[0]) + abs(after_b - before[1])
    far_a += OUTSIDE * (outside(chain[first], a) + outside(chain[first + 1], after_a))
    far_b += OUTSIDE * (outside(chain[first], b) + outside(chain[first + 1], after_b))
    if last.lower > -inf:
        far_a += OUTSIDE * outside(last, last_angle(w, T, last.rotation, c1, s1, after_a, before[2]))
        far_b += OUTSIDE * outside(last, last_angle(w, T, last.rotation, c2, s2, after_b, before[2]))
    return select_gt(far_a, far_b, b, a), select_gt(far_a, far_b, after_b, after_a)


@compiled
def middle_angle(u, T, d, c, s, seed):
    """Angle of the middle joint once the first has turned by (c, s)."""
    t = rotate_back(T, (c * u[0] + s * u[1], c * u[1] - s * u[0], u[2]))
    return near(atan2(d[0] * t[1] - d[1] * t[0], d[0] * t[0] + d[1] * t[1]), seed)


@compiled
def last_angle(w, T, F, c, s, middle, seed):
    """Angle of the last joint once the first has turned by (c, s), and the middle one."""
    t = rotate_back(T, (c * w[0] + s * w[1], c * w[1] - s * w[0], w[2]))
    c, s = cos(middle), sin(middle)
    x = rotate_back(F, (c * t[0] + s * t[1], c * t[1] - s * t[0], t[2]))
    return near(atan2(x[1], x[0]), seed)


@compiled
def outside(joint, q):
    """How far an angle is outside of a joint's range."""
    return max(joint.lower - q, q - joint.upper, 0.0) if joint.lower > -inf else 0.0


@compiled
def column_of_product(R, tail, k):
    """Column k of R tail^T."""
    return rotate(R, (tail[k, 0], tail[k, 1], tail[k, 2]))


@compiled
def read_chain(model, data, R, p):
    """Write the platform's coordinates to the state; returns its distance [m] and angle [rad] from the branch."""
    chain, task, state = model.chain, model.task[0], data.chain
    sliding, spread = task.sliding, task.spread
    for i in range(1, sliding + 1):
        state[i].q = 0.0
        place_body(chain, state, i)
    read_turns(chain, sliding + 1, state, task.tail, R)
    for i in range(sliding + 1, chain.shape[0]):
        place_body(chain, state, i)
    last = state[chain.shape[0] - 1]
    there = rotate(last.R, get(task.tail_point))
    missing = sub(get(p), add(get(last.p), there))
    for k in range(sliding):
        state[1 + k].q = spread[k, 0] * missing[0] + spread[k, 1] * missing[1] + spread[k, 2] * missing[2]
    return chain_error(model, data, R, p)


@compiled
def place_chain(model, data, R, p):
    """Pose of the platform, into R and p, from the coordinates in the state of the branch."""
    chain, state, tail = model.chain, data.chain, model.task[0].tail
    for i in range(1, chain.shape[0]):
        if chain[i].prismatic == 0:
            set_angle(state, i, state[i].q)
        place_body(chain, state, i)
    last = state[chain.shape[0] - 1]
    there = rotate(last.R, get(model.task[0].tail_point))
    put(p, add(get(last.p), there))
    matmul(last.R, tail, R)


@compiled
def place_chains(model, data, coordinates, R, p):
    """`place_chain` for coordinates (n, k) into R (n, 3, 3) and p (n, 3)."""
    chain, state = model.chain, data.chain
    for row in range(coordinates.shape[0]):
        for i in range(1, chain.shape[0]):
            state[i].q = coordinates[row, i - 1]
        place_chain(model, data, R[row], p[row])


@compiled
def chain_error(model, data, R, p):
    """Distance [m] and angle [rad] between the pose that the coordinates give and the pose (R, p)."""
    chain, state, tail = model.chain, data.chain, model.task[0].tail
    for i in range(1, chain.shape[0]):
        place_body(chain, state, i)
    last = state[chain.shape[0] - 1]
    there = rotate(last.R, get(model.task[0].tail_point))
    d = sub(get(p), add(get(last.p), there))
    turn = 0.0
    for r in range(3):
        for k in range(3):
            there = last.R[r, 0] * tail[0, k] + last.R[r, 1] * tail[1, k] + last.R[r, 2] * tail[2, k]
            turn += (there - R[r, k]) ** 2
    return sqrt(dot(d, d)), sqrt(0.5 * turn)


@compiled
def chain_motion(model, data):
    """Rates and accelerations of the coordinates by least squares, zero where singular; uses the end of `data.work`."""
    chain, state, work = model.chain, data.chain, data.work
    platform = data.state[PLATFORM]
    weightless = data.state[BASE].dv  # minus gravity, which the platform's acceleration contains
    n = chain.shape[0] - 1
    at = work.shape[0] - BRANCH_SCRATCH
    J = work[at : at + 6 * n]
    inverse = work[at + 6 * n : at + 12 * n]
    point = get(platform.p)
    for i in range(1, n + 1):
        R = state[i].R
        axis = (R[0, 2], R[1, 2], R[2, 2])
        turning = (0.0, 0.0, 0.0)
        moving = axis
        if chain[i].prismatic == 0:
            turning = axis
            moving = cross(axis, sub(point, get(state[i].p)))
        for r in range(3):
            J[r * n + i - 1] = moving[r]
            J[(3 + r) * n + i - 1] = turning[r]
    condition, dropped = inverse_of_tall(J, 6, n, inverse, work[at + 12 * n :])
    regular = is_regular(condition) and dropped == 0
    for i in range(1, n + 1):
        rate = 0.0
        for r in range(3):
            rate += inverse[(i - 1) * 6 + r] * platform.v[r] + inverse[(i - 1) * 6 + 3 + r] * platform.w[r]
        state[i].qd = rate if regular else 0.0
    # bias: the platform's acceleration while the coordinates do not accelerate
    put(state[0].w, (0.0, 0.0, 0.0))
    put(state[0].dw, (0.0, 0.0, 0.0))
    put(state[0].dv, (0.0, 0.0, 0.0))
    for i in range(1, n + 1):
        bias_acceleration(chain, state, i)
    last = state[n]
    arm = sub(point, get(last.p))
    w = get(last.w)
    dv = add(get(last.dv), add(cross(get(last.dw), arm), cross(w, cross(w, arm))))
    for i in range(1, n + 1):
        value = 0.0
        for r in range(3):
            value += inverse[(i - 1) * 6 + r] * (platform.dv[r] - weightless[r] - dv[r])
            value += inverse[(i - 1) * 6 + 3 + r] * (platform.dw[r] - last.dw[r])
        state[i].qdd = value if regular else 0.0
