# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.native_loop --seconds 60 --write docs/native.md`: the controller manager with our law in C++.

The Delta, simulated by a plugin, follows a joint_trajectory_controller through computed torque: at 1 kHz, at 4 kHz, and
then, at 1 kHz, our own loop with its nodes (`bench.loops`): all without real-time priorities, or with one that is given
(`--realtime-priority 40`). Needs a sourced ROS 2 installation with ros2_control in which this suite and
pkm_ros2_control are built.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from bench.tables import table
from pkm_dynamics import Dynamics
from pkm_runtime.fixed_rate import statistics
from test.pkm_ros2_control.native import TRAJECTORY, TYPES, manager, robot_library, simulated, torque_parameters

MARK = "<!-- measured -->"


def _periods(rate: float, seconds: float, priority: int) -> np.ndarray:
    """Periods [s] of the manager while the Delta goes to and fro."""
    import rclpy
    from controller_manager_msgs.srv import SetHardwareComponentState
    from lifecycle_msgs.msg import State
    from rclpy.node import Node
    from std_msgs.msg import String
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from pkm_control.ros.motion_messages import duration_message
    from pkm_description import load_mechanism
    from pkm_description.ros import topics

    dynamics = Dynamics(load_mechanism("delta"))
    joints = dynamics.kinematics.actuated_names
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library, file = robot_library(dynamics, folder), folder / "periods"
        rclpy.init()
        node = Node("native_loop", namespace="/native_loop")
        latched = node.create_publisher(String, topics.ROBOT_DESCRIPTION, topics.LATCHED)
        latched.publish(String(data=simulated("delta", library, periods_file=file, most_periods=10_000_000)))
        goals = node.create_publisher(JointTrajectory, f"{TRAJECTORY}/joint_trajectory", 1)
        service = node.create_client(SetHardwareComponentState, "controller_manager/set_hardware_component_state")
        with manager(folder, "/native_loop", rate, torque_parameters(library, joints), TYPES, priority) as spawn:
            spawn(*TYPES)
            time.sleep(2.0)  # what the start does to periods does not count
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                points = [
                    JointTrajectoryPoint(
                        positions=[at] * len(joints),
                        velocities=[0.0] * len(joints),
                        accelerations=[0.0] * len(joints),
                        time_from_start=duration_message(when),
                    )
                    for at, when in ((0.3, 0.5), (0.0, 1.0))
                ]
                goals.publish(JointTrajectory(joint_names=joints, points=points))
                time.sleep(1.2)
            request = SetHardwareComponentState.Request(name="delta")
            request.target_state = State(id=State.PRIMARY_STATE_INACTIVE, label="inactive")
            service.wait_for_service(10.0)
            future = service.call_async(request)
            rclpy.spin_until_future_complete(node, future, timeout_sec=20.0)
        said = (folder / "manager.log").read_text()
        node.destroy_node()
        rclpy.shutdown()
        if "refused" in said or not file.exists():
            raise SystemExit(said)
        periods = np.loadtxt(file)
        return periods[-round(seconds * rate) :]


def main() -> None:
    """Measure, print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each loop (default: 60)")
    parser.add_argument("--realtime-priority", type=int, default=0, metavar="N", help="of each loop (default: 0, none)")
    parser.add_argument("--write", metavar="FILE", help="the page that gets the table, after its mark")
    given = parser.parse_args()
    from bench import loops

    rows = []
    before = os.getloadavg()[0]
    for rate in (1000.0, 4000.0):
        found = statistics(
            np.concatenate([[0.0], np.cumsum(_periods(rate, given.seconds, given.realtime_priority))]), rate
        )
        rows.append(loops.row(f"controller manager, {rate:g} Hz", found))
        print(rows[-1], flush=True)
    own = [
        (f"`pkm run delta`, 1000 Hz; {name}", one)
        for name, one in loops.robot("delta", given.seconds, str(given.realtime_priority), 1e3)
    ]
    rows += [loops.row(*one) for one in own]
    head = ("loop", "minutes", "rate [Hz]", "deadlines missed", "p50 [ms]", "p99 [ms]", "max [ms]")
    text = table(head, rows)
    print(text)
    if given.write:
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
        about = (
            f"{date.today():%-d %B %Y}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, load {before:.1f} "
            f"before and {os.getloadavg()[0]:.1f} in the end, "
            f"{f'real-time priority {given.realtime_priority}' if given.realtime_priority else 'ordinary scheduling'}."
        )
        page = Path(given.write)
        page.write_text(f"{page.read_text().partition(MARK)[0]}{MARK}\n\n{about}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
