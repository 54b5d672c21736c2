# SPDX-License-Identifier: Apache-2.0
"""From the waypoints of a motion file to a trajectory that the machine can follow.

Waypoints with speeds (or none) become straight lines with rounded corners, run as fast as the limits of the platform
and of the actuators allow (see `time_law.py`); a last uniform slow-down makes every limit hold at every sample,
friction and smoothing included. Waypoints with times become one smooth curve, or straight lines, that keep the times;
a limit that those times break is an error, never a slower motion.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pkm_control.control_errors import LimitError, UnreachableMotionError
from pkm_control.keep_out import KeepOuts
from pkm_control.kernels.quickest_run import ACROSS, ALONG, DRY, RATE, TERMS, VISCOUS, A, B, C
from pkm_control.motion.files.motion_file import MotionFile, events_of, hint_of, payloads_of
from pkm_control.motion.motion_space_paths import ActuatorPath, TiltingPath, possible_poses, tilts_by_itself
from pkm_control.motion.rounded_path import Path, PathSample, RoundedPath
from pkm_control.motion.time_law import (
    KINDS,
    LineBounds,
    LineRun,
    PathBounds,
    SmoothTimeLaw,
    fastest,
    is_straight,
    quickest_run,
)
from pkm_control.motion.trajectory import PathPiece, Piece, Rest, TimedCurve, ToolCurve, ToolPath, Trajectory
from pkm_control.tool import Tool
from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import pose_distance, rotation_from_quaternion, rpy_from_rotation
from pkm_dynamics import Dynamics, Efforts
from pkm_dynamics.motion_limits import ActuatorLimits, PlatformLimits
from pkm_dynamics.weight import Carried, pulling
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_runtime.describable import fixed

LONGEST = 3600.0  # s, that one motion lasts: its points are so few that they stand for it
_JUMP = 0.02  # rad or m, between two points of a path that lie a fraction of that apart
_DIRECTIONS = 8  # half the corners of the polygon that stands for a bound on a norm
_POINTS_PER_INTERVAL = 60  # of the path between two changes of its shape
_MAX_GRID = 3000
_SAMPLING = 5e-4  # s, between the checks of a trajectory
_MIN_SAMPLES = 1000
_MAX_SAMPLES = 40000
_LINES_AT_ONCE = 64
_RESERVES = 1e-3, 5e-3  # of bounds on actuators, tried for lines: what is linear between grid points misses as much
_ASKED = 48  # samples of a line, spread over its time, that are asked of the robot itself
_COARSER = 5  # where the motion space turns with the pose: evaluations take longer, paths are of one smooth piece
_USED_UP, _SOUGHT = 0.999, 0.9995  # shares of a bound: where the search for the quickest ends, and what it aims at
_PER = ("", "s", "s^2", "s^3")  # units of time of derivatives, by their order


@dataclass(frozen=True, eq=False)
class _Load:
    """Largest use of one limit over a stretch of motion: value over bound, and the sample where it occurs."""

    name: str
    unit: str
    value: float
    bound: float
    sample: int
    order: int  # how it falls when the motion is stretched by k: with 1/k**order; 0 for efforts, which do not scale
    whole: float | None = None  # the bound with what plans leave to the controller

    @property
    def ratio(self) -> float:
        return self.value / self.bound

    def error(self, where: str, remedy: str) -> LimitError:
        return LimitError(self.name, self.value, self.bound, self.unit, where, remedy, self.whole)


@dataclass(eq=False)
class MotionPlanner:
    """Plans trajectories for one machine, within a platform's limits (by default those of a fast, light machine).

    Args:
        reserve: fraction of actuator velocity, acceleration and effort that plans leave to the controller, in [0, 1).
        mode: number of the working mode, which motions never leave.
    """

    dynamics: Dynamics
    actuators: ActuatorLimits
    platform: PlatformLimits = field(default_factory=PlatformLimits)
    reserve: float = USUAL_RESERVE
    payload: Inertial | None = None
    space: KeepOuts | None = None
    mode: int = 0  # home's
    beside: Array | None = None  # how far (r,) redundant joints are from home's, or where they follow to
    done: str = ""  # how far it is with a motion
    kinematics: Kinematics = field(init=False)
    _paths: dict[tuple[bytes, bytes], ActuatorPath] = field(default_factory=dict)  # by start and end

    def __post_init__(self) -> None:
        if not 0.0 <= self.reserve < 1.0:
            raise ValueError(f"reserve is {self.reserve}, not in [0, 1)")
        self.kinematics = self.dynamics.kinematics
        self._tilts = tilts_by_itself(self.kinematics)
        self._straight = self.kinematics.constant_space or self._tilts
        self._coarser = 1 if self.kinematics.constant_space else _COARSER
        of = self.actuators
        bounds = ((1.0 - self.reserve) * bound for bound in (of.velocity, of.acceleration, of.effort))
        self._velocity, self._acceleration, self._effort = bounds
        self._pulling = pulling(of, self.reserve)

    def plan(self, motion: MotionFile) -> Trajectory:
        """The trajectory of a motion file, with notes on what limits its speed; the lower of its limits and the
        planner's hold. UnreachableMotionError: it leaves the workspace. LimitError: given times cannot be kept, no
        speed is within the limits, or it lasts longer than `LONGEST`.
        """
        in_base = self._with_redundant(motion.in_base(np.asarray(self.kinematics.home, dtype=np.float64)))
        limits = self.platform.lowered_by(in_base.limits)
        if self._tilts:
            in_base = replace(in_base, poses=possible_poses(self.kinematics, in_base.poses, in_base.tool))
        try:
            plan = self._plan_untimed(in_base, limits) if in_base.times is None else self._plan_timed(in_base, limits)
        except UnreachableMotionError as error:
            hint = hint_of(self.kinematics, motion, self.mode)
            if not hint:
                raise
            raise UnreachableMotionError(error.where, error.place, f"{error.reason}; {hint}") from error
        if plan.duration > LONGEST:
            where, remedy = motion.source or "on the way to the goal", "give more speed, or less time"
            raise LimitError("the duration of the motion", plan.duration, LONGEST, "s", where, remedy)
        return plan

    def _plan_untimed(self, motion: MotionFile, limits: PlatformLimits) -> Trajectory:
        pieces: list[Piece] = []
        notes: list[str] = []
        arrivals, now = [0.0], float(motion.dwells[0])
        stops = [0, *self._inner_stops(motion), len(motion) - 1]
        _dwell(pieces, motion, 0)
        for last, piece, note in self._runs(motion, list(pairwise(stops)), limits):
            pieces.append(piece)
            notes.append(note)
            arrivals += [now + time for time in piece.arrivals()[1:]]
            now += piece.duration + float(motion.dwells[last])
            _dwell(pieces, motion, last)
        return self._with_events(motion, Trajectory(pieces, notes), arrivals)

    def same(self, one: Array, other: Array) -> bool:
        """Whether two poses are one, up to rounding."""
        size = self.kinematics.engine.size
        beside = self.kinematics.engine.inputs.beside
        apart = beside(one[None])[0, 7:] - beside(other[None])[0, 7:]
        return bool(pose_distance(one[:7], other[:7], size) < 1e-6 * size and (np.abs(apart) < 1e-6).all())

    def plan_closed(self, motion: MotionFile) -> Trajectory:
        """As `plan`, as a cycle: a straight way back is added where the motion ends elsewhere than it begins."""
        cycle = self.plan(motion)
        if not self.same(cycle.end, cycle.start):
            changes = cycle.events.payloads
            loaded = self.carrying(changes[-1].payload) if changes else self
            cycle = cycle.then(loaded.between(cycle.end, cycle.start))
        return cycle

    def carrying(self, payload: Inertial | None, beside: Array | None = None) -> MotionPlanner:
        """A planner of the same robot with another payload, platform frame; None: nothing. `beside` (r,): how far
        redundant joints are from where the description has them, and stay in motions that say nothing of them.
        """
        other = copy.copy(self)
        other.payload, other.beside = payload, self.beside if beside is None else beside
        return other

    def _with_redundant(self, motion: MotionFile) -> MotionFile:
        """A motion with redundant joints behind its poses, where it commands one, or it is known where they are."""
        inputs, columns = self.kinematics.engine.inputs, motion.redundant
        if not columns and (self.beside is None or not self.beside.size):
            return motion
        poses = np.array(inputs.beside(motion.poses, 0.0 if self.beside is None else self.beside))
        for name, values in columns.items():
            poses[:, 7 + self.kinematics.redundant_names.index(name)] = values
        return replace(motion, poses=poses)

    def _with_events(self, motion: MotionFile, plan: Trajectory, arrivals: Sequence[float]) -> Trajectory:
        payloads = payloads_of(motion)
        if payloads is not None:
            still = np.zeros((len(motion), 6))
            load = self._effort_load(self._at(motion.poses), still, still, Carried(payloads, np.arange(len(motion))))
            if load.ratio > 1.0:
                where = f"at rest at {motion.describe(load.sample)} with its payload"
                raise load.error(where, _REMEDY_HEAVY)
        return Trajectory(plan.pieces, plan.notes, events_of(motion, arrivals))

    def _carried(self, motion: MotionFile, waypoints: NDArray[np.int64]) -> Carried:
        payloads = payloads_of(motion)
        return Carried.always(self.payload, len(waypoints)) if payloads is None else Carried(payloads, waypoints)

    def between(self, start: Array, end: Array, speed: float = math.inf, tool: Tool | None = None) -> Trajectory:
        """The straight move, from rest to rest, between two poses (7,), base frame, at most at a speed [m/s]; errors as
        `plan`. With redundant joints behind one of them these move, too.

        In a configuration-dependent motion space the actuators go straight instead. With a tool, its point does.
        """
        tool = None if tool is None else replace(tool, mass=0.0)  # what is carried stays as it is
        rows = [np.array(pose, dtype=np.float64)[None] for pose in (start, end)]
        if len(start) != len(end):
            rows = [
                self.kinematics.engine.inputs.beside(row, 0.0 if self.beside is None else self.beside) for row in rows
            ]
        poses = np.vstack(rows)
        ends = ("the start", "the goal")
        motion = MotionFile.through("", poses, ends, self.platform, speeds=np.full(2, speed), tool=tool)
        return self.plan(motion)

    @staticmethod
    def rest(pose: Array, duration: float) -> Trajectory:
        """The trajectory that stays at a pose (7,), base frame, for a duration [s]."""
        return Trajectory([Rest(np.asarray(pose, dtype=np.float64), duration)])

    # Waypoints without times

    def _leader(self, motion: MotionFile) -> Tool | None:
        """The tool whose point goes straight; None where it is the platform's origin that does. A platform that turns
        about a point that it cannot shift, as a wrist does, leads no tool straight.
        """
        tool, k = motion.tool, self.kinematics
        if tool is None or not tool.offset or not k.constant_space:
            return None
        space = np.asarray(k.subspace(k.home), dtype=np.float64)
        arm = tool.on_platform(k.home)[:3] - k.home[:3]
        still = np.vstack([np.cross(arm, space[3:], axisb=0).T, np.zeros_like(space[3:])])  # shifts that keep its point
        rest = still - space @ np.linalg.lstsq(space, still, rcond=None)[0]
        return tool if np.abs(rest).max() < 1e-9 * max(1.0, float(np.abs(arm).max())) else None

    def _path(self, motion: MotionFile, first: int, last: int) -> Path:
        try:
            return self._found_path(motion, first, last)
        except ValueError as error:
            where = f"on the way to {motion.describe(last)}"
            raise UnreachableMotionError(where, _place(motion.poses[last]), str(error)) from error

    def _found_path(self, motion: MotionFile, first: int, last: int) -> Path:
        if self._straight:
            leader = self._leader(motion)
            path = RoundedPath(_led(motion.poses[first : last + 1], leader), motion.blends[first + 1 : last])
            if self._tilts:
                return TiltingPath(self.kinematics, path)
            return path if leader is None else ToolPath(leader, path)
        start, end = motion.poses[first], motion.poses[last]
        self._require_reachable(self._at(motion.poses[first : last + 1]), lambda i: motion.describe((first, last)[i]))
        there, back = (start.tobytes(), end.tobytes()), (end.tobytes(), start.tobytes())
        if back in self._paths:  # a tour goes to and fro
            return self._paths[back].back()
        self._paths[there] = ActuatorPath(self.kinematics, start, end, self.mode)
        return self._paths[there]

    def _inner_stops(self, motion: MotionFile) -> list[int]:
        if not self._straight:
            return list(range(1, len(motion) - 1))
        whole = RoundedPath(_led(motion.poses, self._leader(motion)), np.zeros(len(motion) - 2))
        middles = 0.5 * (whole.corners[:-1] + whole.corners[1:])
        before_corner = whole.sample(np.nextafter(whole.corners[1:-1], middles[:-1])).first
        after_corner = whole.sample(np.nextafter(whole.corners[1:-1], middles[1:])).first
        straight_on = np.linalg.norm(after_corner - before_corner, axis=1) < 1e-9
        rests = (motion.blends[1:-1] == 0.0) & ~straight_on | (motion.dwells[1:-1] > 0.0)
        return [int(i) + 1 for i in np.flatnonzero(rests)]

    def _runs(
        self, motion: MotionFile, ways: list[tuple[int, int]], limits: PlatformLimits
    ) -> Iterator[tuple[int, PathPiece, str]]:
        """Last waypoint of each way from rest to rest, its quickest piece, and what limits it."""
        for at in range(0, len(ways), _LINES_AT_ONCE):
            part = ways[at : at + _LINES_AT_ONCE]
            begin = part[0][0]
            self.done = f"waypoint {begin + 1} of {len(motion)}, {100 * begin // len(motion)} % done"
            simple = self.kinematics.constant_space and self._pulling is None and all(b == a + 1 for a, b in part)
            simple = simple and motion.poses.shape[1] == 7
            found = self._plan_lines(motion, begin, len(part), limits) if simple else [None] * len(part)
            for (first, last), line in zip(part, found, strict=True):
                yield last, *(line or self._plan_free(motion, first, last, limits))

    def _plan_lines(
        self, motion: MotionFile, begin: int, count: int, limits: PlatformLimits
    ) -> list[tuple[PathPiece, str] | None]:
        """The quickest straight pieces from a waypoint on, each to the next one; None where one is not sure. They are
        found from terms on a grid, and then samples of them are asked of the robot itself.
        """
        leader, n = self._leader(motion), _POINTS_PER_INTERVAL
        poses = _led(motion.poses[begin : begin + count + 1], leader)
        whole = _line(poses, leader)
        shares, spans = np.linspace(0.0, 1.0, n), np.diff(whole.corners)
        inside = np.clip(shares, 1e-9, 1.0 - 1e-9)  # at corners the next line begins
        sample = whole.sample((whole.corners[:-1, None] + spans[:, None] * inside).ravel())
        at, waypoint = self._at(sample.pose), np.repeat(np.arange(count), n) + begin + 1
        carried = self._carried(motion, waypoint - 1)
        try:
            rest = self._require_reachable(at, lambda i: motion.describe(int(waypoint[i])), carried)
        except UnreachableMotionError:  # said by who plans these one by one, if it comes that far
            return [None] * count
        terms = self._terms(sample, at, carried, rest)
        rows = self._bounds((spans[:, None] * shares).ravel(), sample, terms, motion, waypoint, limits)
        drives = np.column_stack([self._velocity, self._acceleration, self._effort])
        bounds = LineBounds(limits, drives, self.actuators.names, (_MIN_SAMPLES, _MAX_SAMPLES, _SAMPLING))
        laws = []
        for part in (slice(i * n, (i + 1) * n) for i in range(count)):
            straight = is_straight(sample.first[part], sample.second[part])
            speeds = fastest(rows.part(part)) if straight else None
            law = None if speeds is None else (rows.grid[part], speeds, _windows(limits), sample.first[part.start])
            laws.append((law, terms[part]))
        runs: list[LineRun | None] = [None] * count
        kept = np.zeros(count, dtype=bool)
        for reserve in _RESERVES:
            for i in np.flatnonzero(~kept).tolist():
                law, along = laws[i]
                runs[i] = None if law is None else quickest_run(*law, along, bounds, reserve)
            kept = self._keeps(motion, begin, whole, runs)
            if kept.all():
                break
        found: list[tuple[PathPiece, str] | None] = [None] * count
        for i, run in enumerate(runs):
            if run is not None and kept[i]:
                piece = PathPiece(_line(poses[i : i + 2], leader), run.law, run.stretch)
                found[i] = piece, _note(motion, begin + i, begin + i + 1, piece, run.limit)
        return found

    def _keeps(self, motion: MotionFile, begin: int, whole: Path, runs: list[LineRun | None]) -> NDArray[np.bool_]:
        kept = np.array([run is not None for run in runs])
        if not kept.any():
            return kept
        laws = [run.samples(_ASKED) for run in runs if run is not None]
        which = np.repeat(np.flatnonzero(kept), _ASKED + 1)
        s, speed, change = np.concatenate(laws).T[:, :, None]
        sample = whole.sample(whole.corners[which] + s[:, 0])
        twist, acceleration = sample.first * speed, sample.first * change
        at = self._at(sample.pose)
        found = at.motion(twist, acceleration)
        efforts = self._efforts(at, twist, acceleration, self._carried(motion, which + begin)).effort
        speeds, changes = found.actuated_velocities / self._velocity, found.actuated_accelerations / self._acceleration
        shares = np.abs(np.hstack([speeds, changes, efforts / self._effort]))
        broken = (at.status != 0) | ~(shares.max(axis=1) <= 1.0)
        kept[which[broken]] = False
        return kept

    def _plan_free(self, motion: MotionFile, first: int, last: int, limits: PlatformLimits) -> tuple[PathPiece, str]:
        path = self._path(motion, first, last)
        breaks = path.breaks()
        points = max(8, min(_POINTS_PER_INTERVAL, _MAX_GRID // len(breaks)) // self._coarser)
        parts = [np.linspace(a, b, points)[1:] for a, b in pairwise(breaks)]
        grid = np.concatenate([[0.0], *parts])
        sample = path.sample(grid)
        segment = path.segment(grid) + first
        at, on_it = self._at(sample.pose), self._carried(motion, segment)

        def named(i: int) -> str:
            return motion.describe(int(segment[i]) + 1)

        rest = self._require_reachable(at, named, on_it)
        terms = self._terms(sample, at, on_it, rest)
        speeds = fastest(self._bounds(grid, sample, terms, motion, segment + 1, limits))
        if speeds is None:
            raise self._too_heavy(at, named, on_it)

        def carried(s: Array) -> Carried:
            return self._carried(motion, path.segment(s) + first)

        best: PathPiece | None = None
        decisive = ""
        for window in _windows(limits)[:: self._coarser]:
            law = SmoothTimeLaw(grid, speeds, window)
            worth = math.inf if best is None else best.duration / law.duration
            stretch, limit = self._stretch(path, law, limits, worth, carried)
            if best is None or law.duration * stretch < best.duration:
                best = PathPiece(path, law, stretch)
                decisive = limit
        assert best is not None
        return best, _note(motion, first, last, best, decisive)

    def _terms(self, sample: PathSample, at: Configuration, carried: Carried, rest: Array) -> Array:
        """What the actuators do along a path, as terms (n, n_actuated, TERMS) as `kernels/quickest_run.py` has them.

        Efforts are quadratic in s', and `rest` (n, n_actuated) at rest, but for friction, which changes when the motion
        is reversed. Where actuators are one-sided their efforts are no such terms, and zero.
        """
        zero, creep = np.zeros_like(sample.first), 1e-3
        terms = np.zeros((len(zero), len(self.actuators.names), TERMS))
        terms[..., RATE] = at.motion(sample.first).actuated_velocities
        if np.isfinite(self._acceleration).any():
            terms[..., ALONG] = at.motion(zero, sample.first).actuated_accelerations
            terms[..., ACROSS] = at.motion(sample.first, sample.second).actuated_accelerations
        if self._pulling is not None:
            return terms

        def effort(twist: Array, acceleration: Array) -> Array:
            return self._efforts(at, twist, acceleration, carried).effort

        forth, back = effort(sample.first, sample.second), effort(-sample.first, sample.second)
        dry = effort(creep * sample.first, zero) - rest
        terms[..., A], terms[..., C] = effort(zero, sample.first) - rest, rest
        terms[..., B] = 0.5 * (forth + back) - rest
        terms[..., DRY], terms[..., VISCOUS] = dry, 0.5 * (forth - back) - dry
        return terms

    def _bounds(
        self,
        grid: Array,
        sample: PathSample,
        terms: Array,
        motion: MotionFile,
        waypoint: NDArray[np.int64],
        limits: PlatformLimits,
    ) -> PathBounds:
        """Bounds on the speed along the path; efforts less dry friction, the rest of which the final check sees."""
        n = len(grid)
        linear = _norm_bound(sample.first[:, :3], sample.second[:, :3], limits.linear_acceleration)
        angular = _norm_bound(sample.first[:, 3:6], sample.second[:, 3:6], limits.angular_acceleration)
        strong = np.isfinite(self._effort) & (self._pulling is None)  # one-sided efforts are no rows: only looked at
        fast = np.isfinite(self._acceleration)
        none = np.zeros((n, int(fast.sum())))
        efforts = (*(terms[:, strong, k] for k in (A, B, C)), self._effort[strong] - np.abs(terms[:, strong, DRY]))
        changes = (terms[:, fast, ALONG], terms[:, fast, ACROSS], none, none + self._acceleration[fast])
        a, b, c, g = (np.hstack(parts) for parts in zip(linear, angular, efforts, changes, strict=True))
        led = sample.first[:, :3] if sample.led is None else sample.led
        turning = np.minimum(motion.angular_speeds[waypoint], limits.angular_velocity)
        with np.errstate(divide="ignore", invalid="ignore"):
            speeds = [
                motion.speeds[waypoint] / np.linalg.norm(led, axis=1),
                limits.linear_velocity / np.linalg.norm(sample.first[:, :3], axis=1),
                turning / np.linalg.norm(sample.first[:, 3:6], axis=1),
                *np.abs(self._velocity / terms[..., RATE]).T,
                np.full(n, 1e3),  # where nothing else bounds the speed
            ]
        square_max = np.min(np.nan_to_num(speeds, nan=np.inf), axis=0) ** 2
        return PathBounds(grid, a, b, c, g, square_max)

    def _stretch(
        self,
        path: Path,
        law: SmoothTimeLaw,
        limits: PlatformLimits,
        worth: float,
        carried_at: Callable[[Array], Carried],
    ) -> tuple[float, str]:
        """Factor by which the law must be slowed down (or may be sped up) for all limits to hold, and what decides it.

        Velocities, accelerations and jerks scale with powers of the stretch; efforts do not, because of gravity and
        friction, so they are searched. Beyond the stretch `worth` the search ends, with infinity.
        """
        times = _check_times(law.duration, self._coarser)
        pose, twist, acceleration = PathPiece(path, law).sample(times)
        at, carried = self._at(pose), carried_at(law.sample(times)[0])
        loads = self._motion_loads(times, at, twist, acceleration, limits)
        needed = {load.name: load.ratio ** (1.0 / load.order) for load in loads}
        name = max(needed, key=lambda key: needed[key])
        stretch = max(needed[name], 1.0)  # the programmed speeds hold too, so never faster than the law
        if stretch >= worth:
            return math.inf, name

        def slowed(factor: float) -> _Load:
            return self._effort_load(at, twist / factor, acceleration / factor**2, carried)

        if slowed(stretch).ratio > 1.0:
            if math.isfinite(worth) and (load := slowed(worth)).ratio > 1.0:
                return math.inf, load.name
            low, high = stretch, stretch
            for _ in range(8):
                low, high = high, 1.5 * high
                if slowed(high).ratio <= 1.0:
                    break
            else:
                load = self._effort_load(at, 0.0 * twist, 0.0 * acceleration, carried)
                if load.ratio > 1.0:
                    raise load.error("at rest on the path", _REMEDY_HEAVY)
                raise slowed(high).error("on the path, however slowly", _REMEDY_SINGULAR)
            over, load = slowed(low).ratio, slowed(high)
            for _ in range(10):  # along the chord over 1 / factor^2, in which loads are convex but for friction
                if load.ratio > _USED_UP:
                    break
                chord = self._pulling is None and math.isfinite(over)
                share = (_SOUGHT - load.ratio) / (over - load.ratio) if chord else 0.5
                middle = (high**-2 + share * (low**-2 - high**-2)) ** -0.5
                found = slowed(middle)
                low, over = (low, over) if found.ratio <= 1.0 else (middle, found.ratio)
                high, load = (middle, found) if found.ratio <= 1.0 else (high, load)
            return high, load.name
        if needed[name] >= 0.999:
            return stretch, name
        return stretch, "the programmed speed or the actuators"

    # Waypoints with times

    def _plan_timed(self, motion: MotionFile, limits: PlatformLimits) -> Trajectory:
        assert motion.times is not None
        n, leader = len(motion), self._leader(motion)
        if motion.straight:
            stops = list(range(n))
        else:
            stops = [0, *(i for i in range(1, n - 1) if motion.dwells[i] > 0.0), n - 1]
        pieces: list[Piece] = []
        _dwell(pieces, motion, 0)
        for first, last in pairwise(stops):
            times = motion.times[first : last + 1].copy()
            times[0] += motion.dwells[first]
            curve = TimedCurve(times, _led(motion.poses[first : last + 1], leader))
            piece = curve if leader is None else ToolCurve(leader, curve)
            self._require_kept(motion, times, first, piece, limits)
            pieces.append(piece)
            _dwell(pieces, motion, last)
        plan = Trajectory(pieces, (f"{motion.source}: times kept as given",))
        return self._with_events(motion, plan, (motion.times - motion.times[0]).tolist())

    def _require_kept(
        self, motion: MotionFile, waypoint_times: Array, first: int, piece: Piece, limits: PlatformLimits
    ) -> None:
        times = _check_times(piece.duration)
        pose, twist, acceleration = piece.sample(times)
        which = np.clip(np.searchsorted(waypoint_times - waypoint_times[0], times), 1, len(waypoint_times) - 1)

        def named(i: int) -> str:
            return motion.describe(first + int(which[i]))

        carried = self._carried(motion, which - 1 + first)
        at = self._at(pose)
        self._require_reachable(at, named, carried)
        loads = self._motion_loads(times, at, twist, acceleration, limits)
        loads.append(self._effort_load(at, twist, acceleration, carried))
        worst = max(loads, key=lambda load: load.ratio)
        if worst.ratio > 1.0 + 1e-9:
            moment = waypoint_times[0] + times[worst.sample]
            where = f"on the way to {named(worst.sample)} at {moment:.4g} s"
            raise worst.error(where, "give this part more time")

    # What both need

    def _require_reachable(
        self, at: Configuration, named: Callable[[int], str], carried: Carried | None = None
    ) -> Array:
        """Efforts (n, n_actuated) at rest; `UnreachableMotionError` where a sample is no way on, or not held."""

        def refuse(i: int, reason: str) -> UnreachableMotionError:
            return UnreachableMotionError(f"on the way to {named(i)}", _place(at.pose[i]), reason)

        pose, actuated = at.pose, at.actuated
        bad = np.flatnonzero(at.status)
        if bad.size:
            first, last = int(bad[0]), len(pose) - 1
            end = f"; {named(last)} itself is out of reach" if first < last == bad[-1] else ""
            raise refuse(first, f"{at.reason(first)}{end}")
        jump = _first_jump(actuated)
        if jump is not None:
            farthest = int(np.argmax(np.abs(actuated[jump] - actuated[jump - 1])))
            raise refuse(jump, f"{self.actuators.names[farthest]} would have to jump")
        beyond = self.actuators.first_beyond(actuated, self.kinematics.engine.size)
        if beyond is not None:
            raise refuse(*beyond)
        if self.space is not None:
            near = np.flatnonzero(self.space.lacks(pose, self.space.margin))
            if near.size:
                raise refuse(int(near[0]), self.space.reason(pose[int(near[0])]))
        still = np.zeros((len(pose), 6))
        answer = self._efforts(at, still, still, carried or Carried.always(self.payload, len(pose)))
        status = np.asarray(answer.status)
        bad = np.flatnonzero(status != 0)
        if bad.size:
            i = int(bad[0])
            reason = f"the actuators cannot hold it there ({Status(int(status[i])).meaning})"
            if self._pulling is not None and status[i] == Status.EFFORT_LIMIT:
                reason = f"the actuators cannot hold it there within their bounds ({self.actuators.described_bounds})"
            raise refuse(i, reason)
        return np.asarray(answer.effort, dtype=np.float64)

    def _too_heavy(self, at: Configuration, named: Callable[[int], str], carried: Carried) -> LimitError:
        still = np.zeros((len(at.pose), 6))
        load = self._effort_load(at, still, still, carried)
        remedy = _REMEDY_HEAVY if load.value > load.bound else _REMEDY_FRICTION
        where = f"at rest on the way to {named(load.sample)}"
        return load.error(where, remedy)

    def _motion_loads(
        self, times: Array, at: Configuration, twist: Array, acceleration: Array, limits: PlatformLimits
    ) -> list[_Load]:
        jerk = np.diff(acceleration, axis=0) / np.diff(times)[:, None]
        loads = []
        for axis, unit, part in (("linear", "m", slice(3)), ("angular", "rad", slice(3, 6))):
            for order, (kind, values) in enumerate(zip(KINDS, (twist, acceleration, jerk), strict=True), 1):
                bound, what = getattr(limits, f"{axis}_{kind}"), f"{axis} {kind} of the platform"
                loads.append(_worst(what, f"{unit}/{_PER[order]}", values[:, part], bound, order))
        motion, limits_of = at.motion(twist, acceleration), (self._velocity, self._acceleration)
        whole = self.actuators.velocity, self.actuators.acceleration
        for i, (name, unit) in enumerate(zip(self.actuators.names, self.actuators.length_units, strict=True)):
            for order, values in enumerate((motion.actuated_velocities, motion.actuated_accelerations), 1):
                bound = float(limits_of[order - 1][i])
                what = f"{KINDS[order - 1]} of {name}"
                load = _worst(what, f"{unit}/{_PER[order]}", values[:, i : i + 1], bound, order)
                loads.append(replace(load, whole=float(whole[order - 1][i])))
        return loads

    def _effort_load(self, at: Configuration, twist: Array, acceleration: Array, carried: Carried) -> _Load:
        effort: Array = np.abs(self._efforts(at, twist, acceleration, carried).effort)
        none = np.flatnonzero(~np.isfinite(effort).all(axis=1)) if self._pulling is not None else np.zeros(0, np.int64)
        if none.size:  # twice what there is, whatever it would be
            return _Load("efforts within the bounds of the actuators", "of what there is", 2.0, 1.0, int(none[0]), 0)
        sample, actuator = np.unravel_index(int(np.argmax(effort / self._effort)), effort.shape)
        value, bound = float(effort[sample, actuator]), float(self._effort[actuator])
        unit = self.actuators.effort_units[actuator]
        whole = float(self.actuators.effort[actuator])
        return _Load(f"effort of {self.actuators.names[actuator]}", unit, value, bound, int(sample), 0, whole)

    def _efforts(self, at: Configuration, twist: Array, acceleration: Array, carried: Carried) -> Efforts:
        wrench = carried.wrench(self.kinematics.mechanism.gravity, at.pose, twist, acceleration)
        return self.dynamics.inverse(at, twist, acceleration, wrench, distribution=self._pulling)

    def _at(self, pose: Array) -> Configuration:
        return self.kinematics.at(pose, mode=self.mode)


_REMEDY_FRICTION = (
    "with the friction of its drive beside the weight nothing is left to move the platform; "
    "choose stronger actuators, or correct the friction"
)
_REMEDY_HEAVY = "the actuators cannot hold the platform there; choose another path or stronger actuators"
_REMEDY_SINGULAR = "the path comes too near a type 2 singularity, where drives push in vain; choose another"


def _dwell(pieces: list[Piece], motion: MotionFile, index: int) -> None:
    if motion.dwells[index] > 0.0:
        pieces.append(Rest(motion.poses[index], float(motion.dwells[index])))


def _windows(limits: PlatformLimits) -> list[float]:
    """Smoothing windows to try [s]: around the time in which the jerk limit builds up acceleration."""
    linear = limits.linear_acceleration, limits.linear_jerk
    angular = limits.angular_acceleration, limits.angular_jerk
    times = [one / jerk for one, jerk in (linear, angular) if math.isfinite(one) and math.isfinite(jerk)]
    base = min(max([0.004, *times]), 0.5)
    return [share * base for share in (0.5, 1.0, 1.4, 2.0, 2.8, 4.0)]


def _note(motion: MotionFile, first: int, last: int, piece: PathPiece, limit: str) -> str:
    return f"{motion.describe_way(first, last)}: {piece.duration:.4f} s, limited by {limit}"


def _line(poses: Array, leader: Tool | None) -> Path:
    """The path along which what leads goes straight from each of poses (n, 7) to the next."""
    path = RoundedPath(poses, np.zeros(len(poses) - 2))
    return path if leader is None else ToolPath(leader, path)


def _led(poses: Array, leader: Tool | None) -> Array:
    """Poses (n, 7) of what goes straight from waypoint to waypoint: the platform, or the tool that leads."""
    return poses if leader is None else np.hstack([leader.on_platform(poses[:, :7]), poses[:, 7:]])


def _place(pose: Array) -> str:
    place = f"at ({', '.join(fixed(value, 4) for value in pose[:3])}) m"
    turns = [fixed(turn, 2) for turn in np.degrees(rpy_from_rotation(rotation_from_quaternion(pose[3:7])))]
    return place if {*turns} == {"0.00"} else f"{place} with roll, pitch, yaw ({', '.join(turns)}) deg"


def _first_jump(positions: Array) -> int | None:
    """Row of positions (n, n_actuated), along a fine path, that does not continue the rows before it. Where a path is
    smooth, steps change little from row to row; a change of configuration is one out of all proportion.
    """
    steps = np.abs(np.diff(positions, axis=0)).max(axis=1)
    if len(steps) < 3:
        return None
    around = np.maximum(steps[:-2], steps[2:])
    out = np.flatnonzero((steps[1:-1] > 20.0 * around) & (steps[1:-1] > _JUMP))
    return int(out[0]) + 2 if out.size else None


def _worst(name: str, unit: str, values: Array, bound: float, order: int) -> _Load:
    norms = np.linalg.norm(values, axis=1)
    sample = int(np.argmax(norms))
    return _Load(name, unit, float(norms[sample]), bound, sample, order)


def _check_times(duration: float, coarser: int = 1) -> Array:
    return np.linspace(0.0, duration, int(min(max(_MIN_SAMPLES, duration / _SAMPLING), _MAX_SAMPLES)) // coarser)


def _norm_bound(first: Array, second: Array, bound: float) -> tuple[Array, Array, Array, Array]:
    """Linear rows that keep |first s'' + second s'^2| within `bound`: a regular polygon inside the circle. The vector
    lies in the plane of `first` (its tangent) and of the part of `second` across it (its normal).
    """
    n = len(first)
    if not math.isfinite(bound) or not (first.any() or second.any()):
        return np.empty((n, 0)), np.empty((n, 0)), np.empty((n, 0)), np.empty((n, 0))
    length = np.linalg.norm(first, axis=1, keepdims=True)
    tangent = first / np.maximum(length, 1e-12)
    along = np.sum(second * tangent, axis=1, keepdims=True)
    across = np.linalg.norm(second - along * tangent, axis=1, keepdims=True)
    angles = np.arange(_DIRECTIONS) * math.pi / _DIRECTIONS
    a = length * np.cos(angles)
    b = along * np.cos(angles) + across * np.sin(angles)
    inscribed = bound * math.cos(0.5 * math.pi / _DIRECTIONS)
    return a, b, np.zeros_like(a), np.full_like(a, inscribed)
