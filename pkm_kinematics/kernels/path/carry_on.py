# SPDX-License-Identifier: Apache-2.0
"""Limbs tracked as the platform goes a straight path: see `pkm_kinematics.solve.engine`.

A pose is (7,), a displacement (6,) a shift [m] and a rotation vector [rad], joint positions are (n_joints,).
"""

from math import atan2, cos, inf, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

from pkm_kinematics.kernels.compiled_rotations import shift_pose, write_displacement
from pkm_kinematics.kernels.dense import copy, determinant_sign, gram
from pkm_kinematics.kernels.model_and_data import SLOWEST, VECTORS
from pkm_kinematics.kernels.path.follow import CONTRACTION, PATH_BEGAN, STEP_BEGAN, TRIAL, keep, put_back
from pkm_kinematics.kernels.position.closures import block_jacobian
from pkm_kinematics.kernels.position.placement import place_platform, set_angle
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    DIVERGED,
    INVALID_INPUT,
    NOT_CONNECTED,
    UNREACHABLE,
    closes,
    solve_positions,
)
from pkm_kinematics.kernels.position.solve_poses import (
    check_pose,
    inverse_whole,
    read_joints,
    solve_pose,
    take_seed,
    turns_from_home,
)
from pkm_kinematics.kernels.records import NEWTON
from pkm_runtime.kernels.compiled import allocating, compiled

STEP = 0.15  # rad, and of the robot's size: longest step of the platform
SHORTEST = 0.02  # of a step: where this fails the way is blocked, but for limbs whose blocks are singular by themselves
SHORT = 0.1  # of a step: one as short as this needs no steps before it
FAR = 1000.0  # of the robot's size: no limb is tracked farther from home, which would take endless steps
JUMP = 0.6  # rad: a limb joint that turns farther in one step may have changed its solution
NEAR = 0.5  # rad, and of the robot's size: poses farther from home are not tried without steps
BEYOND = 0.05  # rad or m: by so much a mode within the joints' ranges may be farther from drives than one outside
LEFT = -1  # status of what is not solved without steps
LAST, PATH = 5, 6  # vectors of `Data.system` in use by lean calls: the last pose, the displacement from there


class StraightPath(NamedTuple):
    """How limbs are tracked: where paths begin, their steps, and what counts as a jump."""

    home: Any  # (7,) pose
    turning: Any  # (k,) bodies that are found by iteration and turn
    size: float  # of the robot, m
    step: float  # rad, and of `size`
    jump: float  # rad


class AtHome(NamedTuple):
    """A configuration at home, and how the joints of iterated limbs leave it."""

    pose: Any  # (7,)
    joints: Any  # (n_joints,)
    sides: Any  # (n_blocks,) of `set_out`
    tall: Any  # Jacobians of blocks with more equations than joints, as `Data.work` keeps them
    rates: Any  # (n_joints, 27) per displacement (6,) and per product of two of its numbers
    exact: float  # largest gap [m] of what needs no other way of solving
    from_home: bool  # as `Choice` has it


class LimbGroups(NamedTuple):
    """Limbs one after the other: columns of their joints, and their actuators, each group up to `last`."""

    columns: Any  # of joints
    actuators: Any  # by number
    driven: Any  # columns of these
    last: Any  # (n_limbs,) end of each limb in `columns`
    last_driven: Any  # and in `actuators`
    turning: Any  # (n_actuated,) which actuators turn
    lower: Any  # (n_joints,) ends of the joints' ranges
    upper: Any


@allocating
def carry_on(model, data, path, poses, branch, open_on_the_path, out, paths, lengths, done):
    """Solve the limbs in steps from home towards poses (n, 7), as far as whole steps lead; counts those held up.

    On entry the joint positions of `out`, a `Solved`, are those at home; on return those at the part `done` (n,) of the
    path, -1 where the pose is not usable, or FAR from home; the rest is of its end, NOT_CONNECTED before. A step does
    not count where a limb does not reach (unless its loops may be `open_on_the_path`, as little as they can), or a
    joint turns by more than `path.jump`. Also written are the displacements `paths` (n, 6), and their `lengths` (n,).
    """
    bodies, home, far, divided = model.bodies, path.home, FAR * path.size, model.task[0].divided == 1
    q, pose, at = out.q, np.empty(7), np.empty(7)
    held_up = 0
    for k in range(q.shape[0]):
        out.status[k] = NOT_CONNECTED  # until it is there
        if not check_pose(poses[k], pose):
            done[k] = -1.0
            continue
        write_displacement(home, pose, paths[k])
        if max(abs(paths[k, 0]), abs(paths[k, 1]), abs(paths[k, 2])) > far:
            done[k] = -1.0
            continue
        lengths[k] = step_length(paths[k], path.size)
        take_seed(model, data, q[k])
        set_out(model, data, home, branch)
        take_seed(model, data, q[k])
        done[k] = 0.0
        part = 1.0
        while done[k] < 1.0:
            end = min(done[k] + part * path.step / lengths[k], 1.0)
            if end < 1.0:
                shift_pose(home, paths[k], end, at)
            else:
                copy(pose, at)
            data.system[VECTORS, SLOWEST, 0] = 0.0
            status, residual, iterations = solve_pose(model, data, at, branch)
            followed = closes(status) or (open_on_the_path and status != INVALID_INPUT)
            for i in path.turning:
                followed = followed and abs(data.state[i].q - q[k, bodies[i].column]) <= path.jump
            shortest = part < SHORTEST
            if followed and (open_on_the_path or follows(model, data) or (shortest and divided)):
                read_joints(model, data, q[k])
                keep_tall(model, data)
                done[k] = end
                if end >= 1.0:
                    out.status[k], out.residual[k], out.iterations[k] = status, residual, iterations
                part = min(2.0 * part, 1.0)
            elif followed and not shortest:
                part *= 0.5
                take_seed(model, data, q[k])
            else:
                held_up += 1
                break
    return held_up


@compiled
def solve_near_home(model, data, start, poses, branch, out):
    """Fill `out`, a `Solved` without rates, for poses (n, 7) near home; the others get the status LEFT. Counts them."""
    # Limbs are solved from where their joints get, to second order, as the platform goes straight there. If Newton's
    # method goes on as in `follow.py`, and no joint turned far, they end in the configuration to which they follow.
    bodies, blocks, state, path = model.bodies, model.blocks, data.state, data.system[VECTORS, PATH]
    slowest, left = data.system[VECTORS, SLOWEST], 0
    for i in range(2, bodies.shape[0]):
        set_angle(state, i, start.joints[bodies[i].column])
    for b in range(blocks.shape[0]):
        if blocks[b].solver == NEWTON:
            state[blocks[b].start].side = start.sides[b]
    if blocks.shape[0] > 0:
        at = blocks[0].side_at
        copy(start.tall, data.work[at : at + start.tall.shape[0]])
    for k in range(poses.shape[0]):
        out.status[k] = LEFT
        left += 1
        if not check_pose(poses[k], data.work):
            continue
        write_displacement(start.pose, data.work, path)
        if step_length(path, model.task[0].size) > NEAR:
            continue
        for i in range(2, bodies.shape[0]):
            state[i].q = start.joints[bodies[i].column]
        for b in range(blocks.shape[0]):
            if blocks[b].solver == NEWTON:
                for i in range(blocks[b].start, blocks[b].start + blocks[b].count):
                    state[i].q += way_of(start.rates[bodies[i].column], path)
        for i in range(1, model.chain.shape[0]):
            data.chain[i].q = start.joints[model.chain[i].column]
        slowest[0] = 0.0
        status, residual, iterations = solve_pose(model, data, poses[k], branch)
        if not (closes(status) and residual <= start.exact and follows(model, data)):
            continue
        if turned_far(model, data, start.joints):
            continue
        if start.from_home:
            status = turns_from_home(model, data, branch, start.joints)
        out.status[k], out.residual[k], out.iterations[k] = status, residual, iterations
        read_joints(model, data, out.q[k])
        left -= 1
    return left


@compiled
def way_of(rates, path):
    """How far a joint goes along a displacement, by its row of `AtHome.rates`."""
    q, at = 0.0, 6
    for r in range(6):
        own = rates[r]
        for c in range(r, 6):
            own += rates[at] * path[c]
            at += 1
        q += own * path[r]
    return q


@compiled
def follows(model, data):
    """Whether Newton's method met the solution that continues the one where the joints were.

    Its corrections shrank fast (see `follow.py`; `SLOWEST` was 0 before), and no block is beyond one of its
    singularities, which a step leaps over: a slide that turns about an axis comes out at the other end just as well.
    """
    return data.system[VECTORS, SLOWEST, 0] <= CONTRACTION and on_the_same_side(model, data)


@compiled
def on_the_same_side(model, data):
    """Whether no block is beyond one of its singularities, as far as its limb says by those of its blocks."""
    if model.task[0].divided == 1:
        return True
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON and side_of_block(model, data, block) * data.state[block.start].side < 0.0:
            return False
    return True


@compiled
def set_out(model, data, pose, branch):
    """Record on which side of its singularities each iterated block is at a pose, near the joints in the state."""
    solve_pose(model, data, pose, branch)
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            data.state[block.start].side = 1.0 if is_tall(block) else side_of_block(model, data, block)
    keep_tall(model, data)


@compiled
def is_tall(block):
    """Whether a block has more equations than joints: it is then on one side of singularities from step to step."""
    return block.solver == NEWTON and block.rows > block.count and block.idle == 0


@compiled
def keep_tall(model, data):
    """Keep the Jacobians of blocks with more equations than joints, as they are where a step begins."""
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if is_tall(block):
            block_jacobian(model, data, block, data.work, block.side_at)


@compiled
def copy_tall(model, data, source, to):
    """Copy these Jacobians: 0 is where a step began, 1 where its path did."""
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if is_tall(block):
            size = block.rows * block.count
            first, second = block.side_at + source * size, block.side_at + to * size
            copy(data.work[first : first + size], data.work[second : second + size])


@compiled
def stay_on_a_side(model, data, home, joints, left, before, poses, branch, out, kept):
    """Note in `kept` (n,) whether `out`, a `Solved`, is on the side of `joints` (1 or n, n_joints) at `home` (7,)."""
    # Tall blocks are compared with where they `left`, joints (n, n_joints) at the poses `before` (n, 7).
    for k in range(poses.shape[0]):
        if k < joints.shape[0]:
            take_seed(model, data, joints[k])
            set_out(model, data, home, branch)
        take_seed(model, data, left[k])
        solve_pose(model, data, before[k], branch)
        keep_tall(model, data)
        take_seed(model, data, out.q[k])
        status, _, _ = solve_pose(model, data, poses[k], branch)
        kept[k] = closes(status) and on_the_same_side(model, data)


@compiled
def side_of_block(model, data, block):
    """Sign of the determinant of a block's equations, of a tall block times those it keeps; 0 for a large system."""
    m = block.rows
    n = block.count
    if n > data.system.shape[1] or not (m == n or is_tall(block)):
        return 0.0
    J = data.work[block.scratch_at : block.scratch_at + m * n]
    block_jacobian(model, data, block, J, 0)
    if m == n:
        return determinant_sign(J.reshape(n, n), n)
    kept = data.work[block.side_at : block.side_at + m * n]
    A = data.work[block.scratch_at + m * n : block.scratch_at + m * n + n * n].reshape(n, n)
    gram(kept.reshape(m, n), J.reshape(m, n), A)
    return determinant_sign(A, n)


@compiled
def step_length(path, size):
    """Length of a displacement: the greater of its shift over `size` [m] and its turn [rad]."""
    x, y, z, u, v, w = path[0], path[1], path[2], path[3], path[4], path[5]
    return max(sqrt(x * x + y * y + z * z) / size, sqrt(u * u + v * v + w * w), 1e-12)


@compiled
def jumped(model, data):
    """Whether a joint found by iteration turned farther since `keep` than it does in one solution."""
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            for i in range(block.start, block.start + block.count):
                me = data.state[i]
                if model.bodies[i].prismatic == 0 and not abs(me.q - me.kept[0]) <= JUMP:
                    return True
    return False


@compiled
def turned_far(model, data, joints):
    """Whether a joint found by iteration turned farther from `joints` (n_joints,) than it does in one solution."""
    for b in range(model.blocks.shape[0]):
        block = model.blocks[b]
        if block.solver == NEWTON:
            for i in range(block.start, block.start + block.count):
                body = model.bodies[i]
                if body.prismatic == 0 and not abs(data.state[i].q - joints[body.column]) <= JUMP:
                    return True
    return False


@compiled
def approach(model, data, branch, pose):
    """Track the limbs from the last pose of a lean call so near to `pose` that one step keeps them in their mode.

    On the way loops may be open, as little as they can, where a straight path leaves the motion space. Returns False,
    with everything where it was, where a limb stops on the path. After the last step, `arrive` says whether it was one.
    """
    state, vectors, divided = data.state, data.system[VECTORS], model.task[0].divided == 1
    open_on_the_path = model.task[0].turning == 1
    last, path, trial = vectors[LAST], vectors[PATH], vectors[TRIAL]
    write_displacement(last, pose, path)
    length = step_length(path, model.task[0].size)
    keep(state, STEP_BEGAN)
    keep(state, PATH_BEGAN)
    copy_tall(model, data, 0, 1)
    vectors[SLOWEST, 0] = 0.0
    if length < SHORT * STEP:
        return True
    done = 0.0
    part = 1.0
    while done < 1.0:
        end = min(done + part * STEP / length, 1.0)
        shift_pose(last, path, end, trial)
        place_platform(state, trial)
        vectors[SLOWEST, 0] = 0.0
        status, _, _ = solve_positions(model, data, branch, False)
        shortest = part < SHORTEST
        followed = (status == CONVERGED or open_on_the_path) and not jumped(model, data)
        if followed and (open_on_the_path or follows(model, data) or (shortest and divided)):
            keep(state, STEP_BEGAN)
            keep_tall(model, data)
            done = end
            part = min(2.0 * part, 1.0)
        elif shortest:
            put_back(state, PATH_BEGAN)
            copy_tall(model, data, 1, 0)
            return False
        else:
            put_back(state, STEP_BEGAN)
            part *= 0.5
    vectors[SLOWEST, 0] = 0.0
    return True


@compiled
def arrive(model, data, pose, status):
    """Status of a lean call at `pose`, from `status` so far; takes the limbs back if they jumped or are open."""
    if status in (UNREACHABLE, DIVERGED, NOT_CONNECTED) or jumped(model, data) or not follows(model, data):
        put_back(data.state, PATH_BEGAN)
        copy_tall(model, data, 1, 0)
        return status if status != CONVERGED else DIVERGED
    keep_tall(model, data)
    copy(pose, data.system[VECTORS, LAST, :7])
    return status


@compiled
def inverse_carried(model, data, branch, pose, out):
    """`inverse_whole` for limbs solved by iteration: the mode of the call before, or DIVERGED."""
    if not approach(model, data, branch, pose):
        return DIVERGED
    return arrive(model, data, pose, inverse_whole(model, data, branch, pose, out))


@compiled
def choose_nearest(reached, arrived, limbs, clearly, blocked, q, seeds):
    """For each limb write to seeds (n, n_joints) the solution with its actuated joints nearest to q (n, n_actuated).

    `reached` (1 or n, s, n_joints) are those from s starts; those not in `arrived` (1 or n, s) count as `blocked`
    farther, those out of joints' ranges up to BEYOND. One replaces an earlier one if nearer by the factor `clearly`.
    """
    columns, last, last_driven = limbs.columns, limbs.last, limbs.last_driven
    for k in range(q.shape[0]):
        row = k if reached.shape[0] > 1 else 0
        first = 0
        first_driven = 0
        for limb in range(last.shape[0]):
            best = inf
            chosen = -1
            for s in range(reached.shape[1]):
                far = 0.0 if arrived[row, s] else blocked
                for j in range(first_driven, last_driven[limb]):
                    a = limbs.actuators[j]
                    off = reached[row, s, limbs.driven[j]] - q[k, a]
                    if limbs.turning[a]:
                        off = atan2(sin(off), cos(off))
                    far += abs(off)
                beyond = 0.0
                for j in range(first, last[limb]):
                    at = reached[row, s, columns[j]]
                    beyond += max(limbs.lower[columns[j]] - at, at - limbs.upper[columns[j]], 0.0)
                far += min(beyond, BEYOND)
                if far < clearly * best:
                    best = far
                    chosen = s
            if chosen >= 0:
                for j in range(first, last[limb]):
                    seeds[k, columns[j]] = reached[row, chosen, columns[j]]
            first = last[limb]
            first_driven = last_driven[limb]
