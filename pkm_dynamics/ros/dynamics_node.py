# SPDX-License-Identifier: Apache-2.0
"""The dynamics as a ROS node: two services, and efforts published for each reference or observation of the legs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_description.mechanism import Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.messages import answered
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import Age, OwnThread
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.raw_rows import RawRows, joint_rows
from pkm_description.ros.robot_description import RobotDescription
from pkm_description.rotations import with_unit_quaternions
from pkm_dynamics.dynamics import Dynamics, shared_dynamics
from pkm_dynamics.observed_legs import ObservedLegs
from pkm_dynamics.ros.dynamics_services import direct_dynamics, inverse_dynamics, observed_state
from pkm_interfaces.msg import ObservedLegs as ObservedLegsMessage
from pkm_interfaces.msg import PlatformReference, PlatformState, SolveStatus
from pkm_interfaces.srv import DirectDynamics, InverseDynamics
from pkm_kinematics import Status
from pkm_runtime.errors import PkmError

_NOTES_EVERY = 0.1  # s, the working mode that the robot is in
_MODE_PATIENCE = 1.0  # s, that efforts wait for the working mode; then nobody tells it
_UNHEARD_EVERY = 0.1  # s, between two references that are taken while nobody listens to their efforts


class DynamicsNode(Node):
    """Publishes the efforts of the reference motion in the robot's working mode while somebody listens; has services.

    Where legs are observed, it also publishes the efforts for the acceleration of the last reference in the observed
    state, zero acceleration where no reference comes.
    """

    def __init__(self) -> None:
        super().__init__("dynamics")
        rate = declare(
            self, "publish_rate", 100.0, "highest rate of the published efforts, Hz", (1.0, 2000.0), fixed=True
        )
        declare(self, "stale_after", 0.1, "a reference older than this is reported as lost, s", (0.001, 10.0))
        self._dynamics: Dynamics | None = None
        self._refused = ""
        self._heard = Age(self)
        self._published = 0
        self._acceleration = np.zeros(6)
        self._legs: ObservedLegs | None = None
        self._unobserved = ""
        self._out = self.create_publisher(JointState, topics.REFERENCE_EFFORTS, topics.STREAM_OUT)
        self._observed_out = self.create_publisher(JointState, topics.OBSERVED_EFFORTS, topics.STREAM_OUT)
        self._description = RobotDescription(self, self._build, self._busy)
        self._references = PolledSubscription(
            self, PlatformReference, topics.PLATFORM_REFERENCE, topics.STREAM_IN, raw=True
        )
        self._numbers = RawRows(PlatformReference, messages.reference_numbers)
        self._robot_states: PolledSubscription | None = None  # while somebody listens to the efforts
        self._wanted = False  # efforts, by anybody
        self._modes: dict[str, int] = {}  # working modes by their labels
        self._mode: int | None = None  # that the robot is in; where None, efforts are those of what continues home
        self._mode_asked = self._mode_noted = -math.inf  # s, monotonic: since when it is wanted, and when it came
        self._following = OwnThread(self, 1.0 / rate, self._poll)
        self.create_subscription(ObservedLegsMessage, topics.OBSERVED_LEGS, self._observe, topics.STREAM_IN)
        self.create_service(InverseDynamics, topics.INVERSE_DYNAMICS, partial(self._answer, inverse_dynamics))
        self.create_service(DirectDynamics, topics.DIRECT_DYNAMICS, partial(self._answer, direct_dynamics))
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _build(self, mechanism: Mechanism) -> None:
        dynamics = shared_dynamics(mechanism)
        k = dynamics.kinematics
        several = k.modes.known_count or 0  # modes that only a search finds are not changed to
        self._legs, self._unobserved = None, ""
        self._modes, self._mode = {k.mode_label(mode): mode for mode in range(several)}, None
        self._efforts = joint_rows(self._out, k.actuated_names, "effort")
        self._dynamics = dynamics  # now the thread may begin

    def _busy(self) -> str:
        return "" if self._silent() else "references come; clean up the hardware first"

    def destroy_node(self) -> None:
        """End the reference thread before its publishers go."""
        self._following.end()
        super().destroy_node()

    def _answer(self, solve: Callable[[Dynamics, Any, Any], None], request: Any, response: Any) -> Any:
        if self._dynamics is None:
            response.status = messages.status(SolveStatus.NOT_READY, self._description.problem)
            return response
        dynamics = self._dynamics
        return answered(self, response, lambda: solve(dynamics, request, response))

    def _poll(self) -> float | None:
        """Take a reference; returns when to look again [s], where that is not soon."""
        self._wanted = self._out.get_subscription_count() > 0 or self._observed_out.get_subscription_count() > 0
        message = self._references.take()
        dynamics = self._dynamics
        if message is None or dynamics is None:
            return None
        self._heard.note()
        if not self._wanted:
            self._forget_mode()
            return _UNHEARD_EVERY
        stamp, numbers = self._numbers.row(message)
        redundant, motion = numbers[:-19].reshape(3, -1), np.split(numbers[-19:], [7, 13])
        motion[0] = with_unit_quaternions(motion[0][None])[0]
        pose, twist, self._acceleration = (np.append(*one) for one in zip(motion, redundant, strict=True))
        if not self._note_mode():
            return None
        there = dynamics.kinematics.at(pose, mode=self._mode)
        answer = dynamics.inverse(there, twist, self._acceleration)
        if not np.isfinite(answer.effort).all():
            known = there.ok and int(answer.status) != Status.CONVERGED
            reason = Status(int(answer.status)).meaning if known else there.reason(0)
            self._refused = reason or "the reference is not usable"
            return None
        self._refused = ""
        self._efforts.publish(stamp, answer.effort)
        self._published += 1
        return None

    def _note_mode(self) -> bool:
        """Read the robot's working mode occasionally, as it costs as much as the efforts; False while it is to come."""
        now = time.monotonic()
        if self._robot_states is None:
            self._robot_states = PolledSubscription(self, PlatformState, topics.PLATFORM_STATE, topics.STREAM_IN)
            self._mode_asked = now
        state = self._robot_states.take() if now - self._mode_noted >= _NOTES_EVERY else None
        if state is not None:
            self._mode_noted = now
            self._mode = self._modes.get(state.working_mode) if state.working_mode else self._mode
        return self._mode_noted >= self._mode_asked or now - self._mode_asked > _MODE_PATIENCE

    def _forget_mode(self) -> None:
        """Listen to the mode no more: the kinematics publish states only while somebody does."""
        if self._robot_states is not None:
            self._robot_states.close()
        self._robot_states, self._mode_noted, self._refused = None, -math.inf, ""

    def _observe(self, message: ObservedLegsMessage) -> None:
        if self._dynamics is None:
            return
        try:
            self._legs = self._legs or ObservedLegs(self._dynamics)
            state = observed_state(self._legs, message)
            effort = self._legs.inverse(state, np.zeros(6) if self._silent() else self._acceleration[:6])
        except PkmError as error:
            self._unobserved = str(error)
            return
        self._unobserved = ""
        names = self._dynamics.kinematics.actuated_names
        self._observed_out.publish(messages.to_joints(names, ["effort"], message.header.stamp, effort))

    def _silent(self) -> bool:
        longest = self.get_parameter("stale_after").value + (0.0 if self._wanted else _UNHEARD_EVERY)
        return bool(self._heard.seconds > longest)

    def _report(self) -> diagnostics.Report:
        if self._dynamics is None:
            return diagnostics.ERROR, self._description.problem, {}
        values = {"robot": self._dynamics.mechanism.name, "efforts published": self._published}
        if self._refused:
            return diagnostics.ERROR, f"no efforts for the reference: {self._refused}", values
        if self._unobserved:
            return diagnostics.WARN, f"no efforts for the observed legs: {self._unobserved}", values
        return diagnostics.OK, "ready; no reference arrives" if self._silent() else "following the reference", values


main = partial(run_node, DynamicsNode)
