# SPDX-License-Identifier: Apache-2.0
"""What the closed forms of a robot's limbs have in common, and where the actuators put the first body of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.model.tables import Tables
from pkm_kinematics.solve.engine import Engine


class LimbForms:
    """The actuated limbs of one robot and its motion space, read-only.

    Attributes:
        known: whether each actuated joint follows from one scalar equation, in a constant motion space, with as many
            limbs as degrees of freedom or more.
        degrees of freedom: numbers of independent translations and turns of the platform, where the space is constant.
        lifted: (n_limbs,) limbs that slide until the rest of them lies in a plane with the platform's point.
        spherical: (n_limbs,) limbs whose axes all meet.
        planar: (n_limbs,) limbs that move in a plane, and leave the distance across their axes.
    """

    def __init__(self, engine: Engine) -> None:
        blocks = engine.tables.blocks[engine.tables.blocks["actuators"] > 0]
        self.known = engine.direct_inverse and engine.constant_space and len(blocks) >= engine.mobility
        angular: Array = engine.task.subspace[3:]
        turns = int(np.linalg.matrix_rank(angular)) if angular.any() else 0
        self.freedoms = engine.mobility - turns, turns
        self.lifted: NDArray[np.bool_] = blocks["lift"] >= 0
        self.spherical: NDArray[np.bool_] = blocks["spherical"] == 1
        self.planar: NDArray[np.bool_] = blocks["planar"] == 1

    @property
    def keep_distances(self) -> bool:
        """Whether each limb, once locked, is known to keep two points at a distance, in space or in its plane."""
        return self.known and not self.lifted.any() and not self.spherical.any()


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
