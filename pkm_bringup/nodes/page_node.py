# SPDX-License-Identifier: Apache-2.0
"""The browser page as a ROS node: shows /robot_description as joint_states move it, and passes on requests."""

from __future__ import annotations

import math
import os
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, Vector3
from lifecycle_msgs.msg import State
from nav_msgs.msg import Path
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty, Header
from std_srvs.srv import Trigger

from pkm_bringup.bringup import PAGE
from pkm_bringup.nodes.node_parts import declare_settings
from pkm_control.motion.files.shipped import AUTO, motion_names
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import Answer
from pkm_control.ros.motion_messages import trajectory_message
from pkm_control.ros.operator_calls import LONG_PATIENCE, OperatorCalls
from pkm_description.mechanism import Array, Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_interfaces.msg import ControllerState, PlatformState, PlatformTrajectory, SolveStatus
from pkm_interfaces.srv import PlayMotion, SolveInverse
from pkm_kinematics.kinematics import shared_kinematics
from pkm_viewer.jog_space import JogSpace
from pkm_viewer.layers import layer_files
from pkm_viewer.operations import IDLE, OPENING, PAGE_KEY, SEEN, SERVED, Motion, Readings, motion_of
from pkm_viewer.viewer import RobotViewer

_MOVED = 1e-3  # m and rad-like, from where working modes were asked for, until they are asked for again
_LOOK_EVERY = 0.1  # s, between two looks whether the robot is there
_MOST_MODES = 256
_SILENT = 1.0  # s without a reading: the machine is not known any more
_PLAYER = "motion_player"
_MODES = {
    getattr(ControllerState, name): name for name in ("WAITING", "HOLDING", "TRACKING", "STOPPED", "PAUSED", "JOGGING")
}


class PageOperations(OperatorCalls):
    """`Operations` over ROS: calls come from threads of the page, answers through the node's executor."""

    def __init__(
        self, node: Node, base_link: str, motion: str, controller: Callable[[], ControllerState | None]
    ) -> None:
        self._node = node
        self._base_link = base_link
        self._controller = controller  # its newest state
        current = [motion] if motion not in ("", "none") else []
        self.motions: Sequence[str] = tuple(dict.fromkeys((*current, AUTO, *motion_names())))
        super().__init__(node, self._call)
        self._stop_drives = node.create_publisher(Empty, topics.EMERGENCY_STOP, topics.EVENTS)
        self._play = node.create_client(PlayMotion, topics.PLAY_MOTION)
        self._inverse = node.create_client(SolveInverse, topics.SOLVE_INVERSE)
        self._target = node.create_publisher(PoseStamped, topics.JOG_POSE, topics.EVENTS)
        self._motion = node.create_publisher(PlatformTrajectory, topics.PLATFORM_TRAJECTORY, topics.EVENTS)

    def close(self) -> None:
        """End the clients, and release waiting callers."""
        for client in (*self.triggers.values(), self.speed, self.mode, self._play, self._inverse):
            self._node.destroy_client(client)
        for publisher in (self._target, self._motion, self._stop_drives):
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
        mode = _mode_of(self._controller())
        if mode not in IDLE:
            return Answer(False, f"the controller is {mode.lower() or 'silent'}: stop what runs before you jog")
        header = Header(stamp=self._node.get_clock().now().to_msg(), frame_id=self._base_link)
        self._target.publish(PoseStamped(header=header, pose=messages.to_pose(pose)))
        return Answer(True)

    def move_beside(self, positions: Array, seconds: float) -> Answer:
        """Move redundant joints to positions (r,) in so many seconds, while the platform stays where it is held."""
        state = self._controller()
        if state is None or state.mode != ControllerState.HOLDING:
            return Answer(False, "the platform is not held: stop what runs first")
        pose, twist = messages.pose_of(state.reference.pose), np.zeros((2, 6 + len(positions)))
        poses = np.array([[*pose, *state.reference.redundant_positions], [*pose, *positions]])
        motion = MotionPoints(np.array([0.0, seconds]), poses, twist, twist)
        self._motion.publish(trajectory_message(motion, self._base_link, state.redundant_names))
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
        if not client.service_is_ready():
            return Answer(False, f"'{client.srv_name.rpartition('/')[2]}' is not available")
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        if not done.wait(patience):
            client.remove_pending_request(future)
            return Answer(False, f"'{client.srv_name.rpartition('/')[2]}' does not answer")
        return future.result()


class PageNode(Node):
    """Keeps the newest of each state, and draws at a rate that a browser can follow."""

    def __init__(self) -> None:
        super().__init__("page")
        given = declare_settings(self, PAGE)
        self._host, self._port, self._operate = given["host"], given["port"], given["operate"]
        self._browser, self._motion, self._layers = given["browser"], given["motion"], given["layers"]
        rate = declare(self, "frame_rate", 25.0, "pictures per second", (1.0, 60.0), fixed=True)
        self._viewer: RobotViewer | None = None
        self._operations: PageOperations | None = None
        self._newest: list[Any] = [None, None, None]
        self._epoch = 0  # ns, of the first state that was shown: where the page's time begins
        self._time = 0.0  # s since then
        self._modes_asked = np.full(7, np.nan)  # the pose at which working modes were asked for
        self._planned: Path | None = None
        self._diagnostics: diagnostics.Diagnostics | None = None
        self._last: Motion | None = None  # that was begun
        self._progress = SERVED
        self._description = RobotDescription(self, self._build)
        kinds = {JointState: topics.JOINT_STATES, PlatformState: topics.PLATFORM_STATE}
        kinds[ControllerState] = topics.CONTROLLER_STATE
        self._inputs = [PolledSubscription(self, kind, topic, topics.STREAM_IN) for kind, topic in kinds.items()]
        self._machine = ""  # its life cycle
        self._heard = math.inf  # s, monotonic: the machine's last reading
        self._faults: dict[str, str] = {}  # node: what it reports as an error
        self.create_subscription(State, topics.MACHINE_STATE, self._hear_machine, topics.LATCHED)
        self.create_subscription(DiagnosticArray, topics.DIAGNOSTICS, self._diagnosed, topics.EVENTS)
        self.create_subscription(Path, topics.PLANNED_PATH, self._plan, topics.LATCHED)
        steady_timer(self, 1.0 / rate, self._draw)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _build(self, mechanism: Mechanism) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        if self._operations is not None:
            self._operations.close()
            self._operations = None
        viewer = RobotViewer(mechanism, port=self._port, host=self._host, operate=self._operate)
        self._operations = PageOperations(self, mechanism.base_link, self._motion, lambda: self._newest[2])
        viewer.attend(self._operations)
        self._newest = [None, None, None]
        self._viewer = viewer
        if self._planned is not None:
            self._plan(self._planned)
        files = layer_files(self._layers)
        for problem in [*viewer.left_out, *(viewer.show_layers(files) if files else [])]:
            self.get_logger().warning(f"not drawn: {problem}")
        who = {"local": "this computer's browsers", "everyone": "every viewer", "nobody": "nobody"}[self._operate]
        self.get_logger().info(f"the robot is shown at {viewer.url}; {who} may command it")
        arguments = (viewer, self._operations, mechanism)
        threading.Thread(target=self._prepare, args=arguments, name="controls", daemon=True).start()
        if self._browser and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            self._progress = OPENING
            threading.Thread(target=webbrowser.open, args=(viewer.url,), name="browser", daemon=True).start()
        viewer.server.on_client_connect(lambda client: self._seen())

    def _seen(self) -> None:
        self._progress = SEEN
        if self._diagnostics is not None:
            self._diagnostics.update_soon()

    def _prepare(self, viewer: RobotViewer, operations: PageOperations, mechanism: Mechanism) -> None:
        """Give the page its controls, when the robot is there; outside the executor, since it loads kernels."""
        while self._newest[0] is None:  # until then, others compile these kernels
            time.sleep(_LOOK_EVERY)
            if self._viewer is not viewer or not self.context.ok():
                return
        try:
            viewer.operate(operations, JogSpace(shared_kinematics(mechanism)))
        except Exception as error:  # the page shows the robot without them
            self.get_logger().error(f"the page has no controls: {type(error).__name__}: {error}")
            viewer.status.answer(Answer(False, f"no controls: {error}"))

    def _hear_machine(self, message: State) -> None:
        self._machine = message.label

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = status.name.rpartition("/")[2]
            if status.hardware_id == self.get_namespace() and name != self.get_name():
                self._faults.pop(name, None)
                if status.level == diagnostics.ERROR:
                    self._faults[name] = status.message
                if name == _PLAYER:
                    self._last = motion_of({one.key: one.value for one in status.values}) or self._last

    def _plan(self, message: Path) -> None:
        self._planned = message
        if self._viewer is not None:
            self._viewer.scene.show_planned(np.array([messages.vector_of(one.pose.position) for one in message.poses]))

    def _draw(self) -> None:
        if self._viewer is not None:
            self._viewer.status.warn("; ".join(f"{name}: {why}" for name, why in sorted(self._faults.items())))
        taken = [one.take() for one in self._inputs]
        now = time.monotonic()
        self._heard = self._heard if taken[0] is None else now
        silence = now - self._heard if now - self._heard > _SILENT else 0.0
        self._newest = [one or last for one, last in zip(taken, self._newest, strict=True)]
        joints, platform, controller = self._newest
        if self._viewer is None:
            return
        if joints is None or platform is None:  # a machine that is off may never have published
            self._shown(lambda viewer: viewer.show(Readings(machine=self._machine)))
            return
        if platform.status.code != SolveStatus.NOT_READY:  # that has the computer's clock, the others the machine's
            stamp = platform.header.stamp
            stamped = stamp.sec * 1_000_000_000 + stamp.nanosec
            if not 0 < self._epoch <= stamped:
                self._epoch = stamped
            self._time = 1e-9 * (stamped - self._epoch)
        seen = _readings(platform, controller, self._time)
        readings = replace(seen, motion=self._last, machine=self._machine, silence=silence)
        self._shown(lambda viewer: viewer.look(joints.name, np.array(joints.position), readings))
        if readings.pose is not None and platform.working_mode:
            self._ask_modes(readings, platform.working_mode)

    def _shown(self, show: Callable[[RobotViewer], None]) -> None:
        try:
            if self._viewer is not None:
                show(self._viewer)
        except Exception as error:  # of the web server's, which browsers come to and leave: the next picture may do
            self.get_logger().error(
                f"a picture was not drawn: {type(error).__name__}: {error}", throttle_duration_sec=10.0
            )

    def _ask_modes(self, readings: Readings, present: str) -> None:
        pose, viewer = readings.pose, self._viewer
        if readings.mode != IDLE[0] or self._operations is None or pose is None or viewer is None:
            return
        here = np.concatenate((pose, [float(sum(map(ord, present)))]))  # the same pose in another mode is another place
        if self._modes_asked.shape == here.shape and np.linalg.norm(here - self._modes_asked) < _MOVED:
            return
        self._modes_asked = here
        self._operations.ask_modes(pose, lambda labels: viewer.show_modes(labels[:_MOST_MODES], present))

    def _report(self) -> diagnostics.Report:
        if self._viewer is None:
            return diagnostics.ERROR, self._description.problem, {}
        values = {"visuals left out": len(self._viewer.left_out), PAGE_KEY: self._progress}
        return diagnostics.OK, f"shown at {self._viewer.url}", values


def _mode_of(controller: ControllerState | None) -> str:
    return "" if controller is None else _MODES.get(controller.mode, "")


def _readings(platform: PlatformState, controller: ControllerState | None, time: float) -> Readings:
    known = platform.status.code in (SolveStatus.CONVERGED, SolveStatus.JOINT_LIMIT)  # else its pose means nothing
    distances = [getattr(platform, f"{kind}_distance") for kind in ("type1", "type2", "constraint", "limb")]
    found: dict[str, Any] = {}
    if controller is not None:
        found = {
            "mode": _mode_of(controller),
            "reason": controller.reason,
            "error": _length_of(controller.position_error),
            "rotation_error": _length_of(controller.rotation_error),
            "efforts": np.array(controller.effort) if len(controller.effort) else None,
            "speed_override": controller.speed_override,
            "clearance": controller.clearance if math.isfinite(controller.clearance) else None,
        }
    found["reason"] = found.get("reason") or platform.status.reason
    return Readings(
        time=time,
        pose=messages.pose_of(platform.pose) if known else None,
        speed=float(np.linalg.norm(messages.vector_of(platform.twist.linear))) if known else None,
        distances=tuple(value if known and math.isfinite(value) else None for value in distances),
        units=(platform.type1_unit, platform.type2_unit, "", ""),
        limit=(platform.limit_joint, platform.limit_margin) if known and platform.limit_joint else None,
        **found,
    )


def _length_of(vector: Vector3) -> float | None:
    length = float(np.linalg.norm(messages.vector_of(vector)))
    return length if math.isfinite(length) else None


main = partial(run_node, PageNode)
