# SPDX-License-Identifier: Apache-2.0
"""Whole solves, for one pose and for many: what the Python classes call."""

from math import cos, isfinite, sin, sqrt

from pkm_kinematics.kernels.chain import chain_motion, place_chain, read_chain
from pkm_kinematics.kernels.closed_form import drive, extend, lift_to, read_angles
from pkm_kinematics.kernels.compiled import allocating, compiled
from pkm_kinematics.kernels.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.placement import joint_frame, place_platform
from pkm_kinematics.kernels.positions import (
    CONVERGED,
    INVALID_INPUT,
    JOINT_LIMIT,
    SINGULAR,
    UNREACHABLE,
    solve_positions,
)
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.kernels.solve_motion import NEARLY_SINGULAR
from pkm_kinematics.kernels.vectors import add, axis_z, get, rotate

UNIT = 1e-6  # a quaternion this near to unit length is rounded, one farther away is a mistake
INSIDE = 1e-6  # m and rad: a pose this near to the motion space is rounded into it
LIMIT_SLACK = 1e-9  # m and rad: a joint on its limit is inside


@compiled
def inverse_direct(bodies, closures, blocks, state, rows, work, mode, pose, out):
    """Lean inverse kinematics of a robot whose actuated blocks are all `direct`: one scalar equation per actuator.

    `pose` (7,) must be finite with a unit quaternion; `out` (n_actuated,) gets the actuated joint positions, in working
    mode `mode`, or nearest to the state where that is negative. Returns a status; passive joints are not looked at.
    """
    place_platform(state, pose)
    platform = state[PLATFORM]
    status = CONVERGED
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.actuators == 0:
            continue
        closure = closures[block.closure_start]
        if block.spherical == 1:
            target = rotate(platform.R, axis_z(closure.successor_rotation))
        else:
            target = add(get(platform.p), rotate(platform.R, get(closure.successor_point)))
        i = block.lift
        if i >= 0:
            lift_to(bodies, closures, block, state, target)
            out[bodies[i].actuator] = state[i].q
            continue
        i = block.driver
        if i >= 0:
            branch = -1 if mode < 0 else (mode // block.stride) % block.branches
            sign = 0.0 if branch < 0 else block.home_sign * (1.0 - 2.0 * branch)
            joint_frame(bodies, state, i)
            if drive(bodies, closures, block, state, target, sign) < 0.0:
                status = UNREACHABLE
            read_angles(bodies, state, i, i + 1)
        else:
            i = block.extension
            joint_frame(bodies, state, block.pointing)
            extend(bodies, closures, block, state, target)
        out[bodies[i].actuator] = state[i].q
    return status


@compiled
def inverse_whole(bodies, closures, blocks, state, rows, work, mode, pose, out):
    """Lean inverse kinematics of any robot: as `inverse_direct`, but all passive joints are solved as well."""
    place_platform(state, pose)
    status, _, _ = solve_positions(bodies, closures, blocks, state, rows, work, mode, True)
    for i in range(2, bodies.shape[0]):
        if bodies[i].actuator >= 0:
            out[bodies[i].actuator] = state[i].q
    return status


@compiled
def inverse_direct_many(bodies, closures, blocks, state, rows, work, mode, poses, out, status):
    """`inverse_direct` for poses (n, 7) into out (n, n_actuated) and status (n,)."""
    for k in range(poses.shape[0]):
        status[k] = inverse_direct(bodies, closures, blocks, state, rows, work, mode, poses[k], out[k])


@compiled
def check_pose(pose, clean):
    """Copy a pose (7,) with its quaternion normalised; False where it is not finite or not near unit length."""
    for k in range(7):
        if not isfinite(pose[k]):
            return False
    length = sqrt(pose[3] ** 2 + pose[4] ** 2 + pose[5] ** 2 + pose[6] ** 2)
    if not abs(length - 1.0) < UNIT:
        return False
    for k in range(3):
        clean[k] = pose[k]
        clean[3 + k] = pose[3 + k] / length
    clean[6] = pose[6] / length
    return True


@compiled
def all_finite(values):
    """True where no element is NaN or infinite."""
    finite = True
    for k in range(values.shape[0]):
        finite = finite and isfinite(values[k])
    return finite


@compiled
def first_beyond_limit(bodies, state, first):
    """The first body, from `first` on, whose joint is outside its range, -1 if none."""
    for i in range(first, bodies.shape[0]):
        q = state[i].q
        if q < bodies[i].lower - LIMIT_SLACK or q > bodies[i].upper + LIMIT_SLACK:
            return i
    return -1


@compiled
def solve_pose(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at, pose, mode
):
    """All joint positions of one pose (7,): (status, residual, iterations).

    Poses within rounding of the motion space are moved into it; others, and unusable ones, are INVALID_INPUT.
    """
    platform = state[PLATFORM]
    if not check_pose(pose, work):
        return INVALID_INPUT, 0.0, 0
    place_platform(state, work)
    if chain.shape[0] > 1:
        miss, turn = read_chain(chain, sliding, spread, tail, tail_point, chain_at, platform.R, platform.p)
        if not max(miss, turn) < INSIDE:
            return INVALID_INPUT, max(miss, turn), 0
        if chain.shape[0] < 7:
            place_chain(chain, tail, tail_point, chain_at, platform.R, platform.p)
    status, residual, iterations = solve_positions(bodies, closures, blocks, state, rows, work, mode, True)
    if status == CONVERGED and (
        first_beyond_limit(bodies, state, 2) >= 0 or first_beyond_limit(chain, chain_at, 1) >= 0
    ):
        status = JOINT_LIMIT
    return status, residual, iterations


@compiled
def take_seed(state, chain_at, body_column, chain_column, seed):
    """Put all joints where `seed` (n_joints,) has them, for a solve to begin from."""
    for i in range(2, state.shape[0]):
        me = state[i]
        me.q = seed[body_column[i]]
        me.c = cos(me.q)
        me.s = sin(me.q)
    for i in range(1, chain_at.shape[0]):
        chain_at[i].q = seed[chain_column[i]]


@allocating
def solve_many(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
    body_column, chain_column, poses, twists, accelerations_, seeds, mode,
    q, qd, qdd, status, residual, iterations, singularity,
):  # fmt: skip
    """Positions of all joints for poses (n, 7), and rates where `twists` and `accelerations_` (n, 6) are not empty.

    `seeds` (1 or n, n_joints). Results go to q, qd, qdd (n, n_joints) and status, residual, iterations, singularity
    (n,). Joint positions are zero where there is none.
    """
    for k in range(poses.shape[0]):
        seed = seeds[k if seeds.shape[0] > 1 else 0]
        take_seed(state, chain_at, body_column, chain_column, seed)
        found, residual[k], iterations[k] = solve_pose(
            bodies,
            closures,
            blocks,
            state,
            rows,
            work,
            chain,
            sliding,
            spread,
            tail,
            tail_point,
            chain_at,
            poses[k],
            mode,
        )
        status[k] = found
        singularity[k] = 0.0
        if found != CONVERGED and found != JOINT_LIMIT:
            continue
        for i in range(2, bodies.shape[0]):
            q[k, body_column[i]] = state[i].q
        for i in range(1, chain.shape[0]):
            q[k, chain_column[i]] = chain_at[i].q
        if twists.shape[0] == 0:
            continue
        if not (all_finite(twists[k]) and all_finite(accelerations_[k])):
            status[k] = INVALID_INPUT
            continue
        singularity[k] = invert_blocks(bodies, closures, blocks, state, rows, work)
        if not singularity[k] > NEARLY_SINGULAR:
            status[k] = SINGULAR
            continue
        move_platform(state, twists[k], accelerations_[k])
        velocities(bodies, closures, blocks, state, rows, work)
        accelerations(bodies, closures, blocks, state, rows, work)
        for i in range(2, bodies.shape[0]):
            qd[k, body_column[i]] = state[i].qd
            qdd[k, body_column[i]] = state[i].qdd
        if chain.shape[0] > 1:
            chain_motion(chain, chain_at, state[PLATFORM], state[BASE].dv)
            for i in range(1, chain.shape[0]):
                qd[k, chain_column[i]] = chain_at[i].qd
                qdd[k, chain_column[i]] = chain_at[i].qdd
