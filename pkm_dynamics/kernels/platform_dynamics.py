# SPDX-License-Identifier: Apache-2.0
"""Inverse and direct dynamics in the platform's motion space S, with its velocity u there.

    K_a^T tau = K^T h - S^T w,   (K^T M K) ud = K_a^T tau + S^T w - K^T h,   acceleration = S ud + bias

w is an external wrench, h inertia, weight and friction, in the second equation at ud = 0 (Briot and Khalil:
`M_rob Vdot + c = J_inv^T tau`; Müller, section 6.5). `motion` (25,): pose (7), twist (6), acceleration (6), external
wrench (6), base axes; finite, with a unit quaternion, inside the motion space. Of the direct dynamics the acceleration
in it is the bias, that of a constant u: zero in a constant motion space. `effort` (m,) of the actuators, `out` (6,) of
the platform; `branch` as in `solve_positions`. Limbs solved by iteration are warm-started by the `carried_` kernels, in
the working mode of the call before; DIVERGED where they cannot be tracked from the last pose.

Steps `dt` [s] in platform coordinates (Müller, section 8.1) close the loops by the inverse kinematics, without drift;
the motion space must be constant.
"""

from pkm_dynamics.kernels.mass_matrix import mass_matrix, project_platform
from pkm_dynamics.kernels.wrenches import add_springs, limb_wrenches, platform_wrench, project
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.dense import copy, multiply, solve_positive
from pkm_kinematics.kernels.path.carry_on import approach, arrive
from pkm_kinematics.kernels.path.fixed_steps import set_off, settle
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, DIVERGED, SINGULAR, place_block, write_block_rows
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, solve_motion, velocities
from pkm_kinematics.kernels.rates.projection import drive_rates, inverse_jacobian, joint_columns
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import factorise, is_regular, least_norm, make_uniform, solve_three, weigh_drives
from pkm_kinematics.kernels.vectors import get
from pkm_runtime.kernels.binding import ANOTHER_BRANCH, call_code
from pkm_runtime.kernels.compiled import compiled


@compiled
def distribute(model, K, inverse, weights, b, effort):
    """Efforts with K^T effort = b for K (m, n), of minimum norm for m > n; returns the reciprocal condition of K.

    If not regular (type 2 singularity), the efforts are unchanged. K and b are overwritten; `inverse` (n, n) and
    `weights` (n,) are scratch.
    """
    m, n = K.shape
    make_uniform(model, K, b)
    condition = solve_three(K, b, effort) if m == 3 and n == 3 else 0.0
    if not is_regular(condition):
        condition = factorise(K, m, n, inverse, weights)
        if is_regular(condition):
            least_norm(K, m, n, inverse, weights, b, effort)
    if is_regular(condition):
        weigh_drives(model, m == n, effort)
    return condition


@compiled
def task_force_here(model, data, external, out):
    """Force `out` (n,) in the motion space that makes the motion in the state, whatever the drives."""
    limb_wrenches(model.bodies, data.state)
    platform_wrench(model.bodies, data.state, external)
    add_springs(model, data.state)
    project(model, data)
    platform = data.state[PLATFORM]
    project_platform(model.subspace, get(platform.force), get(platform.torque), out)


@compiled
def efforts_here(model, data, external, effort):
    """Efforts for the solved motion in the state. Returns a status and the reciprocal condition of the drives."""
    subspace, system = model.subspace, data.system
    m, n = effort.shape[0], subspace.shape[1]
    K = system[0, :m, :n]
    J = system[2, :m, :6]
    b = system[3, 0]
    inverse_jacobian(model, data, J)
    drive_rates(J, subspace, K)
    task_force_here(model, data, external, b)
    condition = distribute(model, K, system[1, :n, :n], system[3, 1], b, effort)
    return (CONVERGED if is_regular(condition) else SINGULAR), condition


@compiled
def conditioned_inverse_dynamics(model, data, branch, motion, effort):
    """`inverse_dynamics` that also returns the reciprocal condition of the drives' Jacobian, 0 without a solution."""
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status, 0.0
    return efforts_here(model, data, motion[19:], effort)


@compiled
def inverse_dynamics(model, data, branch, motion, effort):
    """Lean inverse dynamics, inverse kinematics included. Returns a status."""
    status, _ = conditioned_inverse_dynamics(model, data, branch, motion, effort)
    return status


@compiled
def add_actuators(bodies, state, effort, b):
    """b (n,) += K_a^T effort, with K in the columns of the state."""
    for i in range(2, bodies.shape[0]):
        a = bodies[i].actuator
        if a >= 0:
            for c in range(b.shape[0]):
                b[c] += state[i].column[c] * effort[a]


@compiled
def acceleration_here(model, data, external, bias, effort, out):
    """Acceleration at the motion in the state; leaves ud in `system[3, 0]`, K in the columns. Returns a status."""
    bodies, subspace, state, system = model.bodies, model.subspace, data.state, data.system
    n = subspace.shape[1]
    M = system[1, :n, :n]
    b = system[3, 0, :n]
    joint_columns(model, data, system[2])
    task_force_here(model, data, external, b)
    for c in range(n):
        b[c] = -b[c]
    add_actuators(bodies, state, effort, b)
    mass_matrix(bodies, state, subspace, M)
    if not solve_positive(M, b, n):
        return SINGULAR
    multiply(subspace, b, out)
    for r in range(6):
        out[r] += bias[r]
    return CONVERGED


@compiled
def direct_dynamics(model, data, branch, motion, effort, out):
    """Lean direct dynamics, inverse kinematics included. Returns a status."""
    status = solve_motion(model, data, branch, motion)
    if status != CONVERGED:
        return status
    return acceleration_here(model, data, motion[19:], motion[13:], effort, out)


@compiled
def advance(motion, acceleration, dt):
    """Advance pose and twist in `motion` by a semi-implicit Euler step under an acceleration (6,)."""
    for r in range(6):
        motion[7 + r] += dt * acceleration[r]
    shift_pose(motion, motion[7:13], dt, motion)


@compiled
def semi_implicit_step(model, data, branch, dt, motion, effort, out):
    """`advance` under efforts (m,); `out` (6,) gets the acceleration. Returns a status."""
    status = direct_dynamics(model, data, branch, motion, effort, out)
    if status != CONVERGED:
        return status
    advance(motion, out, dt)
    return CONVERGED


@compiled
def carried_inverse_dynamics(model, data, branch, motion, effort):
    """Like `inverse_dynamics`; DIVERGED where a limb cannot be tracked from the last pose."""
    if not approach(model, data, branch, motion):
        return DIVERGED
    return arrive(model, data, motion, inverse_dynamics(model, data, branch, motion, effort))


@compiled
def carried_direct_dynamics(model, data, branch, motion, effort, out):
    """Like `direct_dynamics`; DIVERGED where a limb cannot be tracked from the last pose."""
    if not approach(model, data, branch, motion):
        return DIVERGED
    return arrive(model, data, motion, direct_dynamics(model, data, branch, motion, effort, out))


@compiled
def carried_step(model, data, branch, dt, motion, effort, out):
    """Like `semi_implicit_step`, by `carried_direct_dynamics`."""
    status = carried_direct_dynamics(model, data, branch, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status


@compiled
def place_joints(model, data, pose, q):
    """Place the platform and all bodies by positions q (n_bodies,), loops left open; the blocks' regularity and gap."""
    bodies, closures, blocks, state, rows = model.bodies, model.closures, model.blocks, data.state, data.rows
    place_platform(state, pose)
    gap = 0.0
    for i in range(2, bodies.shape[0]):
        state[i].q = q[i]
    for b in range(blocks.shape[0]):
        place_block(bodies, blocks[b], state)
        gap = max(gap, write_block_rows(closures, blocks[b], state, rows))
    return invert_blocks(model, data), gap


@compiled
def move_all(model, data, twist, acceleration):
    """Velocities and accelerations of all bodies for the platform's twist and acceleration (6,), blocks inverted."""
    state = data.state
    move_platform(state, twist, acceleration)
    velocities(model, data)
    accelerations(model, data)


# By straight-line code of the robot; where that has no result, by the kernels above.


@compiled
def straight_inverse(code, results, motion, effort):
    """Efforts (m,) for a motion (25,); `results` (m + 1,) is scratch."""
    status = call_code(code, motion, results)
    if status == CONVERGED:
        copy(results, effort)
    return status


@compiled
def straight_direct(code, motion, effort, out):
    """Platform acceleration (6,) for a motion (25,) and efforts (m,)."""
    return call_code(code, motion, effort, out)


@compiled
def straight_step(code, dt, motion, effort, out):
    """Like `semi_implicit_step`, by the code of `straight_direct`."""
    status = call_code(code, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status


@compiled
def carried_straight_inverse(code, model, data, start, results, motion, effort):
    """`straight_inverse` with iterated limbs, from where they are in the data; `start` (2 n,) is scratch too."""
    if not set_off(model, data, motion, start):
        return ANOTHER_BRANCH
    status = call_code(code, motion, start, results)
    if status == CONVERGED:
        copy(results, effort)
        settle(model, data, motion, results[effort.shape[0] + 1 :])
    return status


@compiled
def carried_straight_direct(code, model, data, start, results, motion, effort, out):
    """`straight_direct` with iterated limbs; `results` (6 + 2 n,)."""
    if not set_off(model, data, motion, start):
        return ANOTHER_BRANCH
    status = call_code(code, motion, effort, start, results)
    if status == CONVERGED:
        copy(results, out)
        settle(model, data, motion, results[6:])
    return status


@compiled
def carried_straight_step(code, model, data, start, results, dt, motion, effort, out):
    """Like `semi_implicit_step`, by `carried_straight_direct`."""
    status = carried_straight_direct(code, model, data, start, results, motion, effort, out)
    if status == CONVERGED:
        advance(motion, out, dt)
    return status
