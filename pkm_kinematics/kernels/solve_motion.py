# SPDX-License-Identifier: Apache-2.0
"""Positions, velocities and accelerations of all bodies for one platform motion: where every dynamics begins."""

from pkm_kinematics.kernels.compiled import compiled
from pkm_kinematics.kernels.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.placement import place_platform
from pkm_kinematics.kernels.positions import CONVERGED, SINGULAR, solve_positions

NEARLY_SINGULAR = 1e-9  # ratio below which a block's equations do not determine its joints


@compiled
def solve_motion(bodies, closures, blocks, state, rows, work, mode, motion):
    """Bring the state to a platform motion (19,) or longer: pose (7), twist (6), acceleration (6). Returns a status.

    Finite, with a unit quaternion, inside the motion space; `mode` as in `solve_positions`. Blocks are inverted after.
    """
    place_platform(state, motion)
    status, _, _ = solve_positions(bodies, closures, blocks, state, rows, work, mode, False)
    if status != CONVERGED:
        return status
    if not invert_blocks(bodies, closures, blocks, state, rows, work) > NEARLY_SINGULAR:
        return SINGULAR
    move_platform(state, motion[7:], motion[13:])
    velocities(bodies, closures, blocks, state, rows, work)
    accelerations(bodies, closures, blocks, state, rows, work)
    return CONVERGED
