# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.loops delta gough_stewart --minutes 10`: loops as people run them, beside a bare thread of C.

A robot runs its default motion with `pkm run`, without a page: its control loop is judged by what its node publishes
once a second: p50 is the median of those of single seconds, p99 the greatest. Beside it, in the same minutes, a thread
of C sleeps and wakes at the same rate with a priority just above: what it misses, this computer misses. Before and
after, two bare nodes run, each a process: a timer of rclpy publishes states of as many joints at the same rate, the
other answers each with a command. Deviations are those of single periods from the wanted one. With `--busy N`, N
processes that only compute run beside it all.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

from bench.running import running
from bench.tables import table
from pkm_bringup.nodes.motion_player.run_streams import loop_figures
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.msg import LoopStatistics as LoopMessage
from pkm_runtime.fixed_rate import PRIORITY, LoopStatistics, statistics

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
        help=f"SCHED_FIFO priority of the robot's loop (default: {PRIORITY})",
    )
    parser.add_argument("--rate", type=float, default=RATE, help=f"of the loops [Hz] (default: {RATE:g})")
    parser.add_argument(
        "--busy", type=int, default=0, metavar="N", help="processes that compute beside it (default: 0)"
    )
    given = parser.parse_args()
    rows = []
    head = ("loop", "minutes", "rate [Hz]", "deadlines missed", "p50 [ms]", "p99 [ms]", "max [ms]")
    with _busy(given.busy):
        for name in given.robots:
            joints = len(load_mechanism(name).actuated_joints)
            if given.bare > 0.0:
                rows.append(_row("bare timer, before", bare(joints, 60.0 * given.bare)))
            rows += [_row(*one) for one in robot(name, 60.0 * given.minutes, given.realtime_priority, given.rate)]
            if given.bare > 0.0:
                rows.append(_row("bare timer, after", bare(joints, 60.0 * given.bare)))
            print(table(head, rows), flush=True)


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """Have processes compute meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _row(name: str, loop: LoopStatistics) -> tuple[str, ...]:
    share = loop.missed / max(loop.deadlines, 1)
    return (
        name,
        f"{loop.deadlines / loop.wanted_rate / 60.0:.1f}",
        f"{loop.rate:.2f}",
        f"{loop.missed} of {loop.deadlines} ({share:.2%})",
        *(f"{1e3 * value:.3f}" for value in (loop.deviation_p50, loop.deviation_p99, loop.deviation_max)),
    )


def robot(name: str, seconds: float, priority: str, rate: float) -> list[tuple[str, LoopStatistics]]:
    """The loop of a robot that runs its default motion, a thread of C beside it, and an ordinary process.

    Args:
        name: of the robot.
        seconds: to watch.
        priority: of its loop.
        rate: of its loop [Hz].

    Returns:
        Names and figures.
    """
    words = ["run", name, "--no-page", "--cycles", str(_MANY), "--realtime-priority", priority, "--no-stay"]
    words += ["--rate", str(rate)]
    command = [sys.executable, "-m", "pkm_bringup.cli", *words]
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
        above = str(int(priority) + 1 if int(priority) else 0)  # at the same priority each would wait for the other
        fifo = subprocess.Popen([_compiled(reports), str(rate), str(seconds), above], stdout=subprocess.PIPE)
        ordinary = subprocess.Popen([sys.executable, "-c", _ORDINARY, str(seconds)], stdout=subprocess.PIPE)
        before = _processor_time()
        _spin(node, seconds)
        used = (_processor_time() - before) / seconds
        wakes, late = (np.array(process.communicate()[0].split(), dtype=np.float64) for process in (fifo, ordinary))
    found = loop_figures(figures, -math.inf, math.inf)
    if found is None:
        raise SystemExit(f"{name}: its loop began anew, or stood still")
    print(f"{name}: its processes took {used:.2f} of a core; an ordinary process that wakes every 10 ms was late by")
    print(f"  {1e3 * np.median(late):.2f} ms in the median, {1e3 * late.max():.1f} ms at most", flush=True)
    return [(name, found), (f"thread of C beside {name}", statistics(wakes, rate))]


_ORDINARY = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
late = []
while (now := time.monotonic()) < end:
    time.sleep(0.01)
    late.append(time.monotonic() - now - 0.01)
print(*late)
"""


def _compiled(folder: str) -> str:
    """Compile the thread of C into a folder; return the program."""
    program = f"{folder}/fifo_timer"
    source = Path(__file__).with_name("fifo_timer.c")
    subprocess.check_call(["cc", "-O2", "-o", program, str(source)])
    return program


def _processor_time() -> float:
    """What the processes of the running robot have used so far [s]: those whose names begin with `pkm `."""
    used = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = file.read_text().rpartition(")")
            if "(pkm " in name:
                used += sum(int(ticks) for ticks in rest.split()[11:13])
    return used / os.sysconf("SC_CLK_TCK")


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
