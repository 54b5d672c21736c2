# SPDX-License-Identifier: Apache-2.0
"""A machine that is commanded over topics: its loop is a thread of the hardware node.

Commands and effects of motions are taken by that loop, once per period, instead of by the node's executor. Commands
come from one node. Where a second one publishes them the machine stops, as for an emergency: messages do not identify
their sender.

Stamps are the machine's own time on the node's clock: they advance by one period each cycle, and approach the clock
where that was set, or where the machine's time stood still. Simulated machines are patient: after a stall of the
computer they catch up by at most `catch_up` seconds, and they run at most `lead` seconds ahead of the state that their
newest command answers; beyond that their time stands still, as if the computer had not stalled, and deadlines count as
missed. Behind a forward controller of ros2_control, which repeats commands with stamps of its own, our controller tells
beside which state each of them answers. Where commands stay away for longer than `patience`, time goes on without them,
as it does for a real machine.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
from numpy.typing import NDArray
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from pkm_bringup.nodes.node_parts import LoopMonitor
from pkm_control.ros.motion_messages import seconds
from pkm_description.mechanism import Array, Inertial
from pkm_description.ros import messages, topics
from pkm_description.ros.messages import RequestError
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import FollowingStamps
from pkm_description.ros.polled import PolledSubscription, Sources
from pkm_description.ros.raw_rows import RawRows, RowPublisher, joint_rows, read_message
from pkm_dynamics.ros.dynamics_services import payload_of
from pkm_hardware.machine import EMERGENCY_STOP, CommandMode, Lifecycle, Machine, MachineState
from pkm_interfaces.msg import Outputs
from pkm_runtime.errors import PkmError
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_runtime.scheduling import LoopScheduling

_FIELDS = (("effort", CommandMode.EFFORT), ("velocity", CommandMode.VELOCITY), ("position", CommandMode.POSITION))

# Of a joint's range: commanded positions further from where the joint is are old targets, before others were taken.
_FIRST_STEP = 0.002  # since the drives are on, where the commander begins at its reading
_NEXT_STEP = 0.02  # after a silence, in which the commander went on

_REMEMBERED = 250  # commands that a forward controller was given
_SILENCE = 0.2  # s without a command: ros2_control's bridge was deactivated, and repeats the last one when it is back
_OLD_FOR = 0.5  # s: efforts that are repeated for longer than that are meant


class CommandInbox:
    """Takes JointState commands of one node; where several publish them, of none.
    `heard` is true once one was usable; `refused` counts the unusable ones, `problem` says why the last of them was.
    """

    def __init__(self, node: Node) -> None:
        self.heard = False
        self.stamp = 0.0  # s, of the newest usable command: that of the state it answers; 0 where it has none
        self.arrival = 0.0  # s, on the monotonic clock
        self.refused = 0
        self.problem = ""
        self.sources = Sources(node, topics.HARDWARE_COMMANDS, "commands")
        self._commands = PolledSubscription(
            node, JointState, topics.HARDWARE_COMMANDS, topics.STREAM_IN, raw=True, sources=self.sources
        )
        self._dated = PolledSubscription(node, JointState, topics.FORWARDED_COMMANDS, topics.STREAM_RECORD, raw=True)
        self._last = b""  # values of the newest usable command
        self._repeated_since = 0.0  # s: since when the last one from before a silence is repeated; 0 where it is not
        self._forwarded: deque[tuple[bytes, float]] = deque(maxlen=_REMEMBERED)  # commands, and the stamps they answer
        self._dated_rows: RawRows
        self._names: tuple[str, ...] = ()
        self._readers: dict[CommandMode, RawRows] = {}

    def newest(self, names: Sequence[str]) -> tuple[CommandMode, Array] | None:
        """The command (n_actuated,) since the last call, and its mode; None where none came."""
        data = self._commands.take()
        if data is None:
            return None
        if self.sources.problem:
            self.refuse(self.sources.problem)
            return None
        if self._names != tuple(names):
            self._names, self._readers = tuple(names), {}
            self._dated_rows = RawRows(JointState, partial(_given_values, self._names))
        self._note_forwarded()
        try:
            mode = self._mode_of(data)
            stamp, values = self._readers[mode].row(data)
        except PkmError as error:  # ros2_control sends NaN until a controller commands; a bad one is refused
            self.refuse(str(error))
            return None
        if mode is not CommandMode.POSITION and self._old(values):
            self.refuse("the last command from before a silence is repeated")
            return None
        self.heard, self.problem = True, ""
        self.arrival, self._last, self._repeated_since = time.monotonic(), values.tobytes(), 0.0
        self.stamp = self._answered(values) or seconds(stamp)
        return mode, values

    def _old(self, values: Array) -> bool:
        now = time.monotonic()
        if values.tobytes() != self._last or now - self.arrival < _SILENCE:
            return False
        self._repeated_since = self._repeated_since or now
        return now - self._repeated_since < _OLD_FOR

    def _note_forwarded(self) -> None:
        for data, _ in self._dated.take_all():
            with suppress(PkmError):
                stamp, values = self._dated_rows.row(data)
                self._forwarded.append((values.tobytes(), seconds(stamp)))

    def _answered(self, values: Array) -> float:
        """Stamp [s] of the state that a command answers which a forward controller passed on; 0 where that is not told.
        It repeats the last one, with stamps of its own, also while our controller or the manager stands still.
        """
        wanted = values.tobytes()
        return next((stamp for command, stamp in reversed(self._forwarded) if command == wanted), 0.0)

    def _mode_of(self, data: bytes) -> CommandMode:
        """The mode of a serialised command, by its publisher, whose reader exists then."""
        for mode, reader in self._readers.items():
            if reader.knows(data):
                return mode
        message = read_message(data, JointState)
        for field, mode in _FIELDS:
            if len(getattr(message, field)):
                read = partial(_values_of, self._names, field)
                self._readers.setdefault(mode, RawRows(JointState, read))
                return mode
        raise RequestError("a command without values")

    def refuse(self, problem: str) -> None:
        """Count an unusable command, with the reason."""
        self.refused += 1
        self.problem = problem


def _given_values(names: Sequence[str], message: JointState) -> Array:
    field = next(field for field, _ in _FIELDS if len(getattr(message, field)))
    return _values_of(names, field, message)


def _values_of(names: Sequence[str], field: str, message: JointState) -> Array:
    return messages.joint_values(message, names, field, "command")


class EffectsInbox:
    """Hands outputs and payloads to a machine, also those that came before it existed; `lock` guards it."""

    def __init__(self, node: Node, machine: Callable[[], Machine | None], lock: threading.Lock) -> None:
        self._node = node
        self._machine = machine
        self._lock = lock
        self._outputs: dict[str, float] = {}
        self._payload: Inertial | None = None
        self._warned: set[str] = set()  # problems, once each
        node.create_subscription(Outputs, topics.OUTPUTS, self._set, topics.LATCHED_EVENTS)
        node.create_subscription(InertiaStamped, topics.PAYLOAD, self._carry, topics.LATCHED)

    def pass_on(self, machine: Machine) -> None:
        """Bring a new machine up to date; its lock is held, or nobody uses it yet."""
        for name, value in self._outputs.items():
            self._set_one(machine, name, value)
        if self._payload is not None:
            machine.carry(self._payload)

    def _set(self, message: Outputs) -> None:
        if len(message.names) != len(message.values):
            self._warn(f"outputs refused: {len(message.names)} names but {len(message.values)} values")
            return
        self._outputs = dict(zip(message.names, message.values, strict=True))
        with self._lock:
            machine = self._machine()
            if machine is not None:
                for name, value in self._outputs.items():
                    self._set_one(machine, name, value)

    def _set_one(self, machine: Machine, name: str, value: float) -> None:
        if machine.outputs.get(name) == value:
            return
        problem = machine.output_problem(name)
        if problem:
            self._warn(problem)
        else:
            machine.set_output(name, value)

    def _carry(self, message: InertiaStamped) -> None:
        try:
            payload = payload_of(message.inertia)
        except PkmError as error:
            self._warn(f"payload refused: {error}")
            return
        if payload is None and self._payload is None:
            return
        self._payload = payload
        with self._lock:
            machine = self._machine()
            if machine is not None:
                machine.carry(payload)

    def _warn(self, problem: str) -> None:
        if problem not in self._warned:
            self._warned.add(problem)
            self._node.get_logger().warning(problem)


class MachineThread:
    """Each period: read, publish, take the newest command, let the period pass, with its stamps."""

    def __init__(
        self,
        node: Node,
        rate: float,
        states: Publisher,
        publish_wrench: Callable[[NDArray[np.float64], Time], None],
        monitor: LoopMonitor,
        scheduling: LoopScheduling,
    ) -> None:
        self._node, self._rate, self._states, self._publish_wrench = node, rate, states, publish_wrench
        self._monitor, self._scheduling = monitor, scheduling
        catch_up = "most time made up after a stall, s"
        self._catch_up = declare(node, "catch_up", 0.002, catch_up, (0.0, 1.0), fixed=True)
        lead = "most time that the machine runs ahead of its commands, s; three periods where these are longer"
        self._lead = max(declare(node, "lead", 0.003, lead, (0.0, 10.0), fixed=True), 3.0 / rate)
        patience = "how long machine time waits for a late command, s"
        self._patience = declare(node, "patience", 1.0, patience, (0.0, 60.0), fixed=True)
        self.machine: Machine | None = None
        self._following = False  # positions that are being commanded
        self._begun = False  # that have been, since the machine became active
        self.lock = threading.Lock()
        self._stopping = False  # an emergency stop waits for the lock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.inbox = CommandInbox(node)
        self._effects = EffectsInbox(node, lambda: self.machine, self.lock)

    @property
    def running(self) -> bool:
        """Whether there are periods."""
        return self._thread is not None

    problem = ""  # as of a loop in another process, which may have ended

    @property
    def lifecycle(self) -> Lifecycle:
        """Of the machine."""
        return Lifecycle.UNCONFIGURED if self.machine is None else self.machine.lifecycle

    @property
    def fault(self) -> str:
        """Of the machine."""
        return "" if self.machine is None else self.machine.fault

    @property
    def notice(self) -> str:
        """What is worth a warning."""
        return "" if self.machine is None else self.machine.notice

    @property
    def silent_for(self) -> float:
        """Time without a command [s] for which drives are off; 0 where they are not."""
        return 0.0 if self.machine is None else self.machine.silent_for

    @property
    def saturated(self) -> bool:
        """Whether a drive is at its limit."""
        return self.machine is not None and bool(np.any(self.machine.saturated))

    def take(self, machine: Machine) -> None:
        """Replace the machine."""
        machine.warm_up()
        machine.unwanted = lambda: self._stopping
        with self.lock:
            self._effects.pass_on(machine)
            self.machine = machine

    # Life cycle: the answer is why not; empty where it is done

    def configure(self) -> str:
        """Connect, drives off, and begin."""
        with self.lock:
            if self.machine is None:
                return "there is no machine"
            self.machine.configure()
            if self.machine.fault and not self.machine.real:
                return self.machine.fault  # a real one waits for `reset`
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="machine", daemon=True)
        self._thread.start()
        return ""

    def enable(self) -> str:
        """Drives on."""
        with self.lock:
            return "no machine" if self.machine is None else self.machine.enable()

    def disable(self) -> str:
        """Drives off; returns the warning where a drive may still be on."""
        with self.lock:
            if self.machine is None:
                return ""
            self.machine.deactivate()
            return self.machine.drives_may_be_on

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> str:
        """Drives off, until `reset`; returns the warning where a drive may still be on."""
        self._stopping = True
        with self.lock:
            self._stopping = False
            if self.machine is None or not (self.running or self.machine.drives_may_be_on):
                return "the machine is not configured: its drives are off"
            self.machine.emergency_stop(reason)
            return self.machine.drives_may_be_on

    def tell_emergency_stop(self) -> None:
        """The same without an answer."""
        self.emergency_stop()

    def reset(self) -> str:
        """Out of a fault, drives off."""
        if self.inbox.sources.look():
            return self.inbox.sources.problem
        with self.lock:
            if self.machine is None or not self.running:
                return "the machine is not configured"
            return self.machine.reset_off()

    def end(self) -> str:
        """Drives off, and no more periods; returns the warning where a drive may still be on."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2.0)
            self._thread = None
        with self.lock:
            return self.machine.shut_down() if self.machine is not None else ""

    # One period after the other

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:
            reason = f"the loop of the machine failed: {type(error).__name__}: {error}"
            if self.machine is not None:
                self.machine.emergency_stop(reason)
        finally:
            self._scheduling.release()

    def _loop(self) -> None:
        machine = self.machine
        assert machine is not None
        period = 1.0 / self._rate
        most = max(1, round(self._catch_up * self._rate))
        names = list(machine.limits.names)
        clock = self._node.get_clock()
        stamps = FollowingStamps(lambda: int(clock.now().nanoseconds))
        states = joint_rows(self._states, names, *messages.READINGS)
        loop = FixedRateLoop(self._rate)
        self._scheduling.request()
        loop.restart()
        while not self._stop.is_set() and self._node.context.ok():
            periods = loop.wait()
            with self.lock:
                state = machine.read()
                epoch = stamps.of(machine.time) - round(machine.time * 1e9)
                try:
                    if machine.readable:
                        self._publish(states, state, epoch)
                    self._write(machine, names, state.positions, epoch)
                except rclpy_implementation.RCLError:
                    if self._node.context.ok():
                        raise
                    return  # the node is being shut down
                self._keep_to_one_commander(machine)
                waits = self._waits(machine, epoch)
                if not waits:
                    machine.step((periods if machine.real else min(periods, most)) * period)
            if waits:
                self._monitor.hold()
            else:
                self._monitor.cycle(loop.last_wake, loop.missed, time.monotonic() - loop.last_wake)

    def _publish(self, states: RowPublisher, state: MachineState, epoch: int) -> None:
        seconds, nanoseconds = divmod(epoch + round(state.time * 1e9), 1_000_000_000)
        stamp = Time(sec=seconds, nanosec=nanoseconds)
        states.publish(stamp, np.concatenate((state.positions, state.velocities, state.efforts)))
        if state.wrench is not None:
            self._publish_wrench(state.wrench, stamp)

    def _keep_to_one_commander(self, machine: Machine) -> None:
        """Stop a machine that two nodes command: a second node's efforts throw it, whatever the controller does."""
        problem = self.inbox.sources.problem if self.inbox.sources.sure else ""
        if problem and machine.lifecycle is Lifecycle.ACTIVE:
            machine.emergency_stop(f"{problem}; end all but one, then reset")

    def _write(self, machine: Machine, names: list[str], positions: NDArray[np.float64], epoch: int) -> None:
        command: Any = self.inbox.newest(names)
        if machine.lifecycle is not Lifecycle.ACTIVE or machine.silent_for:
            self._following = False
            self._begun &= machine.lifecycle is Lifecycle.ACTIVE
        if command is None or machine.lifecycle is not Lifecycle.ACTIVE:
            return
        mode, values = command
        if mode not in machine.modes:
            takes = " or ".join(one.value for one in machine.modes)
            self.inbox.refuse(f"a command by {mode.value}: this machine takes {takes}")
            return
        if mode is CommandMode.POSITION and not self._following:
            limits = machine.limits
            step = _NEXT_STEP if self._begun else _FIRST_STEP
            far = np.abs(values - positions) > step * (limits.upper - limits.lower)
            if np.any(far):
                k = int(np.argmax(far))
                self.inbox.refuse(
                    f"a first position of {values[k]:.4g} for {names[k]}, which is at {positions[k]:.4g}: begin there"
                )
                return
        self._following = self._begun = mode is CommandMode.POSITION
        if machine.command_mode is not mode:
            machine.set_command_mode(mode)
        machine.write(values, self.inbox.stamp - 1e-9 * epoch if self.inbox.stamp else None)

    def _waits(self, machine: Machine, epoch: int) -> bool:
        """Whether machine time stands still until a command comes that answers a state no older than `lead`."""
        inbox = self.inbox
        if machine.real or machine.lifecycle is not Lifecycle.ACTIVE or inbox.stamp == 0.0:
            return False
        if time.monotonic() - inbox.arrival > self._patience:
            return False
        return machine.time - (inbox.stamp - 1e-9 * epoch) > self._lead
