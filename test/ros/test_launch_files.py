# SPDX-License-Identifier: Apache-2.0
"""Launch files, where the ROS launch system is installed: every knob is an argument, and the nodes are as declared."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pkm_control.run import bringup

LAUNCH_FILES = sorted((Path(__file__).parents[2] / "launch").glob("*.launch.py"))


def installed_launch() -> Any:
    """The launch system; the directory of that name in this repository is not it."""
    pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; it comes with a ROS 2 installation")
    return pytest.importorskip("launch.launch_service", reason="launch comes with a ROS 2 installation")


def described(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.name.replace(".", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_every_knob_is_a_described_argument(path: Path) -> None:
    installed_launch()
    arguments = {argument.name: argument for argument in described(path).get_launch_arguments()}
    for knob in bringup.KNOBS:
        assert arguments[knob.name].description.startswith(knob.description)
        assert list(arguments[knob.name].choices or ()) == list(knob.choices)


def test_the_nodes_are_those_declared() -> None:
    installed_launch()
    from launch import LaunchContext
    from launch.actions import OpaqueFunction
    from launch_ros.actions import Node

    description = described(next(path for path in LAUNCH_FILES if path.name == "delta.launch.py"))
    context = LaunchContext()
    started: list[str] = []
    for entity in description.entities:
        if isinstance(entity, OpaqueFunction):
            actions = entity.execute(context) or []
            started = [action.node_executable for action in actions if isinstance(action, Node)]
        else:
            entity.execute(context)
    wanted = {node.executable for node in bringup.nodes(bringup.defaults(page="false"))}
    assert wanted <= set(started)
    assert {"description_node", "robot_state_publisher"} & set(started)
