# SPDX-License-Identifier: Apache-2.0
"""A motion that is being followed, and the action of one period."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.loop.modes import Mode, Outcome
from pkm_control.motion.braking import CHANGE, Braking
from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.point_trajectory import PointTrajectory

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tolerances:
    """How far the platform may be from its reference: m, rad, s; infinite: any."""

    path_position: float = math.inf
    path_rotation: float = math.inf
    goal_position: float = math.inf
    goal_rotation: float = math.inf
    goal_time: float = 0.0


_NUMBERS = itertools.count(1)


@dataclass
class Motion:
    """A trajectory that is being followed from `start` [s, on the clock of the readings], and its outcome.
    `number` is unique among all motions of the process that made it.
    """

    trajectory: PointTrajectory
    start: float
    tolerances: Tolerances = field(default_factory=Tolerances)
    braking: Braking = field(default_factory=lambda: Braking.steady(CHANGE))  # how quickly its speed may be changed
    events: PathEvents = NO_EVENTS  # on its way
    withdrawn: bool = False  # by its client
    number: int = field(default_factory=lambda: next(_NUMBERS))
    outcome: Outcome | None = None
    reason: str = ""
    elapsed: float = 0.0  # s, on its path
    position_error: float = 0.0
    rotation_error: float = 0.0
    samples: int = 0
    squares: Array = field(default_factory=lambda: np.zeros(2))
    largest: Array = field(default_factory=lambda: np.zeros(2))

    def note(self, position_error: float, rotation_error: float) -> None:
        """Add the position error [m] and rotation error [rad] of one period."""
        self.position_error, self.rotation_error = position_error, rotation_error
        self.samples += 1
        for k, error in enumerate((position_error, rotation_error)):
            self.squares[k] += error * error
            self.largest[k] = max(self.largest[k], error)

    @property
    def rms(self) -> Array:
        """Root mean square of position and rotation error (2,)."""
        return np.asarray(np.sqrt(self.squares / max(self.samples, 1)))


@dataclass(frozen=True, eq=False)
class Action:
    """What to do in one period, and why."""

    mode: Mode
    command: Array  # (n_actuated,) what the law commands: efforts, or positions
    reason: str = ""
    reference: Reference | None = None
    measured: Measured | None = None
    speed: float = 1.0  # fraction of their plan at which motions run
    withhold_command: bool = False  # send nothing, so that the machine closes its brakes
