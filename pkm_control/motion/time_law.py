# SPDX-License-Identifier: Apache-2.0
"""Time laws along a path: the quickest within bounds, smoothed so that the acceleration is continuous.

1. `fastest` finds the time-optimal speed along the path under bounds that are linear in s'' and s'^2: actuator efforts
   (through inverse dynamics) and velocities, platform speed and acceleration, by reachability analysis
   (`kernels/quickest_run.py`). Its answer switches acceleration in steps, which a computed-torque robot answers with
   jolts.
2. `SmoothTimeLaw` averages that law over a moving window of `window` seconds. The averaged law stays on the path
   exactly, starts and ends at rest, has continuous acceleration, and its jerk is at most the step of acceleration over
   the window (the filters of Biagiotti and Melchiorri, "FIR filters for online trajectory planning", 2012), in closed
   form: the source is piecewise quadratic, so the average is a difference of cubics.

ruckig would limit the jerk along one coordinate, but has no bounds that change along the path.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pkm_control.kernels.quickest_run import PER_ACTUATOR, PLATFORM, quickest_average, reachable_speeds, write_averaged
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import PlatformLimits


def smooth_step(s: Any) -> tuple[Any, Any, Any]:
    """The smoothstep of degree five from 0 to 1, and its two derivatives, at `s` from 0 to 1; numbers or arrays."""
    value, slope = s**3 * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * s**2 * (1.0 - s) ** 2
    return value, slope, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)


@dataclass(frozen=True, eq=False)
class PathBounds:
    """Bounds along a path at parameters `grid` (N,): |a s'' + b s'^2 + c| <= g, rows (N, m), and s'^2 <= `square_max`.
    Units: those of the bounded quantity per unit of path parameter.
    """

    grid: Array
    a: Array
    b: Array
    c: Array
    g: Array
    square_max: Array

    def part(self, rows: slice) -> PathBounds:
        """The bounds at some points of the grid."""
        return PathBounds(*(getattr(self, field.name)[rows] for field in fields(self)))


def fastest(bounds: PathBounds) -> Array | None:
    """Speeds s' (N,) on the bounds' grid for the quickest run from rest to rest; None where none keeps the bounds."""
    rows = [np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.a, bounds.b, bounds.c, bounds.g)]
    if not all(np.isfinite(part).all() for part in rows[:3]):
        return None
    n, m = rows[0].shape
    squares = np.zeros(n)
    grid, highest = (np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.grid, bounds.square_max))
    found = reachable_speeds(grid, *rows, highest, np.empty((2 * m + 2, 3)), np.empty((n, 2)), squares)
    return np.sqrt(squares) if found and squares[1:-1].all() else None


class SmoothTimeLaw:
    """A law s(t), averaged over a moving window [s]; `duration` [s] includes the window. The law before is given by
    `speeds` s' (N,), zero at both ends, at increasing path parameters `grid` (N,).
    """

    def __init__(self, grid: Array, speeds: Array, window: float) -> None:
        self._window = window
        steps = 2.0 * np.diff(grid) / (speeds[:-1] + speeds[1:])
        knots = np.concatenate([[0.0], np.cumsum(steps)])
        curvature = 0.5 * np.diff(speeds) / steps
        past = steps * (grid[:-1] - grid[0] + steps * (0.5 * speeds[:-1] + steps * curvature / 3.0))
        # parameters, speeds, times and integral of the law before: what kernels take
        self.before = (grid, speeds, knots, np.concatenate([[0.0], np.cumsum(past)]))
        self.duration = float(knots[-1]) + window

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """s, s' and s'' (n,) at times (n,) [s] in [0, duration]."""
        out = np.empty((len(times), 3))
        write_averaged(*self.before, self._window, np.clip(times, 0.0, self.duration), out)
        return out[:, 0], out[:, 1], out[:, 2]


KINDS = ("velocity", "acceleration", "jerk")  # of the platform's limits


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
            return f"{('linear', 'angular')[axis]} {KINDS[kind]} of the platform"
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
    grid: Array, speeds: Array, windows: list[float], first: Array, terms: Array, bounds: LineBounds, reserve: float
) -> LineRun | None:
    """The quickest smoothing, of windows [s], of a law within all bounds but a `reserve`; None where none is found.

    The law is given by speeds s' (n,) at parameters grid (n,), where `terms` (n, n_actuated, TERMS) are what the
    actuators do (see `kernels/quickest_run.py`); `first` (6,) is the line's derivative by its parameter.
    """
    before = SmoothTimeLaw(grid, speeds, windows[0]).before
    scratch = np.empty((bounds.samples[1], 5))
    drives, along = (1.0 - reserve) * bounds.drives, bounds.along(first)
    found = quickest_average(*before, np.array(windows), np.array(bounds.samples), terms, along, drives, scratch)
    window, stretch, number, when = found
    return LineRun(SmoothTimeLaw(grid, speeds, window), stretch, bounds.words(number), when) if stretch else None
