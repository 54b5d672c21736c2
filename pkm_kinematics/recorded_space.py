# SPDX-License-Identifier: Apache-2.0
"""Recordings in a motion space that turns with the pose: which constraint wrenches make it, chosen near home.

Where limbs constrain the platform more often than needed, the wrenches that are most independent near home are taken.
At poses where these are nearly dependent, the recording has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import CONVERGED, SINGULAR, solve_positions
from pkm_kinematics.kernels.rates.constraint_wrenches import (
    combined_acceleration,
    constraint_wrench,
    least_motion,
    null_combinations,
    onto_space,
    space_across,
)
from pkm_kinematics.kernels.rates.motion import accelerations, correct, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.regularity import is_regular
from pkm_runtime.codegen import trace
from pkm_runtime.codegen.tape import Number, value

Instead = Sequence[tuple[Any, Callable[..., Any]]]

# Reciprocal condition of the constraint wrenches below which the general kernels answer: rounding grows by one over it.
FIRM = 1e-3


class RecordedSpace:
    """The motion space of `n` dimensions at the pose of a recording, blocks inverted; becomes the model's."""

    def __init__(self, model: Any, data: Any, n: int, instead: Instead) -> None:
        self.model, self.data, self.instead = model, data, instead
        self.length = model.task[0].length
        found = [one for b in range(len(model.blocks)) for one in self._constraints(b)]
        values = np.array([[value(x) for x in wrench] for _, _, wrench in found]).T
        chosen = sorted(scipy.linalg.qr(values, mode="r", pivoting=True)[1][: 6 - n])
        self._combinations = [found[i][:2] for i in chosen]
        self._wrenches = np.array([found[i][2] for i in chosen], dtype=object).T.copy()
        self._inverse, self._weights = np.zeros((6 - n, 6 - n), dtype=object), np.zeros(6 - n, dtype=object)
        model.subspace = np.zeros((6, n), dtype=object)
        self.condition: Number = trace(space_across)(
            self._wrenches, self.length, self._inverse, self._weights, model.subspace
        )

    def _constraints(self, b: int) -> list[tuple[int, Array, Array]]:
        """What block b says of the platform: b, a combination of its equations, and the wrench."""
        block, found = self.model.blocks[b], []
        null = np.zeros((block.rows - block.count, block.rows), dtype=object)
        trace(null_combinations)(self.model, self.data, block, np.zeros(block.count, dtype=object), null)
        for combination in null:
            wrench = np.zeros(6, dtype=object)
            trace(constraint_wrench, self.instead)(self.model, self.data, b, combination, wrench)
            found.append((b, combination, wrench))
        return found

    def rates_by_twist(self, drives: Array) -> Array:
        """Drives' rates (n_actuated, n) in the basis, as (6, n_actuated) of the twists: the same in every basis.

        From one pose to another, the basis may turn over.
        """
        scaled = self.model.subspace * np.repeat([1.0, self.length], 3)[:, None]
        return np.array([[sum(x * y for x, y in zip(r, d, strict=True)) for d in drives] for r in scaled], dtype=object)

    def closing(self) -> Array:
        """The least displacement (6,) of the platform that closes what the limbs leave open by their constraints."""
        rows = self.data.rows
        gaps = [
            sum(x * rows[self.model.blocks[b].rows_at + r].gap for r, x in enumerate(combination))
            for b, combination in self._combinations
        ]
        return self._least(np.array(gaps, dtype=object))

    def _least(self, rates: Array) -> Array:
        least = np.zeros(6, dtype=object)
        trace(least_motion)(self._wrenches, self.length, self._inverse, self._weights, rates, least)
        return least

    def move(self, twist: Array, acceleration: Array) -> None:
        """Give all bodies the motion in the space nearest to a twist and an acceleration (6,), which become it."""
        trace(onto_space)(self.model.subspace, self.length, twist)
        trace(onto_space)(self.model.subspace, self.length, acceleration)
        trace(move_platform)(self.data.state, twist, np.zeros(6))
        trace(velocities, self.instead)(self.model, self.data)
        rates = np.zeros(len(self._combinations), dtype=object)
        corrected = trace(correct)

        def note(bodies: Any, block: Any, state: Any) -> None:
            """Before a block's joints accelerate, which no combination feels."""
            for i, (b, combination) in enumerate(self._combinations):
                if self.model.blocks[b] is block:
                    rates[i] = trace(combined_acceleration)(self.model, self.data, block, combination)
            corrected(bodies, block, state)

        trace(accelerations, [*self.instead, (correct, note)])(self.model, self.data)
        acceleration += self._least(rates)
        trace(move_platform)(self.data.state, twist, acceleration)
        trace(accelerations, self.instead)(self.model, self.data)


def motion_in_turning_space(n: int, instead: Instead) -> Callable[[Any, Any, int, Array], int]:
    """In place of `solve_motion` in recordings: the space of `n` dimensions at the pose becomes the model's.

    Twist and acceleration of the motion become the nearest ones in it.
    """

    def solve(model: Any, data: Any, branch: int, motion: Array) -> int:
        trace(place_platform)(data.state, motion)
        status, _, _ = trace(solve_positions, instead)(model, data, branch, False)
        if status != CONVERGED:
            return int(status)
        if not trace(is_regular)(trace(invert_blocks, instead)(model, data)):
            return SINGULAR
        space = RecordedSpace(model, data, n, instead)
        if not space.condition > FIRM:
            return SINGULAR
        space.move(motion[7:13], motion[13:19])
        return CONVERGED

    return solve
