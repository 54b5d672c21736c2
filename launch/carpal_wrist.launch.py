# SPDX-License-Identifier: Apache-2.0
"""A robot of the gallery: `ros2 launch pkm_control carpal_wrist.launch.py`; `--show-args`: settings."""

from launch import LaunchDescription

from pkm_bringup.launch_bringup import bring_up


def generate_launch_description() -> LaunchDescription:
    return bring_up(robot="carpal_wrist")
