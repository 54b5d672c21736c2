# SPDX-License-Identifier: Apache-2.0
"""A machine as a ROS node, with the life cycle of a `SystemInterface`: unconfigured, inactive with drives off, active.

Together with the controller node (`control_node`) the machine is part of their one loop. Alone it speaks the topics
that `joint_state_topic_hardware_interface/JointStateTopicSystem` of the robot's <ros2_control> block names, so the
controller_manager drives it as it drives a machine.

Drives are off until somebody enables them (`~/enable`, or the life cycle's transition), and off after whatever ends the
node. Only simulated machines may begin by themselves. `~/emergency_stop`, or any message on the topic `emergency_stop`,
disables the drives; `~/reset` leads back to inactive. States are published only while they are known: not in a fault,
nor before an axis that needs it has been homed.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from lifecycle_msgs.msg import State
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from pkm_bringup.bringup import HARDWARE
from pkm_bringup.nodes.machine_thread import MachineThread
from pkm_bringup.nodes.node_parts import LoopMonitor, RequestThread, declare_settings, loop_scheduling
from pkm_bringup.nodes.shared_loop import SharedLoop
from pkm_control.controllers.force_task import read_force_file
from pkm_control.loop import requests
from pkm_control.loop.guard import cause_of
from pkm_control.loop.running_loop import Situation
from pkm_control.loop.served_loop import HELD_WITHIN, NOT_HELD
from pkm_control.loop_settings import MachineSettings
from pkm_control.operator_interface import Mode
from pkm_control.robot_loop import build_machine
from pkm_description.mechanism import Array, Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.raw_rows import RowPublisher, joint_rows
from pkm_description.ros.robot_description import RobotDescription
from pkm_hardware.drivers.driver import GIVEN_UP
from pkm_hardware.machine import Lifecycle
from pkm_hardware.machine_kinds import SIMULATED
from pkm_interfaces.msg import ControllerState
from pkm_runtime.errors import PkmError
from pkm_runtime.scheduling import settle

_TELL_EVERY = 0.3  # s: after a long silence, subscribers cannot know whether this is the same machine
_LOOK_EVERY = 0.1  # s, at the life cycle
_LOOK_AT_STATE = 0.005  # s, at the controller's state
_LIFE = {
    Lifecycle.UNCONFIGURED: State.PRIMARY_STATE_UNCONFIGURED,
    Lifecycle.INACTIVE: State.PRIMARY_STATE_INACTIVE,
    Lifecycle.ACTIVE: State.PRIMARY_STATE_ACTIVE,
    Lifecycle.FAULT: State.PRIMARY_STATE_UNCONFIGURED,  # it has to be configured anew; the label says so
}


_OFF = "the machine is not configured: its drives are off"
_OVER = "the machine was shut down: start its node anew"


class _SharedMachine:
    """The machine of a loop in another process, with the face of a `MachineThread`: calls return why not, empty where
    done. `running`: whether it was configured, `problem`: why nothing is known of it.
    """

    def __init__(self, shared: SharedLoop) -> None:
        self._shared = shared
        self._beginning = False
        self._untold = ""  # the warning with which it was switched off

    @property
    def running(self) -> bool:
        return self._shared.running

    @property
    def problem(self) -> str:
        return self._shared.process.problem

    @property
    def lifecycle(self) -> Lifecycle:
        return self._shared.process.lifecycle

    @property
    def fault(self) -> str:
        return self.problem or (self._shared.process.texts.fault if self.running else self._untold)

    @property
    def notice(self) -> str:
        return self._shared.process.texts.notice

    @property
    def silent_for(self) -> float:
        return self._shared.process.situation.silent_for if self._shared.process.begun else 0.0

    @property
    def saturated(self) -> bool:
        return self._shared.process.begun and self._shared.process.situation.saturated

    def configure(self) -> str:
        self._beginning = True
        try:
            problem = self._shared.process.run()
            self._shared.running = self._shared.process.real or not problem
            self._untold = ""  # what is known of its drives is the loop's from now on
        except PkmError as error:
            problem = str(error)
        finally:
            self._beginning = False
        return "" if self._shared.running else problem

    def enable(self) -> str:
        return self._ask(requests.enable, needed=True)

    def disable(self) -> str:
        return self._ask(requests.disable) if self.running or not self._untold else self.emergency_stop()

    def emergency_stop(self) -> str:
        if not (self.running or self._beginning or self._untold):
            return _OFF
        self._untold = self._shared.process.emergency_stop()
        return self._untold

    def reset(self) -> str:
        return self._ask(requests.reset, needed=True)

    def tell_emergency_stop(self) -> None:
        if self.running or self._beginning or self._untold:
            self._shared.process.tell_emergency_stop()

    def end(self) -> str:
        self._shared.running = False
        try:
            self._untold = self._shared.process.rest()
        except PkmError as error:
            self._untold = "" if self._shared.process.failure else str(error)  # which was logged
        return self._untold

    def _ask(self, request: Any, needed: bool = False) -> str:
        # one that never began is asked only where that is `needed`
        process = self._shared.process
        if not (self.running or needed) and not process.failure:
            return ""
        try:
            return str(process.ask(request) or "")
        except PkmError as error:
            return str(error)


class HardwareNode(LifecycleNode):
    """Publishes the state of a machine, and enables and disables its drives."""

    def __init__(self, shared: SharedLoop | None = None) -> None:
        super().__init__("hardware")
        self._given = declare_settings(self, HARDWARE)
        self._rate, self._start = self._given["rate"], self._given["start"]
        self._settings = self._declared()
        self._shared = shared
        self._published, self._published_at = Lifecycle.UNCONFIGURED, 0.0  # s, monotonic
        self._failing = self._silence = ""  # the fault that was logged last, and the silence of the loop
        self._refused = ""  # why the last transition was
        self._left_on = ""  # the fault beside which the drives could not be disabled
        self.exit_code: int | None = None  # once the node ends by itself
        self._sensor_frame = ""
        self._rows: RowPublisher | None = None
        self._states = self.create_publisher(JointState, topics.HARDWARE_STATES, topics.STREAM_OUT)
        self._wrenches = self.create_publisher(WrenchStamped, topics.FORCE_TORQUE, topics.STREAM_OUT)
        self._life = self.create_publisher(State, topics.MACHINE_STATE, topics.LATCHED)
        self._monitor = LoopMonitor(self, self._rate, self._note_periods)
        self._alone: MachineThread | None = None
        if shared is None:
            priority = 0 if self._given["simulate"] else self._given["realtime_priority"]  # as in `SharedLoop`
            scheduling = loop_scheduling(self, priority)
            self._alone = MachineThread(self, self._rate, self._states, self._publish_wrench, self._monitor, scheduling)
            self._machine: MachineThread | _SharedMachine = self._alone
            self._controller = PolledSubscription(self, ControllerState, topics.CONTROLLER_STATE, topics.STREAM_IN)
        else:
            self._machine = _SharedMachine(shared)
        self._watch = steady_timer(self, _LOOK_EVERY, self._look)
        self.create_service(Trigger, "~/enable", partial(self._answer, self._enable))
        self.create_service(Trigger, "~/reset", partial(self._answer, self._reset))
        off = {"~/disable": self._disable, "~/emergency_stop": self._machine.emergency_stop}
        answers = {name: partial(self._answer, act) for name, act in off.items()}
        self._prompt = RequestThread(self, answers, {topics.EMERGENCY_STOP: self._machine.tell_emergency_stop})
        self._description = RobotDescription(self, self._build, self._busy)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _declared(self) -> MachineSettings:
        timeout = "machine time without a command after which brakes close, s; a machine's file has its own"
        step, given = "one step of an encoder, rad or m; 0: exact", self._given
        return MachineSettings(
            command_timeout=declare(self, "command_timeout", 0.02, timeout, (0.001, 60.0), fixed=True),
            encoder=(
                declare(self, "encoder_resolution", 0.0, step, (0, 1), fixed=True),
                declare(self, "position_noise", 0.0, "standard deviation, rad or m", (0.0, 1.0), fixed=True),
                declare(self, "velocity_noise", 0.0, "standard deviation, rad/s or m/s", (0.0, 10.0), fixed=True),
            ),
            kind=given["machine"],
            file=given["hardware_file"],
            **{name: given[name] for name in ("realistic", "hidden_payload", "simulate", "force_file")},
        )

    # The robot

    def _build(self, mechanism: Mechanism) -> None:
        self._rows = joint_rows(self._states, mechanism.actuated_joints, *messages.READINGS)
        force = read_force_file(self._settings.force_file)
        self._sensor_frame = force.sensor_frame or mechanism.platform_link
        if self._alone is not None:
            self._alone.take(build_machine(mechanism, self._settings))
            settle()
            self.attach()
        elif self._shared is not None:
            self._shared.offer_machine(mechanism, self._settings, self, self._given["publish_rate"])

    def attach(self) -> None:
        """The machine exists: connect, and enable it where it begins by itself."""
        if self._start == "manual" and self._settings.kind == SIMULATED:
            return
        self.trigger_configure()
        if self._start == "active" or (self._start == "auto" and self._settings.kind == SIMULATED):
            self.trigger_activate()
        elif not self._refused:
            service = self.resolve_service_name("~/enable")
            self.get_logger().info(f"the drives are off until somebody enables them: pkm enable, or {service}")

    def _busy(self) -> str:
        return "the machine is configured; clean it up first" if self._machine.running else ""

    # Life cycle, as controller_manager would call it on a SystemInterface

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect the machine, drives off, and begin to publish its state; a simulated one is at home."""
        problem = self._description.problem if self._rows is None else self._machine.configure()
        return self._done(problem, super().on_configure, state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Drives on, brakes open."""
        return self._done(self._machine.enable(), super().on_activate, state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Drives off, brakes closed. Not while a drive may be on: it is active until it is known to be off."""
        warning = self._machine.disable()
        self._left_on = self._machine.fault if warning else ""
        return self._done(warning, super().on_deactivate, state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Drives off and disconnected; nothing is published. Not while a drive may be on, for it is told again."""
        warning = self._machine.disable()
        if not warning:
            self._switch_off()
        return self._done(warning, super().on_cleanup, state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Drives off, and the end."""
        self._switch_off()
        return super().on_shutdown(state)

    def destroy_node(self) -> None:
        """Disable the drives before the publishers go."""
        if self._shared is not None:
            self._shared.end_publishing()
        self._prompt.end()
        self._switch_off(warned=self._shared is not None)  # by the process, as its last word
        if self._shared is not None:
            self._shared.end()
        super().destroy_node()

    def _done(self, problem: str, then: Any, state: LifecycleState) -> TransitionCallbackReturn:
        self._refused = problem
        if not problem:
            return then(state)
        self.get_logger().error(problem)
        return TransitionCallbackReturn.FAILURE

    def _switch_off(self, warned: bool = False) -> None:
        if self._machine.running:
            on = self._lifecycle is Lifecycle.ACTIVE and self._settings.kind != SIMULATED
            if not (warning := self._machine.end()) and on:
                self.get_logger().info("the drives are off")
            elif warning and not warned:
                self.get_logger().error(warning)
        self._tell(Lifecycle.UNCONFIGURED)

    # Services

    def _answer(self, act: Any, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        problem = act()
        response.success = not problem
        response.message = problem or self._machine.fault or f"the machine is {self._lifecycle.value}"
        return response

    @property
    def _over(self) -> str:
        return _OVER if self._state_machine.current_state[0] == State.PRIMARY_STATE_FINALIZED else ""

    def _enable(self) -> str:
        if self._over:
            return self._over
        if self._lifecycle is Lifecycle.ACTIVE:  # as far as is known here: the machine is asked
            return self._machine.enable() or self._not_held()
        if self._lifecycle is Lifecycle.FAULT:
            return self._machine.problem or f"{self._machine.fault or 'the machine has a fault'}; reset first"
        if not self._machine.running:
            self.trigger_configure()
        self._follow_lifecycle()
        self._refused = ""
        self.trigger_activate()
        if self._lifecycle is Lifecycle.ACTIVE and not self._refused:
            return self._not_held()
        return self._refused or self._machine.fault or "the machine could not be enabled"

    def _not_held(self) -> str:
        """Wait until the controller of another process, if any, holds the platform; else drives off, and why."""
        alone, why = self._alone, "nothing comes from it"
        if alone is None or alone.machine is None or not self.count_publishers(topics.CONTROLLER_STATE):
            return ""
        self._controller.take()  # of the time before
        self._tell(Lifecycle.ACTIVE)
        until = time.monotonic() + HELD_WITHIN
        while time.monotonic() < until:
            heard = self._controller.take()
            if alone.lifecycle is not Lifecycle.ACTIVE:
                return alone.fault or GIVEN_UP
            if not alone.machine.readable or (heard is not None and heard.mode not in (Mode.WAITING, Mode.STOPPED)):
                alone.machine.withheld = ""
                return ""
            if heard is not None:
                why = alone.machine.withheld = cause_of(heard.reason)
            time.sleep(_LOOK_AT_STATE)
        warning = alone.disable()
        self._follow_lifecycle()
        return warning or NOT_HELD.format(why)

    def _disable(self) -> str:
        # in a thread of its own: the life cycle follows in the executor's
        problem = self._machine.disable()
        if self.executor is not None:
            self.executor.create_task(self._follow_lifecycle)
        return problem

    def _reset(self) -> str:
        problem = self._over or self._machine.problem or self._machine.reset()
        self._follow_lifecycle()
        return problem

    # How the machine is

    @property
    def _lifecycle(self) -> Lifecycle:
        machine = self._machine
        if not machine.running:
            return Lifecycle.UNCONFIGURED
        return machine.lifecycle

    def _look(self) -> None:
        """Publish what has changed: of a fault the reason, once. A loop that has died ends the node."""
        life = self._lifecycle
        if life is not self._published or time.monotonic() - self._published_at >= _TELL_EVERY:
            self._tell(life)
        fault = self._machine.fault if life is Lifecycle.FAULT else ""
        if self._shared is not None and self._shared.process.failure and not self._shared.process.gone:
            return  # what becomes of its drives is still being seen to
        if fault and fault != self._failing:
            then = f"to go on, call {topics.RESET} and {topics.ENABLE}"
            self.get_logger().error(f"the machine has stopped: {fault}; {then}")
        self._failing = fault
        self._watch_loop("" if fault else self._machine.problem)
        if self._shared is not None and self._shared.process.gone:
            self.exit_code = 1
        self._follow_lifecycle()

    def _watch_loop(self, silence: str) -> None:
        # a silent loop says nothing of the drives
        if silence and not self._silence:
            self.get_logger().error(f"nothing is known of the machine: {silence}")
        elif self._silence and not (silence or self._machine.problem):  # it has not ended
            self.get_logger().info(f"the control loop is back; the machine is {self._lifecycle.value}")
        self._silence = silence

    def _follow_lifecycle(self) -> None:
        active = self._state_machine.current_state[0] == State.PRIMARY_STATE_ACTIVE
        off = not (self._machine.running and self._machine.lifecycle is Lifecycle.ACTIVE)
        if active and off and not (self._left_on and self._left_on == self._machine.fault):
            self.trigger_deactivate()

    def _tell(self, life: Lifecycle) -> None:
        self._published, self._published_at = life, time.monotonic()
        if self.context.ok():
            self._life.publish(State(id=_LIFE[life], label=life.value))

    def publish(self, now: Situation, stamp: Any) -> None:
        """Publish the reading of one period of the shared loop, and its life cycle where that has changed."""
        state = now.state
        if state.lifecycle is not self._published or not now.readable:
            life = self._lifecycle
            if life is not self._published:
                self._tell(life)
        if self._rows is None or state.lifecycle not in (Lifecycle.INACTIVE, Lifecycle.ACTIVE) or not now.readable:
            return
        self._rows.publish(stamp, np.concatenate((state.positions, state.velocities, state.efforts)))
        if state.wrench is not None:
            self._publish_wrench(state.wrench, stamp)

    def _publish_wrench(self, wrench: Array, stamp: Any) -> None:
        header = Header(stamp=stamp, frame_id=self._sensor_frame)
        self._wrenches.publish(WrenchStamped(header=header, wrench=messages.to_wrench(wrench)))

    def _note_periods(self) -> None:
        if self._shared is not None:
            self._monitor.cycles(self._shared.process.figures())

    def _report(self) -> diagnostics.Report:
        if self._rows is None or (self._alone is not None and self._alone.machine is None):
            return diagnostics.ERROR, self._description.problem, {}
        statistics = self._monitor.last
        values: dict[str, object] = {
            "life cycle": self._lifecycle.value,
            "rate": f"{statistics.rate:.1f} Hz",
            "missed deadlines": statistics.missed_deadlines,
        }
        if self._alone is not None:
            values["commands refused"] = self._alone.inbox.refused
        left_on = self._lifecycle is Lifecycle.UNCONFIGURED and self._machine.fault
        if self._lifecycle is Lifecycle.FAULT or self._machine.problem or left_on:
            return diagnostics.ERROR, self._machine.fault, values
        if self._lifecycle is Lifecycle.INACTIVE:
            notice = self._machine.notice or "the drives are off until they are enabled"
            return diagnostics.WARN, notice, values
        if self._alone is not None and (commanders := self._alone.inbox.sources.look()):
            return diagnostics.ERROR, commanders, values
        if self._alone is not None and self._alone.inbox.problem:
            return diagnostics.WARN, f"the last command was refused: {self._alone.inbox.problem}", values
        if silent := self._machine.silent_for:
            level = diagnostics.ERROR if self._alone is None or self._alone.inbox.heard else diagnostics.WARN
            what = "the brakes are closed" if self._settings.kind == SIMULATED else "drives are in their safe state"
            return level, f"no command for {silent:.2f} s: {what}", values
        if self._machine.notice:
            return diagnostics.WARN, self._machine.notice, values
        if self._machine.saturated:
            return diagnostics.WARN, "a drive is at its limit", values
        return diagnostics.OK, self._lifecycle.value, values


main = partial(run_node, HardwareNode)
