# SPDX-License-Identifier: Apache-2.0
"""Checks and admits motions in a thread of its own, so that neither control nor services wait for it."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pkm_control.control_errors import GoalError
from pkm_control.conveyor.conveyor import conveyor_named
from pkm_control.conveyor.riding import RidingTrajectory
from pkm_control.loop import requests
from pkm_control.loop.followed_motion import Motion, Tolerances
from pkm_control.loop.running_loop import Controls, RunningLoop
from pkm_control.motion.path_events import PathEvents
from pkm_control.motion.point_trajectory import MotionPoints, PointTrajectory, PointTrajectoryError
from pkm_control.operator_interface import Mode
from pkm_runtime.errors import PkmError

START_DELAY = 0.05  # s, from a motion that is to begin at once to its beginning
START_TOLERANCE = 0.005  # m and rad: largest jump at the start of a motion
WAITING = 16  # motions that may wait for their turn
_REST = 10.0  # s, within which a platform comes to rest
_LOST = (Mode.WAITING, Mode.STOPPED)
_STALL = 0.3  # s, that readings may be silent before a motion is refused for it
_LOOK = 0.002  # s, between two looks whether it is


@dataclass(eq=False)
class GoalRequest:
    """A request to follow a motion: the `motion` it became, or the `problem` why not, once it is `done`. `points` makes
    the points, in the thread of the queue. `asked` [s, monotonic clock]: a stop since then ends it.
    """

    points: Callable[[], MotionPoints]
    tolerances: Tolerances = field(default_factory=Tolerances)
    asked: float = field(default_factory=time.monotonic)
    motion: Motion | None = None
    problem: str = ""
    withdrawn: bool = False
    done: bool = False

    @property
    def over(self) -> bool:
        """Whether it has ended, or was refused."""
        if self.motion is None:
            return self.done
        return self.motion.outcome is not None


class GoalQueue:
    """Admits motions one after the other; one that comes while the platform moves is checked first, then begins from
    rest. `settings` gives start delay [s] and tolerance [m and rad] for each; `report` gets each refused one's problem.
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
        self._queue: queue.Queue[GoalRequest | None] = queue.Queue()
        self._waiting: list[GoalRequest] = []  # the one that is being checked included
        self.stopped = -math.inf  # s, monotonic clock: when a stop was asked for last
        self.why_stopped = ""
        self._thread = threading.Thread(target=self._run, name="goals", daemon=True)
        self._thread.start()

    def put(self, goal: GoalRequest) -> None:
        """Queue a motion, or refuse it at once where that is plain; the fields of `goal` tell what became of it."""
        try:
            self._require_ready(self._controls.ready())
            self._require_wanted(goal)
            if self._queue.qsize() >= WAITING:
                raise GoalError(f"{WAITING} trajectories are already waiting for their check")
        except PkmError as error:
            self.refuse(goal, error)
            return
        self._waiting.append(goal)
        self._queue.put(goal)

    def refuse(self, goal: GoalRequest, error: Exception) -> None:
        """Refuse a motion, with the reason."""
        goal.problem, goal.done = str(error), True
        self._report(goal.problem)

    def withdraw(self, goal: GoalRequest) -> None:
        """Bring a motion to rest on its path, or keep it from beginning."""
        goal.withdrawn = True
        if goal.motion is not None:
            goal.motion.withdrawn = True
            if self._controls.loop is not None:
                self._controls.loop.tell(requests.withdraw, goal.motion.number)

    def withdraw_waiting(self, why: str) -> None:
        """Withdraw all motions that wait or are being checked, and those that were asked for and come later."""
        self.why_stopped, self.stopped = why, time.monotonic()
        for goal in tuple(self._waiting):
            goal.withdrawn |= goal.motion is None

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join(2.0)

    def _run(self) -> None:
        while (goal := self._queue.get()) is not None:
            try:
                self._admit(goal)
            except PkmError as error:
                self.refuse(goal, error)
            except Exception as error:  # the queue goes on: whatever one motion breaks, others come
                self.refuse(goal, RuntimeError(f"the check failed: {error!r}"))
            goal.done = True
            self._waiting.remove(goal)

    def _require_free(self, loop: RunningLoop, patience: float) -> None:
        until = time.monotonic() + patience  # a computer that is busy may stall readings for some periods
        while loop.situation.mode in _LOST:
            if time.monotonic() < until:
                time.sleep(_LOOK)
                continue
            raise GoalError(f"the platform is not held: {loop.situation.action.reason or 'no measured state yet'}")
        self._require_ready(loop)

    @staticmethod
    def _require_ready(loop: RunningLoop) -> None:
        now = loop.situation
        requests.refuse_while(now.changing, now.paused)

    def _admit(self, goal: GoalRequest) -> None:
        loop = self._controls.ready_to_move()
        self._require_free(loop, _STALL)
        delay, tolerance = self._settings()
        kinematics = loop.kinematics
        points = goal.points().beside(kinematics, np.array(loop.situation.held))
        if loop.situation.moving:
            there = points.trajectory(kinematics, None, tolerance)
            self._require_runnable(loop, self._carried(loop, points, there), points.events)
            self._require_wanted(goal)
            self._bring_to_rest(loop)
        pose = np.array(loop.situation.held)
        trajectory = self._carried(loop, points, points.trajectory(kinematics, pose, tolerance))
        self._require_runnable(loop, trajectory, points.events)
        braking = loop.check.braking(trajectory, points.events)
        if loop is not self._controls.loop:
            raise GoalError("the robot description was replaced while the trajectory was checked")
        self._require_wanted(goal)
        motion = Motion(trajectory, points.start, goal.tolerances, braking, points.events)
        loop.ask(requests.begin, motion, pose, tolerance, delay, goal.asked)
        goal.motion = motion
        if goal.withdrawn:  # meanwhile
            self.withdraw(goal)

    def _require_wanted(self, goal: GoalRequest) -> None:
        if goal.asked <= self.stopped:
            goal.withdrawn = True
            raise GoalError(self.why_stopped)
        if goal.withdrawn:
            raise GoalError("cancelled")

    @staticmethod
    def _bring_to_rest(loop: RunningLoop) -> None:
        loop.ask(requests.take_over)
        until = time.monotonic() + _REST
        while loop.situation.moving:
            if time.monotonic() > until:
                raise GoalError("the platform does not come to rest")
            time.sleep(_LOOK)

    @staticmethod
    def _carried(loop: RunningLoop, points: MotionPoints, trajectory: PointTrajectory) -> PointTrajectory:
        ride = points.ride
        if ride is None:
            return trajectory
        k = loop.kinematics
        if (np.abs(k.engine.inputs.offset(np.array(loop.situation.held))) > START_TOLERANCE).any():
            names = ", ".join(k.redundant_names)
            raise GoalError(f"on a conveyor {names} cannot be commanded: first move to where the description has them")
        conveyor = conveyor_named(loop.conveyors, ride.frame)
        override = loop.situation.override
        if override != 1.0:
            raise GoalError(f"the speed override is {override:g}; a conveyor does not wait: set it to 1")
        return RidingTrajectory(trajectory, ride, conveyor, loop.belt(ride.frame))

    @staticmethod
    def _require_runnable(loop: RunningLoop, trajectory: PointTrajectory, events: PathEvents) -> None:
        curves = [trajectory]
        if isinstance(trajectory, RidingTrajectory):
            most = trajectory.conveyor.deviation
            curves += [trajectory.shifted(-most), trajectory.shifted(most)]
        for curve in curves:
            if refusal := loop.check.refusal(curve, events):
                raise PointTrajectoryError(refusal)
