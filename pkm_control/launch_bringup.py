# SPDX-License-Identifier: Apache-2.0
"""What `bringup.py` declares, said to the ROS launch system; the launch files of all robots are this with a name.

Needs `launch` and `launch_ros`, which a ROS 2 installation has and a bare machine has not: there, see `runner.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from pkm_control import bringup
from pkm_description.load import expand

RVIZ = bringup.Knob("rviz", "true", "open RViz, where it is installed", bringup.SWITCH)


def bring_up(**defaults: str) -> LaunchDescription:
    """Return the launch description of a robot: every knob an argument, some with other defaults than in `bringup.py`.

    The browser page is off here, where RViz shows the robot; it needs `pip install viser yourdfpy`.
    """
    knobs = (*bringup.KNOBS, RVIZ)
    default = {**{knob.name: knob.default for knob in knobs}, "page": "false", **defaults}
    arguments = [
        DeclareLaunchArgument(
            knob.name, default_value=default[knob.name], description=knob.description, choices=knob.choices or None
        )
        for knob in knobs
    ]
    names = [knob.name for knob in knobs]
    return LaunchDescription([*arguments, OpaqueFunction(function=partial(_actions, names))])


def _actions(names: list[str], context: LaunchContext) -> list[Any]:
    """Return the nodes and handlers that the values of the launch arguments ask for."""
    values = {name: LaunchConfiguration(name).perform(context) for name in names}
    found = []
    if _installed("robot_state_publisher"):
        found.append(_robot_state_publisher(values))
    else:
        found.append(_node(bringup.DESCRIPTION, values))
    if values["rviz"] == "true" and _installed("rviz2"):
        configuration = f"{get_package_share_directory('pkm_control')}/rviz/pkm.rviz"
        namespace = values["namespace"]
        found.append(Node(package="rviz2", executable="rviz2", namespace=namespace, arguments=["-d", configuration]))
    for spec in bringup.nodes(values):
        found.append(_node(spec, values))
        if spec.leads and values["stay"] == "false":
            over = EmitEvent(event=Shutdown(reason="the motion is done"))
            found.append(RegisterEventHandler(OnProcessExit(target_action=found[-1], on_exit=[over])))
    return found


def _node(spec: bringup.NodeSpec, values: bringup.Values) -> Node:
    """Return a node of ours."""
    return Node(
        package="pkm_control",
        executable=spec.executable,
        name=spec.name,
        namespace=values["namespace"],
        parameters=[bringup.parameters(spec, values)],
        remappings=list(spec.remappings.items()),
        output="screen",
    )


def _robot_state_publisher(values: bringup.Values) -> Node:
    """Return the node that publishes /robot_description, and /tf from joint_states."""
    text, _ = expand(values["robot"], bringup.xacro_arguments(values))
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        namespace=values["namespace"],
        parameters=[
            {
                "robot_description": ParameterValue(text, value_type=str),
                "publish_frequency": float(values["publish_rate"]),
                "use_sim_time": values["use_sim_time"] == "true",
            }
        ],
    )


def _installed(package: str) -> bool:
    """Return whether a ROS package is installed."""
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True
