# SPDX-License-Identifier: Apache-2.0
"""A scalar of a pose with its unit, a bound on it, and the batches of poses that they are computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysed_robot import AnalysedRobot, margins_of
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.kernels.pose_quantities import HOLD, REACH, REGULARITY, WIDTH
from pkm_analysis.requirements.grammar import PROVED
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_kinematics.status import closes

if TYPE_CHECKING:
    from pkm_analysis.proof.enclosures import Enclosure
    from pkm_analysis.proof.robot_program import Recordable


class Batch:
    """Poses (n, 7) of a robot with what is known there, computed once.

    `wanted` numbers of `pose_quantities` are computed together, to 1e-5; `exact` ones are the kinematics' own.
    """

    def __init__(self, robot: AnalysedRobot, poses: Array, wanted: tuple[int, ...] = (), exact: bool = False) -> None:
        self.robot, self.poses, self.exact = robot, poses, exact
        self._wanted = tuple(dict.fromkeys((REACH, *wanted)))

    @cached_property
    def configuration(self) -> Configuration:
        """The configurations at the poses."""
        return self.robot.kinematics.at(self.poses, mode=self.robot.mode)

    @cached_property
    def _numbers(self) -> Array:
        return self.robot.evaluator.numbers(self.poses, self._wanted)

    def number(self, which: int) -> Array:
        """A number (n,) of `pose_quantities`, one of those wanted; REACH alone as 1 or -1 where exact."""
        if not self.exact:
            return np.asarray(self._numbers[self._wanted.index(which)])
        if which == REACH:
            return np.where(closes(self.configuration.status), 1.0, -1.0)
        if which >= WIDTH:
            return np.asarray(self.configuration.joints[:, which - WIDTH])
        return self._margins[which]

    @cached_property
    def _margins(self) -> dict[int, Array]:
        return margins_of(self.configuration, limbs=HOLD in self._wanted or REGULARITY in self._wanted)

    def clearance(self, bound: float = np.inf) -> tuple[Array, NDArray[np.int64]]:
        """Least distances (n,) [m] between bodies, on the right side of a bound, and the pairs that have them."""
        known = np.flatnonzero(self.number(REACH) >= 0.0)
        values, pairs = np.full(len(self.poses), np.nan), np.zeros(len(self.poses), dtype=np.int64)
        if len(known):
            clearance = self.robot.clearance
            joints = np.array([self.number(k)[known] for k in clearance.needs])
            values[known], pairs[known] = clearance.of(self.poses[known], joints, bound)
        return values, pairs

    @property
    def rates(self) -> Array:
        """Rates of the drives (n, n_actuated, f) per unit of each twist of the motion space; NaN where unknown."""
        return self.configuration.motion_jacobian

    @cached_property
    def gravity_efforts(self) -> Array:
        """Least-squares efforts (n, n_actuated) [N m, N] against gravity, limits ignored; NaN without configuration."""
        return np.asarray(self.robot.dynamics.inverse(self.configuration, distribution=Distribution()).effort)

    @cached_property
    def efforts_at_rest(self) -> Array:
        """Efforts (n, n_actuated) [N m, N] that hold the robot still; infinite where none are within the ranges.

        They are distributed as the controller does: by least norm, and where `shared` within the drives' ranges.
        """
        kinematics = self.robot.kinematics
        distribution = Distribution(bounds=kinematics.mechanism.effort_range) if shared(kinematics) else None
        found = self.robot.dynamics.inverse(self.configuration, distribution=distribution)
        return np.where((np.asarray(found.status) == Status.EFFORT_LIMIT)[:, None], np.inf, found.effort)


def shared(kinematics: Kinematics) -> bool:
    """Whether efforts at rest depend on the drives' ranges: they are redundant, or one-sided."""
    return len(kinematics.actuated_names) > kinematics.mobility or bool(kinematics.mechanism.one_way_actuators.any())


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
        slow: whether a pose takes about a millisecond: it is asked for at fewer poses, and last.
        least: its lower bounds (n,) over boxes, where they are known; `most` likewise the upper ones.
        recorded: what these need beside the robot's kinematics.
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
    slow: bool = False
    least: Callable[[Enclosure], Array] | None = None
    most: Callable[[Enclosure], Array] | None = None
    recorded: Recordable | None = None

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
            problem = "its function cannot be compared with the one of the last run"
            raise AnalysisError(f"quantity {self.name} in a journal", problem, "give user_quantity a version")
        return self.name, self.version

    def of(self, robot: AnalysedRobot, poses: Array) -> Array:
        """Values (n,) at poses (n, 7) in the motion space, NaN where the robot does not reach."""
        batch = Batch(robot, poses, self.needs)
        return np.where(batch.number(REACH) >= 0.0, self.evaluate(batch), np.nan)


@dataclass(frozen=True)
class Requirement:
    """A quantity that is to be above a bound, in its unit, or below.

    Its slack is the distance from the bound, not negative where it holds: at a pose by values, which refute, and over
    boxes by lower bounds, which prove.
    """

    quantity: Quantity
    bound: float
    at_least: bool = True
    text: str = ""  # as it was written

    def at(self, batch: Batch) -> tuple[Array, NDArray[np.int64]]:
        """Slack (n,) at poses, NaN where unknown, and the index (n,) of the quantity's cause that it is due to."""
        if self.quantity.near is not None:
            values, causes = self.quantity.near(batch, self.bound)
        else:
            values, causes = self.quantity.evaluate(batch), np.zeros(len(batch.poses), dtype=np.int64)
        return (values - self.bound if self.at_least else self.bound - values), causes

    def over(self, found: Enclosure) -> Array:
        """Lower bounds (n,) of the slack over boxes; minus infinity where unknown."""
        bounds = self.quantity.least if self.at_least else self.quantity.most
        if bounds is None:
            return np.full(len(found.boxes), -np.inf)
        with np.errstate(invalid="ignore"):
            slack = bounds(found) - self.bound if self.at_least else self.bound - bounds(found)
        return np.where(found.decided & ~np.isnan(slack), slack, -np.inf)

    @property
    def bounded(self) -> bool:
        """Whether bounds over boxes are known on its side."""
        return (self.quantity.least if self.at_least else self.quantity.most) is not None

    def check_provable(self) -> None:
        """Raise `AnalysisError` where nothing over boxes is known of it, or it asks for nothing."""
        about, known = f"requirement '{self}'", (self.quantity.least, self.quantity.most)
        if not any(known):
            problem = f"nothing is proved of '{self.quantity.name}' of this robot: it is known at poses, not over boxes"
            raise AnalysisError(about, problem, f"write one of: {'; '.join(PROVED)}")
        if not self.bounded:
            side, other = ("a lower", "less") if self.at_least else ("an upper", "more")
            raise AnalysisError(about, f"{side} bound of it is not proved here", f"ask for {other} than that")
        if not (self.quantity.signed or self.bound > 0.0):
            raise AnalysisError(about, "the bound is not positive", "take a positive one")

    @property
    def question(self) -> tuple[tuple[str, str], float, bool]:
        """Distinguishes it from all others in a journal; `AnalysisError` for a quantity without a version."""
        return self.quantity.question, self.bound, self.at_least

    def __str__(self) -> str:
        return (
            self.text or f"{self.quantity.name} {'>' if self.at_least else '<'} {self.bound:.6g}{self.quantity.suffix}"
        )
