# SPDX-License-Identifier: Apache-2.0
"""Inverse Jacobians of many poses."""

from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.motion import invert_blocks
from pkm_kinematics.kernels.positions import CONVERGED, JOINT_LIMIT
from pkm_kinematics.kernels.projection import inverse_jacobian
from pkm_kinematics.kernels.solve import solve_pose, take_seed
from pkm_kinematics.kernels.solve_motion import NEARLY_SINGULAR


@compiled
def inverse_jacobians(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
    body_column, chain_column, poses, seeds, out,
):  # fmt: skip
    """Rates of the actuated joints per platform twist, `out` (n, n_actuated, 6), at poses (n, 7).

    From joint positions `seeds` (1 or n, n_joints). Rows without a regular configuration are left as they are.
    """
    for k in range(poses.shape[0]):
        take_seed(state, chain_at, body_column, chain_column, seeds[k if seeds.shape[0] > 1 else 0])
        status, _, _ = solve_pose(
            bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
            poses[k], -1,
        )  # fmt: skip
        if status not in (CONVERGED, JOINT_LIMIT):
            continue
        if invert_blocks(bodies, closures, blocks, state, rows, work) > NEARLY_SINGULAR:
            inverse_jacobian(bodies, closures, blocks, state, rows, work, out[k])
