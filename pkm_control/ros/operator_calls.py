# SPDX-License-Identifier: Apache-2.0
"""An operator's requests as calls of a robot's services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from pkm_control.operator_interface import Answer, OperatorRequests
from pkm_description.ros import topics
from pkm_interfaces.srv import ChangeWorkingMode, SetSpeedOverride

PATIENCE = 10.0  # s, for an answer
LONG_PATIENCE = 300.0  # s, where a motion is planned or a way is looked for
_WITH_DRIVES = 60.0  # s, while contact with them is made
_SERVICES = {
    **{"pause": topics.PAUSE, "resume": topics.RESUME, "stop": topics.STOP, "take_over": topics.TAKE_OVER},
    "recover": topics.RECOVER,
    **{"enable": topics.ENABLE, "disable": topics.DISABLE, "reset": topics.RESET, "emergency_stop": topics.STOP_DRIVES},
}
POWER = (topics.STOP_DRIVES, topics.ENABLE, topics.DISABLE, topics.RESET)  # of a machine that has them


class OperatorCalls(OperatorRequests):
    """`OperatorRequests` by `call`: a request and a patience [s] to an answer with `success` and `message`."""

    def __init__(self, node: Node, call: Callable[[Any, Any, float], Any]) -> None:
        self._called = call
        self.triggers = {name: node.create_client(Trigger, name) for name in _SERVICES.values()}
        self.speed = node.create_client(SetSpeedOverride, topics.SET_SPEED_OVERRIDE)
        self.mode = node.create_client(ChangeWorkingMode, topics.CHANGE_WORKING_MODE)

    def request(self, word: str) -> Answer:
        """Call the service of this name."""
        patience = _WITH_DRIVES if word in ("enable", "reset") else PATIENCE
        return self._ask(self.triggers[_SERVICES[word]], Trigger.Request(), patience)

    def set_speed(self, fraction: float) -> Answer:
        """Run motions at a fraction (0 to 1) of their planned speed."""
        return self._ask(self.speed, SetSpeedOverride.Request(fraction=float(fraction)), PATIENCE)

    def change_working_mode(self, label: str) -> Answer:
        """Begin the change to the working mode of this label, or continue it."""
        return self._ask(self.mode, ChangeWorkingMode.Request(working_mode=label), LONG_PATIENCE)

    def _ask(self, client: Any, request: Any, patience: float) -> Answer:
        answer = self._called(client, request, patience)
        # a node that an error of its own kept from an answer says no more than no
        return Answer(answer.success, answer.message or ("" if answer.success else f"{client.srv_name} was refused"))
