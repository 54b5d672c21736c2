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

from dataclasses import dataclass, fields

import numpy as np

from pkm_control.kernels.averaged_law import write_averaged
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

    def part(self, rows: slice) -> PathBounds:
        """The bounds at some points of the grid."""
        return PathBounds(*(getattr(self, field.name)[rows] for field in fields(self)))


def fastest(bounds: PathBounds) -> Array | None:
    """Speeds s' (N,) on the bounds' grid for the quickest run from rest to rest; None where no run keeps them.

    Between its ends no run rests.
    """
    rows = [np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.a, bounds.b, bounds.c, bounds.g)]
    if not all(np.isfinite(part).all() for part in rows[:3]):
        return None
    n, m = rows[0].shape
    squares = np.zeros(n)
    grid, highest = (np.ascontiguousarray(part, dtype=np.float64) for part in (bounds.grid, bounds.square_max))
    found = reachable_speeds(grid, *rows, highest, np.empty((2 * m + 2, 3)), np.empty((n, 2)), squares)
    return np.sqrt(squares) if found and squares[1:-1].all() else None


class SmoothTimeLaw:
    """A law s(t), averaged over a moving window [s]; `duration` [s] includes the window.

    The law before is given by `speeds` s' (N,), zero at both ends, at increasing path parameters `grid` (N,).
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
