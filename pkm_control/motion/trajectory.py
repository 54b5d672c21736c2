# SPDX-License-Identifier: Apache-2.0
"""Platform trajectories: pose, twist and acceleration as functions of time, in pieces from rest to rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq

from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.rounded_path import Path, PathBeside, PathSample, RoundedPath
from pkm_control.motion.time_law import SmoothTimeLaw
from pkm_control.tool import Tool
from pkm_description.mechanism import Array
from pkm_description.rotations import quaternion_inverse, quaternion_product

SAME = 1e-6  # of the size of a path: places nearer than this are one


def size_of(places: Array) -> float:
    """Size [m] of a path through places (n, 3); 1 of one that stays in its place, as when the platform only turns."""
    size = float(np.ptp(places, axis=0).max())
    return size if size > 1e-12 else 1.0  # what is less than an atom is rounding


@dataclass(frozen=True, eq=False)
class TrajectorySample:
    """Motion of the platform at `times` (n,) [s], base frame. `pose` (n, 7): x y z qx qy qz qw. `twist` and
    `acceleration` (n, 6): linear at the platform origin, then angular. Behind them commanded redundant joints (n, r).
    """

    times: Array
    pose: Array
    twist: Array
    acceleration: Array

    def __len__(self) -> int:
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
        def missing(time: float) -> float:
            return float(self._law.sample(np.array([time / self._stretch]))[0][0]) - s

        return float(brentq(missing, 0.0, self.duration, xtol=1e-15))


class Rest:
    """A pose (7,) or (7 + r,), base frame, that is held for a duration [s]."""

    def __init__(self, pose: Array, duration: float) -> None:
        self._pose = pose
        self.duration = duration

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """As `Piece.sample`, without motion."""
        still = np.zeros((len(times), len(self._pose) - 1))
        return np.tile(self._pose, (len(times), 1)), still, still.copy()


class Trajectory:
    """Pieces one after the other; at rest at its first pose before the start, and at its last pose after the end. Each
    piece begins where the one before ends. `notes` say what limits the speed of which part.
    """

    def __init__(self, pieces: Iterable[Piece], notes: Iterable[str] = (), events: PathEvents = NO_EVENTS) -> None:
        self.pieces = tuple(pieces)
        if not self.pieces:
            raise ValueError("a trajectory needs at least one piece")
        self.notes = tuple(notes)
        self.events = events
        self._starts = np.concatenate([[0.0], np.cumsum([piece.duration for piece in self.pieces])])
        self._width = self.pieces[0].sample(np.zeros(1))[0].shape[1]

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
        pose, twist = np.empty((len(times), self._width)), np.empty((len(times), self._width - 1))
        acceleration = np.empty_like(twist)
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
        if self._width != other._width:
            raise ValueError("one of the two trajectories says nothing of the redundant joints")
        gap = float(np.linalg.norm(own[2] - other.start[:3]))
        if gap > SAME * size_of(own):
            raise ValueError(f"the second trajectory starts {gap:.6g} m from the end of the first")
        notes = self.notes + tuple(note for note in other.notes if note not in self.notes)
        return Trajectory(self.pieces + other.pieces, notes, self.events.then(other.events, self.duration))


class TimedCurve:
    """Spline of degree five through poses (n, 7 + r), base frame, at increasing times (n,) [s]; at rest at its ends.

    Four times continuously differentiable, with velocity and acceleration zero at the ends. The attitude is the spline
    of the quaternions (signs chosen for the shorter way) normalised: turning all poses, in either frame, is a rotation
    of R^4 and turns the curve with them, so nothing depends on a choice of axes.
    """

    def __init__(self, times: Array, poses: Array) -> None:
        times = np.asarray(times, dtype=np.float64)
        values = np.array(poses, dtype=np.float64)
        flips = np.where(np.sum(values[1:, 3:7] * values[:-1, 3:7], axis=1) < 0.0, -1.0, 1.0)
        values[1:, 3:7] *= np.cumprod(flips)[:, None]
        self._origin = times[0]
        self.duration = float(times[-1] - times[0])
        still = np.zeros(values.shape[1])
        rest = [(1, still), (2, still)]
        self._spline = make_interp_spline(times - self._origin, values, k=5, bc_type=(rest, rest))
        self._rate = self._spline.derivative(1)
        self._acceleration = self._spline.derivative(2)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6), base frame, at times (n,) [s] from the curve's start."""
        value, rate, acceleration = self._spline(times), self._rate(times), self._acceleration(times)
        pose = value.copy()
        norm = np.linalg.norm(value[:, 3:7], axis=1, keepdims=True)
        q = value[:, 3:7] / norm
        pose[:, 3:7] = q
        inverse = quaternion_inverse(q)
        # with u = |u| q: the part of u' across q is |u| q', and omega = 2 q' q*; the part along q drops out of q' q*
        along = np.sum(q * rate[:, 3:7], axis=1, keepdims=True) / norm
        turning = 2.0 * quaternion_product(rate[:, 3:7], inverse)[:, :3] / norm
        accelerating = quaternion_product(acceleration[:, 3:7], inverse)[:, :3]
        change = 2.0 * accelerating / norm - 2.0 * along * turning
        twist, second = (np.hstack([x[:, :3], turn, x[:, 7:]]) for x, turn in ((rate, turning), (acceleration, change)))
        return pose, twist, second


class ToolPath(PathBeside):
    """The path of the platform that leads a tool along a path of its own, with the same parameters."""

    def __init__(self, tool: Tool, path: RoundedPath) -> None:
        super().__init__(path)
        self._tool = tool

    def sample(self, s: Array) -> PathSample:
        """The path of the platform at parameters (n,); its speed is that of the tool's point."""
        found = self._path.sample(s)
        return PathSample(*_led_by(self._tool, found.pose, found.first, found.second), found.first[:, :3])


class ToolCurve:
    """The motion of the platform that leads a tool along a curve with times."""

    def __init__(self, tool: Tool, curve: TimedCurve) -> None:
        self._tool = tool
        self._curve = curve
        self.duration = curve.duration

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6) of the platform, base frame, at times (n,) [s]."""
        return _led_by(self._tool, *self._curve.sample(times))


def _led_by(tool: Tool, pose: Array, twist: Array, acceleration: Array) -> tuple[Array, Array, Array]:
    """As `Tool.platform_motion`; redundant joints behind the motion of the tool stay behind that of the platform."""
    there, rates, changes = tool.platform_motion(pose[:, :7], twist[:, :6], acceleration[:, :6])
    if pose.shape[1] == 7:
        return there, rates, changes
    return np.hstack([there, pose[:, 7:]]), np.hstack([rates, twist[:, 6:]]), np.hstack([changes, acceleration[:, 6:]])
