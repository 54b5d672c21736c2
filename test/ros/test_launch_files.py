# SPDX-License-Identifier: Apache-2.0
"""Launch files, where the ROS launch system is installed: every knob is an argument, and the nodes are as declared."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from pkm_control.run import bringup
from pkm_control.run.runner import read_knobs

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


def actions_of(file: str, **arguments: str) -> list[Any]:
    """What a launch file does with these arguments."""
    from launch import LaunchContext
    from launch.actions import OpaqueFunction

    description = described(next(path for path in LAUNCH_FILES if path.name == file))
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    actions: list[Any] = []
    for entity in description.entities:
        if isinstance(entity, OpaqueFunction):
            actions = list(entity.execute(context) or [])
        else:
            entity.execute(context)
    return actions


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_every_knob_is_a_described_argument(path: Path) -> None:
    installed_launch()
    arguments = {argument.name: argument for argument in described(path).get_launch_arguments()}
    for knob in bringup.KNOBS:
        assert arguments[knob.name].description.startswith(knob.description)
        assert list(arguments[knob.name].choices or ()) == list(knob.choices)


def test_the_nodes_are_those_declared() -> None:
    installed_launch()
    from launch_ros.actions import Node

    actions = actions_of("delta.launch.py", together="false")
    started = [action.node_executable for action in actions if isinstance(action, Node)]
    wanted = {node.executable for node in bringup.nodes(bringup.defaults(page="false"))}
    assert wanted <= set(started)
    assert {"description_node", "robot_state_publisher"} & set(started)


def test_nodes_that_are_forked_get_the_values_of_the_launch_arguments() -> None:
    installed_launch()
    from launch import LaunchContext
    from launch.actions import ExecuteProcess
    from launch_ros.actions import Node

    actions = actions_of("delta.launch.py", rate="500.0", stay="false", namespace="left")
    process = next(one for one in actions if isinstance(one, ExecuteProcess) and not isinstance(one, Node))
    process.prepare(LaunchContext())
    assert process.process_description.final_cmd is not None
    arguments = process.process_description.final_cmd[3:]
    publishes = any(isinstance(one, Node) and one.node_executable == "robot_state_publisher" for one in actions)
    wanted = bringup.defaults(
        robot="delta",
        rate="500.0",
        stay="false",
        namespace="left",
        page="false",
        description="other" if publishes else "own",
    )
    assert read_knobs(arguments) == wanted
