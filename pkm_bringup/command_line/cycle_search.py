# SPDX-License-Identifier: Apache-2.0
"""The cycle between two places, as far as a robot can do it, and the fastest: height, rounding and shift are free.

A search without derivatives over two to five numbers: a coarse grid of heights and corners, then the simplex of Nelder
and Mead within the bounds. Every candidate is planned as it would be run, by the one planner, so the result keeps its
limits; one without a plan counts as endless. The requested cycle is the first candidate, so nothing slower is found.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from pkm_control.motion.files.motion_file import MotionFile, looks_like_millimetres
from pkm_control.motion.planning import MotionPlanner
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import PlatformLimits
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

LIFT = 0.025  # m, as in the cycle that ships
_IN_SPACE = 1e-6  # part of a direction that may lie outside the motion space

_ENDLESS = 1e3  # s: of a cycle that cannot be planned
_GRID = ((0.0, 0.5, 1.0), (0.5, 1.0))  # shares of the range of heights; of the lift, of corners
_SAME = 1e-4  # of the ranges: nearer than that the simplex has shrunk to one point
_STEP = 0.25  # of the ranges: size of the first simplex
_AXES = "xyz"
_HALF = 0.1525  # m: half the way of the cycle that ships


class CannotPickError(PkmError):
    """The robot cannot do the requested cycle."""


@dataclass(frozen=True)
class Places:
    """Ends of a cycle: points [m], `turn` about z between them [rad], `lift` [m] (None: chosen to suit), ..."""

    pick: Array
    place: Array
    from_home: bool
    turn: float
    lift: float | None
    rounding: float | None  # m; None: as much as the lift
    dwell: float  # s, at either place


def _stations(pick: Array, place: Array, lift: float) -> tuple[list[Array], list[str]]:
    if not lift > 0.0:
        return [pick, place, pick], ["pick", "place", "pick"]
    raised = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    return (
        [pick, pick + raised, place + raised, place, place + raised, pick + raised, pick],
        ["pick", "lifted", "above place", "place", "lifted", "above pick", "pick"],
    )


def pick_and_place(kinematics: Kinematics, places: Places) -> MotionFile:
    """The cycle between two places, base frame; `CannotPickError` where the robot lacks a degree of freedom for it."""
    home = np.asarray(kinematics.home, dtype=np.float64)
    name, space = kinematics.mechanism.name, np.asarray(kinematics.subspace(home))
    if not np.linalg.norm(space[:3], axis=0).max() > 1e-9:
        raise CannotPickError(
            f"{name} only turns, so it cannot carry anything from place to place; without --pick and --place its own "
            "motion is timed"
        )
    origin = home[:3] if places.from_home else np.zeros(3)
    pick, place = places.pick + origin, places.place + origin
    _require_metres(kinematics, places)
    _require(kinematics, np.concatenate([place - pick, np.zeros(3)]), "from --pick to --place")
    _require(kinematics, np.concatenate([pick - home[:3], np.zeros(3)]), "from home to --pick")
    if places.turn:
        _require(kinematics, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), "by --turn about z")
    up = np.array([0.0, 0.0, 1.0])
    lift = places.lift
    if lift is None:
        lift = LIFT if moves(kinematics, np.concatenate([up, np.zeros(3)])) else 0.0
    elif lift > 0.0:
        _require(kinematics, np.concatenate([up, np.zeros(3)]), "up, by --lift")
    turned = (Rotation.from_rotvec([0.0, 0.0, places.turn]) * Rotation.from_quat(home[3:])).as_quat()
    at_pick, at_place = np.concatenate([pick, home[3:]]), np.concatenate([place, turned])
    stations, labels = _stations(at_pick, at_place, lift)
    stops = np.array([label in ("pick", "place") for label in labels])
    dwells = np.where(stops, places.dwell, 0.0)
    dwells[-1] = 0.0  # the next cycle begins with it
    blends = np.where(stops, 0.0, lift if places.rounding is None else places.rounding)
    named, free = tuple(labels), PlatformLimits.none()
    return MotionFile.through("pick and place", np.array(stations), named, free, blends=blends, dwells=dwells)


def moves(kinematics: Kinematics, direction: Array) -> bool:
    """Whether a direction of the platform (6,), base axes, lies in the motion space at home."""
    space = np.asarray(kinematics.subspace(np.asarray(kinematics.home)))
    scale = np.array([1.0] * 3 + [kinematics.characteristic_length] * 3)
    missing = scale * (direction - space @ np.linalg.lstsq(space, direction, rcond=None)[0])
    return bool(np.linalg.norm(missing) <= _IN_SPACE * max(float(np.linalg.norm(scale * direction)), 1e-12))


def _require_metres(kinematics: Kinematics, places: Places) -> None:
    size = float(kinematics.engine.size)
    for name, point in (("--pick", places.pick), ("--place", places.place)):
        if looks_like_millimetres(kinematics, point):
            given, metres = (" ".join(f"{x / scale:g}" for x in point) for scale in (1.0, 1000.0))
            raise CannotPickError(
                f"{name} {given} is {np.linalg.norm(point):.4g} m away, and {kinematics.mechanism.name} measures about "
                f"{size:.2g} m; places are in metres: if these are mm, give {name} {metres}"
            )
    if places.lift is not None and looks_like_millimetres(kinematics, places.lift):
        raise CannotPickError(f"--lift {places.lift:g} is in metres: if this is mm, give --lift {places.lift / 1e3:g}")


def _require(kinematics: Kinematics, direction: Array, what: str) -> None:
    if kinematics.constant_space and not moves(kinematics, direction):
        mechanism = kinematics.mechanism
        raise CannotPickError(
            f"{mechanism.name} cannot move {what}: its platform has {mechanism.mobility.platform} degrees of freedom "
            f"({mechanism.mobility.motion})"
        )


@dataclass(frozen=True)
class Freedom:
    """Ranges of the search: lifts from `clearance` to `highest` [m], and a `shift` of both places along each axis [m].
    Corners are rounded by as much as the lift at most. Where the robot cannot go up, the shift alone is free.
    """

    clearance: float
    highest: float
    shift: float = 0.0
    candidates: int = 60


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
    """Searches for the fastest cycle (`best`; `first`: as requested); threads may call `in_words` meanwhile."""

    planner: MotionPlanner
    places: Places
    freedom: Freedom
    tried: int = 0
    first: Choice | None = None
    best: Choice | None = None
    _known: dict[tuple[float, ...], float] = field(default_factory=dict)

    def run(self) -> tuple[Choice, Choice]:
        """The requested cycle and the fastest. CannotPickError: nothing is free; PkmError: it cannot do the first."""
        free = self.freedom
        if not 0.0 < free.clearance <= free.highest:
            raise CannotPickError(f"the lift cannot be from {free.clearance:g} to {free.highest:g} m")
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
    """The shipped cycle's places, along x or else y, with a dwell [s]; CannotPickError: it moves along neither."""
    for axis in range(2):
        if moves(kinematics, np.eye(6)[axis]):
            half = _HALF * np.eye(3)[axis]
            return Places(-half, half, True, 0.0, None, None, dwell)
    raise CannotPickError(f"{kinematics.mechanism.name} does not move along x or y: there is nothing to carry")
