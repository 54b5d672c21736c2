# SPDX-License-Identifier: Apache-2.0
"""Any robot: `ros2 launch pkm_control pkm.launch.py robot:=my_robot.urdf.xacro`; `--show-args`: settings."""

from launch import LaunchDescription

from pkm_bringup.launch_bringup import bring_up


def generate_launch_description() -> LaunchDescription:
    return bring_up()
