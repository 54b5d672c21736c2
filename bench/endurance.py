# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.endurance [robot] [--requests N] [--messages N]`: a kinematics node under very many requests.

Requests for inverse and forward kinematics in turn, one pose each: half of them anywhere in and around the workspace,
the others extreme: not finite, of 1e300, quaternions of no length, no numbers at all, too many, an unknown joint. Each
answer has to come, and whatever is CONVERGED has to close the robot's loops, with the platform where the pose says, by
the closure equations of the description, which the node does not use. Then measured states as fast as they go, in
packets that the node has answered before the next comes: the newest of each has to be answered. The node's memory is
read on the way.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from pkm_description import load_mechanism
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, Mechanism
from pkm_description.ros import messages, topics
from pkm_description.ros.transport import transport_environment
from pkm_description.rotations import transform_from_pose
from pkm_interfaces.msg import PlatformState, SolveStatus
from pkm_interfaces.srv import SolveForward, SolveInverse
from pkm_kinematics import Kinematics

CLOSED = 1e-9  # m, and of a direction: what rounding leaves of a closed loop, and of a pose, is a thousand times less
NAMESPACE = "/endurance"
PACKET = 100  # messages: what the receive buffer of a socket (208 KiB by default) holds while nobody reads
_PATIENCE = 20.0  # s
_EXTREME = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-320, 0.0, 1e6)


class Judge:
    """Whether an answer is a configuration of the robot, by the closure equations of its description."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)

    def gap(self, names: list[str], positions: Array, pose: Array) -> float:
        """The largest distance of a loop from closed, and of the platform from its pose [m, or m times rad].

        Args:
            names: of the joints.
            positions: of them, with as many numbers as each has degrees of freedom [rad or m].
            pose: of the platform (7,).

        Returns:
            The gap.
        """
        q, start = np.zeros(self.model.size), 0
        for name in names:
            part = self.model.slices.get(name)
            size = self.mechanism.joint_named[name].type.dof
            if part is not None:
                q[part] = positions[start : start + size]
            start += size
        target = transform_from_pose(np.concatenate((pose[:3], pose[3:] / np.linalg.norm(pose[3:]))))
        open_, _ = self.model.closure(q)
        away, _ = self.model.pose_error(q, self.mechanism.platform_link, target)
        return float(self.model.length * max(np.abs(open_).max(initial=0.0), np.abs(away).max()))


class Requests:
    """Random requests, and what became of them."""

    def __init__(self, kinematics: Kinematics, length: float, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.kinematics = kinematics
        self.home = np.asarray(kinematics.home)
        self.actuated = np.asarray(kinematics.inverse(self.home).actuated)
        self.names = list(kinematics.actuated_names)
        self.length = length

    def pose(self) -> Array:
        """A pose, in the motion space or not, or none at all."""
        if self.random.random() < 0.5:
            names = self.kinematics.task.names
            spread = self.random.choice([0.05, 0.3, 1.0])
            if names and self.kinematics.task.constant:
                twist = self.kinematics.task.subspace @ self.random.normal(size=len(names))
                pose = self.home.copy()
                pose[:3] += spread * self.length * twist[:3]
                return pose
            return self.home + np.r_[spread * self.length * self.random.normal(size=3), np.zeros(4)]
        pose = self.home + self.random.normal(size=7)
        pose[self.random.integers(7)] = self.random.choice(_EXTREME)
        return pose

    def state(self) -> JointState:
        """Positions of the drives, or something else."""
        values = self.actuated + self.random.choice([0.01, 0.3, 3.0]) * self.random.normal(size=len(self.actuated))
        names = list(self.names)
        if self.random.random() < 0.5:
            kind = self.random.integers(4)
            if kind == 0:
                values[self.random.integers(len(values))] = self.random.choice(_EXTREME)
            elif kind == 1:
                names[0] = "no such joint"
            elif kind == 2:
                values = values[:-1]
            else:
                names, values = [*names, names[0]], np.r_[values, 0.0]
        return JointState(name=names, position=values.tolist())


def memory(pid: int) -> float:
    """Resident memory of a process [MB]."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def ask(executor: SingleThreadedExecutor, client: Any, request: Any) -> Any:
    """The answer of a service, None where none comes."""
    future, end = client.call_async(request), time.monotonic() + _PATIENCE
    while not future.done() and time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)  # spin_until_future_complete takes 20 us longer with each call
    return future.result() if future.done() else None


def send_requests(
    executor: SingleThreadedExecutor, node: Node, kinematics: Kinematics, pid: int, count: int
) -> Counter[str]:
    """Send requests; what became of them, and the node's memory on the way."""
    judge, found = Judge(kinematics.mechanism), Counter[str]()
    requests = Requests(kinematics, judge.model.length, 1)
    inverse = node.create_client(SolveInverse, topics.SOLVE_INVERSE)
    forward = node.create_client(SolveForward, topics.SOLVE_FORWARD)
    for client in (inverse, forward):
        if not client.wait_for_service(120.0):
            raise SystemExit("the kinematics node does not answer")
    began = told = time.monotonic()
    worst, remembered = 0.0, []
    for k in range(count):
        if k % 2:
            state = requests.state()
            answer = ask(executor, forward, SolveForward.Request(joints=[state]))
            poses = [] if answer is None else [messages.pose_of(one.pose) for one in answer.solutions]
        else:
            pose = requests.pose()
            answer = ask(executor, inverse, SolveInverse.Request(poses=[messages.to_pose(pose)]))
            poses = [] if answer is None else [pose for _ in answer.solutions]
        if answer is None:
            found["lost"] += 1
            continue
        found[f"status {answer.status.code}"] += 1
        for one, at in zip(answer.solutions, poses, strict=True):
            if one.status.code != SolveStatus.CONVERGED:
                continue
            gap = judge.gap(list(answer.joint_names), np.asarray(one.positions), at)
            worst = float(np.maximum(worst, gap))
            found["converged"] += 1
            found["wrong"] += not gap < CLOSED
        if time.monotonic() - told > 5.0 or k in (count // 10, count - 1):
            told = time.monotonic()
            remembered.append((k, memory(pid)))
            print(
                f"  {k + 1} of {count} requests, {(k + 1) / (told - began):.0f}/s, {remembered[-1][1]:.1f} MB",
                flush=True,
            )
    print(f"  {dict(found)}; largest gap of what converged {worst:.1e} m")
    return found


def send_messages(executor: SingleThreadedExecutor, node: Node, kinematics: Kinematics, pid: int, count: int) -> int:
    """Send measured states in packets; how many packets were not answered."""
    names, home = list(kinematics.actuated_names), np.asarray(kinematics.home)
    actuated = np.asarray(kinematics.inverse(home).actuated)
    publisher = node.create_publisher(JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_OUT)
    heard: list[PlatformState] = []
    node.create_subscription(PlatformState, topics.PLATFORM_STATE, heard.append, topics.STREAM_IN)
    while not publisher.get_subscription_count() or not node.count_publishers(topics.PLATFORM_STATE):
        executor.spin_once(timeout_sec=0.1)
    lost, began, told = 0, time.monotonic(), time.monotonic()
    for packet in range(count // PACKET):
        for k in range(PACKET):
            number = packet * PACKET + k
            values = actuated + 1e-3 * np.sin(1e-3 * number)
            message = JointState(name=names, position=values.tolist(), velocity=[0.0] * len(names))
            message.header.stamp.sec, message.header.stamp.nanosec = (
                1_700_000_000 + number // 1000,
                number % 1000 * 10**6,
            )
            publisher.publish(message)
        newest, end = (message.header.stamp.sec, message.header.stamp.nanosec), time.monotonic() + _PATIENCE
        heard.clear()
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            stamps = [(state.header.stamp.sec, state.header.stamp.nanosec) for state in heard]
            if newest in stamps:
                break
        else:
            lost += 1
        if time.monotonic() - told > 5.0 or packet == count // PACKET - 1:
            told = time.monotonic()
            print(
                f"  {(packet + 1) * PACKET} of {count} messages, {memory(pid):.1f} MB, {lost} packets lost", flush=True
            )
    print(f"  {count / (time.monotonic() - began):.0f} messages a second")
    return lost


def main() -> int:
    """Entry point: 0 where nothing was wrong or lost."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("robot", nargs="?", default="delta")
    p.add_argument("--requests", type=int, default=100_000)
    p.add_argument("--messages", type=int, default=1_000_000)
    given = p.parse_args()
    os.environ.update(transport_environment(os.environ))
    mechanism = load_mechanism(given.robot)
    kinematics = Kinematics(mechanism)
    words = ["--ros-args", "-r", f"__ns:={NAMESPACE}"]
    server = subprocess.Popen([sys.executable, "-m", "pkm_bringup.start", "kinematics_node", *words])
    rclpy.init()
    node, executor = Node("endurance", namespace=NAMESPACE), SingleThreadedExecutor()
    executor.add_node(node)
    try:
        description = node.create_publisher(String, topics.ROBOT_DESCRIPTION, topics.LATCHED)
        description.publish(String(data=mechanism.urdf))
        print(f"{given.robot}:")
        found = send_requests(executor, node, kinematics, server.pid, given.requests)
        lost = send_messages(executor, node, kinematics, server.pid, given.messages)
    finally:
        server.terminate()
        server.wait(20.0)
        rclpy.try_shutdown()
    return int(bool(found["wrong"] or found["lost"] or lost))


if __name__ == "__main__":
    raise SystemExit(main())
