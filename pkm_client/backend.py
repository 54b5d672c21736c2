# SPDX-License-Identifier: Apache-2.0
"""A running robot, wherever it runs: results, tasks, events and state."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import numpy as np

from pkm_control.operator_interface import Mode, Outcome
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_quaternion, rpy_from_rotation
from pkm_runtime.describable import Describable, fixed, in_degrees

_REST = 5.0  # s, within which what is cancelled comes to rest


@dataclass(frozen=True, repr=False)
class Result(Describable):
    """How a motion ended: `reason` in words where there is one; errors over the motion, position [m], rotation [rad].
    Of several motions in a row, `max_` is the largest of all, and `rms_` that of the last.
    """

    outcome: Outcome = Outcome.SUCCESSFUL
    reason: str = ""
    rms_position_error: float = 0.0
    max_position_error: float = 0.0
    rms_rotation_error: float = 0.0
    max_rotation_error: float = 0.0

    def _summary(self) -> str:
        errors = f"error at most {1e3 * self.max_position_error:.3g} mm, {1e3 * self.max_rotation_error:.3g} mrad"
        return f"{self.outcome.name}: {self.reason or errors}"


class Task(Describable):
    """Work of the robot under way, in a thread of its own; `waiting` is entered while somebody waits for its end."""

    def __init__(self, work: Callable[[Task], Result], waiting: Callable[[], AbstractContextManager[None]]) -> None:
        self.cancelled = False
        self.progress_of: Callable[[], float] = lambda: 0.0
        self.cancel_motion: Callable[[], None] = lambda: None
        self._work = work
        self._waiting = waiting
        self._result: Result | None = None
        self._error: Exception | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="task", daemon=True)
        self._thread.start()

    def _summary(self) -> str:
        if self._error is not None:
            return f"ended: {self._error}"
        return self._result._summary() if self._result is not None else f"under way, {100.0 * self.progress:.0f} % done"

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._over.is_set()

    @property
    def progress(self) -> float:
        """Fraction of the time on the path that is done, 0 to 1."""
        return 1.0 if self._result is not None else min(1.0, self.progress_of())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds of this computer's time; return whether it has ended."""
        if self.done:
            return True
        with self._waiting():
            return self._over.wait(timeout)

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the end, and return the result. Ctrl-C while it waits ends the motion on its path.

        TimeoutError: it goes on after `timeout` seconds of this computer's time (None: no limit). PkmError: it ended
        early (`MotionEndedError`), or its robot has gone (`NoRobotError`).
        """
        try:
            if not self.wait(timeout):
                raise TimeoutError(f"not done after {timeout:g} s; it goes on")
        except KeyboardInterrupt:
            self.cancel()
            self._over.wait(_REST)
            raise
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def cancel(self) -> None:
        """End it on its path; it has ended when `done` is True. No effect on an ended task."""
        self.cancelled = True
        self.cancel_motion()

    def _run(self) -> None:
        try:
            self._result = self._work(self)
        except Exception as error:  # whoever asks for the result gets it
            self._error = error
        finally:
            self._over.set()


Listener = Callable[[str, float], None]


class Listeners:
    """Calls listeners with each output change, one after the other, in the order of the events."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._events: queue.SimpleQueue[tuple[str, float]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with name and value of each event from now on; the function returned removes it."""
        self._listeners.append(listener)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outputs", daemon=True)
            self._thread.start()

        def remove() -> None:
            with suppress(ValueError):  # it is gone already
                self._listeners.remove(listener)

        return remove

    def put(self, name: str, value: float) -> None:
        """Queue an event; does not block the caller."""
        if self._listeners:
            self._events.put((name, value))

    def _run(self) -> None:
        while True:
            event = self._events.get()
            for listener in tuple(self._listeners):
                try:
                    listener(*event)
                except Exception:  # the robot goes on, whatever a listener does
                    traceback.print_exc()


@dataclass(frozen=True, eq=False)
class RobotState:
    """What the robot does now. Vectors and poses are in the base frame; NaN where there is no usable reading.

    `mode` and `reason` are the controller's. `pose` (7,), x y z qx qy qz qw, and `twist` (6,) of the platform are
    measured, `reference` (7,) is the commanded pose; `position_error` [m] and `rotation_error` [rad] lie between them.
    `speed` is the fraction of their plan at which motions run. `positions` [rad or m], `velocities` and `efforts` [N m
    or N] are those of the actuated joints, by name; `efforts` is empty where positions are commanded. `redundant`:
    commanded positions [rad or m] of the joints beside the pose, by name; empty where there is no reference. `units`:
    rad or m of the actuated joints, by name.
    """

    mode: Mode
    reason: str
    pose: Array
    twist: Array
    reference: Array
    position_error: float
    rotation_error: float
    speed: float
    positions: Mapping[str, float]
    velocities: Mapping[str, float]
    efforts: Mapping[str, float]
    redundant: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def moving(self) -> bool:
        """Whether a motion or a jog is under way."""
        return self.mode in (Mode.TRACKING, Mode.JOGGING)

    @property
    def known(self) -> bool:
        """Whether the platform's pose is known."""
        return self.mode not in (Mode.WAITING, Mode.STOPPED) and bool(np.isfinite(self.reference).all())

    def __str__(self) -> str:
        lines = [self.mode.name.lower() + (f": {self.reason}" if self.reason else "")]
        if np.isfinite(self.pose).all():
            place = ", ".join(fixed(value, 4) for value in self.pose[:3])
            quaternion = ", ".join(fixed(value, 4) for value in self.pose[3:])
            turns = np.degrees(rpy_from_rotation(rotation_from_quaternion(self.pose[3:])))
            attitude = ", ".join(fixed(value, 2) for value in turns)
            lines.append(f"platform at ({place}) m, roll, pitch, yaw ({attitude}) deg, quaternion ({quaternion})")
            lines.append(f"off by {1e3 * self.position_error:.3f} mm and {1e3 * self.rotation_error:.3f} mrad")
        else:
            lines.append(f"platform: not followed while the controller is {self.mode.name.lower()}")
        lines.append(f"motions run at {self.speed:.0%} of their plan")
        for name, value in self.positions.items():
            factor, unit = in_degrees(self.units.get(name, "rad or m"))
            lines.append(f"{name} at {fixed(factor * value, 2 if unit == 'deg' else 4)} {unit}")
        return "\n".join(lines)
