# SPDX-License-Identifier: Apache-2.0
"""Our controller and kinematics in C++ under the real controller_manager, beside its standard controllers.

Needs a sourced ROS 2 installation with ros2_control and admittance_controller, in which pkm_ros2_control is built.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion, Transform, Vector3
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from test.pkm_ros2_control.native import (
    TORQUE,
    TRAJECTORY,
    TYPES,
    description,
    manager,
    robot_library,
    simulated,
    torque_parameters,
)

from .conftest import Graph
from .installed import NATIVE, not_installed
from .managed_robot import Stack

MISSING = not_installed(NATIVE)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

RATE = 500.0  # Hz, which a busy computer keeps
PLATFORM = "platform_torque"  # computed torque whose references are of the platform
PUSH = np.array([5.0, 0.0, -3.0])  # N
STIFFNESS = 400.0  # N/m


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return robot_library(Dynamics(load_mechanism("delta")), tmp_path_factory.mktemp("delta"))


class Driven(Stack):
    """A robot under a controller manager whose spawner is at hand."""

    def __init__(self, graph: Graph, spawn: Callable[..., None], log: Path, name: str = "delta") -> None:
        super().__init__(graph, name)
        self.spawn, self.log = spawn, log
        self.heard: list[JointState] = graph.listen(JointState, "joint_states")

    def here(self) -> np.ndarray:
        last = self.heard[-1]
        return np.array([last.position[list(last.name).index(name)] for name in self.names])


@pytest.fixture
def torque(shared_graph: Graph, library: Path, tmp_path: Path) -> Iterator[Driven]:
    """The simulated Delta with both ways to ask it, at rest under the first."""
    joints = load_mechanism("delta").actuated_joints
    controllers = torque_parameters(library, joints)
    controllers[PLATFORM] = {**controllers[TORQUE], "reference": "platform"}
    types = {**TYPES, PLATFORM: TYPES[TORQUE]}
    shared_graph.describe(simulated("delta", library))
    with manager(tmp_path, shared_graph.namespace, RATE, controllers, types) as spawn:
        robot = Driven(shared_graph, spawn, tmp_path / "manager.log")
        spawn("joint_state_broadcaster")
        shared_graph.wait(lambda: robot.heard)
        yield robot
    print(robot.log.read_text())


def test_a_joint_trajectory_goes_through_computed_torque(torque: Driven) -> None:
    """The standard trajectory controller asks, ours commands efforts; a goal beyond the robot is not made."""
    torque.spawn(TORQUE, TRAJECTORY)
    assert torque.states()[TORQUE] == "active"
    end = np.array([[0.3, 0.1, -0.1]])
    done, errors = torque.go(end, 0.5)
    torque.graph.wait(done.done)
    assert done.result().result.error_code == 0, done.result().result.error_string
    assert errors
    assert np.abs(errors).max() < 5e-3  # rad, on a computer that may be late by periods
    torque.graph.wait(lambda: np.abs(torque.here() - end[0]).max() < 1e-5)
    done, _ = torque.go(np.array([[100.0, 0.0, 0.0]]), 1.0)
    torque.graph.wait(lambda: "the platform is held" in torque.log.read_text())
    torque.graph.wait(done.done)
    assert np.abs(torque.here()).max() < np.pi
    assert torque.states()[TORQUE] == "active"


def test_a_pose_is_asked_for_by_a_topic(torque: Driven) -> None:
    """The platform goes there; where it cannot be, it is held where it is."""
    torque.spawn(PLATFORM)
    points = torque.graph.client.create_publisher(MultiDOFJointTrajectoryPoint, f"{PLATFORM}/reference", 1)
    torque.graph.wait(points.get_subscription_count)

    def ask(pose: np.ndarray) -> None:
        turn = dict(zip("xyzw", map(float, pose[3:]), strict=True))
        place = Vector3(**dict(zip("xyz", map(float, pose[:3]), strict=True)))
        points.publish(
            MultiDOFJointTrajectoryPoint(transforms=[Transform(translation=place, rotation=Quaternion(**turn))])
        )

    wanted = np.array(torque.kinematics.home)
    wanted[:3] += (0.01, -0.01, 0.005)
    ask(wanted)
    there = np.asarray(torque.kinematics.inverse(wanted).actuated)
    torque.graph.wait(lambda: np.abs(torque.here() - there).max() < 1e-5)
    wanted[2] += 5.0
    ask(wanted)
    torque.graph.wait(lambda: "the platform is held" in torque.log.read_text())
    time.sleep(0.2)
    assert np.abs(torque.here() - there).max() < 1e-5
    assert torque.states()[PLATFORM] == "active"


def admittance_parameters(library: Path, joints: list[str]) -> dict[str, Any]:
    frame = {"frame": {"id": "platform"}}
    return {
        "joints": joints,
        "command_joints": joints,
        "command_interfaces": ["position"],
        "state_interfaces": ["position"],
        "chainable_command_interfaces": ["position", "velocity"],
        "kinematics": {
            "plugin_name": "pkm_ros2_control/Kinematics",
            "plugin_package": "kinematics_interface",
            "base": "base_link",
            "tip": "platform",
            "alpha": 0.0005,
            "robot": str(library),
        },
        "ft_sensor": {"name": "wrist", "filter_coefficient": 0.5, **frame},
        "control": frame,
        "fixed_world_frame": {"frame": {"id": "base_link"}},
        "gravity_compensation": {"frame": {"id": "base_link"}, "CoG": {"pos": [0.0, 0.0, 0.0], "force": 0.0}},
        "admittance": {
            "selected_axes": [True] * 6,
            "mass": [1.0] * 6,
            "damping_ratio": [1.0] * 6,
            "stiffness": [STIFFNESS] * 6,
        },
    }


@pytest.mark.parametrize("name", ["delta", "quattro"])
def test_the_stock_admittance_controller_gives_way_by_our_kinematics(name: str, graph: Graph, tmp_path: Path) -> None:
    """Pushed, the platform of a robot that takes positions moves by force over stiffness; Quattros are iterated."""
    mechanism = load_mechanism(name)
    library = robot_library(Dynamics(mechanism), tmp_path, ["-O1"])
    message_type = importlib.import_module("std_msgs.msg").Float64MultiArray
    text = description(name, "mock_components/GenericSystem", mock_sensor_commands=True)
    text = text.replace('<command_interface name="effort"/>', '<command_interface name="position"/>')
    axes = [f"{kind}.{axis}" for kind in ("force", "torque") for axis in "xyz"]
    zero = '<param name="initial_value">0</param>'
    sensed = "".join(f'<state_interface name="{axis}">{zero}</state_interface>' for axis in axes)
    text = text.replace("</ros2_control>", f'<sensor name="wrist">{sensed}</sensor></ros2_control>')
    graph.describe(text)
    types = {
        "joint_state_broadcaster": TYPES["joint_state_broadcaster"],
        "admittance_controller": "admittance_controller/AdmittanceController",
        "push": "forward_command_controller/MultiInterfaceForwardCommandController",
    }
    controllers = {
        "admittance_controller": admittance_parameters(library, list(mechanism.actuated_joints)),
        "push": {"joint": "wrist", "interface_names": axes},
    }
    log = tmp_path / "manager.log"
    with manager(tmp_path, graph.namespace, RATE, controllers, types) as spawn:
        robot = Driven(graph, spawn, log, name)
        try:
            spawn(*types)
            graph.wait(lambda: robot.heard)
            pushes = graph.client.create_publisher(message_type, "push/commands", 1)
            graph.wait(pushes.get_subscription_count)
            home = np.asarray(robot.kinematics.home)
            pushes.publish(message_type(data=[*PUSH, 0.0, 0.0, 0.0]))

            def moved() -> np.ndarray:
                return np.asarray(robot.kinematics.forward(robot.here(), near=home).pose)[:3] - home[:3]

            graph.wait(lambda: np.abs(moved() - PUSH / STIFFNESS).max() < 2e-4, 20.0)
        finally:
            print(log.read_text())
