# SPDX-License-Identifier: Apache-2.0
"""Operator requests to the controller, by services and topics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from pkm_bringup.nodes.prompt_thread import RequestThread
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls
from pkm_control.operator_interface import Answer
from pkm_description.ros import messages, topics
from pkm_interfaces.srv import ChangeWorkingMode, SetSpeedOverride
from pkm_runtime.errors import PkmError

_THROTTLE = 2.0  # s, between two warnings of the same kind


class OperatorServices:
    """Services `pause`, `resume`, `stop`, `set_speed_override`, `recover`, `change_working_mode`; topics of jogs."""

    def __init__(self, node: Node, controls: Controls, operator: Operator) -> None:
        self._controls = controls
        self._operator = operator
        self._logger = node.get_logger()
        self._node = node
        prompt = {topics.PAUSE: operator.pause, topics.STOP: operator.stop}
        self._prompt = RequestThread(node, {name: self._trigger(act) for name, act in prompt.items()})
        node.create_service(Trigger, topics.RESUME, self._trigger(operator.resume))
        node.create_service(Trigger, topics.RECOVER, self._recover)
        node.create_service(SetSpeedOverride, topics.SET_SPEED_OVERRIDE, self._set_speed)
        node.create_service(ChangeWorkingMode, topics.CHANGE_WORKING_MODE, self._change_mode)
        node.create_subscription(TwistStamped, topics.JOG_TWIST, self._steer, topics.STREAM_IN)
        node.create_subscription(PoseStamped, topics.JOG_POSE, self._go_to, topics.EVENTS)

    def end(self) -> None:
        """Stop serving, before the node goes."""
        self._prompt.end()

    @staticmethod
    def _trigger(act: Callable[[], Answer]) -> Callable[[Any, Any], Any]:
        def answer(_: Any, response: Trigger.Response) -> Trigger.Response:
            answer = act()
            response.success, response.message = answer.success, answer.message
            return response

        return answer

    def _set_speed(
        self, request: SetSpeedOverride.Request, response: SetSpeedOverride.Response
    ) -> SetSpeedOverride.Response:
        answer = self._operator.set_speed(request.fraction)
        response.success, response.message = answer.success, answer.message
        if answer.success:
            response.fraction = request.fraction
        elif self._controls.loop is not None:
            response.fraction = self._controls.loop.situation.override
        return response

    async def _recover(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        answer = await self.beside(self._operator.recover)
        response.success, response.message = answer.success, answer.message
        return response

    async def _change_mode(
        self, request: ChangeWorkingMode.Request, response: ChangeWorkingMode.Response
    ) -> ChangeWorkingMode.Response:
        answer = await self.beside(lambda: self._operator.change_working_mode(request.working_mode))
        response.success, response.message = answer.success, answer.message
        return response

    def beside(self, act: Callable[[], Answer]) -> Future:
        """Run a slow action in a thread of its own, so that a stop need not wait for it."""
        over: Future = Future()

        def run() -> None:
            try:
                answer = act()
            except Exception as error:  # the request must be answered
                answer = Answer(False, f"{type(error).__name__}: {error}")
            over.set_result(answer)
            if self._node.executor is not None:
                self._node.executor.wake()

        threading.Thread(target=run, name="operator", daemon=True).start()
        return over

    # -- jogs -------------------------------------------------------------------------------------------------------

    def _steer(self, message: TwistStamped) -> None:
        twist = messages.twist_of(message.twist)
        self._jog("jog_twist", message.header, lambda: self._operator.steer(twist))

    def _go_to(self, message: PoseStamped) -> None:
        pose = messages.pose_of(message.pose)
        self._jog("jog_pose", message.header, lambda: self._operator.jog_to(pose))

    def _jog(self, what: str, header: Header, act: Callable[[], Answer]) -> None:
        """Do it where the frame is the base frame; warn where it is refused."""
        try:
            messages.check_frame(header, self._controls.kinematics.mechanism.base_link)
            problem = act().message
        except PkmError as error:
            problem = str(error)
        if problem:
            self._logger.warning(f"{what} refused: {problem}", throttle_duration_sec=_THROTTLE)
