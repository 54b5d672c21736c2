# SPDX-License-Identifier: Apache-2.0
"""Requests from the page to the nodes of the robot: services, and targets to jog to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from pkm_control.motion.files.shipped import AUTO, motion_names
from pkm_control.operator_interface import Answer
from pkm_control.ros.operator_calls import LONG_PATIENCE, OperatorCalls
from pkm_description.mechanism import Array
from pkm_description.ros import messages, topics
from pkm_interfaces.srv import PlayMotion, SolveInverse
from pkm_viewer.operations import IDLE


class PageOperations(OperatorCalls):
    """`Operations` over ROS. Its calls come from threads of the page; the answers through the node's executor.
    `base_link` is the frame of the poses, `motion` that of the run, if any; `mode` returns the controller's.
    """

    def __init__(self, node: Node, base_link: str, motion: str, mode: Callable[[], str]) -> None:
        self._node = node
        self._base_link = base_link
        self._mode = mode
        current = [motion] if motion not in ("", "none") else []
        self.motions: Sequence[str] = tuple(dict.fromkeys((*current, AUTO, *motion_names())))
        super().__init__(node, self._call)
        self._stop_drives = node.create_publisher(Empty, topics.EMERGENCY_STOP, topics.EVENTS)
        self._play = node.create_client(PlayMotion, topics.PLAY_MOTION)
        self._inverse = node.create_client(SolveInverse, topics.SOLVE_INVERSE)
        self._target = node.create_publisher(PoseStamped, topics.JOG_POSE, topics.EVENTS)

    def close(self) -> None:
        """End the clients, and release waiting callers."""
        for client in (*self.triggers.values(), self.speed, self.mode, self._play, self._inverse):
            self._node.destroy_client(client)
        for publisher in (self._target, self._stop_drives):
            self._node.destroy_publisher(publisher)

    def emergency_stop_at_once(self, then: Callable[[Answer], None]) -> None:
        """Disable the drives at once: by topic, which needs no answer, and by service, for the answer."""
        self._stop_drives.publish(Empty())
        client = self.triggers[topics.STOP_DRIVES]
        if not client.service_is_ready():
            then(Answer(False, "emergency stop: sent, but there is no machine that answers"))
            return
        then(Answer(False, "emergency stop: sent, not yet answered"))

        def answered(future: Any) -> None:
            response = future.result()
            then(Answer(response.success, f"emergency stop: {response.message}"))

        client.call_async(Trigger.Request()).add_done_callback(answered)

    def play(self, motion: str, cycles: int) -> Answer:
        """Plan a motion and begin it."""
        request = PlayMotion.Request(motion=motion, cycles=cycles)
        answer = self._call(self._play, request, LONG_PATIENCE)
        if answer.success:
            return Answer(True, f"{motion}: {cycles} x {answer.duration:.2f} s")
        return Answer(False, answer.message)

    def jog_to(self, pose: Array) -> Answer:
        """Move the platform to a pose (7,) slowly, where no motion runs."""
        mode = self._mode()
        if mode not in IDLE:
            return Answer(False, f"the controller is {mode.lower() or 'silent'}: stop what runs before you jog")
        message = PoseStamped(pose=messages.to_pose(pose))
        message.header.frame_id = self._base_link
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._target.publish(message)
        return Answer(True)

    def ask_modes(self, pose: Array, then: Callable[[list[str]], None]) -> None:
        """Request the possible working modes at a pose (7,) without waiting; `then` gets their labels."""
        if not self._inverse.service_is_ready():
            return
        request = SolveInverse.Request(poses=[messages.to_pose(pose)], all_modes=True)

        def answered(future: Any) -> None:
            solutions = future.result().solutions
            then([one.working_mode for one in solutions if len(one.actuated) and one.working_mode])

        self._inverse.call_async(request).add_done_callback(answered)

    def _call(self, client: Any, request: Any, patience: float) -> Any:
        """Call a service and wait for its answer, which has `success` and `message`."""
        if not client.service_is_ready():
            return Answer(False, f"'{client.srv_name.rpartition('/')[2]}' is not available")
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(patience):
            client.remove_pending_request(future)
            return Answer(False, f"'{client.srv_name.rpartition('/')[2]}' does not answer")
        return future.result()
