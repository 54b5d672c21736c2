# SPDX-License-Identifier: Apache-2.0
"""The link to a robot that runs over ROS, by the names of docs/running_reference.md. It imports no solver."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from pkm_client.backend import RobotState
from pkm_client.client_errors import NoRobotError
from pkm_client.ros.client_node import LOOK, ClientNode
from pkm_control.operator_interface import INACTIVE, Answer, Mode, unready_to_jog
from pkm_control.ros.operator_calls import POWER, OperatorCalls
from pkm_description.description_error import DescriptionError
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_description.urdf.xml_text import read_xml
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, Outputs

Array = NDArray[np.float64]

_SILENT = 2.0  # s without a state after which the controller is gone: it says a hundred a second
_OFF = 3.0  # s; simulated drives come on within that, others wait for somebody
_NONE = np.full(7, np.nan)


class RosLink(ClientNode):
    """Calls the nodes of a robot, found within `timeout` [s], with `ready` a reading, too; else NoRobotError."""

    def __init__(self, namespace: str, timeout: float, ready: bool = True) -> None:
        self._state: ControllerState | None = None
        self._heard = 0.0  # s, on the monotonic clock: when it came
        self._stopped = -math.inf  # s, on the monotonic clock: when it was stopped last, or a little later
        self._on = time.monotonic()  # s: when the machine was last not known to be inactive
        self._text = ""
        self._sliding: set[str | None] = set()  # joints
        self._news = threading.Condition()
        self._action: Any = None  # until its node is there, which Ctrl-C may come before
        super().__init__(namespace)
        node = self._node
        self._states_lock = threading.Lock()
        self._joints: dict[str, tuple[float, float]] = {}
        self._states = PolledSubscription(node, JointState, topics.HARDWARE_STATES, topics.STREAM_IN)
        node.create_subscription(String, topics.ROBOT_DESCRIPTION, self._described, topics.DESCRIPTION_IN)
        node.create_subscription(ControllerState, topics.CONTROLLER_STATE, self._take_state, topics.STREAM_IN)
        self.on_output: Callable[[str, float], None] = lambda *_: None
        self._set: dict[str, float] | None = None  # outputs
        node.create_subscription(Outputs, topics.OUTPUTS, self._outputs_told, topics.LATCHED_EVENTS)
        self._twist = node.create_publisher(TwistStamped, topics.JOG_TWIST, topics.STREAM_OUT)
        self.operator = OperatorCalls(node, self._call_or_refuse)
        self._action = ActionClient(node, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        self._subscribe(node)
        deadline = time.monotonic() + timeout
        self._find(self._missing, timeout)
        while self._waits(ready) and time.monotonic() < min(deadline, self._on + _OFF):
            time.sleep(LOOK)

    # For readings that the controller has; with `ready`, for the first that it gets, too
    def _waits(self, ready: bool) -> bool:
        self._read_joints()
        assert self._state is not None
        if not self._state.reason.startswith(INACTIVE):
            self._on = time.monotonic()
        return ready if self._state.mode == Mode.WAITING else not self._joints and self._state.mode != Mode.STOPPED

    def _subscribe(self, node: Node) -> None:
        return

    def _missing(self) -> list[str]:
        calls = self.operator
        clients = {name: client for name, client in calls.triggers.items() if name not in POWER}
        clients |= {topics.SET_SPEED_OVERRIDE: calls.speed, topics.CHANGE_WORKING_MODE: calls.mode}
        missing = [] if self._text else [topics.ROBOT_DESCRIPTION]
        missing += [] if self._state is not None else [topics.CONTROLLER_STATE]
        missing += [name for name, client in clients.items() if not client.service_is_ready()]
        return missing if self._action.server_is_ready() else [*missing, topics.FOLLOW_TRAJECTORY]

    # -- the contract -----------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """This computer's monotonic clock [s]."""
        return time.monotonic()

    @property
    def outputs(self) -> dict[str, float]:
        """Values that motions have set the outputs to, by name."""
        return dict(self._set or {})

    def state(self) -> RobotState:
        """Wait for the controller's next message and return the state; `NoRobotError` where none comes any more."""
        called = time.monotonic()
        with self._news:
            if not self._news.wait_for(lambda: self._heard > called or self._closing, _SILENT) or self._closing:
                raise NoRobotError("the client was closed" if self._closing else self._silence() or "no state comes")
            state = self._state
        assert state is not None
        return self._state_of(state)

    def steer(self, twist: Array, asked: float) -> Answer:
        """Jog at a twist (6,) for a quarter of a second; a topic gives no answer, so all is checked before."""
        state = self.state()
        problem = (self._why_stopped(asked) or unready_to_jog(state.mode, state.reason)) if twist.any() else ""
        if problem:
            return Answer(False, problem)
        header = Header(stamp=self._node.get_clock().now().to_msg())
        self._twist.publish(TwistStamped(header=header, twist=messages.to_twist(twist)))
        return Answer(True)

    def _why_stopped(self, asked: float) -> str:
        with self._news:
            return self._state.why_stopped if self._state is not None and asked <= self._stopped else ""

    def _call_or_refuse(self, client: Any, request: Any, patience: float) -> Answer:
        name = client.srv_name
        if name.endswith(POWER) and not client.wait_for_service(timeout_sec=_SILENT):
            return Answer(False, f"{name} is not available: this suite does not control the drives of this machine")
        return self._call(client, request, patience)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """No effect: a robot over ROS runs the same whether or not somebody waits."""
        yield

    # -- inside -----------------------------------------------------------------------------------------------------

    def _release(self) -> None:
        with self._news:
            self._news.notify_all()
        if self._action is not None:
            self._action.destroy()

    def _described(self, message: String) -> None:
        if self._text:
            return
        with suppress(DescriptionError):  # which others tell
            joints = read_xml(message.data, "robot_description").iter("joint")
            self._sliding = {joint.get("name") for joint in joints if joint.get("type") == "prismatic"}
        self._text = message.data

    def _take_state(self, message: ControllerState) -> None:
        if message.mode > max(Mode):  # of a node of others
            return
        with self._news:
            before, self._state, self._heard = self._state, message, time.monotonic()
            stopped = self._heard - message.since_stop
            same = before is not None and message.since_stop >= before.since_stop  # later is the way of the message
            self._stopped = min(self._stopped, stopped) if same else stopped
            self._news.notify_all()

    def _outputs_told(self, message: Outputs) -> None:
        """Note the values; those from before this link are no events."""
        now = dict(zip(message.names, message.values, strict=False))
        before, self._set = self._set, now
        if before is not None:
            for name in (name for name, value in now.items() if before.get(name) != value):
                self.on_output(name, now[name])

    def _silence(self) -> str:
        if self._closing:
            return "the client was closed"
        silent = time.monotonic() - self._heard
        return f"the controller has been silent for {silent:.1f} s" if silent > _SILENT else ""

    def _read_joints(self) -> None:
        with self._states_lock:
            while (message := self._states.take()) is not None:
                speeds = message.velocity if len(message.velocity) else [np.nan] * len(message.name)
                if len(message.name) == len(message.position) == len(speeds):  # it may be of a node of others
                    self._joints = dict(zip(message.name, zip(message.position, speeds, strict=True), strict=True))

    def _state_of(self, state: ControllerState) -> RobotState:
        self._read_joints()
        pose, twist, reference = _NONE, _NONE[:6], _NONE
        position_error = rotation_error = np.nan
        if Mode(state.mode) not in (Mode.WAITING, Mode.STOPPED):
            pose, twist = messages.pose_of(state.measured_pose), messages.twist_of(state.measured_twist)
            reference = messages.pose_of(state.reference.pose)
            position_error = float(np.linalg.norm(messages.vector_of(state.position_error)))
            rotation_error = float(np.linalg.norm(messages.vector_of(state.rotation_error)))
        names = list(state.actuated_names)
        unknown = (np.nan, np.nan)
        return RobotState(
            mode=Mode(state.mode),
            reason=state.reason,
            pose=pose,
            twist=twist,
            reference=reference,
            position_error=position_error,
            rotation_error=rotation_error,
            speed=state.speed_override,
            positions={name: self._joints.get(name, unknown)[0] for name in names},
            velocities={name: self._joints.get(name, unknown)[1] for name in names},
            efforts=dict(zip(names, state.effort, strict=False)) if len(state.effort) else {},
            redundant=dict(zip(state.redundant_names, state.reference.redundant_positions, strict=False)),
            units={name: "m" if name in self._sliding else "rad" for name in names},
        )
