# SPDX-License-Identifier: Apache-2.0
"""The declarations of `bringup.py` for the ROS launch system; the launch files of all robots are this with a name.

Needs `launch` and `launch_ros`, which a ROS 2 installation has and a bare machine has not: there, see `runner.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from shutil import which
from typing import Any

import rclpy
import rclpy.node
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueCoroutine, OpaqueFunction, SetEnvironmentVariable
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.logging import get_logger
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from pkm_bringup import bringup, ros2_control, start
from pkm_bringup.command_line.measured import FAULT_FILE
from pkm_client import options
from pkm_client.options import SWITCH, Setting
from pkm_control.operator_interface import POSITION
from pkm_description.command_options import CORRECTIONS, with_corrections
from pkm_description.load import load_mechanism, xacro_arguments
from pkm_description.ros import topics
from pkm_description.ros.transport import transport_environment
from pkm_viewer import fitting
from pkm_viewer.layers import layer_files

_PATIENCE = {"sigterm_timeout": "40", "sigkill_timeout": "5"}  # s, after SIGINT: a report may be drawn, slowly
_ENDS_WITH_PARENT = ("setsid", "setpriv", "--pdeathsig", "SIGTERM")  # before a command that does not do so by itself
_MANAGER_PATIENCE = "30"  # s, of the spawners, with the controller manager
_WATCH = "machine_watch"
_IDLE = 20.0  # s, of a process whose node is not there: if it wants no processor for so long, it hangs
_LOOK_EVERY = 0.5  # s
_WORK = 0.2  # s in `_IDLE` that a process has a processor or waits for one, unless it hangs
_TOPIC_SYSTEM = "joint_state_topic_hardware_interface"  # the bridge; other plugins of ros2_control are the machine
_NAMES = {spec.executable: spec.nodes for spec in (bringup.DESCRIPTION, *bringup.NODES) if spec.needed} | {
    "robot_state_publisher": ("robot_state_publisher",),
    "ros2_control_node": ("controller_manager",),
    "machine_watch_node": (_WATCH,),
}  # names of the nodes that nothing works without, by executable

SETTINGS = (
    *options.SETTINGS,
    Setting("corrections", "", "robot", "FILE", CORRECTIONS),
    Setting("rviz", "true", "ROS", SWITCH, "open RViz, where it is installed"),
    Setting("rviz_file", "", "ROS", "FILE", "what RViz shows; empty: rviz/pkm.rviz, fitted to the size of the robot"),
    Setting("ros2_control", "false", "ROS", SWITCH, "have controller_manager drive the machine"),
    Setting("command_interface", "effort", "ROS", ("effort", "position"), "what controllers of ros2_control command"),
    Setting(
        "controllers",
        ros2_control.FORWARD,
        "ROS",
        "NAMES",
        f"controllers of ros2_control to activate, separated by commas; {ros2_control.FORWARD}: our controller, in the "
        f"platform's coordinates, commands through it; {ros2_control.TRAJECTORY}: one loop per drive",
    ),
    Setting(
        "controllers_file",
        "",
        "ROS",
        "FILE",
        "their parameters; empty: config/controllers.yaml, fitted to the joints of the robot",
    ),
)


class RunEndedError(RuntimeError):
    """A fault ends the run: launch prints it, lets all processes end, and exits with 1."""


def bring_up(**defaults: str) -> LaunchDescription:
    """The launch description of a robot: every setting an argument, whose default may be changed here by name."""
    default = {**{one.name: one.default for one in SETTINGS}, "page": "false", **defaults}
    arguments = [
        DeclareLaunchArgument(
            one.name, default_value=default[one.name], description=one.description, choices=one.choices or None
        )
        for one in SETTINGS
    ]
    names = [one.name for one in SETTINGS]
    return LaunchDescription([*arguments, OpaqueFunction(function=partial(_actions, names))])


def _actions(names: list[str], context: LaunchContext) -> list[Any]:
    values = {name: LaunchConfiguration(name).perform(context) for name in names}
    found: list[Any] = [SetEnvironmentVariable(*pair) for pair in transport_environment(os.environ).items()]
    found.append(SetEnvironmentVariable(start.LAUNCHER, str(os.getpid())))
    found.append(SetEnvironmentVariable(FAULT_FILE, _temporary(".fault")))
    managed = values["ros2_control"] == "true"
    if managed:
        if ros2_control.FORWARD not in _wanted(values):
            values["controller"] = "none"  # and with it the motion player, which needs our controller
        elif values["controller"] != "none" and values["command_interface"] == "position":
            values["controller"] = POSITION
        if values["command_interface"] != "effort":
            values["xacro_args"] += f" command_interface:={values['command_interface']}"
    if values["corrections"]:
        values["xacro_args"] += f" {with_corrections(values['corrections'])}"
    bringup.check(values)  # here, where what is wrong is said as of a launch argument
    if managed:
        found += _controller_manager(values)
    if _installed("robot_state_publisher"):
        found.append(_robot_state_publisher(values))
        values["description"] = "other"
    else:
        found.append(_node(bringup.DESCRIPTION, values, robot_description=_text(values)))
    if values["rviz"] == "true" and _installed("rviz2"):
        found.append(_rviz(values))
        if values["layers"]:
            found.append(_layers(values))
    found += [_node(spec, values) for spec in bringup.nodes(values)]
    awaited = [one for one in found if isinstance(one, Node) and one.node_executable in _NAMES]
    if _secured():  # the launch has no enclave
        return found
    return [*found, OpaqueCoroutine(coroutine=_await_nodes, args=[awaited, f"/{values['namespace'].strip('/')}"])]


async def _await_nodes(context: LaunchContext, processes: Sequence[Node], namespace: str) -> None:
    """End the run where a process hangs before its nodes are there, for which all others would wait."""
    busy = dict.fromkeys(processes, (0.0, time.monotonic()))  # what it wanted [s], and since when there was no more
    # a cancelled coroutine would end the launch at once, with all processes left alone
    with _graph() as graph, suppress(asyncio.CancelledError):
        while busy:
            await asyncio.sleep(_LOOK_EVERY)
            there = {name for name, space in graph.get_node_names_and_namespaces() if space == namespace}
            for process, (before, since) in list(busy.items()):
                absent, details = set(_NAMES[process.node_executable]) - there, process.process_details
                wanted = _wanted_time(details["pid"]) if details else 0.0
                if not absent or process.return_code is not None:
                    del busy[process]
                elif wanted > before + _WORK:
                    busy[process] = wanted, time.monotonic()
                elif time.monotonic() - since > _IDLE:
                    if details:  # it hears no gentler signal, for which launch would wait
                        with suppress(ProcessLookupError):
                            os.kill(details["pid"], signal.SIGKILL)
                    missing = f"{' and '.join(sorted(absent))} {'is' if len(absent) == 1 else 'are'} not there"
                    reason = f"{missing}, and the process has hung for {_IDLE:g} s"
                    await context.emit_event(Shutdown(reason=reason))  # launch may overlook a coroutine's exception
                    raise RunEndedError(reason)


@contextmanager
def _graph() -> Iterator[rclpy.node.Node]:
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node(f"launch_{os.getpid()}", context=context, enable_rosout=False)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def _wanted_time(pid: int) -> float:
    """How long a process has had a processor, or its main thread has waited for one [s]; endless where it is gone."""
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        waited = folder / "schedstat"  # not every kernel counts it
        nanoseconds = int(waited.read_text(encoding="utf-8").split()[1]) if waited.exists() else 0
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + 1e-9 * nanoseconds


def _ended(name: str, ends: Callable[[int], bool], event: ProcessExited, context: LaunchContext) -> list[Any]:
    if context.is_shutdown or not ends(event.returncode):
        return []
    reason = f"{name} ended with code {event.returncode}"
    if event.returncode != 0:
        Path(context.environment[FAULT_FILE]).write_text(reason, encoding="utf-8")  # for the report of the motion
        raise RunEndedError(reason)
    get_logger("launch").info(f"{reason}, which ends the run")  # launch tells no reason of a shutdown
    return [EmitEvent(event=Shutdown(reason=reason))]


def _ends_all(name: str) -> Callable[..., Any]:
    return partial(_ended, name, lambda code: True)


def _node(spec: bringup.NodeSpec, values: bringup.Values, **texts: ParameterValue) -> Node:
    parameters = {**bringup.parameters(spec, values), **texts}
    remappings = dict(spec.remappings)
    if values["ros2_control"] == "true":
        parameters.update(_in_ros2_control(spec, values, parameters))
        if topics.ACTUATED_JOINT_STATES in remappings and not _machine_on_topics(values):
            remappings[topics.ACTUATED_JOINT_STATES] = ros2_control.MEASURED_STATES
    leads = spec.leads and values["stay"] == "false"
    return _program(
        "pkm_control",
        spec.executable,
        values,
        name=None if spec.holds else spec.name,
        parameters=[parameters],
        remappings=list(remappings.items()),
        ros_arguments=["--enclave", f"{bringup.ENCLAVES}/{spec.name}"] if _secured() else [],
        output="screen",
        on_exit=partial(_ended, spec.name, partial(spec.stops_run, leads=leads)),
    )


def _program(package: str, executable: str, values: bringup.Values, **more: Any) -> Node:
    """A node's process. Ours end with the launch, and hear signals from the beginning; others do so by a tool."""
    words = start.HELD_BACK if package == "pkm_control" else _ENDS_WITH_PARENT
    before = [" ".join((*words, "")) if _works(words) else "", LaunchConfiguration("launch-prefix", default="")]
    more |= {"namespace": values["namespace"], "exec_name": executable, "prefix": before, **_PATIENCE}
    return Node(package=package, executable=executable, **more)


@cache
def _works(words: tuple[str, ...]) -> bool:
    return which(words[0]) is not None and subprocess.call([*words, "true"], stderr=subprocess.DEVNULL) == 0


def _secured() -> bool:
    return os.environ.get("ROS_SECURITY_ENABLE", "").lower() == "true"


def _in_ros2_control(spec: bringup.NodeSpec, values: bringup.Values, parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters that a node of ours gets besides, or in place of its own, under the controller manager."""
    if spec.name == "controller":
        return {"forward_to": f"{ros2_control.FORWARD}/commands", "command_delay": ros2_control.DELAY - 0.5}
    if spec.name == "kinematics" and values["command_interface"] == "position" and _machine_on_topics(values):
        return {"commands": topics.HARDWARE_COMMANDS}  # of controllers that know single joints alone
    if "wait_for" in parameters and _machine_on_topics(values):
        return {"wait_for": [*parameters["wait_for"], _WATCH]}
    return {}


def _machine_on_topics(values: bringup.Values) -> bool:
    """Whether the machine itself publishes its state for our nodes; a plugin's states are broadcast."""
    return values["hardware"] != "none" or _TOPIC_SYSTEM in bringup.description(values)


def _wanted(values: bringup.Values) -> list[str]:
    return values["controllers"].replace(",", " ").split()


def _controller_manager(values: bringup.Values) -> list[Any]:
    """The controller manager, the spawners that load its controllers, and the node that activates the wanted ones.
    Where the machine publishes, the watch activates them while it does, and deactivates them when it does not.
    """
    if not _installed("controller_manager"):
        raise RuntimeError("ros2_control:=true needs the packages controller_manager and ros2_controllers")
    path = values["controllers_file"] or _fitted_controllers(values)
    wanted = ["joint_state_broadcaster", *_wanted(values)]
    known = ros2_control.controller_names(ros2_control.read_parameters(path))
    clock = {"use_sim_time": values["use_sim_time"] == "true"}
    in_manager = partial(_program, "controller_manager", values=values, output="screen")
    manager = in_manager("ros2_control_node", parameters=[path, clock], on_exit=_ends_all("ros2_control_node"))
    # else all others would wait for controllers for ever
    not_loaded = partial(_ended, "spawner", lambda code: code != 0)
    spawner = partial(in_manager, "spawner", on_exit=not_loaded)
    patience = ["--controller-manager-timeout", _MANAGER_PATIENCE]
    if not _machine_on_topics(values):
        others = [name for name in known if name not in wanted]
        spawners = [spawner(arguments=[*wanted, "--param-file", path, *patience])]
        if others:
            spawners.append(spawner(arguments=[*others, "--inactive", "--param-file", path, *patience]))
        return [manager, *spawners]
    loaded = [*wanted, *(name for name in known if name not in wanted)]
    fed = ros2_control.FORWARD if values["controller"] != "none" else ""
    own_parameters = {"controllers": wanted, "forward_controller": fed}
    # without it a dead machine would go unnoticed
    ends = {"output": "screen", "on_exit": _ends_all(_WATCH)}
    watch = _other("pkm_control", "machine_watch_node", values, own_parameters, name=_WATCH, **ends)
    return [manager, spawner(arguments=[*loaded, "--inactive", "--param-file", path, *patience]), watch]


def _fitted_controllers(values: bringup.Values) -> str:
    template = ros2_control.read_parameters(f"{get_package_share_directory('pkm_control')}/config/controllers.yaml")
    mechanism = load_mechanism(values["robot"], xacro_arguments(values["xacro_args"]))
    rate, frequency = float(values["rate"]), float(values["natural_frequency"])
    interface = values["command_interface"]
    fitted = ros2_control.controller_parameters(template, mechanism, rate, frequency, interface, _wanted(values))
    path = _temporary(".yaml")
    ros2_control.write_parameters(fitted, path)
    return path


def _rviz(values: bringup.Values) -> Node:
    path = values["rviz_file"] or _temporary(".rviz")
    if not values["rviz_file"]:
        template = ros2_control.read_parameters(f"{get_package_share_directory('pkm_control')}/rviz/pkm.rviz")
        mechanism = load_mechanism(bringup.description(values))
        ros2_control.write_parameters(fitting.fitted_view(template, mechanism), path)
    return _other("rviz2", "rviz2", values, arguments=["-d", path])


def _layers(values: bringup.Values) -> Node:
    files = ",".join(str(path) for path in layer_files(values["layers"]))
    own_parameters = {"files": files, "frame_prefix": values["frame_prefix"]}
    return _other("pkm_control", "layers_node", values, own_parameters, output="screen")


def _temporary(suffix: str) -> str:
    with tempfile.NamedTemporaryFile(prefix="pkm_", suffix=suffix, delete=False) as file:
        atexit.register(Path(file.name).unlink, missing_ok=True)
        return file.name


def _robot_state_publisher(values: bringup.Values) -> Node:
    own_parameters = {"robot_description": _text(values), "publish_frequency": float(values["publish_rate"])}
    name = "robot_state_publisher"
    return _other(name, name, values, own_parameters, on_exit=_ends_all(name))


def _other(
    package: str, executable: str, values: bringup.Values, parameters: dict[str, Any] | None = None, **more: Any
) -> Node:
    own_parameters = {**(parameters or {}), "use_sim_time": values["use_sim_time"] == "true"}
    return _program(package, executable, values, parameters=[own_parameters], **more)


def _text(values: bringup.Values) -> ParameterValue:
    """The robot's URDF+ text as a parameter, which launch would else read as YAML."""
    return ParameterValue(bringup.description(values), value_type=str)


def _installed(package: str) -> bool:
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True
