# SPDX-License-Identifier: Apache-2.0
"""Whole solves, for one pose (7,) and for many: what the Python classes call.

Lean solves take a finite pose with a unit quaternion and write actuated joint positions `out` (n_actuated,) in working
mode `mode`, or nearest to the state where that is negative. Joint positions q and seed are (n_joints,). `keep_seeds`
takes joint positions that close the loops as they are, whichever of the solutions they are.
"""

from math import ceil, isfinite, isnan, nan, sqrt

from pkm_kinematics.kernels.dense import all_finite
from pkm_kinematics.kernels.position.chain import TAU, chain_motion, place_chain, read_chain
from pkm_kinematics.kernels.position.closed_form import (
    drive,
    extend,
    lift_to,
    read_angles,
    target_of,
    turn_from_home,
)
from pkm_kinematics.kernels.position.closures import closed, turned_over
from pkm_kinematics.kernels.position.placement import joint_frame, place_platform, set_angle
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    INVALID_INPUT,
    JOINT_LIMIT,
    SINGULAR,
    UNREACHABLE,
    closes,
    place_block,
    solve_positions,
    write_block_rows,
)
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.projection import inverse_jacobian
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.kernels.compiled import compiled, nan_max

UNIT = 1e-6  # a quaternion this near to unit length is rounded, one farther away is a mistake
INSIDE = 1e-6  # rad, and of the robot's size: a pose this near to the motion space is rounded into it
LIMIT_SLACK = 1e-9  # rad, and of the robot's size: a joint on its limit is inside
FARTHEST = 1e5  # rad, and of the robot's size: beyond, neighbouring numbers are too far apart to close loops with


@compiled
def inverse_direct(model, data, mode, pose, out):
    """Lean inverse kinematics if all actuated blocks are `direct`, passive joints not solved. Returns a status."""
    bodies, closures, blocks, state = model.bodies, model.closures, model.blocks, data.state
    place_platform(state, pose)
    status = CONVERGED
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if block.actuators == 0:
            continue
        target = target_of(closures, block, state)
        i = block.lift
        if i >= 0:
            lift_to(bodies, block, state, target)
            out[bodies[i].actuator] = state[i].q
            continue
        i = block.driver
        if i >= 0:
            branch = -1 if mode < 0 else (mode // block.stride) % block.branches
            sign = 0.0 if branch < 0 else block.home_sign * (1.0 - 2.0 * branch)
            joint_frame(bodies, state, i)
            if drive(bodies, block, state, target, sign) < 0.0:
                status = UNREACHABLE
            read_angles(bodies, state, i, i + 1)
        else:
            i = block.extension
            joint_frame(bodies, state, block.pointing)
            extend(bodies, block, state, target)
        out[bodies[i].actuator] = state[i].q
    return status


@compiled
def inverse_whole(model, data, mode, pose, out):
    """Lean inverse kinematics of any robot: as `inverse_direct`, but all passive joints are solved as well."""
    bodies, state = model.bodies, data.state
    place_platform(state, pose)
    status, _, _ = solve_positions(model, data, mode, True)
    for i in range(2, bodies.shape[0]):
        if bodies[i].actuator >= 0:
            out[bodies[i].actuator] = state[i].q
    return status


@compiled
def check_pose(pose, clean):
    """Copy a pose with its quaternion normalised; False where it is not finite or not near unit length."""
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
def fine(q, body, size):
    """Whether the position of a body's joint is accurate enough as a number to close loops with."""
    return abs(q) < (FARTHEST * size if body.prismatic == 1 else FARTHEST)


@compiled
def usable_seed(model, seed):
    """Whether all joint positions are `fine`."""
    bodies, chain, size = model.bodies, model.chain, model.task[0].size
    usable = True
    for i in range(2, bodies.shape[0]):
        usable = usable and fine(seed[bodies[i].column], bodies[i], size)
    for i in range(1, chain.shape[0]):
        usable = usable and fine(seed[chain[i].column], chain[i], size)
    return usable


@compiled
def first_beyond_limit(bodies, state, first, size):
    """The first body, from `first` on, whose joint is outside its range, -1 if none; `size` of the robot [m]."""
    for i in range(first, bodies.shape[0]):
        q = state[i].q
        slack = LIMIT_SLACK * size if bodies[i].prismatic == 1 else LIMIT_SLACK
        if q < bodies[i].lower - slack or q > bodies[i].upper + slack:
            return i
    return -1


@compiled
def beyond_limits(model, data):
    """Whether a joint of the limbs, or of the platform's branch, is outside its range."""
    size = model.task[0].size
    if first_beyond_limit(model.bodies, data.state, 2, size) >= 0:
        return True
    return first_beyond_limit(model.chain, data.chain, 1, size) >= 0


@compiled
def off_branch(model, data):
    """How far [m, rad] the platform is off its branch, whose positions are written; 0 where by rounding only."""
    platform = data.state[PLATFORM]
    if model.chain.shape[0] < 2:
        return 0.0
    miss, turn = read_chain(model, data, platform.R, platform.p)
    return 0.0 if miss < INSIDE * model.task[0].size and turn < INSIDE else nan_max(miss, turn)


@compiled
def place_within(model, data, pose):
    """Put the platform at a checked pose, rounded into the motion space; returns as `off_branch`."""
    platform = data.state[PLATFORM]
    place_platform(data.state, pose)
    off = off_branch(model, data)
    if off == 0.0 and 1 < model.chain.shape[0] < 7:
        place_chain(model, data, platform.R, platform.p)
    return off


@compiled
def solve_pose(model, data, pose, branch):
    """All joint positions of one pose, which may be rounded into the motion space: (status, residual, iterations)."""
    if not check_pose(pose, data.work):
        return INVALID_INPUT, nan, 0
    off = place_within(model, data, data.work)
    if off != 0.0:
        return INVALID_INPUT, off, 0
    status, residual, iterations = solve_positions(model, data, branch, True)
    if status == CONVERGED and beyond_limits(model, data):
        status = JOINT_LIMIT
    return status, residual, iterations


@compiled
def turns_from_home(model, data, branch, home):
    """Put drivers into the turns that they make on the straight way from `home` (n_joints,); the status with these."""
    bodies, blocks, state = model.bodies, model.blocks, data.state
    for b in range(blocks.shape[0]):
        block = blocks[b]
        if not isnan(block.bend):
            side = (branch // block.stride) % block.branches
            i = block.driver
            state[i].q = turn_from_home(bodies, model.closures, block, state, side, home[bodies[i].column])
    return JOINT_LIMIT if beyond_limits(model, data) else CONVERGED


@compiled
def take_seed(model, data, seed):
    """Put all joints at `seed`, for a solve to begin from."""
    bodies, chain, state = model.bodies, model.chain, data.state
    for i in range(2, bodies.shape[0]):
        set_angle(state, i, seed[bodies[i].column])
    for i in range(1, chain.shape[0]):
        data.chain[i].q = seed[chain[i].column]


@compiled
def read_joints(model, data, q):
    """Write all joint positions to q."""
    for i in range(2, model.bodies.shape[0]):
        q[model.bodies[i].column] = data.state[i].q
    for i in range(1, model.chain.shape[0]):
        q[model.chain[i].column] = data.chain[i].q


@compiled
def read_rates(model, data, qd, qdd):
    """Write all joint velocities and accelerations to qd and qdd (n_joints,)."""
    for i in range(2, model.bodies.shape[0]):
        qd[model.bodies[i].column] = data.state[i].qd
        qdd[model.bodies[i].column] = data.state[i].qdd
    for i in range(1, model.chain.shape[0]):
        qd[model.chain[i].column] = data.chain[i].qd
        qdd[model.chain[i].column] = data.chain[i].qdd


@compiled
def solve_many(model, data, choice, poses, twists, accelerations_, out):
    """Joint positions for poses (n, 7) into `out`, a `Solved`; rates too unless `twists`, `accelerations_` are empty.

    These are (n, 6). Rows without a configuration stay as they are, and so do rates and Jacobians that are not
    determined; the status is that of the positions alone. Rows whose seed is not usable are INVALID_INPUT.
    """
    shared = choice.seeds.shape[0] == 1
    usable = shared and usable_seed(model, choice.seeds[0])
    moving, driven = twists.shape[0] > 0, out.jacobian.shape[1] > 0
    for k in range(poses.shape[0]):
        seed = choice.seeds[0 if shared else k]
        if not shared:
            usable = usable_seed(model, seed)
        if not usable:
            out.status[k], out.residual[k], out.iterations[k], out.regularity[k] = INVALID_INPUT, nan, 0, 0.0
            continue
        take_seed(model, data, seed)
        found, out.residual[k], out.iterations[k] = solve_pose(model, data, poses[k], choice.branch)
        if choice.from_home and closes(found):
            found = turns_from_home(model, data, choice.branch, seed)
        out.status[k] = found
        out.regularity[k] = 0.0
        if not closes(found):
            continue
        read_joints(model, data, out.q[k])
        if not (moving or driven):
            continue
        out.regularity[k] = invert_blocks(model, data)
        if not is_regular(out.regularity[k]):
            continue
        if driven:
            inverse_jacobian(model, data, out.jacobian[k])
        if moving and all_finite(twists[k]) and all_finite(accelerations_[k]):
            move_platform(data.state, twists[k], accelerations_[k])
            velocities(model, data)
            accelerations(model, data)
            if model.chain.shape[0] > 1:
                chain_motion(model, data)
            read_rates(model, data, out.qd[k], out.qdd[k])


@compiled
def wrap_into_limits(lower, upper, turning, status, q):
    """Turn joints q (n, n_joints) of rows with JOINT_LIMIT into their ranges, where one more turn fits: then CONVERGED.

    The shortest turn from home need not be the one that a limb took: it comes to another branch stretched or folded.
    """
    for k in range(q.shape[0]):
        if status[k] != JOINT_LIMIT:
            continue
        inside = True
        for j in range(q.shape[1]):
            at, turned = q[k, j], q[k, j]
            if at < lower[j]:
                turned = at + TAU * ceil((lower[j] - at) / TAU)
            elif at > upper[j]:
                turned = at - TAU * ceil((at - upper[j]) / TAU)
            else:
                continue
            if turning[j] and lower[j] <= turned <= upper[j]:
                q[k, j] = turned
            else:
                inside = False
        if inside:
            status[k] = CONVERGED


SAME = 1e-6  # rad, and of the robot's size: configurations nearer than this are one


@compiled
def gap_as_placed(model, data):
    """Largest gap [m] of the loops at the joints and platform in the state; -1 where a loop is open."""
    blocks, state = model.blocks, data.state
    worst = 0.0
    for b in range(blocks.shape[0]):
        block = blocks[b]
        place_block(model.bodies, block, state)
        residual = write_block_rows(model.closures, block, state, data.rows)
        if not closed(block, residual) or turned_over(model.closures, block, state):
            return -1.0
        worst = nan_max(worst, residual)
    return worst


@compiled
def is_away(model, seed, q):
    """Whether joint positions q (n_joints,) are another configuration of the limbs than `seed` (n_joints,), or none."""
    bodies, size = model.bodies, model.task[0].size
    for i in range(2, bodies.shape[0]):
        at = bodies[i].column
        if not abs(q[at] - seed[at]) <= (SAME * size if bodies[i].prismatic == 1 else SAME):
            return True
    return False


@compiled
def keep_seeds(model, data, choice, poses, out):
    """Put seeds that close the loops in the place of other solutions in `out`; SINGULAR where a limb is loose."""
    shared = choice.seeds.shape[0] == 1
    for k in range(poses.shape[0]):
        seed = choice.seeds[0 if shared else k]
        if not (is_away(model, seed, out.q[k]) and usable_seed(model, seed) and check_pose(poses[k], data.work)):
            continue
        take_seed(model, data, seed)
        if place_within(model, data, data.work) != 0.0:
            continue
        gap = gap_as_placed(model, data)
        if gap < 0.0:
            continue
        out.residual[k], out.iterations[k] = gap, 0
        read_joints(model, data, out.q[k])
        beyond = beyond_limits(model, data)
        out.status[k] = JOINT_LIMIT if beyond else CONVERGED
        if not is_regular(invert_blocks(model, data)):
            out.status[k] = SINGULAR
