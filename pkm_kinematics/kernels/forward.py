# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics by Newton's method on the platform pose: the assembly mode that continues a motion.

Each iteration solves the inverse kinematics of every limb at the present pose and moves the pose by the twist that
the inverse Jacobian asks for. The iterate is always a closed configuration, so that near a solution convergence is
quadratic with the exact Jacobian; steps that would leave the limbs' reach are halved.
"""

from math import atan2, cos, isfinite, sin, sqrt

from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.dense import solve_in_place
from pkm_kinematics.kernels.motion import invert_blocks
from pkm_kinematics.kernels.placement import place_platform
from pkm_kinematics.kernels.positions import CONVERGED, DIVERGED, SINGULAR, UNREACHABLE, solve_positions
from pkm_kinematics.kernels.projection import inverse_jacobian

ITERATIONS = 60
HALVINGS = 30
LAST_STEP = 1e-7  # m plus rad: after a full step this short, the next one would be below rounding
LONGEST_TURN = 0.5  # rad per iteration


@compiled
def shift_pose(pose, twist, scale, out):
    """out = pose moved by `scale` times a twist (6,) of the base frame: origin translated, orientation turned."""
    for r in range(3):
        out[r] = pose[r] + scale * twist[r]
    x, y, z = scale * twist[3], scale * twist[4], scale * twist[5]
    angle = sqrt(x * x + y * y + z * z)
    half = 0.5 * angle
    k = sin(half) / max(angle, 1e-300)  # at rest x, y and z are zero, whatever k is
    w = cos(half)
    x, y, z = k * x, k * y, k * z
    a, b, c, d = pose[3], pose[4], pose[5], pose[6]
    qx = w * a + x * d + y * c - z * b
    qy = w * b + y * d + z * a - x * c
    qz = w * c + z * d + x * b - y * a
    qw = w * d - x * a - y * b - z * c
    length = sqrt(qx * qx + qy * qy + qz * qz + qw * qw)
    out[3], out[4], out[5], out[6] = qx / length, qy / length, qz / length, qw / length


@compiled
def actuator_error(bodies, state, q, error):
    """error (n_actuated,) = wanted minus present actuated joint positions; turning joints by the shortest way."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            me = state[i]
            if bodies[i].prismatic == 1:
                error[a] = q[a] - me.q
            else:
                c = cos(q[a])
                s = sin(q[a])
                error[a] = atan2(s * me.c - c * me.s, c * me.c + s * me.s)


@compiled
def normal_equations(K, subspace, error, A, b):
    """A = (K S)^T (K S) and b = (K S)^T error for rows K (m, 6) and motion space S (6, n); returns n.

    Square systems are kept as they are: A = K S, b = error.
    """
    m = K.shape[0]
    n = subspace.shape[1]
    if m == n:
        for r in range(m):
            for c in range(n):
                A[r, c] = 0.0
                for k in range(6):
                    A[r, c] += K[r, k] * subspace[k, c]
            b[r] = error[r]
        return n
    for r in range(n):
        b[r] = 0.0
        for c in range(n):
            A[r, c] = 0.0
    for a in range(m):
        for r in range(n):
            left = 0.0
            for k in range(6):
                left += K[a, k] * subspace[k, r]
            b[r] += left * error[a]
            for c in range(n):
                right = 0.0
                for k in range(6):
                    right += K[a, k] * subspace[k, c]
                A[r, c] += left * right
    return n


@compiled
def read_actuators(bodies, state, q):
    """Put the actuated joints where q (n_actuated,) has them, for limbs to choose the working mode nearest by."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            state[i].q = q[a]
            state[i].c = cos(q[a])
            state[i].s = sin(q[a])


@compiled
def newton_twist(bodies, closures, blocks, state, rows, work, subspace, K, A, b, twist):
    """The twist (6,) that takes actuator errors b (n_actuated,) to zero, positions solved before; b is overwritten.

    Returns False at a singularity.
    """
    if not invert_blocks(bodies, closures, blocks, state, rows, work) > 1e-12:
        return False
    inverse_jacobian(bodies, closures, blocks, state, rows, work, K)
    n = normal_equations(K, subspace, b, A, twist)  # not into b, which it reads to the end
    for k in range(n):
        b[k] = twist[k]
    for k in range(6):
        twist[k] = 0.0
    if not solve_in_place(A, b, n) > 1e-14:
        return False
    for k in range(6):
        for c in range(n):
            twist[k] += subspace[k, c] * b[c]
    return True


@compiled
def newton_step(bodies, closures, blocks, state, rows, work, subspace, K, A, b, twist, q, pose, out):
    """One step of `forward_newton` in full: `out` (10,) = pose after it (7,), and before it the squares of the actuator
    errors and the largest of them; then the length of the step [m + rad]. Returns a status."""
    read_actuators(bodies, state, q)
    place_platform(state, pose)
    status, _, _ = solve_positions(bodies, closures, blocks, state, rows, work, -1, False)
    if status != CONVERGED:
        return status
    actuator_error(bodies, state, q, b)
    out[7] = 0.0
    out[8] = 0.0
    for a in range(q.shape[0]):
        out[7] += b[a] * b[a]
        out[8] = max(out[8], abs(b[a]))
    if not newton_twist(bodies, closures, blocks, state, rows, work, subspace, K, A, b, twist):
        return SINGULAR
    turn = sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)
    if not turn < LONGEST_TURN:
        return DIVERGED
    out[9] = turn + sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2)
    shift_pose(pose, twist, 1.0, out)
    return CONVERGED


@compiled
def forward_newton(bodies, closures, blocks, state, rows, work, subspace, trial, K, A, b, twist, q, pose):
    """Move `pose` (7,) to the nearest one whose actuated joints stand at `q` (n_actuated,).

    `trial` (7,), K (n_actuated, 6), A (n, n), b (n_actuated,) and twist (6,) are scratch. Returns (status, largest
    joint error, iterations).
    """
    n_act = q.shape[0]
    read_actuators(bodies, state, q)
    place_platform(state, pose)
    status, _, _ = solve_positions(bodies, closures, blocks, state, rows, work, -1, False)
    if status != CONVERGED:
        return UNREACHABLE, 0.0, 0
    actuator_error(bodies, state, q, b)
    worst = 0.0
    for iteration in range(1, ITERATIONS + 1):
        before = 0.0
        for a in range(n_act):
            before += b[a] * b[a]
        if not isfinite(before):
            return DIVERGED, worst, iteration
        if not newton_twist(bodies, closures, blocks, state, rows, work, subspace, K, A, b, twist):
            return SINGULAR, sqrt(before), iteration
        turn = sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)
        step = sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2)
        scale = min(1.0, LONGEST_TURN / turn) if turn > 0.0 else 1.0
        accepted = False
        for _ in range(HALVINGS):
            shift_pose(pose, twist, scale, trial)
            place_platform(state, trial)
            status, _, _ = solve_positions(bodies, closures, blocks, state, rows, work, -1, False)
            if status == CONVERGED:
                actuator_error(bodies, state, q, b)
                after = 0.0
                for a in range(n_act):
                    after += b[a] * b[a]
                if after < before or step + turn < LAST_STEP:
                    accepted = True
                    break
            scale *= 0.5
        if not accepted:
            return DIVERGED, sqrt(before), iteration
        for k in range(7):
            pose[k] = trial[k]
        worst = 0.0
        for a in range(n_act):
            worst = max(worst, abs(b[a]))
        if scale == 1.0 and step + turn < LAST_STEP:
            return CONVERGED, worst, iteration
    return DIVERGED, worst, ITERATIONS
