# SPDX-License-Identifier: Apache-2.0
"""Bodies placed by joint positions without solving the closures, for states that are integrated."""

from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import place_block, write_block_rows
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_runtime.kernels.compiled import compiled


@compiled
def place_joints(model, data, pose, q):
    """Place the platform at `pose` (7,) and all bodies by their positions q (n_bodies,); invert the blocks.

    Returns the regularity of the worst block, 0 to 1, and the largest gap of a closure.
    """
    bodies, closures, blocks, state, rows = model.bodies, model.closures, model.blocks, data.state, data.rows
    place_platform(state, pose)
    gap = 0.0
    for i in range(2, bodies.shape[0]):
        state[i].q = q[i]
    for b in range(blocks.shape[0]):
        place_block(bodies, blocks[b], state)
        gap = max(gap, write_block_rows(closures, blocks[b], state, rows))
    return invert_blocks(model, data), gap


@compiled
def move_all(model, data, twist, acceleration):
    """Velocities and accelerations of all bodies for the platform's twist and acceleration (6,), blocks inverted."""
    state = data.state
    move_platform(state, twist, acceleration)
    velocities(model, data)
    accelerations(model, data)
