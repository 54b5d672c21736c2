# SPDX-License-Identifier: Apache-2.0
"""Published data of a run, for the recorder, and the figures of the machine's loop over its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.ros import motion_messages
from pkm_description.mechanism import Array, Inertial
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.raw_rows import RawRows
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_interfaces.msg import LoopStatistics, Outputs, PlatformReference
from pkm_runtime.fixed_rate import LoopStatistics as LoopFigures
from pkm_runtime.fixed_rate import deviation_quantile
from pkm_viewer.report.run_recorder import RunRecorder


class RunStreams:
    """The published reference and measured states, read only while they are recorded.

    They exist only while they are needed: two streams of a thousand messages a second cost a good part of a core.
    `names` are those of the driven joints.
    """

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        def stream(kind: Any, topic: str) -> PolledSubscription:
            return PolledSubscription(node, kind, topic, topics.STREAM_RECORD, raw=True)

        def values(state: JointState) -> Array:
            fields = ("position", "velocity", "effort")
            return np.concatenate([messages.joint_values(state, names, field) for field in fields])

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
            recorder.reference(int(stamp), row[:7], bool(row[7:13].any()))
        stamps, rows = self._states.rows([data for data, _ in states])
        for stamp, row, (_, published) in zip(stamps, rows, states, strict=True):
            positions, velocities, efforts = row.reshape(3, -1)
            recorder.reading(int(stamp), positions, velocities, efforts, published)
        recorder.advance()

    def _changed_outputs(self) -> list[tuple[int, str, float]]:
        """Stamp [ns], name and value of the outputs that changed since."""
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
    """The figures of a loop between two times [s], of its messages in the order of their stamps.

    p50 and p99 are of all its periods, as its messages count them. A loop that begins anew, as after a fault, counts
    from zero again: what came after that is not of the run. None where fewer than two messages are.
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
