# SPDX-License-Identifier: Apache-2.0
"""Every robot by the real controller_manager: one loop per drive, or our controller through a forward controller.

`python -m bench.ros2_control_stack --write docs/ros2_control_stack.md` makes the table, robot by robot, and needs a
sourced ROS 2 installation with ros2_control in which this suite is built. Each cell is a launch of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from bench.joint_loops import NATURAL_FREQUENCY, RATES, path_beside_home
from bench.tables import table
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.motion.trajectory import TrajectorySample
from pkm_control.nodes.motion_messages import duration_message, trajectory_message
from pkm_control.run.ros2_control import FORWARD
from pkm_description import load_mechanism
from pkm_description.errors import PkmError
from pkm_description.mechanism import Array
from pkm_description.ros import messages, topics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState
from pkm_kinematics import Kinematics

ROBOTS = ("delta", "gough_stewart", "cable_8", "tripod_3prs")
WAYS = {  # launch arguments
    "JTC, effort": {"controllers": "joint_trajectory_controller"},
    "JTC, position": {"controllers": "joint_trajectory_controller", "command_interface": "position"},
    "platform controller": {"controllers": FORWARD, "motion": "none"},
}
_MARK = "<!-- measured -->"
_PATIENCE = 240.0  # s, for a stack to be ready: kernels of a robot that has not run yet are compiled
_HOLD = 2.0  # s, at home
_POINTS = 50  # a second, of the trajectory that is sent
_ROUNDING = 1e-7  # rad or m


@dataclass(frozen=True)
class Seen:
    """What a launch came to: largest errors of a driven joint [rad or m] while held, on the way and in the end.

    `rate`: of the commands that the machine got [Hz]. `why_not`: the reason where it was refused, or failed.
    """

    held: float = np.nan
    moved: float = np.nan
    ended: float = np.nan
    rate: float = np.nan
    unit: str = ""
    why_not: str = ""

    def __str__(self) -> str:
        """For a cell of the table."""
        if self.why_not:
            return self.why_not
        numbers = ", ".join(f"{1e3 * value:.2g}" if value > _ROUNDING else "0" for value in self._errors())
        return f"{numbers} {self.unit}; {self.rate:.0f} Hz"

    def _errors(self) -> tuple[float, float, float]:
        return self.held, self.moved, self.ended


class Client:
    """Hears a launched robot and moves it.

    Args:
        name: of the robot.
        namespace: in which it runs.
    """

    def __init__(self, name: str, namespace: str) -> None:
        self.mechanism = load_mechanism(name)
        self.kinematics = Kinematics(self.mechanism)
        self.names = list(self.kinematics.actuated_names)
        self.home = np.asarray(self.kinematics.inverse(self.kinematics.home).actuated)
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = Node("bench", context=self.context, namespace=namespace)
        self.states: list[Array] = []
        self.commands = 0
        self.errors: list[Array] = []  # of the driven joints, against the reference
        self.active = False
        listen = self.node.create_subscription
        self._keep = [
            listen(JointState, topics.HARDWARE_STATES, self._hear, topics.STREAM_IN),
            listen(JointState, topics.HARDWARE_COMMANDS, self._count, topics.STREAM_RECORD),
            listen(ControllerState, topics.CONTROLLER_STATE, self._compare, topics.STREAM_IN),
        ]
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        threading.Thread(target=self._spin, daemon=True).start()

    def _spin(self) -> None:
        while self.context.ok():
            self.executor.spin_once(timeout_sec=0.1)

    def _hear(self, message: JointState) -> None:
        self.states.append(messages.joint_values(message, self.names, what="state"))

    def _count(self, message: JointState) -> None:
        values = message.effort or message.position
        self.active = bool(len(values)) and bool(np.all(np.isfinite(values)))
        self.commands += self.active

    def _compare(self, message: ControllerState) -> None:
        """Error of the platform, as that of the driven joints."""
        off = message.position_error, message.rotation_error
        twist = np.concatenate([messages.vector_of(one) for one in off])
        self.errors.append(np.abs(self.kinematics.inverse_jacobian(self.kinematics.home) @ twist))

    def in_executor(self, call: Callable[[], Any]) -> Any:
        """Return what a call returns that is made in the thread that spins."""
        task = self.executor.create_task(call)
        self.wait(task.done)
        return task.result()

    @staticmethod
    def wait(condition: Callable[[], Any], patience: float = 60.0) -> None:
        """Wait until a condition holds.

        Raises:
            TimeoutError: it does not come to hold in time.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("waited in vain")
            time.sleep(0.01)

    def send(self, action_type: Any, name: str, goal: Any) -> Any:
        """Send a goal and return its result."""
        client = ActionClient(self.node, action_type, name)
        self.wait(client.server_is_ready)
        sent = self.in_executor(lambda: client.send_goal_async(goal, feedback_callback=self._feedback))
        self.wait(sent.done)
        if not sent.result().accepted:
            raise PkmError("the goal was not accepted")
        done = self.in_executor(sent.result().get_result_async)
        self.wait(done.done)
        return done.result().result

    def _feedback(self, message: Any) -> None:
        error = getattr(message.feedback, "error", None)  # the trajectory controller's
        if error is not None and len(error.positions):
            self.errors.append(np.abs(error.positions))

    def close(self) -> None:
        """End."""
        rclpy.shutdown(context=self.context)
        self.executor.shutdown(timeout_sec=2.0)


def try_out(name: str, way: str, rate: float) -> Seen:
    """Launch a robot, hold it, move it beside home.

    Args:
        name: of the robot.
        way: one of `WAYS`.
        rate: of machine and controller manager [Hz].

    Returns:
        What was seen.
    """
    namespace = f"/{name}_{round(rate)}_{re.sub(r'[^a-z]', '', way.lower())}"
    with launched(name, rate, namespace, WAYS[way]) as (process, log):
        client = Client(name, namespace)
        try:
            client.wait(lambda: client.active or process.poll() is not None, _PATIENCE)
            if process.poll() is not None:
                return Seen(why_not=_refusal(log.read_text(encoding="utf-8")))
            return _measure(client, way)
        except (TimeoutError, PkmError) as error:
            return Seen(why_not=f"failed: {error}")
        finally:
            client.close()


def _measure(client: Client, way: str) -> Seen:
    """Hold and move."""
    begun, counted = time.monotonic(), client.commands
    time.sleep(_HOLD)
    held = np.abs(np.array(client.states) - client.home).max()
    rate = (client.commands - counted) / (time.monotonic() - begun)
    units = sorted({"mrad" if one == "rad" else "mm" for one in ActuatorLimits.of(client.mechanism).length_units})
    path = path_beside_home(client.kinematics, _POINTS)
    still = sum(bool(np.array_equal(positions, path[0][0])) for positions, _ in path) - 1
    client.errors = []
    result = (_by_platform if way == "platform controller" else _by_joints)(client, path[max(still, 0) :])
    if result.error_code:
        return Seen(why_not=f"failed: {result.error_string or result.error_code}; held within {1e3 * held:.2g}")
    time.sleep(0.5)
    ended = np.abs(client.states[-1] - path[-1][0]).max()
    return Seen(held, float(np.max(client.errors)), float(ended), rate, " or ".join(units))


def _by_joints(client: Client, path: list[tuple[Array, Array]]) -> Any:
    from control_msgs.action import FollowJointTrajectory

    goal = FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = client.names
    for k, (positions, rates) in enumerate(path, start=1):
        when = duration_message(k / _POINTS)
        goal.trajectory.points.append(JointTrajectoryPoint(positions=positions, velocities=rates, time_from_start=when))
    return client.send(FollowJointTrajectory, "joint_trajectory_controller/follow_joint_trajectory", goal)


def _by_platform(client: Client, path: list[tuple[Array, Array]]) -> Any:
    """The same motion of the drives, told as that of the platform."""
    kinematics = client.kinematics
    poses = np.array([kinematics.forward(positions).pose for positions, _ in path])
    twists = kinematics.platform_twist(poses, np.array([rates for _, rates in path]))
    accelerations = np.gradient(twists, 1.0 / _POINTS, axis=0)
    twists[[0, -1]] = accelerations[[0, -1]] = 0.0
    sample = TrajectorySample(np.arange(len(path)) / _POINTS, poses, twists, accelerations)
    goal = FollowPlatformTrajectory.Goal(trajectory=trajectory_message(sample, client.mechanism.base_link))
    return client.send(FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY, goal)


@contextmanager
def launched(
    name: str, rate: float, namespace: str, arguments: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A robot of the gallery under `ros2 launch`, and its log."""
    knobs = {"robot": name, "rate": f"{rate:g}", "namespace": namespace, "natural_frequency": f"{NATURAL_FREQUENCY:g}"}
    knobs |= {"ros2_control": "true", "rviz": "false", **arguments}
    command = ["ros2", "launch", "pkm_control", "pkm.launch.py", *(f"{key}:={value}" for key, value in knobs.items())]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=folder
            )
        try:
            yield process, log
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30.0)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _refusal(log: str) -> str:
    """What a launch that ended by itself said last."""
    said = [line for line in log.splitlines() if "Caught exception in launch" in line or "ERROR" in line]
    return "refused: " + re.sub(r"^.*?\): |^.*?launch.*?: ", "", said[0] if said else "the launch ended").strip()


def main() -> None:
    """Measure, print, and write where it is wanted."""
    parser = argparse.ArgumentParser(prog="python -m bench.ros2_control_stack", description=__doc__)
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--write", type=Path, help="page of the docs whose table is replaced")
    options = parser.parse_args()
    header = ["robot", *(f"{way}, {rate:g} Hz" for way in WAYS for rate in RATES)]
    rows = []
    for name in options.robots:
        rows.append([name, *(str(try_out(name, way, rate)) for way in WAYS for rate in RATES)])
        print(rows[-1], flush=True)
    text = table(header, rows)
    print(text)
    if options.write:
        before = options.write.read_text(encoding="utf-8").split(_MARK)[0]
        options.write.write_text(f"{before}{_MARK}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
