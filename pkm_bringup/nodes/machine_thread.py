# SPDX-License-Identifier: Apache-2.0
"""A machine that is commanded over topics: its loop is a thread of the hardware node.

Commands come from one node. Where a second one publishes them the machine stops, as for an emergency: messages do not
identify their sender.

Stamps are the machine's own time on the node's clock: they advance by one period each cycle, and approach the clock
where that was set, or where the machine's time stood still. Simulated machines are patient: after a stall of the
computer they catch up by at most `catch_up` seconds, and they run at most `lead` seconds ahead of the state that their
newest command answers; beyond that their time stands still, as if the computer had not stalled, and deadlines count as
missed. Where commands stay away for longer than `patience`, time goes on without them, as it does for a real machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState

from pkm_bringup.nodes.loop_monitor import LoopMonitor
from pkm_bringup.nodes.machine_inboxes import CommandInbox, EffectsInbox
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import FollowingStamps
from pkm_description.ros.raw_rows import RowPublisher
from pkm_hardware.machine import EMERGENCY_STOP, CommandMode, Lifecycle, Machine, MachineState
from pkm_runtime.fixed_rate import FixedRateLoop
from pkm_runtime.scheduling import LoopScheduling


def states_message(names: list[str], stamp: Any, numbers: NDArray[np.float64]) -> JointState:
    """A message of positions, velocities and efforts, concatenated in `numbers`."""
    position, velocity, effort = np.split(numbers, 3)
    message = JointState(name=names, position=position, velocity=velocity, effort=effort)
    message.header.stamp = stamp
    return message


# Of a joint's range: commanded positions further from where the joint is are old targets, before others were taken.
_FIRST_STEP = 0.002  # since the drives are on, where the commander begins at its reading
_NEXT_STEP = 0.02  # after a silence, in which the commander went on


class MachineThread:
    """Each period: read, publish, take the newest command, let the period pass; at `rate` [Hz].
    `states` publishes JointState, `feel` a wrench with its stamp.
    """

    def __init__(
        self,
        node: Node,
        rate: float,
        states: Publisher,
        feel: Callable[[NDArray[np.float64], Time], None],
        monitor: LoopMonitor,
        scheduling: LoopScheduling,
    ) -> None:
        self._node, self._rate, self._states, self._feel = node, rate, states, feel
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
            if self.machine is None or not self.running:
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
        states = RowPublisher(self._states, partial(states_message, names), 3 * len(names), groups=3)
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
            self._feel(state.wrench, stamp)

    def _keep_to_one_commander(self, machine: Machine) -> None:
        """Stop a machine that two nodes command: a second node's efforts throw it, whatever the controller does."""
        problem = self.inbox.sources.problem if self.inbox.sources.sure else ""
        if problem and machine.lifecycle is Lifecycle.ACTIVE:
            machine.emergency_stop(f"{problem}; end all but one, then reset")

    def _write(self, machine: Machine, names: list[str], positions: NDArray[np.float64], epoch: int) -> None:
        """Give the newest command to the machine, if one has come."""
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
