# SPDX-License-Identifier: Apache-2.0
"""Events along a motion: outputs are set, and the platform's payload changes.

Events belong to the path: each has its instant on the path's own clock, which a pause halts and a speed override slows
down. What a motion that is ended has not reached does not happen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.robot_model import checked_payload
from pkm_dynamics.weight import Carried
from pkm_hardware.drivers.driver import output_name
from pkm_runtime.errors import PkmError, shortened

MOST_EVENTS = 10_000  # of one motion
MOST_OUTPUTS = 64  # names in one motion
_SLACK = 1e-9  # s: rounding


class PathEventError(PkmError):
    """Events that cannot happen on a motion: says which, and why."""


@dataclass(frozen=True)
class OutputEvent:
    """An output takes a value at an instant of the path [s]."""

    time: float
    name: str
    value: float


@dataclass(frozen=True, eq=False)
class PayloadChange:
    """From an instant of the path [s] on the platform carries this, in its frame; None: nothing."""

    time: float
    payload: Inertial | None


Event = OutputEvent | PayloadChange


@dataclass(frozen=True, eq=False)
class PathEvents:
    """The events of one cycle of a motion, in the order in which they happen."""

    outputs: tuple[OutputEvent, ...] = ()
    payloads: tuple[PayloadChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.outputs or self.payloads)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outputs, in the order of their first event."""
        return tuple(dict.fromkeys(event.name for event in self.outputs))

    def then(self, other: PathEvents, after: float) -> PathEvents:
        """These events, and those of a following motion that begins `after` [s]."""
        later = other.timed(1.0, after)
        return PathEvents(self.outputs + later.outputs, self.payloads + later.payloads)

    def timed(self, factor: float, after: float = 0.0) -> PathEvents:
        """These events with times multiplied by a factor, and then shifted by `after` [s]."""
        return PathEvents(
            tuple(replace(event, time=factor * event.time + after) for event in self.outputs),
            tuple(replace(event, time=factor * event.time + after) for event in self.payloads),
        )

    def carried(self, times: Array, before: Inertial | None) -> Carried:
        """The payload at instants (n,) [s] of the path; `before` is that before the first change."""
        changes = [change.time for change in self.payloads]
        which = np.searchsorted(np.array(changes), times, side="right")
        return Carried((before, *(change.payload for change in self.payloads)), which)

    def require(self, duration: float) -> None:
        """Refuse events for a cycle of some duration [s]. PathEventError: times do not fit the motion or each other, an
        invalid name, a value that is no number, or too many; PkmError: a payload is no body.
        """
        kinds: tuple[tuple[str, Sequence[Event]], ...] = (("output", self.outputs), ("payload", self.payloads))
        for what, events in kinds:
            if len(events) > MOST_EVENTS:
                raise PathEventError(f"the motion has {len(events)} events of {what}s, more than {MOST_EVENTS}")
            before = 0.0
            for k, event in enumerate(events):
                if not before <= event.time <= duration + _SLACK:
                    raise PathEventError(
                        f"{what} event {k}: its time {event.time:.6g} s is not from {before:.6g} to {duration:.6g} s, "
                        "where the one before and the motion's end are"
                    )
                before = event.time
        for k, one in enumerate(self.outputs):
            if not output_name(one.name):
                raise PathEventError(f"output event {k}: '{shortened(one.name)}' is not a valid output name")
            if not math.isfinite(one.value):
                raise PathEventError(f"output event {k}: the value of '{one.name}' is {one.value}")
        if len(self.names) > MOST_OUTPUTS:
            raise PathEventError(f"the motion has {len(self.names)} outputs, more than {MOST_OUTPUTS}")
        for change in self.payloads:
            if change.payload is not None:
                checked_payload(change.payload)


NO_EVENTS = PathEvents()


class EventCursor:
    """Runs along the events of a motion, and gives each out once; `cycle` is the duration of one cycle [s]."""

    def __init__(self, events: PathEvents, cycle: float, repetitions: int = 1) -> None:
        both: list[Event] = [*events.outputs, *events.payloads]
        self._events = sorted(both, key=lambda event: event.time)  # stable: an output before a payload
        self._cycle = cycle
        self._left = repetitions if self._events else 0
        self._begun = 0.0  # s: when the present cycle began
        self._next = 0

    def due(self, time: float) -> list[Event]:
        """Events, in order, up to a time on the path, from the start of the first cycle [s]; each is given once."""
        found: list[Event] = []
        while self._left and self._begun + self._events[self._next].time <= time + _SLACK:
            found.append(self._events[self._next])
            self._next += 1
            if self._next == len(self._events):
                self._next, self._left, self._begun = 0, self._left - 1, self._begun + self._cycle
        return found


@dataclass(eq=False)
class Effects:
    """What motions have done so far: `outputs` by name, the payload, and the number of `events` of outputs. `on_output`
    and `on_payload` get each event as it happens, in the thread of the loop.
    """

    on_output: Callable[[OutputEvent], None] = lambda _: None
    on_payload: Callable[[Inertial | None], None] = lambda _: None
    outputs: dict[str, float] = field(default_factory=dict)
    payload: Inertial | None = None
    events: int = 0
    _cursor: EventCursor | None = None

    def begin(self, events: PathEvents, cycle: float, repetitions: int = 1) -> None:
        """Take the events of a motion that begins, with cycles of some duration [s]."""
        self._cursor = EventCursor(events, cycle, repetitions) if events else None

    def end(self) -> None:
        """Drop the events that are left of a motion that has ended."""
        self._cursor = None

    def advance(self, time: float) -> Sequence[OutputEvent]:
        """Apply the events up to a time on the path, from the start of the first cycle [s]; return outputs set now."""
        if self._cursor is None:
            return ()
        set_now = []
        for event in self._cursor.due(time):
            if isinstance(event, OutputEvent):
                set_now.append(event)
                self.outputs[event.name] = event.value
                self.events += 1
                self.on_output(event)
            else:
                self.payload = event.payload
                self.on_payload(event.payload)
        return set_now
