# SPDX-License-Identifier: Apache-2.0
"""The browser page as a ROS node: shows /robot_description as joint_states move it."""

from __future__ import annotations

from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.view.page_server import THIS_COMPUTER
from pkm_control.view.viewer import RobotViewer
from pkm_description.mechanism import Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_interfaces.msg import ControllerState, PlatformState, SolveStatus


class PageNode(Node):
    """Keeps the newest of each state, and draws at a rate that a browser can follow."""

    def __init__(self) -> None:
        super().__init__("page")
        self._host = declare(
            self,
            "host",
            THIS_COMPUTER,
            "address that the page listens on; 127.0.0.1: for this computer alone, 0.0.0.0: on all of its networks",
            fixed=True,
        )
        self._port = declare(self, "port", 8080, "first port that is tried", (1, 65535), fixed=True)
        rate = declare(self, "frame_rate", 25.0, "pictures per second", (1.0, 60.0), fixed=True)
        self._viewer: RobotViewer | None = None
        self._newest: list[Any] = [None, None, None]
        self._description = RobotDescription(self, self._build)
        self._inputs = [
            PolledSubscription(self, kind, topic, topics.STREAM_IN)
            for kind, topic in (
                (JointState, topics.JOINT_STATES),
                (PlatformState, topics.PLATFORM_STATE),
                (ControllerState, topics.CONTROLLER_STATE),
            )
        ]
        self._faults: dict[str, str] = {}  # node: what it reports as an error
        self.create_subscription(DiagnosticArray, topics.DIAGNOSTICS, self._diagnosed, topics.EVENTS)
        self.create_timer(1.0 / rate, self._draw)
        self._diagnostics = diagnostics.Diagnostics(self, self._report)

    def _build(self, mechanism: Mechanism) -> None:
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        self._viewer = RobotViewer(mechanism, port=self._port, host=self._host)
        self._newest = [None, None, None]
        for problem in self._viewer.left_out:
            self.get_logger().warning(f"not drawn: {problem}")
        self.get_logger().info(f"the robot is shown at {self._viewer.url}")

    def _diagnosed(self, message: DiagnosticArray) -> None:
        """Note which nodes of this robot report an error."""
        for status in message.status:
            name = status.name.rpartition("/")[2]
            if status.hardware_id == self.get_namespace() and name != self.get_name():
                self._faults.pop(name, None)
                if status.level == diagnostics.ERROR:
                    self._faults[name] = status.message

    def _draw(self) -> None:
        if self._viewer is not None:
            self._viewer.warn("; ".join(f"{name}: {why}" for name, why in sorted(self._faults.items())))
        self._newest = [one.take() or last for one, last in zip(self._inputs, self._newest, strict=True)]
        joints, platform, controller = self._newest
        if self._viewer is None or joints is None or platform is None:
            return
        known = platform.status.code in (SolveStatus.CONVERGED, SolveStatus.JOINT_LIMIT)  # else its pose means nothing
        pose = messages.pose_of(platform.pose) if known else None
        self._viewer.update(joints.name, np.array(joints.position), pose)
        speed = float(np.linalg.norm(messages.vector_of(platform.twist.linear)))
        stamp = platform.header.stamp.sec % 10000 + 1e-9 * platform.header.stamp.nanosec
        status = platform.status.reason or "running"
        if controller is None:
            self._viewer.readout(time=stamp, speed=speed, status=status)
            return
        error = float(np.linalg.norm(messages.vector_of(controller.position_error)))
        self._viewer.readout(stamp, error, speed, np.array(controller.effort), controller.reason or status)

    def _report(self) -> diagnostics.Report:
        if self._viewer is None:
            return diagnostics.ERROR, self._description.problem, {}
        return diagnostics.OK, f"shown at {self._viewer.url}", {"visuals left out": len(self._viewer.left_out)}


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(PageNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
