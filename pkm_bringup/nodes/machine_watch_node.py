# SPDX-License-Identifier: Apache-2.0
"""Activates controllers of ros2_control while the machine publishes, and deactivates them when it does not.

The topic bridge of ros2_control repeats the machine's last state, and sends on the controller's last command; a forward
controller repeats its last effort. So this node subscribes to the machine itself, and to the commands for a forward
controller, and asks the controller manager:

* while the machine has published steadily, and its drives are on where it reports that: to activate the hardware
  component, then at once the wanted controllers, which begin at the machine's position (the manager refuses the other
  order, so that a last command may go out before them: of a machine at rest, the hardware node refuses far positions);
* when the machine, or its commander, is silent, when its drives are off, or when a command is not finite (a goal with
  NaN, which the trajectory controller accepts): to deactivate the component, so that nothing is commanded any more and
  the machine closes its brakes, then the controllers, which give their goals up.

The controllers that were active then are activated again when the machine is back; where it is silent again within a
minute, after twice as long, until somebody enables its drives: a busy computer would start and stop it all the time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from controller_manager_msgs.srv import (
    ListControllers,
    ListHardwareComponents,
    SetHardwareComponentState,
    SwitchController,
)
from lifecycle_msgs.msg import State
from rclpy.node import Node
from rclpy.task import Task
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from pkm_bringup.nodes.silences import Health
from pkm_description.ros import diagnostics, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_hardware.machine import Lifecycle

_LOOK_EVERY = 0.02  # s
_TRY_AGAIN_AFTER = 0.3  # s
_LOST_AFTER = 5.0  # s: an answer of the controller manager that has not come by then will not
_ACTIVE, _INACTIVE = State.PRIMARY_STATE_ACTIVE, State.PRIMARY_STATE_INACTIVE


class MachineWatchNode(Node):
    """Watches the machine and its commander; activates and deactivates by the controller manager's services."""

    def __init__(self) -> None:
        super().__init__("machine_watch")
        text = "controllers to activate when the machine speaks"
        self._wanted: list[str] = list(declare(self, "controllers", ["joint_state_broadcaster"], text, fixed=True))
        text = "forward controller whose commands must not stop while it is wanted; empty: none"
        self._forward: str = declare(self, "forward_controller", "", text, fixed=True)
        silence = declare(
            self, "silence", 0.1, "time without a message that counts as silence, s", (0.005, 10.0), fixed=True
        )
        steady = declare(
            self, "steady", 0.5, "time of flowing messages after which they are trusted, s", (0.0, 10.0), fixed=True
        )
        self._health = Health(silence, steady)
        self._streams = {
            topics.HARDWARE_STATES: PolledSubscription(self, JointState, topics.HARDWARE_STATES, topics.STREAM_IN)
        }
        if self._forward:
            commands = f"{self._forward}/commands"
            self._streams[commands] = PolledSubscription(self, Float64MultiArray, commands, topics.STREAM_IN)
        self._sent = PolledSubscription(self, JointState, topics.HARDWARE_COMMANDS, topics.STREAM_IN)
        self._numbers = True  # whether the newest command is one
        self._drives = ""  # of the machine, as it says; empty: nothing yet
        self.create_subscription(State, topics.MACHINE_STATE, self._hear_machine, topics.LATCHED)
        self._list = self.create_client(ListControllers, "controller_manager/list_controllers")
        self._switch = self.create_client(SwitchController, "controller_manager/switch_controller")
        self._components = self.create_client(ListHardwareComponents, "controller_manager/list_hardware_components")
        self._set_component = self.create_client(
            SetHardwareComponentState, "controller_manager/set_hardware_component_state"
        )
        self._commanders = self.create_publisher(State, topics.COMMANDERS_STATE, topics.LATCHED)
        self._set_running(False)
        self._stopped = ""  # why controllers were last deactivated
        self._problem = "the controller manager has not been seen yet"
        self._task: Task | None = None
        self._begun = self._next_try = 0.0  # s
        steady_timer(self, _LOOK_EVERY, self._look)
        self._diagnostics = diagnostics.Diagnostics(self, self._report)

    def _hear_machine(self, message: State) -> None:
        if message.label != self._drives:
            if self._drives and message.label == Lifecycle.ACTIVE.value:  # drives that were off: somebody enabled them
                self._health.forgive()
            self._drives = message.label
            self._next_try = 0.0  # a real machine waits for its first command, but not for long

    def _needed(self) -> list[str]:
        return [topic for topic in self._streams if topic == topics.HARDWARE_STATES or self._forward in self._wanted]

    def _look(self) -> None:
        now = time.monotonic()
        for topic, stream in self._streams.items():
            if stream.take() is not None:
                self._health.hear(topic, now)
        steady = self._health.steady(self._needed(), now)
        silence = self._health.silent(self._needed(), now)
        ill = silence or self._drives_off() or self._senseless()
        if self._task is not None and not self._task.done():
            if now - self._begun < _LOST_AFTER:
                return
            self._task.cancel()
            self._problem = "the controller manager does not answer"
        self._task = None
        if self._running and ill:
            self._begin(self._stop(ill, self._health.stopped(now) if silence else 0.0), now)
        elif not self._running and now >= self._next_try:
            self._next_try = now + _TRY_AGAIN_AFTER
            if ill:
                self._problem = ill
            elif steady and not self._unavailable():
                self._begin(self._start(), now)

    def _drives_off(self) -> str:
        on = self._drives in ("", Lifecycle.ACTIVE.value)
        return "" if on else f"the drives are off: the machine is {self._drives}"

    def _senseless(self) -> str:
        """The command that was not finite in two consecutive looks; empty where it is."""
        if not self._running or (message := self._sent.take()) is None:
            return ""
        before, values = self._numbers, [*message.effort, *message.position, *message.velocity]
        self._numbers = all(map(math.isfinite, values))
        return "" if before or self._numbers else "a command is not a number: the last goal is given up"

    def _begin(self, work: Coroutine[Any, Any, None], now: float) -> None:
        assert self.executor is not None  # its timer calls
        self._begun = now
        self._task = self.executor.create_task(work)

    def _unavailable(self) -> bool:
        missing = not all(one.service_is_ready() for one in (self._list, self._switch, self._set_component))
        if missing:
            self._problem = "the controller manager is not there"
        return missing

    def _set_running(self, running: bool) -> None:
        self._running = running
        state = (_ACTIVE, Lifecycle.ACTIVE) if running else (_INACTIVE, Lifecycle.INACTIVE)
        self._commanders.publish(State(id=state[0], label=state[1].value))

    async def _start(self) -> None:
        states = await self._states()
        absent = [name for name in self._wanted if states.get(name) not in ("inactive", "active")]
        if absent:
            self._problem = f"not loaded yet: {', '.join(absent)}"
            return
        if not await self._all_components(_ACTIVE):
            self._problem = "the hardware component cannot be activated; the controller manager's log says why"
            return
        idle = [name for name in self._wanted if states[name] == "inactive"]
        if idle and not await self._switched(activate=idle):
            self._problem = f"the controller manager does not activate {', '.join(idle)}; its log says why"
            await self._all_components(_INACTIVE)
            return
        self._numbers, self._problem = True, ""
        self._health.started(time.monotonic())
        self._set_running(True)
        self.get_logger().info(f"the machine is back: {', '.join(self._wanted)} active")

    async def _stop(self, why: str, steady: float) -> None:
        self._stopped = self._problem = why
        until = f" until messages have flowed for {steady:g} s" if steady else ""
        self.get_logger().error(f"{why}: controllers are deactivated{until}")
        self._set_running(False)
        await self._all_components(_INACTIVE)
        active = [name for name, state in (await self._states()).items() if state == "active"]
        if active:
            self._wanted = active
            await self._switched(deactivate=active)

    async def _states(self) -> dict[str, str]:
        answer = await self._list.call_async(ListControllers.Request())
        return {one.name: one.state for one in answer.controller}

    async def _switched(self, activate: tuple[str, ...] | list[str] = (), deactivate: Any = ()) -> bool:
        request = SwitchController.Request(
            activate_controllers=list(activate),
            deactivate_controllers=list(deactivate),
            activate_asap=True,
            strictness=SwitchController.Request.STRICT if activate else SwitchController.Request.BEST_EFFORT,
        )
        return bool((await self._switch.call_async(request)).ok)

    async def _all_components(self, state: int) -> bool:
        answer = await self._components.call_async(ListHardwareComponents.Request())
        well = True
        for component in answer.component:
            if component.state.id != state:
                request = SetHardwareComponentState.Request(name=component.name, target_state=State(id=state))
                well = bool((await self._set_component.call_async(request)).ok) and well
        return well

    def _report(self) -> diagnostics.Report:
        values = {"controllers": ", ".join(self._wanted), "last stop": self._stopped}
        if self._running:
            return diagnostics.OK, "controllers are active", values
        return diagnostics.ERROR, f"controllers are not active: {self._problem}", values


main = partial(run_node, MachineWatchNode)
