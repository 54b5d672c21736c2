# SPDX-License-Identifier: Apache-2.0
"""Where the actuators put the first body of each limb."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.model.tables import Tables


def driven_state(tables: Tables, q: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """State of a workspace with the first body of every actuated block placed at q (n_actuated,), and those blocks."""
    state = tables.data().state
    blocks = tables.blocks[tables.blocks["actuators"] > 0]
    for block in blocks:
        i = int(block["start"])
        value = float(q[tables.bodies["actuator"][i]]) if tables.bodies["actuator"][i] >= 0 else 0.0
        set_angle(state, i, value)
        place_body(tables.model.bodies, state, i)
    return state, blocks
