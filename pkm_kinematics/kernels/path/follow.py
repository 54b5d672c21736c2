# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics that stays in the assembly mode it starts in: along the path of a straight actuator motion.

From a closed configuration the actuators move on a straight line to their goal, and the platform follows. That path is
unique until it meets a type 2 singularity, so that its end is *the* pose that continues the start. It is followed in
steps; a step is Newton's method from the end of the last, and counts only where every correction is at most a fixed
part of the one before. By the theorem of Newton and Kantorovich corrections shrink by half or better where the start
lies in the neighbourhood in which the solution is unique; as the ratio measures the theorem's constant from below
(Deuflhard, Newton Methods for Nonlinear Problems, 2011, sections 2.1 and 5.1), a quarter is asked for. A step that
fails is tried at half the length; where steps get too short, the path has met a singularity. Corrections along a
symmetric path do not see a singularity across it: each step must also keep the orientation of the Jacobian (the sign of
its determinant where it is square), and be no longer than the platform is large. Most calls are one step.

Newton's method is on the platform pose: every limb is solved at the present pose, which moves by the twist that the
inverse Jacobian asks for, so that the iterate is always a closed configuration.

pose and start are (7,), q (n_actuated,), seed and joints (n_joints,).
"""

from math import atan2, cos, inf, isfinite, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.dense import copy, determinant_sign, gram, multiply
from pkm_kinematics.kernels.model_and_data import FACTORS, NEAREST_BRANCH, VECTORS
from pkm_kinematics.kernels.position.placement import place_platform, set_angle
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    INVALID_INPUT,
    JOINT_LIMIT,
    SINGULAR,
    UNREACHABLE,
    solve_positions,
)
from pkm_kinematics.kernels.position.solve_poses import (
    beyond_limits,
    check_pose,
    fine,
    off_branch,
    read_joints,
    take_seed,
)
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import drive_rates, factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.regularity import is_regular, nearest, orientation, weigh_drives
from pkm_runtime.kernels.compiled import compiled

LONGEST_TURN = 0.5  # rad per iteration

RIGHT, TWIST, TRIAL, GOAL, SPAN = range(5)  # vectors of `Data.system` in use on paths


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
def read_actuators(bodies, state, q):
    """Put the actuated joints at q, by which limbs choose the nearest working mode."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            set_angle(state, i, q[a])


@compiled
def correction(model, data, q):
    """Sign of the Jacobian's determinant (1 if not square, 0 at a singularity), and largest error of an actuated joint.

    `data.system` gets the inverse Jacobian as its first matrix, and the twist (6,) of Newton's method as the row TWIST
    of its vectors. Positions must be solved.
    """
    S, system = model.subspace, data.system
    m, n = q.shape[0], S.shape[1]
    K, A, inverse, vectors = system[0, :m], system[1, :m, :n], system[4, :n, :n], system[VECTORS]
    right, twist, weights, per_speed = vectors[RIGHT], vectors[TWIST], system[FACTORS, 0], system[FACTORS, 1]
    if not is_regular(invert_blocks(model, data)):
        return 0.0, 0.0
    inverse_jacobian(model, data, K)
    actuator_error(model.bodies, data.state, q, right)
    worst = 0.0
    for a in range(m):
        worst = max(worst, abs(right[a]))
    weigh_drives(model, m == n, right)
    if not is_regular(factorise_drives(model, K, A, inverse, weights, per_speed)):
        return 0.0, worst
    sign = 1.0 if m > n else orientation(inverse, n)
    nearest(A, m, n, inverse, weights, right, vectors[TRIAL])
    for c in range(n):
        vectors[TRIAL, c] *= per_speed[c]
    multiply(S, vectors[TRIAL], twist[:6])
    return sign, worst


CONTRACTION = 0.25  # largest ratio of one correction to the one before
CORRECTIONS = 12  # per step: with that ratio, enough for any accuracy
EXACT = 1e-13  # of the robot's size: what further corrections would change
ROUNDED = 1e-9  # of the robot's size: corrections that no longer shrink are rounding errors below this, else singular
SHORTEST = 1e-4  # of the way: a path that must be followed in shorter steps than this has met a singularity
STEPS = 200  # tried at most


class PoseRows(NamedTuple):
    """Poses of n sets of actuated joint positions; NaN where the status says that there is none."""

    pose: Any  # (n, 7)
    joints: Any  # (n, n_joints), of the whole graph (n, n_bodies)
    status: Any  # (n,)
    residual: Any  # (n,) largest error of an actuated joint, rad or m; of the whole graph, largest gap of a closure
    iterations: Any  # (n,)


STEP_BEGAN, PATH_BEGAN = 0, 3  # where joints are kept as they were


@compiled
def keep(state, at):
    """Save the joint positions of the limbs as those `at` which a step or a path began."""
    for i in range(2, state.shape[0]):
        me = state[i]
        me.kept[at], me.kept[at + 1], me.kept[at + 2] = me.q, me.c, me.s


@compiled
def put_back(state, at):
    """Undo what happened to the joint positions since `keep`."""
    for i in range(2, state.shape[0]):
        me = state[i]
        me.q, me.c, me.s = me.kept[at], me.kept[at + 1], me.kept[at + 2]


@compiled
def longest_part(bodies, span):
    """Largest distance that an actuator has to go, and the part of the way, a power of two, to go in one step."""
    longest = 0.0
    cap = 1.0
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            longest = max(longest, abs(span[a]))
            while bodies[i].prismatic == 0 and cap * abs(span[a]) > LONGEST_TURN:
                cap *= 0.5
    return longest, cap


@compiled
def settled(step, previous, size):
    """Whether corrections are finished, by the square of the last two lengths' ratio (Deuflhard, section 2.1.1)."""
    if step > CONTRACTION * previous:  # no longer shrinking, which `contracts` let pass
        return True
    return step * ((step / previous) ** 2 if isfinite(previous) else 1e-2) < EXACT * size


@compiled
def contracts(step, previous, size):
    """Whether a correction follows the one before as the theorem demands, or is a mere rounding error."""
    return step <= CONTRACTION * previous or step < ROUNDED * size


@compiled
def step_by_pose(model, data, goal, pose):
    """Newton's method on `pose`, held by the limbs in the state, to `goal`: (followed, largest error, iterations)."""
    state, size = data.state, model.task[0].length
    m, n = goal.shape[0], model.subspace.shape[1]
    square = m == n
    K, rates, first, product = data.system[0, :m], data.system[1, :m, :n], data.system[2, :m, :n], data.system[4]
    twist, trial, left = data.system[VECTORS, TWIST], data.system[VECTORS, TRIAL], data.system[VECTORS, RIGHT]
    side = 0.0
    previous = inf
    for iteration in range(1, CORRECTIONS + 1):
        sign, _ = correction(model, data, goal)
        if sign == 0.0:
            return False, 0.0, iteration
        if iteration == 1:
            side = sign
            if not square:
                drive_rates(K, model.subspace, first)
        turn = sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)
        step = sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2 + (size * turn) ** 2)
        if not (step < size and turn < LONGEST_TURN and contracts(step, previous, size)):  # false for NaN
            return False, 0.0, iteration
        shift_pose(pose, twist, 1.0, trial)
        place_platform(state, trial)
        status, _, _ = solve_positions(model, data, NEAREST_BRANCH, False)
        if status != CONVERGED:
            return False, 0.0, iteration
        copy(trial, pose)
        if settled(step, previous, size):
            actuator_error(model.bodies, state, goal, left)
            worst = 0.0
            for a in range(m):
                worst = max(worst, abs(left[a]))
            if not square:
                drive_rates(K, model.subspace, rates)
                gram(first, rates, product)
            same = sign == side if square else determinant_sign(product, n) > 0.0
            return same, worst, iteration
        previous = step
    return False, 0.0, CORRECTIONS


@compiled
def follow_pose(model, data, q, pose):
    """Move `pose` to where the actuated joints are at q: (status, error, iterations), in the working mode nearest by.

    UNREACHABLE where the limbs do not reach the pose to start from; SINGULAR where the path meets a singularity: `pose`
    is then near it, and `error` how far actuated joints still are from q.
    """
    bodies, state = model.bodies, data.state
    m = q.shape[0]
    vectors = data.system[VECTORS]
    span, goal = vectors[SPAN, :m], vectors[GOAL, :m]
    place_platform(state, pose)
    status, _, _ = solve_positions(model, data, NEAREST_BRANCH, False)
    if status != CONVERGED:
        return UNREACHABLE, 0.0, 0
    actuator_error(bodies, state, q, span)
    longest, cap = longest_part(bodies, span)
    done = 0.0
    part = cap
    iterations = 0
    for _ in range(STEPS):
        keep(state, STEP_BEGAN)
        x, y, z, a, b, c, d = pose[0], pose[1], pose[2], pose[3], pose[4], pose[5], pose[6]
        left = 1.0 - done - part
        for k in range(m):
            goal[k] = q[k] - left * span[k]
        followed, error, count = step_by_pose(model, data, goal, pose)
        iterations += count
        if followed:
            if left <= 0.0:
                return CONVERGED, error, iterations
            done += part
            part = min(2.0 * part, cap, 1.0 - done)
            continue
        part *= 0.5
        put_back(state, STEP_BEGAN)
        pose[0], pose[1], pose[2], pose[3], pose[4], pose[5], pose[6] = x, y, z, a, b, c, d
        if part < SHORTEST:
            break
        place_platform(state, pose)
        solve_positions(model, data, NEAREST_BRANCH, False)
    return SINGULAR, (1.0 - done) * longest, iterations


@compiled
def track_pose(model, data, last, q, pose):
    """As `follow_pose`, near the actuated joints `last`, which move along to q; unless CONVERGED, everything stays."""
    state = data.state
    read_actuators(model.bodies, state, last)
    keep(state, PATH_BEGAN)
    x, y, z, a, b, c, d = pose[0], pose[1], pose[2], pose[3], pose[4], pose[5], pose[6]
    status, error, iterations = follow_pose(model, data, q, pose)
    if status == CONVERGED:
        copy(q, last)
    else:
        pose[0], pose[1], pose[2], pose[3], pose[4], pose[5], pose[6] = x, y, z, a, b, c, d
        put_back(state, PATH_BEGAN)
    return status, error, iterations


@compiled
def read_angles_at(model, data, q):
    """Write q of the limbs' joints, actuated ones from `q`: solvers on paths update sine and cosine alone."""
    bodies, state = model.bodies, data.state
    for i in range(2, bodies.shape[0]):
        if bodies[i].actuator >= 0:
            state[i].q = q[bodies[i].actuator]
        elif bodies[i].prismatic == 0:
            state[i].q = atan2(state[i].s, state[i].c)


@compiled
def usable_positions(model, q):
    """Whether all actuated joint positions are `fine`."""
    for i in range(2, model.bodies.shape[0]):
        body = model.bodies[i]
        if body.actuator >= 0 and not fine(q[body.actuator], body, model.task[0].size):
            return False
    return True


@compiled
def status_of_end(model, data):
    """Status of the closed configuration in the state: JOINT_LIMIT, or off the platform's branch (DIVERGED)."""
    if off_branch(model, data) != 0.0:
        return DIVERGED
    return JOINT_LIMIT if beyond_limits(model, data) else CONVERGED


@compiled
def follow_row(model, data, seed, at_q, q, start, solved, pose, joints):
    """`follow_pose` from a pose `start` that need not be usable, into `pose` and `joints`: (status, error, iterations).

    `seed` are joints near those at the start, the actuated ones replaced by q with `at_q`. With `solved` the joints
    close the loops, and JOINT_LIMIT is told; else a last solve begins from them.
    """
    if not (check_pose(start, pose) and usable_positions(model, q)):
        return INVALID_INPUT, np.nan, 0
    take_seed(model, data, seed)
    if at_q:
        read_actuators(model.bodies, data.state, q)
    status, error, iterations = follow_pose(model, data, q, pose)
    read_angles_at(model, data, q)
    if solved and status == CONVERGED:
        status = status_of_end(model, data)
    read_joints(model, data, joints)
    return status, error, iterations


@compiled
def follow_poses(model, data, seeds, at_q, q, starts, solved, found):
    """`follow_row` from starts (1 or n, 7), `seeds` (n, n_joints), to q (n, n_actuated); counts rows not CONVERGED."""
    left = 0
    for k in range(q.shape[0]):
        start = starts[k if starts.shape[0] > 1 else 0]
        found.status[k], found.residual[k], found.iterations[k] = follow_row(
            model, data, seeds[k], at_q, q[k], start, solved, found.pose[k], found.joints[k]
        )
        if found.status[k] != CONVERGED:
            left += 1
    return left
