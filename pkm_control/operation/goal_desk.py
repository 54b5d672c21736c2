# SPDX-License-Identifier: Apache-2.0
"""Where motions are admitted: in a thread of its own, so that neither control nor services wait for a check."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pkm_control.conveyor.conveyor import conveyor_named
from pkm_control.conveyor.riding import RidingTrajectory
from pkm_control.loop.follower import CHANGING, TrajectoryFollower
from pkm_control.loop.modes import Mode
from pkm_control.loop.motion import Motion, Tolerances
from pkm_control.motion.path_events import PathEvents
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.operation.controls import Controls
from pkm_control.operation.motion_points import MotionPoints
from pkm_description.errors import PkmError
from pkm_kinematics.kernels.compiled_rotations import displacement_between

START_DELAY = 0.05  # s, from a motion that is to begin at once to its beginning
START_TOLERANCE = 0.005  # m and rad: largest jump at the start of a motion
WAITING = 16  # motions that may wait for their turn
FARTHEST = 600.0  # s: a start later than that is taken for a mistake, such as that of another clock
_REST = 10.0  # s, within which a platform comes to rest
PAUSED = "the controller is paused: resume or stop first"
_LOST = (Mode.WAITING, Mode.STOPPED)
_STALL = 0.3  # s, that readings may be silent before a motion is refused for it
_LOOK = 0.002  # s, between two looks whether it is


class GoalError(PkmError):
    """A motion that is not admitted; the message says why."""


@dataclass(eq=False)
class Application:
    """A motion that asks to be followed: the `motion` it became, or the `problem` why not, once it is `done`.

    `points` makes the points, in the thread of the desk.
    """

    points: Callable[[], MotionPoints]
    tolerances: Tolerances = field(default_factory=Tolerances)
    motion: Motion | None = None
    problem: str = ""
    withdrawn: bool = False
    done: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will become of it."""
        if self.motion is None:
            return self.done
        return self.motion.outcome is not None


class GoalDesk:
    """Admits motions one after the other.

    A motion that comes while the platform moves is judged first. If it can be followed, the motion before it is brought
    to rest on its path, and the new one begins from there, at rest.

    Args:
        controls: the follower.
        settings: start delay [s] and start tolerance [m and rad], asked for with each motion.
        report: told the problem of each motion that is refused.
    """

    def __init__(
        self,
        controls: Controls,
        settings: Callable[[], tuple[float, float]] = lambda: (START_DELAY, START_TOLERANCE),
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._controls = controls
        self._settings = settings
        self._report = report
        self._queue: queue.Queue[Application | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="goals", daemon=True)
        self._thread.start()

    def apply(self, application: Application) -> None:
        """Take a motion, or refuse it at a glance.

        Args:
            application: its fields tell what became of it.
        """
        try:
            self._require_ready(self._controls.ready())
            if self._queue.qsize() >= WAITING:
                raise GoalError(f"{WAITING} trajectories wait to be checked already")
        except PkmError as error:
            self.refuse(application, error)
            return
        self._queue.put(application)

    def refuse(self, application: Application, error: Exception) -> None:
        """Answer a motion that is not looked at.

        Args:
            application: that is refused.
            error: why.
        """
        application.problem, application.done = str(error), True
        self._report(application.problem)

    def withdraw(self, application: Application) -> None:
        """Bring a motion to rest on its path, or keep it from being followed at all.

        Args:
            application: that was applied.
        """
        application.withdrawn = True
        follower = self._controls.follower
        with self._controls.lock:
            if follower is not None and application.motion is not None and follower.motion is application.motion:
                follower.stop("cancelled")

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join(2.0)

    def _run(self) -> None:
        while (application := self._queue.get()) is not None:
            try:
                self._admit(application)
            except PkmError as error:
                self.refuse(application, error)
            except Exception as error:  # the desk stays open: whatever one motion breaks, others come
                self.refuse(application, RuntimeError(f"the check failed: {error!r}"))
            application.done = True

    def _require_free(self, follower: TrajectoryFollower, patience: float) -> None:
        until = time.monotonic() + patience  # a computer that is busy may stall readings for some periods
        while (action := self._controls.action) is None or action.mode in _LOST:
            if time.monotonic() < until:
                time.sleep(_LOOK)
                continue
            raise GoalError(f"the platform is not held: {action.reason if action else 'no measured state yet'}")
        self._require_ready(follower)

    @staticmethod
    def _require_ready(follower: TrajectoryFollower) -> None:
        if follower.change is not None:
            raise GoalError(CHANGING)
        if follower.paused:
            raise GoalError(PAUSED)

    def _admit(self, application: Application) -> None:
        """Check a motion and have it followed; raise `PkmError` where it cannot be."""
        follower = self._controls.ready()
        self._require_free(follower, _STALL)
        delay, tolerance = self._settings()
        points = application.points()
        kinematics = self._controls.kinematics
        if follower.moving:
            there = points.trajectory(kinematics, None, tolerance)
            self._require_runnable(follower, self._carried(follower, points, there), points.events)
            self._bring_to_rest(follower)
        pose = follower.hold
        trajectory = self._carried(follower, points, points.trajectory(kinematics, pose, tolerance))
        self._require_runnable(follower, trajectory, points.events)
        braking = follower.check.braking(trajectory, points.events)
        start = points.start
        with self._controls.lock:
            self._require_ready(follower)
            moved = np.abs(displacement_between(pose, follower.hold)).max() > tolerance
            if follower is not self._controls.follower or follower.moving or moved:
                raise GoalError("the platform was moved while the trajectory was checked")
            if application.withdrawn:
                raise GoalError("cancelled")
            now = follower.time
            if start != 0.0 and start < now:
                raise GoalError(f"the trajectory should have started {now - start:.3f} s ago")
            if start > now + FARTHEST:
                raise GoalError(f"the trajectory starts in {start - now:.6g} s, more than {FARTHEST:g} s ahead")
            motion = Motion(trajectory, start or now + delay, application.tolerances, braking, points.events)
            follower.follow(motion)
        application.motion = motion

    def _bring_to_rest(self, follower: TrajectoryFollower) -> None:
        with self._controls.lock:
            follower.stop("another motion took over")
        until = time.monotonic() + _REST
        while follower.moving:
            if time.monotonic() > until:
                raise GoalError("the platform does not come to rest")
            time.sleep(_LOOK)

    def _carried(
        self, follower: TrajectoryFollower, points: MotionPoints, trajectory: PointTrajectory
    ) -> PointTrajectory:
        """Return the motion as the frame carries it in which it is given."""
        ride = points.ride
        if ride is None:
            return trajectory
        conveyor = conveyor_named({name: belt.conveyor for name, belt in follower.belts.items()}, ride.frame)
        if follower.override != 1.0:
            raise GoalError(f"the speed override is {follower.override:g}; a conveyor waits for nobody: set it to 1")
        with self._controls.lock:
            state = follower.belts[ride.frame].state(follower.time)
        return RidingTrajectory(trajectory, ride, conveyor, state)

    @staticmethod
    def _require_runnable(follower: TrajectoryFollower, trajectory: PointTrajectory, events: PathEvents) -> None:
        curves = [trajectory]
        if isinstance(trajectory, RidingTrajectory):
            curves += [trajectory.shifted(aside) for aside in (-trajectory.allowed, trajectory.allowed)]
        for curve in curves:
            if refusal := follower.check.refusal(curve, events):
                raise PointTrajectoryError(refusal)
