# SPDX-License-Identifier: Apache-2.0
"""One motion on the running robot, from the platform's present pose to the last reading, and its published data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_bringup.main_job import Plan
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import TOOK_OVER, Outcome
from pkm_control.ros import motion_messages
from pkm_description.mechanism import Array, Inertial
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.raw_rows import RawRows
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_interfaces.msg import LoopStatistics, Outputs, PlatformReference
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import LoopStatistics as LoopFigures
from pkm_runtime.fixed_rate import deviation_quantile
from pkm_viewer.report.run_recorder import RunRecorder

_EVERYTHING = 20000  # messages: twice what the queues hold
_SETTLING = 0.2  # s, for the last readings to come


class RunStreams:
    """The published reference and measured states, read only while they are recorded.

    They exist only while they are needed: two streams of a thousand messages a second cost a good part of a core.
    `names` are those of the driven joints.
    """

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        def stream(kind: Any, topic: str) -> PolledSubscription:
            return PolledSubscription(node, kind, topic, topics.STREAM_RECORD, raw=True)

        def values(state: JointState) -> Array:
            return np.concatenate([messages.joint_values(state, names, field) for field in messages.READINGS])

        self._outputs = PolledSubscription(node, Outputs, topics.OUTPUTS, topics.LATCHED_EVENTS)
        self._set: dict[str, float] = {}  # outputs, as published last
        self._payloads = PolledSubscription(node, InertiaStamped, topics.PAYLOAD, topics.LATCHED)
        self._payload: Inertial | None = None
        self.run = False  # both have come
        self._heard = [False, False]
        self._inputs = (
            stream(PlatformReference, topics.PLATFORM_REFERENCE),
            stream(JointState, topics.ACTUATED_JOINT_STATES),
        )
        self._references = RawRows(PlatformReference, messages.reference_numbers)
        self._states = RawRows(JointState, values, groups=3, gap=8)  # the length of a sequence, padded to a double's

    def take(self, recorder: RunRecorder | None, most: int = 500) -> None:
        """Take what has come since, and give it to the recorder, where there is one."""
        now = time.time()
        references, states = (stream.take_all(most, until=now) for stream in self._inputs)
        self._heard = [self._heard[0] or bool(references), self._heard[1] or bool(states)]
        self.run = all(self._heard)
        changes = self._changed_outputs()
        if recorder is None:
            return
        for stamp, name, value in changes:
            recorder.mark(stamp, name, value)
        references = [one for one in references if self._references.readable(one[0])]
        states = [one for one in states if self._states.readable(one[0])]
        for stamp, row in zip(*self._references.rows([data for data, _ in references]), strict=True):
            recorder.reference(int(stamp), row[-19:-12], bool(row[-12:-6].any() or row[:-19].reshape(3, -1)[1].any()))
        stamps, rows = self._states.rows([data for data, _ in states])
        for stamp, row, (_, published) in zip(stamps, rows, states, strict=True):
            positions, velocities, efforts = row.reshape(3, -1)
            recorder.reading(int(stamp), positions, velocities, efforts, published)
        recorder.advance()

    def _changed_outputs(self) -> list[tuple[int, str, float]]:
        found = []
        while (message := self._outputs.take()) is not None:
            stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            now = dict(zip(message.names, message.values, strict=False))
            found += [(stamp, name, value) for name, value in now.items() if self._set.get(name) != value]
            self._set = now
        return found

    @property
    def payload(self) -> Inertial | None:
        """The payload, as the controller published it."""
        while (message := self._payloads.take()) is not None:
            self._payload = payload_of(message.inertia)
        return self._payload

    def stop(self) -> None:
        """Unsubscribe."""
        for stream in (*self._inputs, self._outputs, self._payloads):
            stream.close()


def loop_figures(heard: Sequence[LoopStatistics], begin: float, end: float) -> LoopFigures | None:
    """The figures of a loop between two times [s], of its messages in the order of their stamps. p50 and p99 are of all
    its periods, as its messages count them. A loop that begins anew, as after a fault, counts from zero again: what
    came after that is not of the run. None where fewer than two messages are.
    """
    stamps = np.array([motion_messages.seconds(one.header.stamp) for one in heard])
    first = max(int(np.searchsorted(stamps, begin)) - 1, 0)
    of_run = list(heard[first : int(np.searchsorted(stamps, end)) + 1])
    for at, (one, other) in enumerate(pairwise(of_run), start=1):
        if other.cycles < one.cycles or other.missed_deadlines < one.missed_deadlines:
            of_run = of_run[:at]
            break
    if len(of_run) < 2:
        return None
    cycles = int(of_run[-1].cycles) - int(of_run[0].cycles)
    span = motion_messages.seconds(of_run[-1].header.stamp) - motion_messages.seconds(of_run[0].header.stamp)
    if cycles == 0 or not span > 0.0:
        return None
    counts = np.array([one.deviations for one in of_run[1:]], dtype=np.int64).sum(axis=0)
    return LoopFigures(
        wanted_rate=1.0 / of_run[-1].period,
        rate=cycles / span,
        deviation_p50=deviation_quantile(counts, 0.5),
        deviation_p99=deviation_quantile(counts, 0.99),
        deviation_max=max(one.worst_deviation for one in of_run[1:]),
        wakes=cycles,
        missed=int(of_run[-1].missed_deadlines) - int(of_run[0].missed_deadlines),
    )


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
        """Run the motion from pose `here` (7 + r,); `recorder` makes its recorder when the motion itself begins."""
        planner, start = self.plan.planner, self.plan.job.cycle.start

        def play() -> None:
            self.recorder = recorder()
            self._go(MotionPoints.of(self.plan.job.cycle, self.order.cycles), self._complete)

        if planner.same(here, start):
            play()
            return
        try:
            way = planner.carrying(self.streams.payload, planner.kinematics.engine.inputs.offset(here)).between(
                here, start
            )
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
        kinematics = self.plan.planner.kinematics
        allowed = Tolerances(path_position=self._tolerance or math.inf)
        age = time.monotonic() - self.order.asked
        base_link, redundant = kinematics.mechanism.base_link, kinematics.redundant_names
        goal = motion_messages.goal_message(points, allowed, base_link, age, redundant)

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
            self.stopped = result.error_string or TOOK_OVER
            self._tell(f"the motion was ended: {self.stopped}")
            self.end()
        elif result.error_code != Outcome.SUCCESSFUL:
            self.end(f"{Outcome(result.error_code).name}: {result.error_string}")
        else:
            then()

    def _tell(self, problem: str) -> None:
        if not self._answered:
            self._answered = True
            self.order.told(problem)
