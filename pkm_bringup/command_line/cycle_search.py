# SPDX-License-Identifier: Apache-2.0
"""The fastest cycle between two places: height, rounding of the corners, and position of the line are free.

A search without derivatives over two to five numbers: a coarse grid of heights and corners, then the simplex of Nelder
and Mead within the bounds. Every candidate is planned as it would be run, by the one planner, so the result keeps all
its limits; one that cannot be planned counts as endless. The requested cycle is the first candidate, so nothing slower
is found.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import minimize

from pkm_bringup.command_line.cycle_places import CannotPickError, Places, moves, pick_and_place
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.planning import MotionPlanner
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

_ENDLESS = 1e3  # s: of a cycle that cannot be planned
_GRID = ((0.0, 0.5, 1.0), (0.5, 1.0))  # shares of the range of heights; of the lift, of corners
_SAME = 1e-4  # of the ranges: nearer than that the simplex has shrunk to one point
_STEP = 0.25  # of the ranges: size of the first simplex
_AXES = "xyz"
_HALF = 0.1525  # m: half the way of the cycle that ships


@dataclass(frozen=True)
class Freedom:
    """Ranges of the search: lifts from `clearance` to `highest` [m], and a `shift` of both places along each axis [m].

    Corners are rounded by as much as the lift at most. Where the robot cannot go up, the shift alone is free.
    """

    clearance: float
    highest: float
    shift: float = 0.0
    candidates: int = 60

    def problem(self) -> str:
        """Why it makes no sense; empty where it does."""
        if not 0.0 < self.clearance <= self.highest:
            return f"the lift cannot be from {self.clearance:g} to {self.highest:g} m"
        return ""


@dataclass(frozen=True, eq=False)
class Choice:
    """A candidate cycle and its duration [s]."""

    places: Places
    motion: MotionFile
    duration: float

    @property
    def lift(self) -> float:
        """Height of the cycle [m]."""
        return float(np.ptp(self.motion.poses[:2, 2])) if len(self.motion) > 3 else 0.0

    @property
    def rounding(self) -> float:
        """Rounding of its corners [m]."""
        return float(self.motion.blends.max())

    def shift(self, other: Choice) -> Array:
        """Shift from the places of another (3,) [m]."""
        return self.places.pick - other.places.pick


@dataclass(eq=False)
class CycleSearch:
    """Searches for the fastest cycle.

    `tried` counts candidates; `best` is the fastest so far, `first` the requested one. Another thread may call
    `in_words` meanwhile.
    """

    planner: MotionPlanner
    places: Places
    freedom: Freedom
    tried: int = 0
    first: Choice | None = None
    best: Choice | None = None
    _known: dict[tuple[float, ...], float] = field(default_factory=dict)

    def run(self) -> tuple[Choice, Choice]:
        """Search; return the requested cycle and the fastest.

        Raises:
            CannotPickError: nothing is free.
            PkmError: the robot cannot do the requested cycle.
        """
        problem = self.freedom.problem()
        if problem:
            raise CannotPickError(problem)
        kinematics = self.planner.kinematics
        lifts = self.places.lift != 0.0 and moves(kinematics, np.array((0.0, 0.0, 1.0, 0.0, 0.0, 0.0)))
        axes = [k for k in range(3) if self.freedom.shift > 0.0 and moves(kinematics, np.eye(6)[k])]
        if not lifts and not axes:
            raise CannotPickError(
                f"{kinematics.mechanism.name} goes straight from place to place: only --shift is free"
            )
        self.first = self.best = self._choice(self.places)

        def duration(x: Array) -> float:
            return self._duration(self._placed(np.clip(x, 0.0, 1.0), lifts, axes))

        centre = [0.5] * len(axes)
        corners = itertools.product(*_GRID) if lifts else [()]
        starts = [np.array([*corner, *centre]) for corner in corners]
        start = min(starts, key=duration)
        simplex = np.clip(np.vstack([start, *(start + _away(start, k) for k in range(len(start)))]), 0.0, 1.0)
        left = self.freedom.candidates - self.tried
        if left > 0:
            settings = {"maxfev": left, "initial_simplex": simplex, "xatol": _SAME, "fatol": 1e-5}
            minimize(duration, start, method="Nelder-Mead", bounds=[(0.0, 1.0)] * len(start), options=settings)
        return self.first, self.best

    def in_words(self) -> str:
        """The progress of the search."""
        if self.best is None or self.first is None:
            return ""
        return f"{self.tried} of {self.freedom.candidates} cycles, {60.0 / self.best.duration:.1f} per minute so far"

    def _placed(self, x: Array, lifts: bool, axes: Sequence[int]) -> Places:
        """The places for shares (n,) of the ranges."""
        places, rest = self.places, list(x)
        if lifts:
            lift = self.freedom.clearance + rest.pop(0) * (self.freedom.highest - self.freedom.clearance)
            places = replace(places, lift=lift, rounding=rest.pop(0) * lift)
        shift = np.zeros(3)
        for axis, share in zip(axes, rest, strict=True):
            shift[axis] = (2.0 * share - 1.0) * self.freedom.shift
        return replace(places, pick=places.pick + shift, place=places.place + shift)

    def _duration(self, places: Places) -> float:
        lift, rounding = places.lift or 0.0, places.rounding or 0.0
        key = tuple(round(float(number), 6) for number in (lift, rounding, *places.pick))
        if key not in self._known:
            self.tried += 1
            try:
                choice = self._choice(places)
                self._known[key] = choice.duration
                if self.best is None or choice.duration < self.best.duration:
                    self.best = choice
            except PkmError:
                self._known[key] = _ENDLESS
        return self._known[key]

    def _choice(self, places: Places) -> Choice:
        motion = pick_and_place(self.planner.kinematics, places)
        return Choice(places, motion, self.planner.plan_closed(motion).duration)


def _away(start: Array, k: int) -> Array:
    """A step along one number, to the side where there is room."""
    step = np.zeros_like(start)
    step[k] = _STEP if start[k] <= 0.5 else -_STEP
    return step


def in_words(first: Choice, best: Choice, tried: int) -> str:
    """The result in some lines, before and after; `tried` counts planned candidates."""
    lines = [
        f"{60.0 / first.duration:.1f} -> {60.0 / best.duration:.1f} cycles per minute "
        f"({first.duration:.4f} -> {best.duration:.4f} s), the fastest of {tried} that were planned"
    ]
    lines.append(f"lift: {1e3 * first.lift:.1f} -> {1e3 * best.lift:.1f} mm")
    lines.append(f"rounding of its corners: {1e3 * first.rounding:.1f} -> {1e3 * best.rounding:.1f} mm")
    shift = best.shift(first)
    if shift.any():
        along = ", ".join(f"{1e3 * value:+.1f} mm in {axis}" for value, axis in zip(shift, _AXES, strict=True) if value)
        lines.append(f"both places shifted by {along}")
    return "\n".join(lines)


def as_file(motion: MotionFile) -> str:
    """A motion in straight lines, base frame, without times, as the text of a motion file."""
    text = io.StringIO()
    text.write(f"# {motion.source}\n")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["x [m]", "y [m]", "z [m]", "qx", "qy", "qz", "qw", "blend [m]", "dwell [s]", "label"])
    for pose, blend, dwell, label in zip(motion.poses, motion.blends, motion.dwells, motion.labels, strict=True):
        rows.writerow([*(repr(float(number)) for number in (*pose, blend, dwell)), label])
    return text.getvalue()


def usual_places(kinematics: Kinematics, dwell: float) -> Places:
    """The places of the shipped cycle, about home, with a dwell at either [s].

    They lie along x, or along y where the robot does not move along x; `CannotPickError` where it moves along neither.
    """
    for axis in range(2):
        if moves(kinematics, np.eye(6)[axis]):
            half = _HALF * np.eye(3)[axis]
            return Places(-half, half, True, 0.0, None, None, dwell)
    raise CannotPickError(f"{kinematics.mechanism.name} does not move along x or y: there is nothing to carry")
