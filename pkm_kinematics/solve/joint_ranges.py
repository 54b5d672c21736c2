# SPDX-License-Identifier: Apache-2.0
"""The ranges of the joints: what is outside, how much is left, and turns that bring joints in."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.batch import nans
from pkm_kinematics.kernels.model_and_data import Solved
from pkm_kinematics.kernels.position.solve_poses import LIMIT_SLACK, wrap_into_limits
from pkm_kinematics.solve.robot_constants import RobotConstants
from pkm_runtime.kernels.binding import Prepared


class JointRanges:
    """Ranges of all joints of one robot."""

    def __init__(self, robot: RobotConstants) -> None:
        self.robot = robot

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper ends (n_joints,) of the joints' ranges, rounding allowed for."""
        lower, upper = np.full(len(self.robot.joint_names), -np.inf), np.full(len(self.robot.joint_names), np.inf)
        for table in (self.robot.tables.bodies[2:], self.robot.task.chain[1:]):
            slack = LIMIT_SLACK * np.where(table["prismatic"] == 1, self.robot.size, 1.0)
            lower[table["column"]], upper[table["column"]] = table["lower"] - slack, table["upper"] + slack
        return lower, upper

    def beyond(self, joints: Array) -> NDArray[np.bool_]:
        """Which joints (..., n_joints) are outside their ranges."""
        lower, upper = self.limits
        return np.asarray((joints < lower) | (joints > upper))

    def violations(self, joints: Array) -> list[str]:
        """One sentence per joint of `joints` (n_joints,) outside its range, in the order of the description."""
        sentences = []
        for column in np.flatnonzero(self.beyond(joints)):
            name = self.robot.joint_names[column]
            q, unit = joints[column], self.robot.names.units[name]
            lower, upper = (float(ends[column]) for ends in self.limits)
            end = lower if q < lower else upper
            digits = next((n for n in range(4, 17) if f"{q:.{n}g}" != f"{end:.{n}g}"), 17)
            sentences.append(f"joint '{name}' at {q:.{digits}g} {unit} is outside [{lower:.4g}, {upper:.4g}]")
        return sentences

    def shares(self, joints: Array) -> Array:
        """Distances of joints (..., n_joints) from the nearer ends of their ranges, as shares of half the range.

        1 in the middle, 0 at the end, negative beyond; infinite for joints without a range, NaN for unknown positions.
        """
        lower, upper = self.limits
        half = 0.5 * (upper - lower)
        bounded = np.isfinite(half) & (half > 0.0)
        left = np.minimum(joints - lower, upper - joints)
        return np.where(bounded, left / np.where(bounded, half, 1.0), np.inf)

    def wrap_into_limits(self, solved: Solved, turned: NDArray[np.bool_] | None = None) -> None:
        """Turn joints of rows with status JOINT_LIMIT into their ranges, in configurations that nobody followed there.

        Not for what continues a seed or home: between two positions a turn apart a joint passes its stops. `turned`
        says which joints (n_joints,) may be turned, `turned_freely` by default.
        """
        if np.count_nonzero(solved.status):
            freely = self.turned_freely if turned is None else turned
            self._wrap_into_limits.call(*self.limits, freely, solved.status, solved.q)

    @cached_property
    def _wrap_into_limits(self) -> Prepared:
        status, joints = np.zeros(1, dtype=np.int64), nans(1, len(self.robot.joint_names))
        return Prepared(wrap_into_limits, *self.limits, self.turned_freely, status, joints)

    @cached_property
    def turned_freely(self) -> NDArray[np.bool_]:
        """Which joints (n_joints,) turn, except those that one more turn would tear from their gear."""
        freely = self.robot.joint_turning.copy()
        freely[[column for gear in self.robot.gears for column in gear[:2]]] = False
        return freely

    @cached_property
    def passive_turned_freely(self) -> NDArray[np.bool_]:
        """Of `turned_freely` those that are not actuated."""
        freely = self.turned_freely.copy()
        freely[self.robot.actuated_column] = False
        return freely
