# SPDX-License-Identifier: Apache-2.0
"""A machine as a ROS node: the life cycle of a `SystemInterface`, and JointState topics for read and write.

It speaks the topics that `joint_state_topic_hardware_interface/JointStateTopicSystem` of the robot's <ros2_control>
block names, so the controller_manager drives it as it drives a machine; without ros2_control our controller node does.

Commands come from one node. Where a second one publishes them the machine stops, as for an emergency: messages do not
tell who sent them.

Services `~/emergency_stop` and `~/reset` take every machine out of power and back. States are published only while
they are known: not in a fault, nor before an axis that needs it has been homed.

Stamps are the machine's own time: they advance by exactly one period each cycle. For a machine behind a driver that is
the time of the clock. Simulated ones are patient: after a stall of the computer they catch up by at most `catch_up`
seconds, and they run at most `lead` seconds ahead of the state that their newest command answers; beyond that their
time stands still, as if the computer had not stalled, and deadlines count as missed. Where commands stay away for
longer than `patience`, time goes on without them, as it does for a real machine.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State
from numpy.typing import NDArray
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from pkm_control.hardware.contact.force_file import read_force_file
from pkm_control.hardware.machine import Machine
from pkm_control.hardware.machine_file import read_machine_file
from pkm_control.hardware.machine_kinds import KINDS, SIMULATED
from pkm_control.hardware.machine_state import CommandMode, Lifecycle
from pkm_control.hardware.make_machine import make_machine
from pkm_control.hardware.simulated.encoder import Encoder
from pkm_control.hardware.simulated.imperfections import realistic_machine
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.fixed_rate import FixedRateLoop
from pkm_control.loop.scheduling import settle
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.nodes.command_inbox import CommandInbox
from pkm_control.nodes.effects_inbox import EffectsInbox
from pkm_control.nodes.loop_monitor import LoopMonitor
from pkm_control.nodes.realtime import loop_scheduling
from pkm_description.mechanism import Inertial, Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_description.ros.streams.raw_rows import RowPublisher
from pkm_dynamics.dynamics import shared_dynamics

STARTS = ("on_command", "active", "manual")
"""When brakes open: with the first command, at once, or by the life cycle's transitions alone."""
_FIRST_STEP = 0.02  # of a joint's range: a first commanded position further from where the joint is, is an old target
_TELL_EVERY = 0.3  # s: who heard nothing for long does not know whether this is the machine of before
_LIFE = {
    Lifecycle.UNCONFIGURED: State.PRIMARY_STATE_UNCONFIGURED,
    Lifecycle.INACTIVE: State.PRIMARY_STATE_INACTIVE,
    Lifecycle.ACTIVE: State.PRIMARY_STATE_ACTIVE,
    Lifecycle.FAULT: State.PRIMARY_STATE_UNCONFIGURED,  # it has to be configured anew; the label tells
}
_RESET_AFTER = 1.5  # s from a fault to the earliest reset: by then whoever moved the machine has given its motion up


class HardwareNode(LifecycleNode):
    """Runs the machine in a thread of its own, each period: read, publish, take the command, let the period pass."""

    def __init__(self) -> None:
        super().__init__("hardware")
        self._rate = declare(self, "rate", 1000.0, "periods per second, Hz", (10.0, 10000.0), fixed=True)
        self._start = declare(self, "start", STARTS[0], "when the machine becomes active", choices=STARTS, fixed=True)
        self._timeout = declare(
            self,
            "command_timeout",
            0.02,
            "machine time without a command after which brakes close, s; a machine's file has its own",
            (0.001, 60.0),
            fixed=True,
        )
        self._catch_up = declare(self, "catch_up", 0.002, "most time made up after a stall, s", (0.0, 1.0), fixed=True)
        lead = declare(
            self,
            "lead",
            0.003,
            "most time that the machine runs ahead of its commands, s; three periods where these are longer",
            (0.0, 10.0),
            fixed=True,
        )
        self._lead = max(lead, 3.0 / self._rate)
        self._patience = declare(
            self, "patience", 1.0, "how long machine time waits for a late command, s", (0.0, 60.0), fixed=True
        )
        self._encoder = Encoder(
            declare(
                self, "encoder_resolution", 0.0, "one step of an encoder, rad or m; 0: exact", (0.0, 1.0), fixed=True
            ),
            declare(self, "position_noise", 0.0, "standard deviation, rad or m", (0.0, 1.0), fixed=True),
            declare(self, "velocity_noise", 0.0, "standard deviation, rad/s or m/s", (0.0, 10.0), fixed=True),
        )
        self._realistic = declare(
            self, "realistic", False, "encoders, delay and inertia of a real machine (docs/control.md)", fixed=True
        )
        payload = declare(
            self,
            "hidden_payload",
            0.0,
            "of the simulated machine; the controller does not know of it, kg",
            (0.0, 1e6),
            fixed=True,
        )
        self._payload = Inertial(mass=payload) if payload > 0.0 else None
        text = "the machine: simulated, or behind a driver"
        self._kind = declare(self, "machine", SIMULATED, text, choices=(SIMULATED, *KINDS), fixed=True)
        self._file = declare(self, "hardware_file", "", "path of the machine's file (docs/hardware.md)", fixed=True)
        text = "path of the force file: the sensor, and what a simulated machine may touch (docs/force.md)"
        self._force_file = declare(self, "force_file", "", text, fixed=True)
        self._scheduling = loop_scheduling(self)
        self._machine: Machine | None = None
        self._activated = False
        self._told = Lifecycle.UNCONFIGURED
        self._following = False  # positions that have been commanded since the machine became active
        self._failed = 0.0  # s, on the monotonic clock: when the last fault was found
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._inbox = CommandInbox(self)
        self._effects = EffectsInbox(self, lambda: self._machine, self._lock)
        self._states = self.create_publisher(JointState, topics.HARDWARE_STATES, topics.STREAM_OUT)
        self._wrenches = self.create_publisher(WrenchStamped, topics.FORCE_TORQUE, topics.STREAM_OUT)
        self._life = self.create_publisher(State, topics.MACHINE_STATE, topics.LATCHED)
        self._monitor = LoopMonitor(self, self._rate)
        self._opener = steady_timer(self, 0.02, self._open_brakes)
        self._teller = steady_timer(self, _TELL_EVERY, lambda: self._tell(self._told))
        self.create_service(Trigger, "~/emergency_stop", self._emergency_stop)
        self.create_service(Trigger, "~/reset", self._reset)
        self._description = RobotDescription(self, self._build, self._busy)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _build(self, mechanism: Mechanism) -> None:
        machine: Machine
        if self._kind != SIMULATED:
            file = read_machine_file(self._file) if self._file else None
            machine = make_machine(self._kind, shared_dynamics(mechanism).kinematics, file)
        elif self._realistic:
            machine = realistic_machine(mechanism, self._timeout, self._payload)
        else:
            machine = SimulatedMachine(
                shared_dynamics(mechanism),
                ActuatorLimits.of(mechanism),
                encoder=self._encoder,
                command_timeout=self._timeout,
                payload=self._payload,
            )
        if isinstance(machine, SimulatedMachine) and self._force_file:
            force = read_force_file(self._force_file)
            self._sensor_frame = force.sensor_frame or mechanism.platform_link
            machine.surround(force.surroundings)
        machine.rehearse()
        settle()
        with self._lock:
            self._effects.pass_on(machine)
            self._machine = machine
        if self._start != "manual":
            self.trigger_configure()
        if self._start == "active":
            self.trigger_activate()

    def _busy(self) -> str:
        """Why no other robot can be taken now."""
        return "" if self._thread is None else "the machine is configured; clean it up first"

    # Life cycle, as controller_manager would call it on a SystemInterface

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make contact with the machine, brakes closed, and begin to publish its state; a simulated one is at home."""
        with self._lock:
            if self._machine is None:
                self.get_logger().error(self._description.problem)
                return TransitionCallbackReturn.FAILURE
            self._machine.configure()
            if self._machine.fault:
                self.get_logger().error(self._machine.fault)
                if not self._machine.real:
                    return TransitionCallbackReturn.FAILURE  # a real one waits for `reset`
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="machine", daemon=True)
        self._thread.start()
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the brakes."""
        with self._lock:
            assert self._machine is not None
            if self._machine.lifecycle is not Lifecycle.INACTIVE:
                self.get_logger().error(self._machine.fault or f"the machine is {self._machine.lifecycle.value}")
                return TransitionCallbackReturn.FAILURE
            self._machine.activate()
            self._activated = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the brakes."""
        with self._lock:
            assert self._machine is not None
            self._machine.deactivate()
            self._activated = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing."""
        self._end()
        with self._lock:
            assert self._machine is not None
            self._machine.cleanup()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the brakes and stop."""
        self._end()
        return super().on_shutdown(state)

    def destroy_node(self) -> None:
        """End the machine's thread before its publishers go."""
        self._end()
        super().destroy_node()

    def _end(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2.0)
            self._thread = None

    # One period after the other

    def _run(self) -> None:
        machine = self._machine
        assert machine is not None
        period = 1.0 / self._rate
        most = max(1, round(self._catch_up * self._rate))
        names = list(machine.limits.names)
        epoch = self.get_clock().now().nanoseconds - round(machine.time * 1e9)
        states = RowPublisher(self._states, partial(_states_message, names), 3 * len(names), groups=3, gap=8)
        loop = FixedRateLoop(self._rate)
        self._scheduling.request()
        loop.restart()
        while not self._stop.is_set() and self.context.ok():
            periods = loop.wait()
            with self._lock:
                state = machine.read()
                try:
                    if machine.readable:
                        self._publish(states, state, epoch)
                    self._write(machine, names, state.positions, epoch)
                except rclpy_implementation.RCLError:
                    if self.context.ok():
                        raise
                    return  # the node is being shut down
                self._keep_to_one_commander(machine)
                waits = self._waits(machine, epoch)
                if not waits:
                    machine.step((periods if machine.real else min(periods, most)) * period)
                self._notice_fault(machine)
                if machine.lifecycle is not self._told:
                    self._tell(machine.lifecycle)
            if waits:
                self._monitor.hold()
            else:
                self._monitor.cycle(loop, time.monotonic() - loop.last_wake)

    def _publish(self, states: RowPublisher, state: Any, epoch: int) -> None:
        seconds, nanoseconds = divmod(epoch + round(state.time * 1e9), 1_000_000_000)
        numbers = np.concatenate((state.positions, state.velocities, state.efforts))
        stamp = Time(sec=seconds, nanosec=nanoseconds)
        states.publish(stamp, numbers)
        if state.wrench is not None:
            message = WrenchStamped(wrench=messages.to_wrench(state.wrench))
            message.header.stamp, message.header.frame_id = stamp, self._sensor_frame
            self._wrenches.publish(message)

    def _tell(self, life: Lifecycle) -> None:
        """Say whether the drives follow commands."""
        self._told = life
        self._life.publish(State(id=_LIFE[life], label=life.value))

    def _keep_to_one_commander(self, machine: Machine) -> None:
        """Stop a machine that two nodes command: the efforts of a stranger throw it, whatever the controller does."""
        problem = self._inbox.sources.problem if self._inbox.sources.sure else ""
        if problem and machine.lifecycle is Lifecycle.ACTIVE:
            machine.emergency_stop(f"{problem}; end all but one, then reset")

    def _notice_fault(self, machine: Machine) -> None:
        """Log the reason of a fault once."""
        if not machine.fault:
            self._failed = 0.0
        elif self._failed == 0.0:
            self._failed = time.monotonic()
            self.get_logger().error(f"the machine has stopped: {machine.fault}")

    # Emergency stop

    def _emergency_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Take the drives out of power, until `reset`."""
        with self._lock:
            if self._machine is None or self._thread is None:
                response.message = "the machine is not configured: its drives are off"
                return response
            self._machine.emergency_stop()
            response.success, response.message = True, self._machine.fault
        return response

    def _reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Lead the machine out of a fault, and have the brakes opened again as `start` says."""
        with self._lock:
            machine = self._machine
            if machine is None or self._thread is None or machine.lifecycle is not Lifecycle.FAULT:
                response.message = "there is no fault to reset"
                return response
            if self._inbox.sources.look():
                response.message = self._inbox.sources.problem
                return response
            left = self._failed + _RESET_AFTER - time.monotonic() if self._failed else _RESET_AFTER
            if left > 0.0:
                response.message = (
                    f"too early: motions are given up {_RESET_AFTER:g} s after a fault; wait {left:.1f} s"
                )
                return response
            machine.reset()
            if machine.fault:
                response.message = machine.fault
                return response
            if self._activated:
                machine.activate()
        if not self._activated and self._start == "active":
            self.trigger_activate()
        response.success = not machine.fault
        response.message = machine.fault or f"the machine is {machine.lifecycle.value}"
        return response

    def _write(self, machine: Machine, names: list[str], positions: NDArray[np.float64], epoch: int) -> None:
        """Give the newest command to the machine, if one has come."""
        command = self._inbox.newest(names)
        if machine.lifecycle is not Lifecycle.ACTIVE or machine.silent_for:
            self._following = False
        if command is None or machine.lifecycle is not Lifecycle.ACTIVE:
            return
        mode, values = command
        if mode not in machine.modes:
            takes = " or ".join(one.value for one in machine.modes)
            self._inbox.refuse(f"a command by {mode.value}: this machine takes {takes}")
            return
        if mode is CommandMode.POSITION and not self._following:
            limits = machine.limits
            far = np.abs(values - positions) > _FIRST_STEP * (limits.upper - limits.lower)
            if np.any(far):
                k = int(np.argmax(far))
                self._inbox.refuse(
                    f"a first position of {values[k]:.4g} for {names[k]}, which is at {positions[k]:.4g}: begin there"
                )
                return
        self._following = mode is CommandMode.POSITION
        if machine.command_mode is not mode:
            machine.set_command_mode(mode)
        machine.write(values, self._inbox.stamp - 1e-9 * epoch if self._inbox.stamp else None)

    def _waits(self, machine: Machine, epoch: int) -> bool:
        """Whether machine time stands still until a command comes that answers a state no older than `lead`."""
        inbox = self._inbox
        if machine.real or machine.lifecycle is not Lifecycle.ACTIVE or inbox.stamp == 0.0:
            return False
        if time.monotonic() - inbox.arrival > self._patience:
            return False
        return machine.time - (inbox.stamp - 1e-9 * epoch) > self._lead

    def _open_brakes(self) -> None:
        """Activate with the first command, where that is wanted; never again after that."""
        machine = self._machine
        ready = machine is not None and machine.lifecycle is Lifecycle.INACTIVE
        if self._start == "on_command" and self._inbox.heard and ready:
            self._opener.cancel()
            self.trigger_activate()

    def _report(self) -> diagnostics.Report:
        if self._machine is None:
            return diagnostics.ERROR, self._description.problem, {}
        machine, statistics = self._machine, self._monitor.last
        commanders = self._inbox.sources.look()
        values = {
            "life cycle": machine.lifecycle.value,
            "rate": f"{statistics.rate:.1f} Hz",
            "missed deadlines": statistics.missed_deadlines,
            "commands refused": self._inbox.refused,
        }
        if machine.fault:
            return diagnostics.ERROR, machine.fault, values
        if commanders:
            return diagnostics.ERROR, commanders, values
        if self._inbox.problem:
            return diagnostics.WARN, f"the last command was refused: {self._inbox.problem}", values
        if machine.silent_for:
            level = diagnostics.ERROR if self._inbox.heard else diagnostics.WARN
            what = "drives are in their safe state" if machine.real else "the brakes are closed"
            return level, f"no command for {machine.silent_for:.2f} s: {what}", values
        if machine.notice:
            return diagnostics.WARN, machine.notice, values
        if np.any(machine.saturated):
            return diagnostics.WARN, "a drive is at its limit", values
        return diagnostics.OK, machine.lifecycle.value, values


def _states_message(names: list[str], stamp: Any, numbers: NDArray[np.float64]) -> JointState:
    """Positions, velocities and efforts, one after the other, as a message."""
    position, velocity, effort = np.split(numbers, 3)
    message = JointState(name=names, position=position, velocity=velocity, effort=effort)
    message.header.stamp = stamp
    return message


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(HardwareNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
