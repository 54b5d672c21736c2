# SPDX-License-Identifier: Apache-2.0
"""Inverse Jacobians of many poses."""

from pkm_kinematics.kernels.position.positions import closes
from pkm_kinematics.kernels.position.solve_poses import solve_pose, take_seed
from pkm_kinematics.kernels.rates.motion import invert_blocks
from pkm_kinematics.kernels.rates.projection import inverse_jacobian
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.kernels.compiled import compiled


@compiled
def inverse_jacobians(model, data, choice, poses, out):
    """Actuated joint rates per twist, `out` (n, n_actuated, 6), at poses (n, 7); singular rows are left as they are."""
    for k in range(poses.shape[0]):
        take_seed(model, data, choice.seeds[k if choice.seeds.shape[0] > 1 else 0])
        status, _, _ = solve_pose(model, data, poses[k], choice.branch)
        if not closes(status):
            continue
        if is_regular(invert_blocks(model, data)):
            inverse_jacobian(model, data, out[k])
