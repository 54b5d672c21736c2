# SPDX-License-Identifier: Apache-2.0
"""When and how a motion boards a conveyor: its legs planned in the frame at rest, then timed for a moving object.

All legs are those of the one planner, with the object at its place in the middle of the ride. Carried by the belt, they
may ask for more than the robot can do; the part that does is given more time, until the curve check passes it with a
little in reserve. The belt's travel at which the motion has to begin follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pkm_control.conveyor.conveyor import STANDS, BeltState, Conveyor, ConveyorError, Ride
from pkm_control.conveyor.riding import RidingTrajectory
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.files.motion_file import MotionFile, events_of
from pkm_control.motion.path_events import NO_EVENTS
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.motion.trajectory import Trajectory
from pkm_description.mechanism import Array, Inertial

_RESERVE = 0.1  # of speeds and efforts, left to the controller on the belt
_SHORTEST = 0.15  # s, to board and to leave where the platform is there already
_INSTANT = 0.01  # s, on the belt, where nothing is to be done there
_SAME = 1e-6  # of the window, and of a leg: places nearer than this are one
_SLOWER = 1.2
_TRIES = 25  # to give a part more time
_PLACES = 5  # tried for the middle of the ride
_AHEAD = 0.3  # s, from the last plan to the motion's start
_MARGIN = 0.005  # m, beyond what planning took: of belts and their encoders, not of the robot
_LOOKS = 400  # along a leg
_KEPT = 64  # plans of legs


@dataclass(frozen=True, eq=False)
class _Plan:
    points: MotionPoints
    instants: tuple[float, float, float, float]

    @property
    def middle(self) -> float:
        return 0.5 * (self.instants[1] + self.instants[2])

    @property
    def half(self) -> float:
        return 0.5 * (self.instants[2] - self.instants[1])


class Boarding:
    """Plans motions that ride; `check` is of curves, with limits of the actuators that are lowered by a little."""

    def __init__(self, planner: MotionPlanner, check: CurveCheck) -> None:
        limits, most = check.limits, 1.0 - _RESERVE
        lowered = replace(
            limits,
            velocity=most * limits.velocity,
            effort=most * limits.effort,
            effort_range=None if limits.effort_range is None else limits.bounds(_RESERVE),
        )
        self._planner = planner
        self._check = replace(check, limits=lowered)
        self._legs: dict[bytes, Trajectory] = {}

    def plan(
        self,
        motion: MotionFile,
        conveyor: Conveyor,
        look: Callable[[], BeltState],
        at: float,
        here: Array,
        payload: Inertial | None = None,
    ) -> MotionPoints:
        """Points of the motion, a file in the frame of a conveyor, for one object, with the ride.

        `look` returns the present state of the belt; `at` is its travel when the object was at the conveyor's origin
        [m]; `here` (7,) is where the platform is held, base frame, with its `payload`. ConveyorError: the belt is not
        known, the object is not in the window long enough, or the robot cannot.
        """
        if motion.riding is None:
            raise ConveyorError(f"{motion.source} is in a fixed frame: it needs the line '# frame: conveyor'")
        self._planner, self._check.payload = self._planner.carrying(payload), payload
        belt = _known(look())
        stands = abs(belt.speed) < STANDS
        speed, onward = (0.0, 1.0) if stands else (belt.speed, float(np.sign(belt.speed)))
        begin, end = sorted(onward * edge for edge in conveyor.window)
        same = _SAME * (end - begin)
        place = belt.travel - at if stands else onward * begin + speed * 2.0 * _SHORTEST
        for _ in range(_PLACES):
            if not begin - same <= onward * place <= end + same:
                raise ConveyorError(_gone(conveyor, belt, at))
            plan = self._at(motion, conveyor, speed, place, here)
            now = _known(look())
            half = abs(speed) * plan.half
            soonest = onward * (now.travel - at + speed * (_AHEAD + plan.middle))
            needed = max(begin + half, soonest) if not stands else onward * place
            if needed + half > end + same:
                raise ConveyorError(_gone(conveyor, now, at, onward * needed, half))
            if needed - same <= onward * place <= end - half + same:
                start = at + place - speed * plan.middle
                return replace(plan.points, ride=Ride(conveyor.name, at + place, start, plan.instants))
            soonest += abs(now.travel - belt.travel)  # planning takes as long again
            place = onward * max(min(max(begin + half, soonest) + _MARGIN, end - half), needed)
            belt = now
        raise ConveyorError(f"planning takes longer than the object stays: conveyor '{conveyor.name}' is too fast")

    # -- the legs ---------------------------------------------------------------------------------------------------

    def _at(self, motion: MotionFile, conveyor: Conveyor, speed: float, place: float, here: Array) -> _Plan:
        legs, boards, left = self._planned(_standing(motion, conveyor, place), here)
        factors = [1.0, 1.0, 1.0]
        for _ in range(_TRIES):
            plan = _joined(legs, factors, boards, left)
            problem, part = self._fault(plan, conveyor, speed, place)
            if not problem:
                return plan
            if part < 0:
                break
            factors[part] *= _SLOWER
        raise ConveyorError(f"it cannot ride on conveyor '{conveyor.name}' at {speed:.3g} m/s: {problem}")

    def _planned(
        self, motion: MotionFile, here: Array
    ) -> tuple[tuple[Trajectory, Trajectory, Trajectory], float, float]:
        """The legs to the belt, on it and away, when boarding begins in the first, and when it ends in the last."""
        assert motion.riding is not None
        rides = np.flatnonzero(motion.riding)
        first, last = int(rides[0]), int(rides[-1])
        before, after = list(range(first)), list(range(last + 1, len(motion)))
        to = self._leg(motion, [*before, first], here, rests=before)
        on = self._leg(motion, list(rides), None, rests=list(rides), shortest=_INSTANT)
        away = self._leg(motion, [last, *after], None, rests=after)
        boards = _passes(to, motion.poses[first - 1])[-1] if before else 0.0
        left = _passes(away, motion.poses[last + 1])[0] if after else away.duration
        return (to, on, away), boards, left

    def _leg(
        self, motion: MotionFile, rows: list[int], here: Array | None, rests: list[int], shortest: float = _SHORTEST
    ) -> Trajectory:
        """Plan the way through some waypoints, from `here` where it is given, at rest only at those of `rests`."""
        dwells = np.array([motion.dwells[row] if row in rests else 0.0 for row in rows])
        poses = motion.poses[rows]
        outputs = {name: values[rows] for name, values in motion.outputs.items()}
        if here is None:  # the leg before has set them
            outputs = {name: np.concatenate([[np.nan], values[1:]]) for name, values in outputs.items()}
        elif not self._planner.same(here, poses[0]):
            rows, dwells, poses = [rows[0], *rows], np.concatenate([[0.0], dwells]), np.vstack([here, poses])
            outputs = {name: np.concatenate([[np.nan], values]) for name, values in outputs.items()}
        part = replace(
            motion,
            poses=poses,
            speeds=motion.speeds[rows],
            angular_speeds=motion.angular_speeds[rows],
            blends=np.concatenate([[0.0], motion.blends[rows[1:-1]], [0.0]]),
            dwells=dwells,
            labels=tuple(motion.labels[row] for row in rows),
            lines=tuple(motion.lines[row] for row in rows) if motion.lines else (),
            riding=None,
            payloads=None if motion.payloads is None else motion.payloads[rows],
            outputs=outputs,
        )
        if len(rows) == 1:
            rest = MotionPlanner.rest(poses[0], max(float(dwells[0]), shortest))
            return Trajectory(rest.pieces, events=events_of(part, [rest.duration]))
        happens = np.array([*outputs.values()]), np.zeros(0) if part.payloads is None else part.payloads
        numbers = poses, part.speeds, part.blends, dwells, *happens
        key = repr(self._planner.payload).encode() + b"".join(np.ascontiguousarray(x).tobytes() for x in numbers)
        if key not in self._legs:
            while len(self._legs) >= _KEPT:
                self._legs.pop(next(iter(self._legs)))
            self._legs[key] = self._planner.plan(part)
        return self._legs[key]

    def _fault(self, plan: _Plan, conveyor: Conveyor, speed: float, place: float) -> tuple[str, int]:
        """What is wrong with a plan wherever the belt may be, and which part needs more time; -1: none."""
        begin = place - speed * plan.middle
        points = plan.points.trajectory(self._check.kinematics, None, _SAME)
        ride = Ride(conveyor.name, place, begin, plan.instants)
        curve = RidingTrajectory(points, ride, conveyor, BeltState(begin, speed))
        times = self._check.times(curve)
        carried = plan.points.events.carried(times, self._check.payload)
        for aside in (0.0, -conveyor.deviation, conveyor.deviation):
            pose, twist, acceleration = curve.shifted(aside).sample(times)
            fault = self._check.first_fault(pose, twist, acceleration, carried=carried)
            if fault is None:
                continue
            at = float(times[fault.sample])
            reason = f"{at:.3f} s from its start, {begin + speed * at:.3g} m from the conveyor's origin: {fault.reason}"
            if self._check.first_fault(pose[fault.sample, None]) is not None:
                return reason, -1
            return reason, int(np.searchsorted(plan.instants[1:3], at))
        return "", 0


def _standing(motion: MotionFile, conveyor: Conveyor, place: float) -> MotionFile:
    poses = motion.poses.copy()
    poses[motion.riding, :3] += conveyor.origin + place * conveyor.direction
    if motion.of_tool and motion.tool is not None:
        poses = motion.tool.of_platform(poses)
    return replace(motion, poses=poses, of_tool=False)


def _joined(legs: tuple[Trajectory, Trajectory, Trajectory], factors: list[float], boards: float, left: float) -> _Plan:
    ends = np.cumsum([0.0, *(leg.duration * factor for leg, factor in zip(legs, factors, strict=True))])
    parts, events = [], NO_EVENTS
    for number, (leg, factor) in enumerate(zip(legs, factors, strict=True)):
        points, skip = MotionPoints.of(leg), min(number, 1)
        events = events.then(leg.events.timed(factor), float(ends[number]))
        rows = points.times * factor + ends[number], points.poses, points.twists / factor
        parts.append([row[skip:] for row in (*rows, points.accelerations / factor**2)])
    times, poses, twists, accelerations = (np.concatenate(column) for column in zip(*parts, strict=True))
    instants = (boards * factors[0], float(ends[1]), float(ends[2]), float(ends[2]) + left * factors[2])
    return _Plan(MotionPoints(times, poses, twists, accelerations, events=events), instants)


def _passes(leg: Trajectory, pose: Array) -> Array:
    sample = leg.sample(np.linspace(0.0, leg.duration, _LOOKS))
    away = np.linalg.norm(sample.pose[:, :3] - pose[:3], axis=1) + 1.0 - np.abs(sample.pose[:, 3:] @ pose[3:])
    return np.asarray(sample.times[away <= away.min() + _SAME * away.max()])


def _known(belt: BeltState) -> BeltState:
    if belt.problem:
        raise ConveyorError(belt.problem)
    return belt


def _gone(conveyor: Conveyor, belt: BeltState, at: float, middle: float = np.nan, half: float = 0.0) -> str:
    begin, end = conveyor.window
    where = f"the object is {belt.travel - at:.3g} m from the origin of conveyor '{conveyor.name}'"
    window = f"the window from {begin:g} to {end:g} m"
    if abs(belt.speed) < STANDS:
        return f"{where}, which stands: it is not in {window}"
    if np.isnan(middle):
        return f"{where}, which runs at {belt.speed:.3g} m/s; {window} has no room for it"
    sign = np.sign(belt.speed)
    return (
        f"{where}, which runs at {belt.speed:.3g} m/s: it would be followed from {sign * (middle - half):.3g} to "
        f"{sign * (middle + half):.3g} m at the earliest, and leaves {window} before"
    )
