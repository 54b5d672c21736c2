# SPDX-License-Identifier: Apache-2.0
"""The page draws where the platform is known to have been, and nothing else."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_interfaces.msg import ControllerState, PlatformState, PlatformTrajectory, SolveStatus
from pkm_kinematics import Kinematics
from test.oracles.redundant_robots import on_a_rail

from .conftest import Graph

pytest.importorskip("viser", reason="viser, which shows the page, is not installed")

from pkm_bringup.nodes import motion_player_node
from pkm_bringup.nodes.motion_player_node import MotionPlayer
from pkm_bringup.nodes.motion_run import MotionRun, Order
from pkm_bringup.nodes.page_node import PageNode
from pkm_control.operator_interface import Answer
from pkm_control.ros.motion_messages import points_of
from pkm_viewer.operations import Motion


@pytest.mark.slow
def test_a_lost_platform_leaves_no_trail(graph: Graph) -> None:
    kinematics = Kinematics(load_mechanism("delta"))
    graph.describe(kinematics.mechanism.urdf)
    page = graph.start(PageNode, port=8420)
    joints_out = graph.client.create_publisher(JointState, topics.JOINT_STATES, topics.STREAM_OUT)
    state_out = graph.client.create_publisher(PlatformState, topics.PLATFORM_STATE, topics.STREAM_OUT)
    joints = JointState(name=list(kinematics.joint_names), position=kinematics.home_joints)
    lost = PlatformState()  # all zeros, as it is published where no measured state comes
    lost.status.code = SolveStatus.NOT_READY
    known = PlatformState(pose=messages.to_pose(np.array(kinematics.home)))

    def drawn(state: PlatformState, after: int) -> bool:
        joints_out.publish(joints)
        state_out.publish(state)
        return page._viewer is not None and page._viewer.updates > after

    graph.wait(lambda: drawn(lost, 2))
    assert len(page._viewer.scene.trail) == 0
    before = page._viewer.updates
    graph.wait(lambda: drawn(known, before + 5))
    assert page._viewer.scene.trail[-1] == pytest.approx(kinematics.home[:3])
    known.header.stamp.sec = 1_795_358_000
    before = page._viewer.updates
    graph.wait(lambda: drawn(known, before + 5))
    known.header.stamp.sec += 3
    graph.wait(lambda: drawn(known, before) and page._viewer._readings.time == 3.0)  # since the page began
    lost.header.stamp.sec = known.header.stamp.sec + 4  # of the computer, which a simulated machine may lag behind
    before = page._viewer.updates
    graph.wait(lambda: drawn(lost, before + 5))
    assert page._viewer._readings.time == 3.0


def test_an_error_of_a_node_is_shown_in_red_while_it_lasts(graph: Graph) -> None:
    graph.describe(load_mechanism("delta").urdf)
    page = graph.start(PageNode, port=8420)
    publisher = graph.client.create_publisher(DiagnosticArray, topics.DIAGNOSTICS, topics.EVENTS)

    def shown(level: bytes, words: str) -> bool:
        status = DiagnosticStatus(
            level=level, name=f"{graph.namespace}/hardware", message="it <ran> away", hardware_id=graph.namespace
        )
        publisher.publish(DiagnosticArray(status=[status]))
        return page._viewer is not None and words in page._viewer.status.content

    graph.wait(lambda: shown(DiagnosticStatus.ERROR, "hardware: it &lt;ran&gt; away"))
    assert "#c62828" in page._viewer.status.content
    graph.wait(lambda: shown(DiagnosticStatus.OK, "") and "#c62828" not in page._viewer.status.content)


def test_a_motion_that_fails_after_it_began_is_told(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who pressed Start has had the answer that it began; the end is told in red, until another motion begins."""
    graph.describe(load_mechanism("five_bar").urdf)
    page = graph.start(PageNode, port=8420)
    player = graph.start(MotionPlayer, motion="none", stay=True)
    graph.wait(lambda: page._viewer is not None)
    began: list[str] = []
    order = Order("circle", 3, began.append, plan=SimpleNamespace(motion=SimpleNamespace(source="circle.csv")))
    run = MotionRun(order, None, None, 0.0)
    run._tell("")
    run.end("PATH_TOLERANCE_VIOLATED: 21 mm from the path")
    player._watch(run)
    assert began == [""]
    graph.wait(lambda: "the last motion failed: PATH_TOLERANCE_VIOLATED: 21 mm" in page._viewer.status.content)
    assert "#c62828" in page._viewer.status.content
    monkeypatch.setattr(motion_player_node, "MotionRun", lambda *_: SimpleNamespace(begin=lambda *_: None, order=order))
    monkeypatch.setattr(player, "_tick", lambda: None)
    player._timer.cancel()
    player._begin(
        order, None, SimpleNamespace(redundant=(), pose=messages.to_pose(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])))
    )
    graph.wait(lambda: "the last motion failed" not in page._viewer.status.content)
    graph.wait(lambda: page._last == Motion("circle", 3, "circle.csv", 1))


def test_what_cannot_be_drawn_does_not_end_the_page(graph: Graph) -> None:
    text = load_mechanism("delta").urdf
    bad = '<visual/><visual><geometry><mesh filename="package://no_such_package/a.stl"/></geometry></visual>'
    graph.describe(text.replace('<link name="base_link">', f'<link name="base_link">{bad}', 1))
    page = graph.start(PageNode, port=8420)
    graph.wait(lambda: page._viewer is not None)
    assert len(page._viewer.left_out) == 2
    first = page._viewer
    graph.describe(text)
    graph.wait(lambda: page._viewer not in (None, first))
    assert page._viewer.left_out == []
    assert page._viewer.url.startswith("http://127.0.0.1:")


def test_a_page_that_cannot_be_served_says_why(graph: Graph) -> None:
    graph.describe(load_mechanism("delta").urdf)
    page = graph.start(PageNode, port=8420, host="203.0.113.1")
    graph.wait(lambda: "cannot listen" in page._description.problem)


# The power of the drives


def test_the_drives_power_is_offered_before_a_reading_has_come(graph: Graph) -> None:
    """A machine that is off may never have told where it is."""
    graph.describe(load_mechanism("five_bar").urdf)
    page = graph.start(PageNode, port=8420)
    state = graph.client.create_publisher(State, topics.MACHINE_STATE, topics.LATCHED)
    state.publish(State(id=State.PRIMARY_STATE_INACTIVE, label="inactive"))
    graph.wait(lambda: page._viewer is not None and "the drives are off" in page._viewer.status.content)
    assert page._viewer._requests is not None
    state.publish(State(id=State.PRIMARY_STATE_UNCONFIGURED, label="fault"))
    graph.wait(lambda: "until a reset" in page._viewer.status.content)


class Machine:
    """In place of the hardware node: answers nothing but a reset, as if it hung, and notes what it hears."""

    def __init__(self, graph: Graph) -> None:
        self.heard: list[str] = []
        self.free = threading.Event()
        group = ReentrantCallbackGroup()
        self.node = Node("hardware", context=graph.context, namespace=graph.namespace)
        for name in (topics.ENABLE, topics.DISABLE, topics.RESET, topics.STOP_DRIVES, topics.STOP):
            answer = self._answer(name)
            self.node.create_service(Trigger, name, answer, callback_group=group)
        hear = lambda _: self.heard.append("topic")  # noqa: E731
        self.node.create_subscription(Empty, topics.EMERGENCY_STOP, hear, topics.EVENTS, callback_group=group)
        self._executor = MultiThreadedExecutor(8, context=graph.context)
        self._executor.add_node(self.node)
        threading.Thread(target=self._executor.spin, daemon=True).start()

    def _answer(self, name: str):
        def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            self.heard.append(name)
            if name != topics.RESET:
                self.free.wait(30.0)
            response.success, response.message = True, "the machine is fault"
            return response

        return answer

    def close(self) -> None:
        self.free.set()
        self._executor.shutdown(timeout_sec=5.0)
        self.node.destroy_node()


def test_an_emergency_stop_is_sent_at_once_while_services_hang(graph: Graph) -> None:
    graph.describe(load_mechanism("five_bar").urdf)
    page = graph.start(PageNode, port=8420)
    machine = Machine(graph)
    try:
        graph.wait(lambda: page._operations is not None)
        operations = page._operations
        graph.wait(lambda: all(one.service_is_ready() for n, one in operations.triggers.items() if n in HARDWARE))
        graph.wait(lambda: operations._stop_drives.get_subscription_count())
        waiting = [threading.Thread(target=ask, daemon=True) for ask in (operations.enable, operations.stop)]
        for one in waiting:
            one.start()
        graph.wait(lambda: {topics.ENABLE, topics.STOP} <= set(machine.heard))
        told: list[Answer] = []
        began = time.monotonic()
        operations.emergency_stop_at_once(told.append)
        assert time.monotonic() - began < 1.0  # it waits for nothing; a busy computer takes a moment
        graph.wait(lambda: {"topic", topics.STOP_DRIVES} <= set(machine.heard), 5.0)
        assert [one.success for one in told] == [False]  # not answered yet, which is not called done
        machine.free.set()
        graph.wait(lambda: told[-1] == Answer(True, "emergency stop: the machine is fault"))
        for one in waiting:
            one.join(10.0)
        assert operations.reset() == Answer(True, "the machine is fault")
        assert operations.disable().success
    finally:
        machine.close()


HARDWARE = (topics.ENABLE, topics.DISABLE, topics.RESET, topics.STOP_DRIVES, topics.STOP)


def test_without_a_machine_an_emergency_stop_says_so(graph: Graph) -> None:
    graph.describe(load_mechanism("five_bar").urdf)
    page = graph.start(PageNode, port=8420)
    graph.wait(lambda: page._operations is not None)
    told: list[Answer] = []
    page._operations.emergency_stop_at_once(told.append)
    assert not told[-1].success
    assert "no machine" in told[-1].message


def test_a_rail_moves_by_a_motion_of_its_own(graph: Graph) -> None:
    graph.describe(load_mechanism(on_a_rail("delta")).urdf)
    page = graph.start(PageNode, port=8420)
    graph.wait(lambda: page._operations is not None)
    heard: list[PlatformTrajectory] = []
    graph.client.create_subscription(PlatformTrajectory, topics.PLATFORM_TRAJECTORY, heard.append, topics.EVENTS)
    state = ControllerState(mode=ControllerState.TRACKING, redundant_names=["rail"])
    state.reference.pose.position.z, state.reference.pose.orientation.w = -0.8, 1.0
    state.reference.redundant_positions = [0.1]
    page._newest[2] = state
    assert not page._operations.move_beside(np.array([0.3]), 2.0).success
    state.mode = ControllerState.HOLDING
    graph.wait(page._operations._motion.get_subscription_count)
    assert page._operations.move_beside(np.array([0.3]), 2.0).success
    graph.wait(lambda: heard)
    points = points_of(heard[0], ["rail"])
    assert points.poses.tolist() == [[0.0, 0.0, -0.8, 0.0, 0.0, 0.0, 1.0, rail] for rail in (0.1, 0.3)]
    assert points.times.tolist() == [0.0, 2.0]
    assert not points.twists.any()
