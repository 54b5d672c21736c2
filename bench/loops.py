# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.loops delta gough_stewart --minutes 10`: loops at 1 kHz as people run them, and a bare rclpy timer.

A robot runs its default motion with `pkm run`, without a page: the simulated machine's loop is the one that is judged,
by what its node publishes once a second: p50 is the median of those of single seconds, p99 the greatest. Before and
after it two bare nodes run, each a process: a timer of rclpy publishes states of as many joints at the same rate, the
other answers each with a command. Deviations are those of single periods from the wanted one.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

from bench.running import running
from bench.tables import table
from pkm_control.loop.fixed_rate import PRIORITY, LoopStatistics, statistics
from pkm_control.nodes.motion_player.loop_figures import loop_figures
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.msg import LoopStatistics as LoopMessage

RATE = 1000.0  # Hz
_STARTS = 60.0  # s, until a robot's loop is heard of
_SETTLES = 10.0  # s, that do not count: planning and the way to the start of the motion
_ENDS = 60.0  # s, with its report
_MANY = 10**6  # cycles: more than there is time for


def main() -> None:
    """Run what is asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each robot's loop (default: 10)")
    parser.add_argument(
        "--bare", type=float, default=1.0, help="minutes of the bare timer, before and after (default: 1)"
    )
    parser.add_argument(
        "--realtime-priority",
        default=str(PRIORITY),
        help=f"SCHED_FIFO priority of the robot's loops (default: {PRIORITY})",
    )
    given = parser.parse_args()
    rows = []
    for name in given.robots:
        joints = len(load_mechanism(name).actuated_joints)
        rows.append(_row("bare timer, before", bare(joints, 60.0 * given.bare)))
        rows.append(_row(name, robot(name, 60.0 * given.minutes, given.realtime_priority)))
        rows.append(_row("bare timer, after", bare(joints, 60.0 * given.bare)))
        head = ("loop", "minutes", "rate [Hz]", "deadlines missed", "p50 [ms]", "p99 [ms]", "max [ms]")
        print(table(head, rows), flush=True)


def _row(name: str, loop: LoopStatistics) -> tuple[str, ...]:
    share = loop.missed / max(loop.deadlines, 1)
    return (
        name,
        f"{loop.deadlines / RATE / 60.0:.1f}",
        f"{loop.rate:.2f}",
        f"{loop.missed} of {loop.deadlines} ({share:.2%})",
        *(f"{1e3 * value:.3f}" for value in (loop.deviation_p50, loop.deviation_p99, loop.deviation_max)),
    )


def robot(name: str, seconds: float, priority: str) -> LoopStatistics:
    """The loop of a robot that runs its default motion.

    Args:
        name: of the robot.
        seconds: to watch.
        priority: of its loops.

    Returns:
        Its figures.
    """
    words = ["run", name, "--no-page", "--cycles", str(_MANY), "--realtime-priority", priority, "--no-stay"]
    command = [sys.executable, "-m", "pkm_control.run.cli", *words]
    with (
        tempfile.TemporaryDirectory() as reports,
        running([*command, "--report", reports], _ENDS),
        _node("watch") as node,
    ):
        figures: list[LoopMessage] = []
        node.create_subscription(LoopMessage, "hardware/loop_statistics", figures.append, topics.EVENTS)
        _spin(node, _STARTS, lambda: bool(figures))
        if not figures:
            raise SystemExit(f"{name}: its loop says nothing")
        _spin(node, _SETTLES)
        figures.clear()
        _spin(node, seconds)
    found = loop_figures(figures, -math.inf, math.inf)
    if found is None:
        raise SystemExit(f"{name}: its loop began anew, or stood still")
    return found


def _spin(node: Node, seconds: float, done: Callable[[], bool] = lambda: False) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not done():
        rclpy.spin_once(node, timeout_sec=min(0.1, max(0.0, end - time.monotonic())))


@contextlib.contextmanager
def _node(name: str) -> Iterator[Node]:
    rclpy.init()
    node = Node(name)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def bare(joints: int, seconds: float) -> LoopStatistics:
    """A timer of rclpy in a process of its own, which another answers.

    Args:
        joints: in each message.
        seconds: how long.

    Returns:
        Its figures.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    timer = context.Process(target=_ticks, args=(joints, seconds, theirs))
    answers = context.Process(target=_answers, args=(joints,), daemon=True)
    answers.start()
    timer.start()
    stamps = ours.recv()
    timer.join()
    answers.terminate()
    answers.join()
    return statistics(stamps, RATE)


def _ticks(joints: int, seconds: float, out: Connection) -> None:
    stamps: list[float] = []
    with _node("bare_timer") as node:
        publisher = node.create_publisher(JointState, "bare_states", topics.STREAM_OUT)
        message = _message(joints)
        node.create_subscription(JointState, "bare_commands", lambda _: None, topics.STREAM_IN)

        def tick() -> None:
            stamps.append(time.monotonic())
            message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)

        node.create_timer(1.0 / RATE, tick)
        end = threading.Timer(seconds, rclpy.shutdown)
        end.start()
        with contextlib.suppress(ExternalShutdownException):
            rclpy.spin(node)
    out.send(np.array(stamps[int(RATE) :]))


def _answers(joints: int) -> None:
    with _node("bare_answer") as node:
        publisher = node.create_publisher(JointState, "bare_commands", topics.STREAM_OUT)
        message = _message(joints)
        node.create_subscription(JointState, "bare_states", lambda _: publisher.publish(message), topics.STREAM_IN)
        with contextlib.suppress(ExternalShutdownException):
            rclpy.spin(node)


def _message(joints: int) -> JointState:
    zeros = [0.0] * joints
    return JointState(name=[f"joint{k}" for k in range(joints)], position=zeros, velocity=zeros, effort=zeros)


if __name__ == "__main__":
    main()
