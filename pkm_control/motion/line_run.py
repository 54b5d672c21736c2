# SPDX-License-Identifier: Apache-2.0
"""How quickly a straight line is run from rest to rest, from what platform and actuators do along it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_control.kernels.averaged_law import PER_ACTUATOR, PLATFORM, quickest_average
from pkm_control.motion.time_law import SmoothTimeLaw
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import PlatformLimits


@dataclass(frozen=True, eq=False)
class LineBounds:
    """What a run must keep. `drives` (n_actuated, 3): velocity, acceleration and effort of the actuators of `names`.

    They are checked at samples: `samples` are the least and largest number, and the time [s] between them in between.
    """

    platform: PlatformLimits
    drives: Array
    names: tuple[str, ...]
    samples: tuple[int, int, float]

    def along(self, first: Array) -> Array:
        """Bounds (6,) on s', s'' and s''' of a line with derivative `first` (6,), by linear and by angular motion."""
        p = self.platform
        linear = np.array([p.linear_velocity, p.linear_acceleration, p.linear_jerk])
        angular = np.array([p.angular_velocity, p.angular_acceleration, p.angular_jerk])
        with np.errstate(divide="ignore"):
            return np.concatenate([linear / np.linalg.norm(first[:3]), angular / np.linalg.norm(first[3:])])

    def words(self, number: int) -> str:
        """The bound of a number that `quickest_average` has found to be decisive."""
        if number < 0:
            return "the programmed speed or the actuators"
        if number < PLATFORM:
            axis, kind = divmod(number, 3)
            return f"{('linear', 'angular')[axis]} {('velocity', 'acceleration', 'jerk')[kind]} of the platform"
        actuator, kind = divmod(number - PLATFORM, PER_ACTUATOR)
        return f"{('velocity', 'acceleration', 'effort')[kind]} of {self.names[actuator]}"


@dataclass(frozen=True, eq=False)
class LineRun:
    """A law along a line, slowed down by `stretch`; what limits it, and when [s] of the law."""

    law: SmoothTimeLaw
    stretch: float
    limit: str
    when: float

    def samples(self, count: int) -> Array:
        """s, s' and s'' (count + 1, 3), spread over its time, the last one where it is limited."""
        times = np.append(np.linspace(0.0, self.law.duration, count), self.when)
        s, speed, change = self.law.sample(times)
        return np.column_stack([s, speed / self.stretch, change / self.stretch**2])


def is_straight(first: Array, second: Array) -> bool:
    """Whether a path with derivatives (n, 6) by its parameter goes and turns about one axis, steadily."""
    size = np.abs(first).max()
    return bool(np.abs(first - first[0]).max() <= 1e-9 * size and np.abs(second).max() <= 1e-9 * size)


def quickest_run(
    grid: Array,
    speeds: Array,
    windows: list[float],
    first: Array,
    terms: Array,
    bounds: LineBounds,
    reserve: float,
) -> LineRun | None:
    """The quickest smoothing, of windows [s], of a law within all bounds; None where none is found.

    The law is given by speeds s' (n,) at parameters grid (n,). On these, `terms` (n, n_actuated, TERMS) are what the
    actuators do (see `kernels/averaged_law.py`); `first` (6,) is the line's derivative by its parameter. The
    part `reserve` of the bounds on them is left.
    """
    before = SmoothTimeLaw(grid, speeds, windows[0]).before
    scratch = np.empty((bounds.samples[1], 5))
    drives, along = (1.0 - reserve) * bounds.drives, bounds.along(first)
    found = quickest_average(*before, np.array(windows), np.array(bounds.samples), terms, along, drives, scratch)
    window, stretch, number, when = found
    return LineRun(SmoothTimeLaw(grid, speeds, window), stretch, bounds.words(number), when) if stretch else None
