# SPDX-License-Identifier: Apache-2.0
"""Time laws along a path: the quickest within bounds, smoothed so that the acceleration is continuous.

Two steps, because no well-kept library does both at once on a path with actuator limits, and the first is short:

1. `fastest` finds the time-optimal speed along the path under bounds that are linear in s'' and s'^2: actuator efforts
   (through inverse dynamics), actuator velocities, platform speed and acceleration, by reachability analysis
   (`kernels/reachable_speeds.py`). Its answer switches acceleration in steps, which a computed-torque robot answers
   with jolts.
2. `SmoothTimeLaw` averages that law over a moving window of `window` seconds. The averaged law stays on the path
   exactly, starts and ends at rest, has continuous acceleration, and its jerk is at most the step of acceleration over
   the window (the filters of Biagiotti and Melchiorri, "FIR filters for online trajectory planning", 2012). It is
   evaluated in closed form: the source is piecewise quadratic, so the average is a difference of cubics.

ruckig would give limited jerk along one coordinate, but not bounds that change along the path, and its community
edition sends intermediate waypoints to a server; so it is not used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PPoly

from pkm_control.kernels.reachable_speeds import reachable_speeds
from pkm_description.mechanism import Array


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


def fastest(bounds: PathBounds) -> Array | None:
    """Speeds s' (N,) on the bounds' grid for the quickest run from rest to rest; None where no run keeps them."""
    rows = [np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.a, bounds.b, bounds.c, bounds.g)]
    if not all(np.isfinite(part).all() for part in rows[:3]):
        return None
    n, m = rows[0].shape
    squares = np.zeros(n)
    grid, highest = (np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.grid, bounds.square_max))
    found = reachable_speeds(grid, *rows, highest, np.empty((2 * m + 2, 3)), np.empty((n, 2)), squares)
    return np.sqrt(squares) if found else None


class SmoothTimeLaw:
    """A law s(t), averaged over a moving window [s]; `duration` [s] includes the window.

    The law before is given by `speeds` s' (N,), zero at both ends, at increasing path parameters `grid` (N,).
    """

    def __init__(self, grid: Array, speeds: Array, window: float) -> None:
        steps = 2.0 * np.diff(grid) / (speeds[:-1] + speeds[1:])
        half = 0.5 * window
        times = np.concatenate([[-half], np.concatenate([[0.0], np.cumsum(steps)]), [0.0]])
        times[-1] = times[-2] + window  # at rest before the start and after the end, as far as the window looks
        times[0] -= half
        curvature = np.concatenate([[0.0], 0.5 * np.diff(speeds) / steps, [0.0]])
        slope = np.concatenate([[0.0], speeds])
        value = np.concatenate([[grid[0]], grid])
        source = PPoly(np.vstack([curvature, slope, value]), times)
        self._value, self._slope, self._sum = source, source.derivative(), source.antiderivative()
        self._window = window
        self.duration = float(times[-2] - times[1]) + window
        self._ends = (float(grid[0]), float(grid[-1]))

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """s, s' and s'' (n,) at times (n,) [s] in [0, duration]."""
        late = np.clip(times, 0.0, self.duration)
        early = late - self._window
        s = (self._sum(late) - self._sum(early)) / self._window
        speed = (self._value(late) - self._value(early)) / self._window
        acceleration = (self._slope(late) - self._slope(early)) / self._window
        return np.clip(s, *self._ends), speed, acceleration
