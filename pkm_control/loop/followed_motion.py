# SPDX-License-Identifier: Apache-2.0
"""A motion that is being followed, its run on its path, and the action of one period."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.riding import Passenger, RidingTrajectory
from pkm_control.motion.path_clock import CHANGE, Braking, PathClock
from pkm_control.motion.path_events import NO_EVENTS, PathEvents
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_kinematics.kernels.compiled_rotations import displacement_between, separation
from pkm_kinematics.solve.singularity import scaling


@dataclass(frozen=True)
class Tolerances:
    """How far the platform may be from its reference: m, rad, s; infinite: any. `there`: a share of those at the goal;
    a platform that is further off, though within them, is waited for as long as it comes nearer.
    """

    path_position: float = math.inf
    path_rotation: float = math.inf
    goal_position: float = math.inf
    goal_rotation: float = math.inf
    goal_time: float = 0.0
    there: float = 1.0


_NUMBERS = itertools.count(1)
ERRORS = ("rms_position_error", "rms_rotation_error", "max_position_error", "max_rotation_error")
FIGURES = ("elapsed", "position_error", "rotation_error", "samples", "squares", "largest")  # of a motion's run


@dataclass
class Motion:
    """A trajectory followed from `start` [s, of the readings], and its outcome. `number`: unique in its process."""

    trajectory: PointTrajectory
    start: float
    tolerances: Tolerances = field(default_factory=Tolerances)
    braking: Braking = field(default_factory=lambda: Braking.steady(CHANGE))  # how quickly its speed may be changed
    events: PathEvents = NO_EVENTS  # on its way
    withdrawn: bool = False  # by its client
    number: int = field(default_factory=lambda: next(_NUMBERS))
    outcome: Outcome | None = None
    reason: str = ""
    elapsed: float = 0.0  # s, on its path
    position_error: float = 0.0
    rotation_error: float = 0.0
    samples: int = 0
    squares: Array = field(default_factory=lambda: np.zeros(2))
    largest: Array = field(default_factory=lambda: np.zeros(2))

    def note(self, position_error: float, rotation_error: float) -> None:
        """Add the position error [m] and rotation error [rad] of one period."""
        self.position_error, self.rotation_error = position_error, rotation_error
        self.samples += 1
        for k, error in enumerate((position_error, rotation_error)):
            self.squares[k] += error * error
            self.largest[k] = max(self.largest[k], error)

    @property
    def rms(self) -> Array:
        """Root mean square of position and rotation error (2,)."""
        return np.asarray(np.sqrt(self.squares / max(self.samples, 1)))

    @property
    def errors(self) -> dict[str, float]:
        """Errors over the motion [m, rad], by the names that results have for them."""
        return dict(zip(ERRORS, (*self.rms.tolist(), *self.largest.tolist()), strict=True))


@dataclass(frozen=True, eq=False)
class Action:
    """What to do in one period, and why."""

    mode: Mode
    command: Array  # (n_actuated,) what the law commands: efforts, or positions
    reason: str = ""
    reference: Reference | None = None
    measured: Measured | None = None
    speed: float = 1.0  # fraction of their plan at which motions run
    withhold_command: bool = False  # send nothing, so that the machine closes its brakes


_FURTHER = 0.05  # s, on the path
_PLACES = 33  # on the path, at which the platform is looked for
_NEARER, _STILL = 0.9, 0.1  # of its distance before, and s: a platform that comes no nearer than that by then rests


class PathRun:
    """A motion under way: where on its path it is, and what keeps it from going on.

    `paused`: a pause was requested and not ended; `stopping`: why it is being ended, or empty. `away`: the platform is
    not on the path, but `aside` or `returning` to it; `goes_on`: once it rests, on with the motion. `left_behind` by
    its belt.
    """

    def __init__(self, motion: Motion, time: float, override: float, belts: Mapping[str, Belt]) -> None:
        trajectory = motion.trajectory
        self.motion = motion
        self.clock = PathClock(time - motion.start, override, motion.braking)
        self.paused = self.away = self.returning = self.goes_on = self.left_behind = self._unseen = False
        self.stopping = ""
        self.passenger: Passenger | None = None
        if isinstance(trajectory, RidingTrajectory):
            self.passenger = Passenger(trajectory, belts[trajectory.ride.frame])
        self._departed = -math.inf  # s, on its path: where the platform departed last
        self._overtime = 0.0  # s, since its end on its path
        self._nearest, self._nearest_at = math.inf, 0.0  # its distance from the goal, in tolerances, and when [s]

    @property
    def aside(self) -> bool:
        """Whether the platform is away, and not on its way back."""
        return self.away and not self.returning

    @property
    def begun(self) -> bool:
        """Whether it moves, or has moved."""
        return self.clock.time >= 0.0

    def begins_within(self, lead: float) -> bool:
        """Whether it has begun when a command of now acts, `lead` [s] later: its first acceleration is due then."""
        return self.begun or (self.passenger is None and self.clock.time + lead * self.clock.rate > 0.0)

    @property
    def resting(self) -> bool:
        """Whether it is halted on its path."""
        return self.clock.at_rest and self.clock.wanted == 0.0

    @property
    def pose(self) -> Array:
        """Pose (7,) at which it is on its path."""
        return self.motion.trajectory.at(max(self.clock.time, 0.0)).pose

    def set_pace(self, override: float) -> None:
        """Run at a fraction (0 to 1) of the planned speed, where nothing halts it."""
        self.clock.wanted = 0.0 if self.paused or self.stopping or self._unseen else override

    def leave(self) -> None:
        """Halt at once, as the platform leaves the path; go on later, unless it was paused."""
        self.goes_on = not self.paused or self.goes_on or self.returning
        self.clock = PathClock(self.clock.time, 0.0, self.motion.braking)
        self.paused = self.away = True
        self.returning = self._unseen = False

    def halt_unseen(self) -> bool:
        """Halt on the path until the platform is found; False where it rides on a belt, or is aside."""
        if self.passenger is not None or self.away:
            return False
        self._unseen, self.clock.wanted = True, 0.0
        return True

    def seen(self, override: float) -> None:
        """The platform is seen again."""
        self._unseen = False
        self.set_pace(override)

    def find(self, measured: Measured, silence: float, length: float, override: float) -> None:
        """Go on from where on the path that it may have run in a silence [s] the platform is nearest; angles count as
        arcs of radius `length` [m]. Not on a belt, nor aside, nor on the way back.
        """
        if self.passenger is not None or self.away or not self.begun:
            return
        trajectory, begin = self.motion.trajectory, self.motion.elapsed
        times = np.linspace(begin, max(min(begin + silence, trajectory.duration), begin), _PLACES)
        places = [trajectory.at(time) for time in times]
        apart = pose_distance(np.array([place.pose[:7] for place in places]), measured.pose[:7], length)
        nearest = int(np.argmin(apart))
        scale = scaling(length)
        ahead, twist = displacement_between(places[nearest].pose, measured.pose) * scale, places[nearest].twist * scale
        along = float(twist @ twist)
        time, rate = float(times[nearest]), self.clock.rate
        if along > 0.0:
            time = min(max(time + float(twist @ ahead) / along, float(times[0])), float(times[-1]))
            rate = min(max(float(twist @ (measured.twist * scale)) / along, 0.0), 1.0)
        self.clock = PathClock(time, rate, self.motion.braking)
        self.set_pace(override)

    def returned(self, there: bool, override: float) -> None:
        """Note that the way back ended; `there`: on the path, so that it goes on."""
        self.returning = False
        if there:
            self.away = self.paused = False
            self.set_pace(override)

    def depart(self) -> bool:
        """Note that the platform departs from the path, or from the way back; whether it came further than before."""
        before, self._departed = self._departed, self.clock.time
        return self.clock.time > before + _FURTHER

    def stop_outcome(self, lost: str) -> Outcome:
        """How it ends once it is stopped; `lost`: why forces can no longer be followed, or empty."""
        return Outcome.STATE_LOST if lost or self.left_behind else Outcome.PREEMPTED

    def advance(self, passed: float, time: float) -> str:
        """Let time pass [s], until `time` of the readings; why it has to end, because of its belt, or empty."""
        self.clock.advance(passed)
        return "" if self.passenger is None else self.passenger.advance(time, self.clock, bool(self.stopping))

    def foresee(self, after: float, lead: float, ahead: float) -> Reference | None:
        """The reference `after` some time [s] if it goes on as now; None on a belt, and where it is not on its path."""
        if self.passenger is not None or self.away or not self.begun:
            return None
        clock = copy(self.clock)
        clock.advance(after)
        return clock.reference(self.motion.trajectory, lead, ahead)

    def reference(self, lead: float, ahead: float) -> Reference:
        """The present reference; `lead` and `ahead` as in `PathClock.reference`."""
        if self.passenger is not None:
            return self.passenger.reference(self.clock, lead)
        return self.clock.reference(self.motion.trajectory, lead, ahead)

    def judge(self, passed: float, reference: Reference, measured: Measured) -> tuple[Outcome, str] | None:
        """Compare with the tolerances, on the path: the outcome and the reason where it fails or is done."""
        if self.returning:
            return None
        motion, elapsed = self.motion, self.clock.time
        position, rotation = separation(measured.pose, reference.pose)
        motion.elapsed = min(elapsed, motion.trajectory.duration)
        allowed = motion.tolerances
        if elapsed <= motion.trajectory.duration:
            motion.note(position, rotation)
            reason = ""
            if position > allowed.path_position:
                reason = f"{1e3 * position:.3f} mm from the path, more than {1e3 * allowed.path_position:.3f} mm"
            elif rotation > allowed.path_rotation:
                reason = f"{rotation:.4g} rad from the path, more than {allowed.path_rotation:.4g} rad"
            return (Outcome.PATH_TOLERANCE_VIOLATED, reason) if reason else None
        self._overtime += passed
        if self.left_behind:
            return Outcome.STATE_LOST, self.stopping
        late = self._overtime > allowed.goal_time
        if position <= allowed.goal_position and rotation <= allowed.goal_rotation:
            return (Outcome.SUCCESSFUL, "") if late or self._settled(position, rotation) else None
        if late:
            reason = f"{1e3 * position:.3f} mm and {rotation:.4g} rad from the goal"
            return Outcome.GOAL_TOLERANCE_VIOLATED, reason
        return None

    def _settled(self, position: float, rotation: float) -> bool:
        allowed = self.motion.tolerances
        if allowed.there >= 1.0:
            return True
        apart = max(position / allowed.goal_position, rotation / allowed.goal_rotation)
        if apart < _NEARER * self._nearest:
            self._nearest, self._nearest_at = apart, self._overtime
        return apart < allowed.there or self._overtime - self._nearest_at > _STILL
