# SPDX-License-Identifier: Apache-2.0
"""Joint positions that close the loops at a pose as they are, whichever of the solutions they are."""

from pkm_kinematics.kernels.position.chain import place_chain, read_chain
from pkm_kinematics.kernels.position.closures import closed, turned_over
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    JOINT_LIMIT,
    SINGULAR,
    place_block,
    write_block_rows,
)
from pkm_kinematics.kernels.position.solve_poses import (
    INSIDE,
    beyond_limits,
    check_pose,
    read_joints,
    take_seed,
    usable_seed,
)
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.kernels.compiled import compiled, nan_max

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
    """Put seeds that close the loops in the place of other solutions: `out` is a `Solved` of `solve_many` on entry.

    SINGULAR also where a limb can move on its own: the pose does not determine its joints.
    """
    chain, state = model.chain, data.state
    shared = choice.seeds.shape[0] == 1
    for k in range(poses.shape[0]):
        seed = choice.seeds[0 if shared else k]
        if not (is_away(model, seed, out.q[k]) and usable_seed(model, seed) and check_pose(poses[k], data.work)):
            continue
        take_seed(model, data, seed)
        place_platform(state, data.work)
        if chain.shape[0] > 1:
            platform = state[PLATFORM]
            miss, turn = read_chain(model, data, platform.R, platform.p)
            if not (miss < INSIDE * model.task[0].size and turn < INSIDE):
                continue
            if chain.shape[0] < 7:
                place_chain(model, data, platform.R, platform.p)
        gap = gap_as_placed(model, data)
        if gap < 0.0:
            continue
        out.residual[k], out.iterations[k] = gap, 0
        read_joints(model, data, out.q[k])
        beyond = beyond_limits(model, data)
        out.status[k] = JOINT_LIMIT if beyond else CONVERGED
        if not is_regular(invert_blocks(model, data)):
            out.status[k] = SINGULAR
