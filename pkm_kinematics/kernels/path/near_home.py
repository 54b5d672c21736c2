# SPDX-License-Identifier: Apache-2.0
"""Limbs solved by iteration at poses near home, from where their joints get as the platform goes straight there.

Positions along that way are known to second order. Where Newton's method goes on from there as in `follow.py`, and no
joint turned far, it ends in the configuration to which the limbs follow; other poses are left to `carry_on`.
"""

from typing import Any, NamedTuple

from pkm_kinematics.kernels.compiled_rotations import write_displacement
from pkm_kinematics.kernels.model_and_data import SLOWEST, VECTORS
from pkm_kinematics.kernels.path.carry_on import JUMP, PATH, follows, step_length
from pkm_kinematics.kernels.position.placement import set_angle
from pkm_kinematics.kernels.position.positions import closes
from pkm_kinematics.kernels.position.solve_poses import check_pose, read_joints, solve_pose, turns_from_home
from pkm_kinematics.kernels.records import NEWTON
from pkm_runtime.kernels.compiled import compiled

NEAR = 0.5  # rad, and of the robot's size: poses farther from home are not tried
LEFT = -1  # status of what is not solved


class AtHome(NamedTuple):
    """A configuration at home, and how the joints of iterated limbs leave it."""

    pose: Any  # (7,)
    joints: Any  # (n_joints,)
    sides: Any  # (n_blocks,) of `set_out`
    rates: Any  # (n_joints, 27) per displacement (6,) and per product of two of its numbers
    exact: float  # largest gap [m] of what needs no other way of solving
    from_home: bool  # as `Choice` has it


@compiled
def solve_near_home(model, data, start, poses, branch, out):
    """Fill `out`, a `Solved` without rates, for poses (n, 7) near home; the others get the status LEFT. Counts them."""
    bodies, blocks, state, path = model.bodies, model.blocks, data.state, data.system[VECTORS, PATH]
    slowest, left = data.system[VECTORS, SLOWEST], 0
    for i in range(2, bodies.shape[0]):
        set_angle(state, i, start.joints[bodies[i].column])
    for b in range(blocks.shape[0]):
        if blocks[b].solver == NEWTON:
            state[blocks[b].start].side = start.sides[b]
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
