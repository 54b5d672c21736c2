# SPDX-License-Identifier: Apache-2.0
"""One motion on the running robot, from the platform's present pose to the last reading of the motion."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rclpy.action import ActionClient

from pkm_bringup.main_job import Plan
from pkm_bringup.nodes.motion_player.run_streams import RunStreams
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import Outcome
from pkm_control.ros import motion_messages
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError
from pkm_viewer.report.run_recorder import RunRecorder

_EVERYTHING = 20000  # messages: twice what the queues hold
_SETTLING = 0.2  # s, for the last readings to come


@dataclass
class Order:
    """A request for a motion, how often, and a callback when it begins (empty text) or cannot."""

    motion: str
    cycles: int
    told: Callable[[str], None]
    plan: Plan | None = None
    asked: float = field(default_factory=time.monotonic)  # s, on the monotonic clock


class MotionRun:
    """Leads the platform to the start of a motion, runs it, and records it. `tolerance` [m]: distance from the path
    that ends the run, 0: any. `first_move`: fraction of its planned speed for the move to the start.
    """

    def __init__(
        self, order: Order, client: ActionClient, streams: RunStreams, tolerance: float, first_move: float = 1.0
    ) -> None:
        assert order.plan is not None
        self.order = order
        self.plan = order.plan
        self.streams = streams
        self.recorder: RunRecorder | None = None
        self.fault = ""
        self.stopped = ""  # by what, where it was ended on purpose
        self.completed = False
        self.ended_at = 0.0  # s, on the monotonic clock; 0: the motion has not ended
        self._client = client
        self._tolerance = tolerance
        self._first_move = first_move
        self._goal: Any = None  # the handle of the motion that runs
        self._answered = False

    def begin(self, here: Array, recorder: Callable[[], RunRecorder]) -> None:
        """Run the motion from pose `here` (7,); `recorder` makes its recorder when the motion itself begins."""
        start = self.plan.job.cycle.start

        def play() -> None:
            self.recorder = recorder()
            self._go(MotionPoints.of(self.plan.job.cycle, self.order.cycles), self._complete)

        if self.plan.planner.same(here, start):
            play()
            return
        try:
            way = self.plan.planner.carrying(self.streams.payload).between(here, start)
        except PkmError as error:
            self.end(f"the way to the start of the motion: {error}")
            return
        self._go(MotionPoints.of(way).at_speed(self._first_move), play)

    def take(self, everything: bool = False) -> None:
        """Take what was published since; the last of it comes a little after the result."""
        records = not self.ended_at or time.monotonic() - self.ended_at < _SETTLING
        self.streams.take(self.recorder if records else None, *((_EVERYTHING,) if everything else ()))

    def end(self, fault: str = "") -> None:
        """Note the end; where there is a fault, have the controller hold, if it still answers."""
        if self.ended_at:
            return
        if fault and self._goal is not None:
            self._goal.cancel_goal_async()
        self.fault = fault
        self.ended_at = time.monotonic()
        self._tell(fault)

    def _complete(self) -> None:
        self.completed = True
        self.end()

    def _go(self, points: MotionPoints, then: Callable[[], None]) -> None:
        """Send a motion to the controller, and call `then` when it is done."""
        base_link = self.plan.planner.kinematics.mechanism.base_link
        allowed = Tolerances(path_position=self._tolerance or math.inf)
        age = time.monotonic() - self.order.asked
        goal = motion_messages.goal_message(points, allowed, base_link, age)

        def answered(sent: Any) -> None:
            self._goal = sent.result()
            self._goal.get_result_async().add_done_callback(lambda done: self._done(done, then))

        sending = self._client.send_goal_async(goal, feedback_callback=lambda _: self._tell(""))
        sending.add_done_callback(answered)

    def _done(self, done: Any, then: Callable[[], None]) -> None:
        result = done.result().result
        if self.ended_at:
            return
        if result.error_code == Outcome.PREEMPTED:  # on request: no fault
            self.stopped = result.error_string or "another motion took over"
            self._tell(f"the motion was ended: {self.stopped}")
            self.end()
        elif result.error_code != Outcome.SUCCESSFUL:
            self.end(f"{Outcome(result.error_code).name}: {result.error_string}")
        else:
            then()

    def _tell(self, problem: str) -> None:
        """Tell the caller, once, that the motion has begun, or why it cannot."""
        if not self._answered:
            self._answered = True
            self.order.told(problem)
