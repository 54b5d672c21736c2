# SPDX-License-Identifier: Apache-2.0
"""Our transmission under the real controller_manager: an ankle's joints are asked, its motors do what Python says.

Needs a sourced ROS 2 installation with ros2_control, in which pkm_ros2_control is built.
"""

from __future__ import annotations

import importlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from pkm_analysis.transmission_range import linkage_text, over_range
from pkm_description.load import expand, load_model
from pkm_dynamics.transmission.transmission import Transmission
from test.pkm_ros2_control.native import TYPES, linkage_library, manager

from .conftest import Graph
from .installed import NATIVE, not_installed

MISSING = not_installed(NATIVE)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

CRANKS = "docs/examples/ankle_cranks.urdf.xacro"
RATE = 200.0  # Hz, which a busy computer keeps
KINDS = ("position", "velocity", "effort")


@pytest.fixture(scope="module")
def ankle() -> Transmission:
    return Transmission(load_model(CRANKS), ("ankle_pitch", "ankle_roll"), ("left_arm", "right_arm"))


def description(t: Transmission, library: object) -> str:
    """The ankle with ideal motors behind the `<transmission>` that the command writes, its library by path."""
    root = ET.fromstring(linkage_text(over_range(t, {}, 3)))
    param = root.find("param")
    assert param is not None
    param.text = str(library)
    states = "".join(f'<state_interface name="{kind}"/>' for kind in KINDS)
    commands = "".join(f'<command_interface name="{kind}"/>' for kind in KINDS)
    joints = "".join(f'<joint name="{j}"><limits enable="false"/>{commands}{states}</joint>' for j in t.joints)
    joints += "".join(f'<joint name="{motor}">{states}</joint>' for motor in t.actuators)
    hardware = "<hardware><plugin>pkm_ros2_control/SimulatedMotors</plugin></hardware>"
    system = f'<ros2_control name="ankle" type="system">{hardware}{joints}{ET.tostring(root, encoding="unicode")}'
    return re.sub(r"<ros2_control.*</ros2_control>", f"{system}</ros2_control>", expand(CRANKS)[0], flags=re.DOTALL)


class Driven:
    """The ankle under a controller manager, with a controller for each kind of command."""

    def __init__(self, graph: Graph, log: Path) -> None:
        self.graph, self.log = graph, log
        self.heard: list[JointState] = graph.listen(JointState, "joint_states")
        self.message = importlib.import_module("std_msgs.msg").Float64MultiArray
        self.publishers = [graph.client.create_publisher(self.message, f"{kind}/commands", 1) for kind in KINDS]

    def ask(self, *numbers: np.ndarray) -> None:
        """Positions, velocities and efforts of the joints."""
        for publisher, asked in zip(self.publishers, numbers, strict=True):
            self.graph.wait(publisher.get_subscription_count)
            publisher.publish(self.message(data=[float(x) for x in asked]))

    def seen(self, names: tuple[str, ...]) -> np.ndarray:
        """What some joints do now, (3, names)."""
        last = self.heard[-1]
        at = [list(last.name).index(name) for name in names]
        return np.array([[all_of_kind[k] for k in at] for all_of_kind in (last.position, last.velocity, last.effort)])


@pytest.fixture
def driven(graph: Graph, ankle: Transmission, tmp_path: Path) -> Iterator[Driven]:
    graph.describe(description(ankle, linkage_library(ankle, tmp_path)))
    broadcaster = "joint_state_broadcaster"
    types = {broadcaster: TYPES[broadcaster]}
    controllers: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        types[kind] = "forward_command_controller/ForwardCommandController"
        controllers[kind] = {"joints": list(ankle.joints), "interface_name": kind}
    with manager(tmp_path, graph.namespace, RATE, controllers, types) as spawn:
        robot = Driven(graph, tmp_path / "manager.log")
        try:
            spawn(*types)
            graph.wait(lambda: robot.heard)
            yield robot
        finally:
            print(robot.log.read_text())


def test_motors_do_what_the_linkage_asks(driven: Driven, ankle: Transmission) -> None:
    """Positions, velocities and efforts of the motors, and back at the joints; beyond a fold NaN, then again."""
    for q, v, effort in (([0.3, 0.1], [0.5, -0.2], [3.0, -1.0]), ([-0.4, 0.2], [0.0, 1.0], [-2.0, 4.0])):
        asked = np.array([q, v, effort])
        motion = ankle.to_actuator_motion(asked[0], asked[1])
        wanted = np.array([motion.position, motion.velocity, ankle.to_actuator_efforts(asked[0], asked[2])])
        driven.ask(*asked)
        driven.graph.wait(lambda wanted=wanted: np.abs(driven.seen(ankle.actuators) - wanted).max() < 1e-9, 20.0)
        np.testing.assert_allclose(driven.seen(ankle.joints), asked, atol=1e-9)
    driven.ask(np.array([0.0, 3.0]), asked[1], asked[2])
    driven.graph.wait(lambda: np.isnan(driven.seen(ankle.actuators)).all(), 20.0)
    assert "actuators: there is no way there from where the linkage was; they get NaN" in driven.log.read_text()
    driven.ask(*asked)
    driven.graph.wait(lambda: np.abs(driven.seen(ankle.actuators) - wanted).max() < 1e-9, 20.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((".so<", "_none.so<"), "no library of the linkage"),
        (('<joint name="ankle_pitch" role', '<joint name="right_arm" role'), "the linkage has no right_arm"),
        (('name="linkage"', 'name="library"'), 'a <param name="linkage"> has to name its library'),
    ],
    ids=["library", "joint", "parameter"],
)
def test_a_transmission_that_does_not_fit_is_refused(
    change: tuple[str, str], said: str, graph: Graph, ankle: Transmission, tmp_path: Path
) -> None:
    text = description(ankle, linkage_library(ankle, tmp_path)).replace(*change)
    graph.describe(text)
    with manager(tmp_path, graph.namespace, RATE, {}, {}):
        graph.wait(lambda: said in (tmp_path / "manager.log").read_text(), 30.0)
