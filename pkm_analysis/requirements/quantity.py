# SPDX-License-Identifier: Apache-2.0
"""A scalar of a pose with its unit, and the batches of poses that it is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import REACH
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution


class Batch:
    """Poses (n, 7) with cached results; `wanted` numbers of `pose_quantities` are computed together."""

    def __init__(self, robot: Robot, poses: Array, wanted: tuple[int, ...]) -> None:
        self.robot = robot
        self.poses = poses
        self._wanted = tuple(dict.fromkeys((REACH, *wanted)))

    @cached_property
    def _numbers(self) -> Array:
        return self.robot.evaluator.numbers(self.poses, self._wanted)

    def number(self, which: int) -> Array:
        """A number (n,) of `pose_quantities`, one of those wanted."""
        return np.asarray(self._numbers[self._wanted.index(which)])

    def clearance(self, bound: float = np.inf) -> tuple[Array, NDArray[np.int64]]:
        """Least distances (n,) [m] between bodies, on the right side of a bound, and the pairs that have them."""
        known = np.flatnonzero(self.number(REACH) >= 0.0)
        values, pairs = np.full(len(self.poses), np.nan), np.zeros(len(self.poses), dtype=np.int64)
        if len(known):
            clearance = self.robot.clearance
            joints = np.array([self.number(k)[known] for k in clearance.needs])
            values[known], pairs[known] = clearance.of(self.poses[known], joints, bound)
        return values, pairs

    @cached_property
    def motion_space(self) -> Array:
        """Bases (n, 6, f) of the platform's possible twists [m/s, rad/s]."""
        return np.asarray(self.robot.kinematics.subspace(self.poses, mode=self.robot.mode))

    @cached_property
    def rates(self) -> Array:
        """Rates of the drives (n, n_actuated, f) per unit of each twist of the motion space; NaN where unknown."""
        return np.asarray(self.robot.kinematics.inverse_jacobian(self.poses, mode=self.robot.mode) @ self.motion_space)

    @cached_property
    def gravity_efforts(self) -> Array:
        """Least-squares efforts (n, n_actuated) [N m, N] against gravity, limits ignored; NaN without configuration."""
        answer = self.robot.dynamics.inverse(
            self.robot.kinematics.at(self.poses, mode=self.robot.mode), distribution=Distribution()
        )
        return np.asarray(answer.effort)


@dataclass(frozen=True)
class Quantity:
    """A scalar of a pose.

    Attributes:
        unit: SI, "1" where it has none.
        evaluate: values (n,) of a batch of poses; NaN where there is no configuration.
        needs: numbers of `pose_quantities` that it is computed from.
        signed: whether it changes sign at zero, so that its zeros are borders.
        version: distinguishes it from others of its name; None where nothing does.
        near: a faster evaluation, with values only on the right side of a bound, and the index of each one's cause.
        causes: what values can be due to, in words.
    """

    name: str
    unit: str
    meaning: str
    evaluate: Callable[[Batch], Array]
    needs: tuple[int, ...] = ()
    signed: bool = False
    version: str | None = ""
    near: Callable[[Batch, float], tuple[Array, NDArray[np.int64]]] | None = None
    causes: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """Its unit behind a number: empty where it has none."""
        return "" if self.unit == "1" else f" {self.unit}"

    @property
    def axis(self) -> str:
        """Its name with the unit, for an axis."""
        return self.name if self.unit == "1" else f"{self.name} [{self.unit}]"

    @property
    def question(self) -> tuple[str, str]:
        """Distinguishes it from all others in a journal; `AnalysisError` without a version."""
        if self.version is None:
            problem = "nobody knows whether its function is the one of the last run"
            raise AnalysisError(f"quantity {self.name} in a journal", problem, "give user_quantity a version")
        return self.name, self.version

    def of(self, robot: Robot, poses: Array) -> Array:
        """Values (n,) at poses (n, 7) in the motion space, NaN where the robot does not reach."""
        batch = Batch(robot, poses, self.needs)
        return np.where(batch.number(REACH) >= 0.0, self.evaluate(batch), np.nan)
