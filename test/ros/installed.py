# SPDX-License-Identifier: Apache-2.0
"""Which packages a sourced ROS 2 installation has, and which programs the computer, of those that tests need."""

import shutil
from collections.abc import Sequence

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

STACK = (
    "pkm_control",
    "ros2launch",
    "robot_state_publisher",
    "controller_manager",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "forward_command_controller",
    "joint_state_topic_hardware_interface",
)
NATIVE = (
    "controller_manager",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "forward_command_controller",
    "admittance_controller",
    "pkm_ros2_control",
)
MOVEIT = ("moveit_core", "pkm_ros2_control")
RVIZ = ("pkm_control", "ros2launch", "robot_state_publisher", "tf2_msgs", "rviz2", "rviz_default_plugins", "Xvfb")


def not_installed(packages: Sequence[str]) -> list[str]:
    """Those that are not there."""
    found = []
    for package in packages:
        if shutil.which(package):
            continue
        try:
            get_package_prefix(package)
        except (PackageNotFoundError, OSError):  # OSError: nothing is sourced
            found.append(package)
    return found
