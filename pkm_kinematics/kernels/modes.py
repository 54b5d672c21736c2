# SPDX-License-Identifier: Apache-2.0
"""On which side of its singularities a configuration is: every limb's of type 1, and the platform's of type 2."""

from pkm_kinematics.kernels.closures import block_jacobian
from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.dense import determinant_sign
from pkm_kinematics.kernels.follow import same_side_of_graph
from pkm_kinematics.kernels.motion import invert_blocks
from pkm_kinematics.kernels.positions import CONVERGED, JOINT_LIMIT, SINGULAR
from pkm_kinematics.kernels.projection import inverse_jacobian
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.kernels.solve import solve_pose, take_seed
from pkm_kinematics.kernels.solve_motion import NEARLY_SINGULAR
from pkm_kinematics.kernels.vectors import add, axis_z, dot, get, rotate, rotate_back, scale, sub


@compiled
def side_of_driver(bodies, closures, block, state):
    """Derivative of the distance equation of a block's driver by its position, up to a positive factor.

    Zero where the block's two branches meet. The bodies must be in place.
    """
    closure = closures[block.closure_start]
    successor = state[closure.successor]
    me = state[block.driver]
    pointing = bodies[block.pointing]
    if block.spherical == 1:
        t = rotate_back(me.R, rotate(successor.R, axis_z(closure.successor_rotation)))
        e = axis_z(pointing.rotation)
    else:
        target = add(get(successor.p), rotate(successor.R, get(closure.successor_point)))
        t = rotate_back(me.R, sub(target, get(me.p)))
        e = get(pointing.translation)
    if bodies[block.driver].prismatic == 0:
        return t[0] * e[1] - t[1] * e[0]
    d = sub(t, e)
    if block.planar == 1:  # the pointing axis is the plane's normal
        normal = axis_z(pointing.rotation)
        d = sub(d, scale(dot(d, normal), normal))
    return -d[2]


@compiled
def read_modes(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
    body_column, chain_column, subspace, before, now, A, K, sides, pose, joints,
):  # fmt: skip
    """Sides of the configuration at a pose (7,) nearest to `joints` (n_joints,): (status, side of the platform).

    `sides` (n_blocks,): of a block with two branches +1 in home's, -1 in the other; of one solved by iteration -1
    where the sign of its Jacobian's determinant differs from that in `before` (n_work,), which then is brought up to
    date; else +1. The side of the platform is the sign of the direct Jacobian's determinant: that of the inverse one,
    K (n_actuated, 6) on `subspace`, with the sign that each branch gives it taken out; 1 where it is not square. `now`
    (n_work,) and A are scratch.
    """
    take_seed(state, chain_at, body_column, chain_column, joints)
    status, _, _ = solve_pose(
        bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at, pose, -1
    )
    if status not in (CONVERGED, JOINT_LIMIT):
        return status, 0.0
    if not invert_blocks(bodies, closures, blocks, state, rows, work) > NEARLY_SINGULAR:
        return SINGULAR, 0.0
    side = 1.0
    for b in range(blocks.shape[0]):
        block = blocks[b]
        sides[b] = 1.0
        if block.solver == CLOSED_FORM:
            if block.branches > 1:
                if side_of_driver(bodies, closures, block, state) * block.home_sign < 0.0:
                    sides[b] = -1.0
                if bodies[block.driver].actuator >= 0:
                    side *= sides[b]
            continue
        size = block.rows * block.count
        J0 = before[block.inverse_at : block.inverse_at + size]
        J = now[block.inverse_at : block.inverse_at + size]
        block_jacobian(bodies, closures, block, state, rows, J, 0)
        if not same_side_of_graph(block, work, J0, J, A):
            sides[b] = -1.0
        for e in range(size):
            J0[e] = J[e]
    n = subspace.shape[1]
    if K.shape[0] != n:
        return status, 1.0
    inverse_jacobian(bodies, closures, blocks, state, rows, work, K)
    for r in range(n):
        for c in range(n):
            A[r, c] = 0.0
            for k in range(6):
                A[r, c] += K[r, k] * subspace[k, c]
    return status, side * determinant_sign(A, n)
