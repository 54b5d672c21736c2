# SPDX-License-Identifier: Apache-2.0
"""A machine of hobby servos over ROS: nodes, the real driver, and a simulated board on a pseudo terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message, limits_of_message
from pkm_description import load_mechanism
from pkm_description.ros import messages, topics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.make_machine import limits_by_file
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, PlatformTrajectory, PlatformTrajectoryPoint
from pkm_kinematics import Kinematics
from test.pkm_hardware.failing_devices import SimulatedServoBoard

from .conftest import Graph

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RATE = 50.0
REMAP = {"actuated_joint_states": "hardware/joint_states", "joint_commands": "hardware/joint_commands"}


class Hexapod:
    """Hardware and controller of the hexapod, its board, and a client."""

    def __init__(self, graph: Graph, board: SimulatedServoBoard, file: Path) -> None:
        self.graph, self.board = graph, board
        mechanism = load_mechanism(str(EXAMPLES / "hobby_hexapod.urdf.xacro"))
        self.kinematics = Kinematics(mechanism)
        self.home = np.array(self.kinematics.home)
        graph.describe(mechanism.urdf)
        self.states: list[ControllerState] = graph.listen(ControllerState, topics.CONTROLLER_STATE)
        self.readings: list[JointState] = graph.listen(JointState, topics.HARDWARE_STATES)
        self.commands: list[JointState] = graph.listen(JointState, topics.HARDWARE_COMMANDS)
        self.health: list[DiagnosticArray] = graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
        self.limits: list[JointTrajectory] = graph.listen(JointTrajectory, topics.ACTUATOR_LIMITS, topics.LATCHED)
        self.file = str(file)
        self.controller = graph.start(ControllerNode, REMAP, rate=RATE, law="position", hardware_file=str(file))
        graph.start(HardwareNode, None, rate=RATE, machine="servos", hardware_file=str(file))
        graph.wait(lambda: self.says(DiagnosticStatus.WARN, "drives are off until they are enabled"), 120.0)
        assert not any(board.pulses)  # nobody has asked for them
        graph.wait(lambda: self.states, 120.0)  # without a controller that commands, drives that are on are a fault
        self.enable()
        graph.wait(lambda: self.states and self.states[-1].mode == Mode.HOLDING, 120.0)
        self.client = ActionClient(graph.client, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        graph.wait(self.client.server_is_ready)

    def enable(self) -> None:
        self.graph.wait(lambda: self.graph.call(Trigger, "hardware/enable", Trigger.Request()).success, 10.0)

    def go(self, x: float, z: float, seconds: float) -> Any:
        """Send a goal from where the reference is; return its handle."""
        end = self.home.copy()
        end[[0, 2]] += x, z
        here = messages.pose_of(self.states[-1].reference.pose)
        trajectory = PlatformTrajectory()
        for k, pose in enumerate((here, end)):
            point = PlatformTrajectoryPoint(pose=messages.to_pose(pose), time_from_start=duration_message(k * seconds))
            trajectory.points.append(point)
        goal = FollowPlatformTrajectory.Goal(trajectory=trajectory)
        sent = self.graph.in_executor(lambda: self.client.send_goal_async(goal))
        self.graph.wait(sent.done)
        return sent.result()

    def result(self, handle: Any) -> Any:
        done = self.graph.in_executor(handle.get_result_async)
        self.graph.wait(done.done)
        return done.result().result

    def says(self, level: bytes, words: str) -> bool:
        """Whether the last diagnostics of the hardware are of a level and have the words."""
        own = [one for message in self.health for one in message.status if "hardware" in one.name]
        return bool(own) and own[-1].level == level and words in own[-1].message


@pytest.fixture(scope="module")
def hexapod(shared_graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hexapod]:
    with SimulatedServoBoard() as board:
        text = (EXAMPLES / "hobby_hexapod_machine.yaml").read_text(encoding="utf-8")
        file = tmp_path_factory.mktemp("machine") / "machine.yaml"
        file.write_text(text.replace("/dev/ttyUSB0", board.port).replace("silence: 0.3", "silence: 1.0"), "utf-8")
        yield Hexapod(shared_graph, board, file)


def test_holds_at_home_by_position(hexapod: Hexapod) -> None:
    hexapod.graph.wait(lambda: hexapod.commands and any(hexapod.board.pulses))
    assert hexapod.board.pulses[:6] == [1500] * 6
    assert len(hexapod.commands[-1].position) == 6
    assert not len(hexapod.commands[-1].effort)
    assert not len(hexapod.states[-1].effort)  # nobody measures any


def test_tells_the_limits_of_the_machine_file(hexapod: Hexapod) -> None:
    mechanism = hexapod.kinematics.mechanism
    expected, described = limits_by_file(mechanism, hexapod.file), ActuatorLimits.of(mechanism)
    hexapod.graph.wait(lambda: hexapod.limits)
    told = limits_of_message(hexapod.limits[-1], described)
    for name in ("lower", "upper", "velocity", "acceleration"):
        np.testing.assert_array_equal(getattr(told, name), getattr(expected, name))
    assert (expected.acceleration < described.acceleration).all()


def test_follows_a_motion_to_its_pulses(hexapod: Hexapod) -> None:
    result = hexapod.result(hexapod.go(0.005, 0.006, 1.0))
    assert result.error_code == Outcome.SUCCESSFUL, result.error_string
    assert 0.0 < result.max_position_error < 0.003
    end = hexapod.home.copy()
    end[[0, 2]] += 0.005, 0.006
    angles = np.asarray(hexapod.kinematics.inverse(end).actuated)
    pulses = np.round(1500 + 637 * angles * [1, -1, 1, -1, 1, -1])
    hexapod.graph.wait(lambda: np.abs(np.array(hexapod.board.pulses[:6]) - pulses).max() <= 1)


def test_emergency_stop_and_reset(hexapod: Hexapod) -> None:
    graph = hexapod.graph
    handle = hexapod.go(0.0, 0.0, 6.0)
    time.sleep(1.0)
    answer = graph.call(Trigger, "hardware/emergency_stop", Trigger.Request())
    assert answer.success
    graph.wait(lambda: not any(hexapod.board.pulses), 1.0)
    graph.wait(lambda: hexapod.states[-1].mode == Mode.STOPPED)
    assert hexapod.result(handle).error_code == Outcome.STATE_LOST
    graph.wait(lambda: hexapod.says(DiagnosticStatus.ERROR, "emergency stop"))
    assert not any(hexapod.board.pulses)
    graph.wait(lambda: graph.call(Trigger, "hardware/reset", Trigger.Request()).success, 10.0)
    time.sleep(0.5)
    assert not any(hexapod.board.pulses)  # a reset moves nothing
    hexapod.enable()
    graph.wait(lambda: hexapod.states[-1].mode == Mode.HOLDING)
    graph.wait(lambda: any(hexapod.board.pulses))
    refused = graph.call(Trigger, "hardware/reset", Trigger.Request())
    assert not refused.success
    assert "no fault" in refused.message


def test_a_second_commander_stops_the_machine_until_it_is_gone(hexapod: Hexapod) -> None:
    graph = hexapod.graph
    out = graph.client.create_publisher(JointState, topics.HARDWARE_COMMANDS, topics.STREAM_OUT)
    graph.wait(lambda: out.get_subscription_count() > 0)
    counted, held = len(hexapod.board.history), np.array(hexapod.board.pulses[:6])
    graph.wait(lambda: hexapod.says(DiagnosticStatus.ERROR, "commands come from 2 nodes"))
    graph.wait(lambda: not any(hexapod.board.pulses))
    out.publish(JointState(name=list(hexapod.kinematics.actuated_names), position=[1.0] * 6))
    graph.wait(lambda: hexapod.states[-1].mode == Mode.STOPPED)
    answer = graph.call(Trigger, "hardware/reset", Trigger.Request())
    assert not answer.success
    assert f"{graph.namespace}/client" in answer.message
    told = [np.array(pulses[:6]) for _, pulses in list(hexapod.board.history)[counted - 1 :]]
    assert held.all()
    assert max(np.abs(pulses - held).max() for pulses in told if pulses.any()) < 100  # 1 rad would be 637
    graph.in_executor(lambda: graph.client.destroy_publisher(out))  # which is not to find it half destroyed
    graph.wait(lambda: graph.call(Trigger, "hardware/reset", Trigger.Request()).success)
    hexapod.enable()
    graph.wait(lambda: hexapod.states[-1].mode == Mode.HOLDING)


def test_enabling_succeeds_only_where_the_controller_holds(hexapod: Hexapod) -> None:
    graph, loop = hexapod.graph, hexapod.controller._controls.loop
    assert graph.call(Trigger, "hardware/disable", Trigger.Request()).success
    graph.wait(lambda: hexapod.states[-1].mode == Mode.WAITING)
    assert graph.call(Trigger, "hardware/reset", Trigger.Request()).success  # as after it was led home by hand
    loop.tell(lambda one: one.follower.locator.assembly.cross())
    answer = graph.call(Trigger, "hardware/enable", Trigger.Request())
    assert not answer.success
    assert answer.message.startswith("no command for 0.5 s (the limbs may have lost hold of the platform")
    graph.wait(lambda: not any(hexapod.board.pulses))
    assert graph.call(Trigger, "hardware/reset", Trigger.Request()).success
    loop.tell(lambda one: one.follower.locator.assembly.forget())
    assert graph.call(Trigger, "hardware/enable", Trigger.Request()).success
    graph.wait(lambda: hexapod.states[-1].mode == Mode.HOLDING, 1.0)


def test_pulling_the_plug_is_a_fault_that_everybody_hears_of(hexapod: Hexapod) -> None:
    told = hexapod.graph.listen(Log, "/rosout")
    hexapod.board.unplug()
    hexapod.graph.wait(lambda: hexapod.says(DiagnosticStatus.ERROR, "unplugged"), 10.0)
    hexapod.graph.wait(lambda: hexapod.states[-1].mode == Mode.STOPPED)
    hexapod.graph.wait(lambda: any("to go on, call hardware/reset and hardware/enable" in log.msg for log in told))
    answer = hexapod.graph.call(Trigger, "hardware/emergency_stop", Trigger.Request())
    assert "COULD NOT BE TOLD" in answer.message
