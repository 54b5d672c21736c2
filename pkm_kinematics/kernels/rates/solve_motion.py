# SPDX-License-Identifier: Apache-2.0
"""Positions, velocities and accelerations of all bodies for one platform motion: where every dynamics begins."""

from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, solve_positions
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.kernels.compiled import compiled


@compiled
def solve_motion(model, data, mode, motion):
    """Bring the state to a platform motion (19,) or longer: pose (7), twist (6), acceleration (6). Returns a status.

    Finite, with a unit quaternion, inside the motion space; `mode` as in `solve_positions`. Blocks are inverted after.
    """
    state = data.state
    place_platform(state, motion)
    status, _, _ = solve_positions(model, data, mode, False)
    if status != CONVERGED:
        return status
    if not is_regular(invert_blocks(model, data)):
        return SINGULAR
    move_platform(state, motion[7:], motion[13:])
    velocities(model, data)
    accelerations(model, data)
    return CONVERGED
