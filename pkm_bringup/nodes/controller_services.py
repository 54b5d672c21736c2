# SPDX-License-Identifier: Apache-2.0
"""Services and topics of the controller beside its motions: an operator's requests, measurements, conveyors."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from pkm_bringup.nodes.node_parts import RequestThread
from pkm_calibration.measurements import append_measurement
from pkm_control.control_errors import GoalError
from pkm_control.conveyor.belt import Belt
from pkm_control.conveyor.conveyor import read_conveyors
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls, RunningLoop
from pkm_control.operator_interface import Answer
from pkm_control.ros.motion_messages import seconds
from pkm_description.mechanism import Array
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_interfaces.srv import ChangeWorkingMode, RecordMeasurement, SetSpeedOverride
from pkm_runtime.errors import PkmError

_THROTTLE = 2.0  # s, between two warnings of the same kind

_DURATION, _LOOK = 0.25, 0.005  # s: of the mean over readings, and between two of them
_FEWEST = 5  # readings
_STILL = 1e-3  # rad or m: drives whose readings spread more are moved by something

_MOST = 50  # readings of one topic in a period


def _filled(response: Any, answer: Answer) -> Any:
    response.success, response.message = answer.success, answer.message
    return response


class OperatorServices:
    """Services of an operator, by `docs/running_reference.md`; topics of jogs."""

    def __init__(self, node: Node, controls: Controls, operator: Operator) -> None:
        self._controls = controls
        self._operator = operator
        self._logger = node.get_logger()
        self._node = node
        prompt = {topics.PAUSE: operator.pause, topics.STOP: operator.stop, topics.TAKE_OVER: operator.take_over}
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
            return _filled(response, act())

        return answer

    def _set_speed(
        self, request: SetSpeedOverride.Request, response: SetSpeedOverride.Response
    ) -> SetSpeedOverride.Response:
        if _filled(response, self._operator.set_speed(request.fraction)).success:
            response.fraction = request.fraction
        elif self._controls.loop is not None:
            response.fraction = self._controls.loop.situation.override
        return response

    async def _recover(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return _filled(response, await self.beside(self._operator.recover))

    async def _change_mode(
        self, request: ChangeWorkingMode.Request, response: ChangeWorkingMode.Response
    ) -> ChangeWorkingMode.Response:
        change = self.beside(lambda: self._operator.change_working_mode(request.working_mode))
        return _filled(response, await change)

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
        try:
            messages.check_frame(header, self._controls.kinematics.mechanism.base_link)
            problem = act().message
        except PkmError as error:
            problem = str(error)
        if problem:
            self._logger.warning(f"{what} refused: {problem}", throttle_duration_sec=_THROTTLE)


class MeasurementService:
    """Serves it with a file; `beside` runs what takes a quarter of a second in a thread of its own."""

    def __init__(
        self, node: Node, controls: Controls, file: Path, beside: Callable[[Callable[[], Answer]], Future]
    ) -> None:
        self._controls, self._file, self._beside = controls, file, beside
        self._turn = threading.Lock()  # of the file
        apart = ReentrantCallbackGroup()  # while it waits for a disk, the node serves others
        node.create_service(RecordMeasurement, topics.RECORD_MEASUREMENT, self._asked, callback_group=apart)

    async def _asked(
        self, request: RecordMeasurement.Request, response: RecordMeasurement.Response
    ) -> RecordMeasurement.Response:
        return _filled(response, await self._beside(lambda: self._record(request, response)))

    def _record(self, request: RecordMeasurement.Request, response: RecordMeasurement.Response) -> Answer:
        response.file = str(self._file.absolute())
        try:
            loop = self._controls.ready()
            mechanism, readings = loop.kinematics.mechanism, readings_at_rest(loop)
            with self._turn:
                response.rows = append_measurement(self._file, mechanism, readings, request.names, request.values)
        except (PkmError, OSError) as error:
            return Answer(False, str(error))
        return Answer(True)


def readings_at_rest(loop: RunningLoop) -> Array:
    """Mean (n_actuated,) of the drives' readings over a short time; `GoalError` where the robot moves meanwhile."""
    read: dict[float, Array] = {}
    until = time.monotonic() + _DURATION
    while time.monotonic() < until:
        now = loop.situation
        if now.moving or now.changing:
            raise GoalError("the robot moves: record a measurement when it is at rest")
        if now.readable:
            read[now.state.time] = np.array(now.state.positions)
        time.sleep(_LOOK)
    if len(read) < _FEWEST:
        raise GoalError("no readings of the drives arrive")
    rows = np.array(list(read.values()))
    spread = np.ptp(rows, axis=0)
    if spread.max() > _STILL:
        name = loop.kinematics.actuated_names[int(np.argmax(spread))]
        raise GoalError(f"the robot is not at rest: readings of {name} spread by {spread.max():.3g} rad or m")
    return np.asarray(rows.mean(axis=0))


class ConveyorTopics:
    """Hears encoders of a file's conveyors, publishes belts; no file, no topics. ConfigurationError: unusable."""

    def __init__(self, node: Node, path: str) -> None:
        self.conveyors = read_conveyors(path)
        self._encoders = {
            topic: PolledSubscription(node, JointState, topic, topics.EVENTS)
            for topic in dict.fromkeys(one.topic for one in self.conveyors)
        }
        self._states = node.create_publisher(JointState, topics.CONVEYOR_STATES, topics.STREAM_OUT) if path else None
        self._belts = {one.name: Belt(one) for one in self.conveyors}  # for what is published; the loop has its own

    def hear(self) -> list[tuple[str, float, float]]:
        """Name of the conveyor, stamp [s] and reading of each message since the last call."""
        found = []
        for topic, encoder in self._encoders.items():
            for message, _ in encoder.take_all(_MOST):
                positions = dict(zip(message.name, message.position, strict=False))
                stamp = seconds(message.header.stamp)
                for one in self.conveyors:
                    if one.topic == topic and one.joint in positions:
                        found.append((one.name, stamp, positions[one.joint]))
                        self._belts[one.name].hear(stamp, positions[one.joint])
        return found

    def publish(self, stamp: Any) -> None:
        """Publish the belts with the stamp of the machine's readings; unknown travel and speed are NaN."""
        if self._states is None:
            return
        known = [belt.state(seconds(stamp)) for belt in self._belts.values()]
        moved = np.array([(math.nan, math.nan) if one.problem else (one.travel, one.speed) for one in known])
        message = messages.to_joints(list(self._belts), messages.READINGS[:2], stamp, moved.T.ravel())
        self._states.publish(message)

    def report(self, time: float) -> tuple[str, dict[str, str]]:
        """For diagnostics at `time` [s] of the node's clock: the first problem, if any, and words for each belt."""
        states = {name: belt.state(time) for name, belt in self._belts.items()}
        problem = next((one.problem for one in states.values() if one.problem), "")
        return problem, {f"conveyor {name}": one.problem or f"{one.speed:.3f} m/s" for name, one in states.items()}
