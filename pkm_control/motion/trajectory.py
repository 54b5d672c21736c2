# SPDX-License-Identifier: Apache-2.0
"""Platform trajectories: pose, twist and acceleration as functions of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.rounded_path import Path
from pkm_control.motion.time_law import SmoothTimeLaw
from pkm_description.mechanism import Array

SAME = 1e-6  # of the size of a path: places nearer than this are one


def size_of(places: Array) -> float:
    """Size [m] of a path through places (n, 3); 1 of one that stays in its place, as when the platform only turns."""
    size = float(np.ptp(places, axis=0).max())
    return size if size > 1e-12 else 1.0  # what is less than an atom is rounding


@dataclass(frozen=True, eq=False)
class TrajectorySample:
    """Motion of the platform at `times` (n,) [s], base frame.

    `pose` (n, 7): x y z qx qy qz qw. `twist` and `acceleration` (n, 6): linear at the platform origin, then angular.
    """

    times: Array
    pose: Array
    twist: Array
    acceleration: Array

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)


class Piece(Protocol):
    """A part of a trajectory, from rest to rest."""

    duration: float

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6), base frame, at times (n,) [s] from its start."""
        ...


class PathPiece:
    """A geometric path run by a time law, slowed down throughout by the factor `stretch`."""

    def __init__(self, path: Path, law: SmoothTimeLaw, stretch: float = 1.0) -> None:
        self._path = path
        self._law = law
        self._stretch = stretch
        self.duration = law.duration * stretch

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """As `Piece.sample`."""
        s, speed, acceleration = self._law.sample(times / self._stretch)
        speed, acceleration = speed[:, None] / self._stretch, acceleration[:, None] / self._stretch**2
        path = self._path.sample(s)
        return path.pose, path.first * speed, path.first * acceleration + path.second * speed**2

    def arrivals(self) -> list[float]:
        """Times [s] from its start at the corners of its path, ends included."""
        return [0.0, *(self._time_at(float(s)) for s in self._path.corners[1:-1]), self.duration]

    def _time_at(self, s: float) -> float:
        low, high = 0.0, self.duration
        for _ in range(60):
            middle = 0.5 * (low + high)
            reached = self._law.sample(np.array([middle / self._stretch]))[0][0] >= s
            low, high = (low, middle) if reached else (middle, high)
        return high


class Rest:
    """A pose (7,), base frame, that is held for a duration [s]."""

    def __init__(self, pose: Array, duration: float) -> None:
        self._pose = pose
        self.duration = duration

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """As `Piece.sample`, without motion."""
        n = len(times)
        return np.tile(self._pose, (n, 1)), np.zeros((n, 6)), np.zeros((n, 6))


class Trajectory:
    """Pieces one after the other; at rest at its first pose before the start, and at its last pose after the end.

    Each piece begins where the one before ends. `notes` say what limits the speed of which part.
    """

    def __init__(self, pieces: Iterable[Piece], notes: Iterable[str] = (), events: PathEvents = NO_EVENTS) -> None:
        self.pieces = tuple(pieces)
        if not self.pieces:
            raise ValueError("a trajectory needs at least one piece")
        self.notes = tuple(notes)
        self.events = events
        self._starts = np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])

    @property
    def duration(self) -> float:
        """Time from first motion to last rest [s]."""
        return float(self._starts[-1])

    @property
    def start(self) -> Array:
        """Pose (7,) at time zero."""
        return np.asarray(self.sample(np.zeros(1)).pose[0])

    @property
    def end(self) -> Array:
        """Pose (7,) after the last piece."""
        return np.asarray(self.sample(np.array([self.duration])).pose[0])

    def sample(self, times: Array) -> TrajectorySample:
        """The motion at times (n,) [s] from the start, in any order."""
        times = np.atleast_1d(np.asarray(times, dtype=np.float64))
        clipped = np.clip(times, 0.0, self.duration)
        index = np.clip(np.searchsorted(self._starts, clipped, side="right") - 1, 0, len(self.pieces) - 1)
        pose, twist, acceleration = np.empty((len(times), 7)), np.empty((len(times), 6)), np.empty((len(times), 6))
        order = np.argsort(index, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(index[order])) + 1) if len(order) else ():
            i = index[at[0]]
            pose[at], twist[at], acceleration[at] = self.pieces[i].sample(clipped[at] - self._starts[i])
        outside = (times < 0.0) | (times > self.duration)
        twist[outside] = 0.0
        acceleration[outside] = 0.0
        return TrajectorySample(times, pose, twist, acceleration)

    def sampled(self, rate: float) -> TrajectorySample:
        """The motion at a rate [Hz] from time 0; the first sample at or after the end is the last."""
        return self.sample(np.arange(int(np.ceil(self.duration * rate - 1e-9)) + 1) / rate)

    def then(self, other: Trajectory) -> Trajectory:
        """This trajectory followed by another; `ValueError` where that does not start where this one ends."""
        own = self.sample(self.duration * np.array([0.0, 0.5, 1.0])).pose[:, :3]
        gap = float(np.linalg.norm(own[2] - other.start[:3]))
        if gap > SAME * size_of(own):
            raise ValueError(f"the second trajectory starts {gap:.6g} m from the end of the first")
        notes = self.notes + tuple(note for note in other.notes if note not in self.notes)
        return Trajectory(self.pieces + other.pieces, notes, self.events.then(other.events, self.duration))
