# SPDX-License-Identifier: Apache-2.0
"""Jacobians of the drives over rows, and how far they and the limbs are from singularities."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import Choice, Data, Model, near
from pkm_kinematics.kernels.rates.jacobians import inverse_jacobians
from pkm_kinematics.kernels.rates.motion_space import (
    limb_margins,
)
from pkm_kinematics.solve.constraints import per_unit_speed
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.solve.possible_twists import PossibleTwists
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_kinematics.solve.singularity import margins
from pkm_kinematics.status import closes


class DriveJacobians:
    """Jacobians and margins of one robot at rows of poses."""

    def __init__(self, robot: RobotConstants, positions: PositionSolver, spaces: PossibleTwists) -> None:
        self.robot, self.positions, self.spaces = robot, positions, spaces

    def inverse(self, poses: Array, choice: Choice) -> Array:
        """Actuated joint rates per platform twist (n, n_actuated, 6) at poses (n, 7); NaN where there are none."""
        out = np.full((len(poses), len(self.robot.actuated_names), 6), np.nan)

        def part(model: Model, data: Data, rows: Choice, at: slice) -> None:
            inverse_jacobians(model, data, rows, poses[at], out[at])

        self.positions.over_rows(poses, choice, part)
        return out

    def uniform(self, poses: Array, choice: Choice) -> Array:
        """Actuated joint rates per unit speed in the motion space (n, n_actuated, mobility); NaN without one."""
        spaces = self.spaces.at(poses, choice)[0]
        return per_unit_speed(self.inverse(poses, choice) @ spaces, spaces, self.robot.characteristic_length)

    @cached_property
    def units(self) -> Array:
        """Units [m/s] of the drives' rates (n_actuated,) that make their Jacobian uniform, see `weigh_drives`.

        One for all, unless some drives slide, some turn, and none is redundant.
        """
        mixed = len(set(self.robot.actuated_turning)) > 1 and len(self.robot.actuated_names) == self.robot.mobility
        return np.where(self.robot.actuated_turning & mixed, self.robot.characteristic_length, 1.0)

    def limb_margins(self, poses: Array, choice: Choice) -> tuple[Array, Array]:
        """Margins (n,) from constraint singularities, and from singularities inside a limb: see `Singularity`."""
        blocked = 6 - self.robot.mobility - self.robot.mechanism.mobility.left_out
        poses, hold, regularity = np.ascontiguousarray(poses), np.empty(len(poses)), np.empty(len(poses))

        def part(model: Model, data: Data, rows: Choice, at: slice) -> None:
            limb_margins(model, data, rows, poses[at], blocked, hold[at], regularity[at])

        self.positions.over_rows(poses, choice, part)
        return hold, regularity

    def limb_conditions(self, poses: Array, choice: Choice, status: NDArray[np.int64]) -> Array:
        """Reciprocal conditions (n,) of the worst limb, as in solves that divide by it; 0 without configuration."""
        found = np.zeros(len(poses))
        rows = np.flatnonzero(closes(status))
        if rows.size:
            found[rows] = np.nan_to_num(self.limb_margins(poses[rows], choice.rows(rows))[1])
        return found

    def drive_conditions(self, poses: Array, joints: Array, status: NDArray[np.int64]) -> Array:
        """Reciprocal conditions (n,) of the drives' Jacobian, as in solves that divide by it; 0 without solution."""
        found = np.zeros(len(poses))
        rows = np.flatnonzero(closes(status))
        if rows.size:
            found[rows] = self.conditions(self.uniform(poses[rows], near(joints[rows], len(rows))))
        return found

    def conditions(self, K: Array) -> Array:
        """Reciprocal conditions (...,) of drives' rates per unit speed (..., n_actuated, mobility); 0 for NaN."""
        rows = K.reshape(-1, *K.shape[-2:])
        none = np.zeros(len(rows))
        found = margins(rows, none, none, self.robot.characteristic_length, self.units).condition
        return np.nan_to_num(found).reshape(K.shape[:-2])
