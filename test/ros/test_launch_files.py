# SPDX-License-Identifier: Apache-2.0
"""Launch files, where the ROS launch system is installed: settings are arguments, and the nodes are as declared."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from pkm_bringup import bringup
from pkm_bringup.command_line.measured import FAULT_FILE
from pkm_control.control_errors import UnequalDrivesError

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
def test_every_setting_is_a_described_argument(path: Path) -> None:
    installed_launch()
    arguments = {argument.name: argument for argument in described(path).get_launch_arguments()}
    for setting in bringup.SETTINGS:
        assert arguments[setting.name].description.startswith(setting.description)
        assert list(arguments[setting.name].choices or ()) == list(setting.choices)


def test_the_nodes_are_those_declared() -> None:
    installed_launch()
    from launch_ros.actions import Node

    actions = actions_of("delta.launch.py")
    started = [action.node_executable for action in actions if isinstance(action, Node)]
    wanted = {node.executable for node in bringup.nodes(bringup.defaults(page="false"))}
    assert wanted <= set(started)
    assert {"description_node", "robot_state_publisher"} & set(started)


def test_nodes_get_the_values_of_the_launch_arguments() -> None:
    installed_launch()
    from launch import LaunchContext
    from launch_ros.actions import Node

    actions = actions_of("delta.launch.py", rate="500.0", stay="false", namespace="left")
    nodes = {one.node_executable: one for one in actions if isinstance(one, Node)}
    assert {"control_node", "kinematics_node", "dynamics_node", "motion_player_node"} <= set(nodes)
    for executable in ("control_node", "motion_player_node"):
        node = nodes[executable]
        assert parameters_of(node)["rate"] == 500.0
        node._perform_substitutions(LaunchContext())
        assert node.expanded_node_namespace == "/left"
    assert parameters_of(nodes["motion_player_node"])["stay"] is False


def test_nodes_of_other_packages_end_with_a_launch_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own do so by themselves; a signal that comes while they load Python is held back for them."""
    installed_launch()
    from launch import LaunchContext
    from launch_ros.actions import Node

    from pkm_bringup import launch_bringup

    monkeypatch.setattr(launch_bringup, "_installed", lambda package: True)
    nodes = [one for one in actions_of("delta.launch.py", rviz_file="own.rviz") if isinstance(one, Node)]
    context = LaunchContext()
    context.launch_configurations["launch-prefix"] = "nice"
    before = {
        one.node_executable: "".join(part.perform(context) for part in one.process_description.prefix) for one in nodes
    }
    for executable in ("robot_state_publisher", "rviz2"):
        assert before[executable] == "setsid setpriv --pdeathsig SIGTERM nice"
    assert before["control_node"] == "env --block-signal=SIGINT --block-signal=SIGTERM nice"


def test_layers_are_shown_beside_rviz_in_the_frames_of_the_robot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed_launch()
    from launch_ros.actions import Node

    from pkm_bringup import launch_bringup

    monkeypatch.setattr(launch_bringup, "_installed", lambda package: True)
    (tmp_path / "loci.glb").touch()
    arguments = {"rviz_file": "own.rviz", "layers": str(tmp_path), "frame_prefix": "left/"}
    nodes = [one for one in actions_of("delta.launch.py", **arguments) if isinstance(one, Node)]
    shown = parameters_of(next(one for one in nodes if one.node_executable == "layers_node"))
    assert shown["files"] == str(tmp_path / "loci.glb")
    assert shown["frame_prefix"] == "left/"
    unseen = [one for one in actions_of("delta.launch.py", rviz="false", **arguments) if isinstance(one, Node)]
    assert "layers_node" not in {one.node_executable for one in unseen}


def managed(**arguments: str) -> dict[str, Any]:
    """Nodes by executable, of a robot that the controller manager drives."""
    installed_launch()
    pytest.importorskip("controller_manager", reason="controller_manager is not on PyPI")
    from launch_ros.actions import Node

    actions = actions_of("pkm.launch.py", ros2_control="true", rviz="false", **arguments)
    return {action.node_executable: action for action in actions if isinstance(action, Node)}


def parameters_of(node: Any) -> dict[str, Any]:
    """Those given to a node of ours."""
    from launch import LaunchContext
    from launch_ros.utilities import evaluate_parameters

    return dict(evaluate_parameters(LaunchContext(), node._Node__parameters)[0])


def words_of(node: Any) -> list[str]:
    """Plain words of its command line."""
    return [part.text for word in node.cmd for part in word if hasattr(part, "text")]


def test_the_machine_is_watched_where_it_can_be_heard() -> None:
    nodes = managed(robot="delta", controllers="joint_trajectory_controller")
    from launch import LaunchContext

    assert parameters_of(nodes["machine_watch_node"])["controllers"] == (
        "joint_state_broadcaster",
        "joint_trajectory_controller",
    )
    assert "--inactive" in words_of(nodes["spawner"])
    assert not {"controller_node", "motion_player_node"} & set(nodes)
    nodes["kinematics_node"]._perform_substitutions(LaunchContext())
    assert ("actuated_joint_states", "hardware/joint_states") in nodes["kinematics_node"].expanded_remapping_rules


def ends_the_run(node: Any, code: int) -> str:
    """Why a node that ends with an exit code ends the run, as launch is told; empty where it does not."""
    from launch import LaunchContext
    from launch.events.process import ProcessExited

    from pkm_bringup.launch_bringup import RunEndedError

    told: dict[str, Any] = {"name": node.node_executable, "cmd": [], "cwd": None, "env": None, "pid": 1}
    event = ProcessExited(action=node, returncode=code, **told)
    context = LaunchContext()
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        context.environment[FAULT_FILE] = file.name
        why = ""
        try:
            answers = node._ExecuteLocal__on_exit(event, context)  # the launch system tells nobody
            why = "".join(one.event.reason for one in answers)
        except RunEndedError as error:  # with which `ros2 launch` ends with 1
            why = str(error)
        assert file.read() == (why if code else "")  # for the report
    return why


@pytest.mark.parametrize(
    ("executable", "code", "ends"),
    [
        ("ros2_control_node", -6, True),
        ("ros2_control_node", 0, True),
        ("spawner", 1, True),
        ("spawner", 0, False),
        ("kinematics_node", 0, True),
    ],
)
def test_the_run_ends_with_the_manager_and_where_controllers_are_not_loaded(
    executable: str, code: int, ends: bool
) -> None:
    nodes = managed(robot="delta")
    assert bool(ends_the_run(nodes[executable], code)) == ends


def test_our_controller_commands_through_the_forward_controller() -> None:
    nodes = managed(robot="gough_stewart", motion="none")
    assert {"hardware_node", "controller_node"} <= set(nodes)
    assert "control_node" not in nodes  # whose commands would go past the controller manager
    given = parameters_of(nodes["controller_node"])
    assert given["forward_to"] == "forward_effort_controller/commands"
    assert given["law"] == "computed_torque"
    assert parameters_of(nodes["machine_watch_node"])["forward_controller"] == "forward_effort_controller"
    assert "machine_watch" in parameters_of(nodes["motion_player_node"])["wait_for"]
    assert "joint_trajectory_controller" not in words_of(nodes["spawner"])  # it has no gains


@pytest.mark.parametrize(("interface", "commands"), [("position", "hardware/joint_commands"), ("effort", None)])
def test_positions_that_are_commanded_are_judged(interface: str, commands: str | None) -> None:
    one_loop_each = "joint_trajectory_controller"
    nodes = managed(robot="delta", command_interface=interface, controllers=one_loop_each)
    assert parameters_of(nodes["kinematics_node"]).get("commands") == commands


def test_a_hexapod_is_not_held_by_one_loop_of_effort_per_drive() -> None:
    with pytest.raises(UnequalDrivesError):
        managed(robot="gough_stewart", controllers="joint_trajectory_controller")


def test_nodes_are_left_the_time_to_end_and_their_end_is_clean() -> None:
    """Launch sends SIGTERM five seconds after Ctrl-C by default, while a report is being drawn."""
    installed_launch()
    from launch import LaunchContext
    from launch.actions import ExecuteProcess

    context = LaunchContext()
    processes = [one for one in actions_of("delta.launch.py", rviz="false") if isinstance(one, ExecuteProcess)]
    assert len(processes) >= 4
    for process in processes:
        timeout = process._ExecuteLocal__sigterm_timeout  # the launch system tells nobody
        assert float("".join(part.perform(context) for part in timeout)) >= 40.0


def test_a_launch_stays_on_this_computer_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_launch()
    from launch import LaunchContext
    from launch.actions import SetEnvironmentVariable

    from pkm_description.ros.transport import PROFILES, RANGE

    for asked, profile in ((None, "fastdds_this_computer.xml"), ("SUBNET", "fastdds_network.xml")):
        for name in (RANGE, *PROFILES):
            monkeypatch.delenv(name, raising=False)
        if asked:
            monkeypatch.setenv(RANGE, asked)
        context = LaunchContext()
        found = {}
        for one in actions_of("delta.launch.py"):
            if isinstance(one, SetEnvironmentVariable):
                name, value = (
                    "".join(part.perform(context) for part in parts)
                    for parts in (one._SetEnvironmentVariable__name, one._SetEnvironmentVariable__value)
                )
                found[name] = value
        assert Path(found[PROFILES[0]]).name == profile


def test_the_end_of_who_describes_the_robot_ends_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_launch()
    from launch_ros.actions import Node

    from pkm_bringup import launch_bringup

    monkeypatch.setattr(launch_bringup, "_installed", lambda package: package == "robot_state_publisher")
    actions = actions_of("delta.launch.py", rviz="false")
    node = next(one for one in actions if isinstance(one, Node))
    assert node.node_executable == "robot_state_publisher"
    assert "robot_state_publisher" in ends_the_run(node, -9)


@pytest.mark.parametrize(("stay", "ends"), [("false", True), ("true", False)])
def test_the_end_of_the_motion_ends_the_launch_unless_the_robot_stays(stay: str, ends: bool) -> None:
    installed_launch()
    from launch_ros.actions import Node

    actions = actions_of("delta.launch.py", rviz="false", stay=stay)
    nodes = {one.node_executable: one for one in actions if isinstance(one, Node)}
    assert bool(ends_the_run(nodes["motion_player_node"], 0)) == ends
    assert ends_the_run(nodes["motion_player_node"], 1)
    assert ends_the_run(nodes["control_node"], 0)


@pytest.mark.parametrize("works", [False, True])
def test_a_process_that_hangs_before_its_node_is_there_ends_the_launch(
    works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy computer a node may take minutes to come, but its process works."""
    installed_launch()
    from pkm_bringup import launch_bringup

    monkeypatch.setattr(launch_bringup, "_IDLE", 2.0)
    monkeypatch.setattr(launch_bringup, "_WORK", 0.0)
    told: list[Any] = []

    class Context:
        async def emit_event(self, event: Any) -> None:
            told.append(event)

    code = "while True: pass" if works else "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        node = Mock(node_executable="kinematics_node", process_details={"pid": process.pid}, return_code=None)
        waiting = launch_bringup._await_nodes(cast(Any, Context()), [node], "/nobody")
        try:
            with nullcontext() if works else pytest.raises(launch_bringup.RunEndedError):
                asyncio.run(asyncio.wait_for(waiting, 8.0))
        finally:
            process.kill()  # whose end is waited for
    assert [event.reason.split()[0] for event in told] == ([] if works else ["kinematics"])


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count waits")
def test_a_process_that_waits_for_a_processor_does_not_hang() -> None:
    """Beside others on the same processor it gets next to nothing, and wants all the time."""
    installed_launch()
    from pkm_bringup import launch_bringup

    spin = f"import os, sys; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); os.nice(int(sys.argv[1]))\n"
    spin += "print(flush=True)\nwhile True: pass"
    one, other = (subprocess.Popen([sys.executable, "-c", spin, nice], stdout=subprocess.PIPE) for nice in ("0", "19"))
    with one, other:
        try:
            for process in (one, other):
                assert process.stdout is not None
                process.stdout.readline()
            wanted = launch_bringup._wanted_time(other.pid) + 1.0
            deadline = time.monotonic() + 20.0  # in which it gets 0.3 s
            while launch_bringup._wanted_time(other.pid) < wanted:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            one.kill()
            other.kill()
    assert launch_bringup._wanted_time(other.pid) == math.inf


def test_an_interrupt_before_all_nodes_are_there_lets_them_end() -> None:
    """Launch asks a coroutine that it cancelled for its exception, which ends it with its processes left alone."""
    installed_launch()
    from pkm_bringup import launch_bringup

    async def interrupted() -> None:
        never = Mock(node_executable="kinematics_node", process_details=None, return_code=None)
        waiting = asyncio.create_task(launch_bringup._await_nodes(cast(Any, None), [never], "/nobody"))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.exception() is None

    asyncio.run(interrupted())
