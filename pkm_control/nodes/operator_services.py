# SPDX-License-Identifier: Apache-2.0
"""What an operator asks of the controller, by services and topics."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from std_srvs.srv import Trigger

from pkm_control.loop.follower import Mode, TrajectoryFollower
from pkm_control.loop.recovery import continue_change, go_back, in_words, plan_change, way_back
from pkm_control.nodes.controls import Controls
from pkm_description.errors import PkmError
from pkm_description.introduction import fixed
from pkm_description.ros import messages, topics
from pkm_interfaces.srv import ChangeWorkingMode, SetSpeedOverride

_PATIENCE = 0.5  # s, for the next reading
_THROTTLE = 2.0  # s, between two warnings of the same kind
_LOOK = 0.005  # s


class OperatorServices:
    """Services `pause`, `resume`, `stop`, `set_speed_override`, `recover`, `change_working_mode`; topics of jogs.

    Args:
        node: that offers them.
        controls: the follower.
    """

    def __init__(self, node: Node, controls: Controls) -> None:
        self._controls = controls
        self._logger = node.get_logger()
        for name, act in (
            (topics.PAUSE, TrajectoryFollower.pause),
            (topics.RESUME, TrajectoryFollower.resume),
            (topics.STOP, self._stopped),
        ):
            node.create_service(Trigger, name, self._trigger(act))
        node.create_service(Trigger, topics.RECOVER, self._recover)
        node.create_service(SetSpeedOverride, topics.SET_SPEED_OVERRIDE, self._set_speed)
        node.create_service(ChangeWorkingMode, topics.CHANGE_WORKING_MODE, self._change_mode)
        node.create_subscription(TwistStamped, topics.JOG_TWIST, self._steer, topics.STREAM_IN)
        node.create_subscription(PoseStamped, topics.JOG_POSE, self._go_to, topics.EVENTS)

    @staticmethod
    def _stopped(follower: TrajectoryFollower) -> str:
        """Stop; a platform at rest is stopped already."""
        follower.stop("the operator stopped it")
        return ""

    def _trigger(self, act: Callable[[TrajectoryFollower], str]) -> Callable[[Any, Any], Any]:
        def answer(_: Any, response: Trigger.Response) -> Trigger.Response:
            try:
                follower = self._controls.ready()
                with self._controls.lock:
                    response.message = act(follower)
            except PkmError as error:
                response.message = str(error)
            response.success = not response.message
            return response

        return answer

    def _set_speed(
        self, request: SetSpeedOverride.Request, response: SetSpeedOverride.Response
    ) -> SetSpeedOverride.Response:
        try:
            follower = self._controls.ready()
            with self._controls.lock:
                response.message = follower.set_override(request.fraction)
                response.fraction = follower.override
        except PkmError as error:
            response.message = str(error)
        response.success = not response.message
        return response

    def _recover(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """Find the platform again, or bring it back inside."""
        try:
            follower = self._controls.ready()
            found = ""
            if follower.mode is Mode.STOPPED:
                found = self._found_again(follower)
            there = way_back(follower)
            if there is None:
                response.success, response.message = True, found or "nothing is wrong: the platform stands well"
                return response
            with self._controls.lock:
                problem = go_back(follower, there)
            response.success = not problem
            response.message = problem or f"{found + '; ' if found else ''}the platform moves back inside at low speed"
        except PkmError as error:
            response.message = str(error)
        return response

    def _found_again(self, follower: TrajectoryFollower) -> str:
        """Look for the platform from home; return what came of it."""
        with self._controls.lock:
            follower.relocate()
        until = time.monotonic() + _PATIENCE
        while follower.mode is Mode.STOPPED and time.monotonic() < until:
            time.sleep(_LOOK)
        if follower.mode is Mode.STOPPED:
            action = self._controls.action
            raise PkmError(f"still stopped: {action.reason if action else 'no reading comes'}")
        place = ", ".join(fixed(value, 4) for value in follower.hold[:3])
        return f"the platform is held at ({place}) m, where readings continue home"

    def _change_mode(
        self, request: ChangeWorkingMode.Request, response: ChangeWorkingMode.Response
    ) -> ChangeWorkingMode.Response:
        try:
            response.success, response.message = self._change_to(self._controls.ready(), request.working_mode)
        except PkmError as error:
            response.message = str(error)
        return response

    def _change_to(self, follower: TrajectoryFollower, label: str) -> tuple[bool, str]:
        """Begin a change, or go on with one; return whether that is done, and what comes of it or why not."""
        if follower.change is not None:
            with self._controls.lock:
                problem = continue_change(follower, label)
            return not problem, problem
        change = plan_change(follower, label)
        if change is None:
            return True, f"the robot is in working mode {label}"
        with self._controls.lock:
            problem = follower.begin_change(change)
        return not problem, problem or in_words(change)

    # -- jogs -------------------------------------------------------------------------------------------------------

    def _steer(self, message: TwistStamped) -> None:
        try:
            follower = self._controls.ready()
            messages.check_frame(message.header, self._controls.kinematics.mechanism.base_link)
            twist = messages.twist_of(message.twist)
            with self._controls.lock:
                problem = follower.steer(twist, time.monotonic())
        except PkmError as error:
            problem = str(error)
        self._warn("jog_twist", problem)

    def _go_to(self, message: PoseStamped) -> None:
        try:
            follower = self._controls.ready()
            messages.check_frame(message.header, self._controls.kinematics.mechanism.base_link)
            pose = follower.jog.nearest(messages.pose_of(message.pose))
            with self._controls.lock:
                problem = follower.jog_to(pose)
        except PkmError as error:
            problem = str(error)
        self._warn("jog_pose", problem)

    def _warn(self, what: str, problem: str) -> None:
        if problem:
            self._logger.warning(f"{what} refused: {problem}", throttle_duration_sec=_THROTTLE)
