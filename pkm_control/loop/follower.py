# SPDX-License-Identifier: Apache-2.0
"""What a controller does from reading to reading: hold, follow a motion, stop when the readings stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.loop.guard import EffortGuard
from pkm_control.loop.platform_observer import PlatformObserver
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

Array = NDArray[np.float64]


class Mode(IntEnum):
    """What the controller is doing."""

    WAITING = 0  # no reading yet
    HOLDING = 1
    TRACKING = 2
    STOPPED = 3  # readings are silent or unusable


class Outcome(IntEnum):
    """How a motion ended; the codes of the action FollowPlatformTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -2
    GOAL_TOLERANCE_VIOLATED = -3
    PREEMPTED = -4
    STATE_LOST = -5


@dataclass(frozen=True)
class Tolerances:
    """How far the platform may be from its reference: m, rad, s; infinite: any."""

    path_position: float = math.inf
    path_rotation: float = math.inf
    goal_position: float = math.inf
    goal_rotation: float = math.inf
    goal_time: float = 0.0


@dataclass
class Motion:
    """A trajectory that is being followed from `start` [s, on the clock of the readings], and what became of it."""

    trajectory: PointTrajectory
    start: float
    tolerances: Tolerances = field(default_factory=Tolerances)
    outcome: Outcome | None = None
    reason: str = ""
    position_error: float = 0.0
    rotation_error: float = 0.0
    samples: int = 0
    squares: Array = field(default_factory=lambda: np.zeros(2))
    largest: Array = field(default_factory=lambda: np.zeros(2))

    def note(self, position_error: float, rotation_error: float) -> None:
        """Add the errors of one period.

        Args:
            position_error: m.
            rotation_error: rad.
        """
        self.position_error, self.rotation_error = position_error, rotation_error
        errors = np.array((position_error, rotation_error))
        self.samples += 1
        self.squares += errors**2
        self.largest = np.maximum(self.largest, errors)

    @property
    def rms(self) -> Array:
        """Root mean square of position and rotation error (2,)."""
        return np.asarray(np.sqrt(self.squares / max(self.samples, 1)))


@dataclass(frozen=True, eq=False)
class Action:
    """What to do in one period, and why."""

    mode: Mode
    efforts: Array
    reason: str = ""
    reference: Reference | None = None
    measured: Measured | None = None


class TrajectoryFollower:
    """A controller with its guard: one call for each reading, one when readings are missing.

    Readings carry their time [s], on whose clock motions run. When readings come back after a silence that was too
    short to lose the motion, the motion goes on; otherwise the platform is held where it is found.

    Args:
        kinematics: of the robot.
        controller: that computes the efforts.
        guard: that they pass.
        lead: from a reading to the middle of the time in which its efforts act [s]: half a period where they are
            applied at once, one period more where they take effect in the next. The acceleration is that of then.
        abort_after: silence of the readings that loses the motion [s].
    """

    def __init__(
        self,
        kinematics: Kinematics,
        controller: Controller,
        guard: EffortGuard,
        lead: float,
        abort_after: float = 1.0,
    ) -> None:
        self.controller = controller
        self.guard = guard
        self.lead = lead
        self.abort_after = abort_after
        self.motion: Motion | None = None
        self.mode = Mode.WAITING
        self._observer = PlatformObserver(kinematics)
        self._hold: Array | None = None
        self._heard = -math.inf

    def follow(self, motion: Motion) -> None:
        """Follow a motion from now on; one that is under way ends as preempted.

        Args:
            motion: whose outcome tells when it ends, and how.
        """
        self.end(Outcome.PREEMPTED, "another motion took over")
        self.motion = motion

    def end(self, outcome: Outcome, reason: str = "") -> None:
        """End the motion that is under way, if there is one; the platform holds where its reference is.

        Args:
            outcome: how the motion ended.
            reason: the same in words.
        """
        if self.motion is None:
            return
        self.motion.outcome, self.motion.reason = outcome, reason
        self.motion = None

    def _stop_here(self, outcome: Outcome, reason: str, measured: Measured) -> None:
        """End the motion, and hold where the platform is rather than where it should have been."""
        self.end(outcome, reason)
        self._hold = measured.pose.copy()

    def update(self, time: float, now: float, positions: Array, velocities: Array) -> Action:
        """What to do for a reading.

        Args:
            time: when it was taken [s], on the clock of the readings.
            now: when it came [s], on the clock of the caller.
            positions: of the actuators (n_actuated,) [rad or m].
            velocities: of the actuators (n_actuated,) [rad/s or m/s].

        Returns:
            The efforts to apply, and why, where they are not what the controller asked for.
        """
        silence = now - self._heard
        measured = self._observer.observe(positions, velocities)
        if measured is None:
            return self.silent(now, self._observer.reason)
        if silence > self.abort_after:
            self._stop_here(Outcome.STATE_LOST, f"no usable reading for {silence:.3g} s", measured)
        self._heard = now
        reference = self._reference(time)
        asked = self.controller.efforts(reference, measured)
        verdict = self.guard.check(now, {"measured state": now}, asked, measured.pose)
        if self.motion is not None:
            self._judge(self.motion, time, reference, measured)
        self.mode = Mode.HOLDING if self.motion is None else Mode.TRACKING
        if verdict.reason:
            self.mode = Mode.STOPPED
            self.end(Outcome.STATE_LOST, verdict.reason)
        return Action(self.mode, verdict.efforts, verdict.reason, reference, measured)

    def silent(self, now: float, reason: str = "") -> Action:
        """What to do when no usable reading has come.

        Args:
            now: s, on the clock of the caller.
            reason: why, where it is not mere silence.

        Returns:
            The fallback of the guard.
        """
        heard = None if self._heard == -math.inf else self._heard
        verdict = self.guard.check(now, {"measured state": heard}, None, self._observer.pose)
        if heard is None:
            return Action(Mode.WAITING, verdict.efforts, reason or verdict.reason)
        self.mode = Mode.STOPPED
        if now - heard > self.abort_after:
            self.end(Outcome.STATE_LOST, reason or verdict.reason)
        return Action(self.mode, verdict.efforts, "; ".join(r for r in (reason, verdict.reason) if r))

    def _reference(self, time: float) -> Reference:
        assert self._hold is not None
        if self.motion is None:
            return Reference(self._hold, np.zeros(6), np.zeros(6))
        if time < self.motion.start:
            return Reference(self._hold, np.zeros(6), np.zeros(6))
        since = time - self.motion.start
        reference = self.motion.trajectory.at(since)
        applied = self.motion.trajectory.at(since + self.lead)
        self._hold = reference.pose
        return Reference(reference.pose, reference.twist, applied.acceleration)

    def _judge(self, motion: Motion, time: float, reference: Reference, measured: Measured) -> None:
        """Compare with the tolerances; end the motion where it fails or is done."""
        error = displacement_between(measured.pose, reference.pose)
        position, rotation = float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))
        elapsed = time - motion.start
        if elapsed < 0.0:
            return
        allowed = motion.tolerances
        if elapsed <= motion.trajectory.duration:
            motion.note(position, rotation)
            if position > allowed.path_position:
                reason = f"{1e3 * position:.3f} mm from the path, more than {1e3 * allowed.path_position:.3f} mm"
                self._stop_here(Outcome.PATH_TOLERANCE_VIOLATED, reason, measured)
            elif rotation > allowed.path_rotation:
                reason = f"{rotation:.4g} rad from the path, more than {allowed.path_rotation:.4g} rad"
                self._stop_here(Outcome.PATH_TOLERANCE_VIOLATED, reason, measured)
            return
        if position <= allowed.goal_position and rotation <= allowed.goal_rotation:
            self.end(Outcome.SUCCESSFUL)
        elif elapsed > motion.trajectory.duration + allowed.goal_time:
            reason = f"{1e3 * position:.3f} mm and {rotation:.4g} rad from the goal"
            self.end(Outcome.GOAL_TOLERANCE_VIOLATED, reason)


def rehearse(follower: TrajectoryFollower, kinematics: Kinematics) -> None:
    """Have a follower that is not used otherwise do all that it will be asked to, at home and at rest.

    What is compiled, loaded or imported with the first call is so before time matters.

    Args:
        follower: with a controller and a guard of its own.
        kinematics: of the robot.
    """
    home, still = np.tile(kinematics.home, (2, 1)), np.zeros((2, 6))
    positions = np.asarray(kinematics.inverse(home).actuated[0], dtype=np.float64)
    rates = np.zeros_like(positions)
    follower.update(0.0, 0.0, positions, rates)
    follower.follow(Motion(PointTrajectory(np.array((0.0, 1.0)), home, still, still), 0.0))
    for time in (0.5, 2.0):
        follower.update(time, time, positions, rates)
    follower.silent(2.0 + 2.0 * follower.abort_after)
