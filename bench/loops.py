# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.loops delta gough_stewart --minutes 10`: loops as people run them, beside bare threads of C.

A robot runs its default motion with `pkm run`, without a page: its control loop is judged by what its node publishes
once a second. Beside it, in the same minutes, a thread of C on each processor sleeps and wakes at the same rate with a
priority just above: what these miss, this computer misses. "Beyond C" are deadlines that the loop missed in seconds in
which the threads of C, on whatever processor, missed fewer: those that the loop owes to itself. An ordinary process
wakes every 10 ms, and the threads with a real-time priority are looked at every two seconds. With `--busy N`, N
processes that only compute run beside it all.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.node import Node

from bench.running import running
from bench.tables import table
from pkm_bringup.nodes.motion_run import loop_figures
from pkm_control.ros.motion_messages import seconds as seconds_of
from pkm_description.ros import topics
from pkm_interfaces.msg import LoopStatistics as LoopMessage
from pkm_runtime.fixed_rate import LoopStatistics, statistics
from pkm_runtime.scheduling import PRIORITY

Array = NDArray[np.float64]

RATE = 1000.0  # Hz
_STARTS = 60.0  # s, until a robot's loop is heard of
_SETTLES = 10.0  # s, that do not count: planning and the way to the start of the motion
_ENDS = 60.0  # s, with its report
_MANY = 10**6  # cycles: more than there is time for
_LOOK_EVERY = 2.0  # s, at the threads with a real-time priority
_BESIDE = 0.01  # s, by which a second of the loop's is wider for the threads of C: both are late by as much at its ends
_FIFO, _KERNEL = "1", "2"  # a scheduling policy, and the parent of the kernel's threads
_PARENT, _TIMES, _POLICY = 1, slice(11, 13), 38  # fields of /proc/*/stat after the name


def main() -> None:
    """Run what is asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="+")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each robot's loop (default: 10)")
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
            rows += [row(*one) for one in robot(name, 60.0 * given.minutes, given.realtime_priority, given.rate)]
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


def row(name: str, loop: LoopStatistics) -> tuple[str, ...]:
    """Cells of the table."""
    share = loop.missed / max(loop.deadlines, 1)
    return (
        name,
        f"{loop.deadlines / loop.wanted_rate / 60.0:.1f}",
        f"{loop.rate:.2f}",
        f"{loop.missed} of {loop.deadlines} ({share:.2%})",
        *(f"{1e3 * value:.3f}" for value in (loop.deviation_p50, loop.deviation_p99, loop.deviation_max)),
    )


def robot(name: str, seconds: float, priority: str, rate: float) -> list[tuple[str, LoopStatistics]]:
    """The loop of a robot that runs its default motion, threads of C beside it, and an ordinary process.

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
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/output", "w+b") as output:
        with running([*command, "--report", folder], _ENDS, output) as process, _node("watch") as node:
            figures: list[LoopMessage] = []
            node.create_subscription(LoopMessage, "hardware/loop_statistics", figures.append, topics.EVENTS)
            _spin(node, _STARTS, lambda: bool(figures))
            _spin(node, _SETTLES)
            figures.clear()
            above = str(int(priority) + 1 if int(priority) else 0)  # at the same priority each would wait for the other
            program, processors = _compiled(folder), sorted(os.sched_getaffinity(0))
            words_of = [[program, str(rate), str(seconds), above, str(cpu)] for cpu in processors]
            bare = [subprocess.Popen(one, stdout=subprocess.PIPE) for one in words_of]
            ordinary = subprocess.Popen([sys.executable, "-c", _ORDINARY, str(seconds)], stdout=subprocess.PIPE)
            offset, before, stolen = time.time() - time.monotonic(), _processor_time(process.pid), _stolen()
            with _looking() as seen:
                began = time.monotonic()
                _spin(node, seconds, lambda: process.poll() is not None)
            lasted = time.monotonic() - began
            used, stolen = (_processor_time(process.pid) - before) / lasted, _stolen() - stolen
            *wakes, late = (np.array(one.communicate()[0].split(), dtype=np.float64) for one in (*bare, ordinary))
        output.seek(0)
        said = output.read().decode(errors="replace")
    found = loop_figures(figures, -math.inf, math.inf)
    if found is None or lasted < seconds:
        raise SystemExit(f"{name}: its run ended, or its loop began anew, after {lasted:.0f} s:\n{said}")
    beyond = _beyond(figures, [offset + one for one in wakes], rate)
    print(f"{name}: its processes took {used:.2f} of a core; its loop missed {beyond} deadlines beyond C.")
    print(f"  An ordinary process that wakes every 10 ms was late by {1e3 * np.median(late):.2f} ms in the median,")
    print(
        f"  {1e3 * late.max():.1f} ms at most; the host took {stolen:.1f} s of the processors' time from this computer."
    )
    print(f"  Under FIFO beside the kernel's, in looks every {_LOOK_EVERY:g} s: {dict(seen)}", flush=True)
    return [(name, found)] + [
        (f"thread of C, processor {cpu}", statistics(one, rate)) for cpu, one in zip(processors, wakes, strict=True)
    ]


_ORDINARY = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
late = []
while (now := time.monotonic()) < end:
    time.sleep(0.01)
    late.append(time.monotonic() - now - 0.01)
print(*late)
"""


def _beyond(figures: Sequence[LoopMessage], wakes: Sequence[Array], rate: float) -> int:
    """How many deadlines a loop missed in its seconds beyond those that threads of C missed in the same ones.

    Args:
        figures: of the loop, once a second.
        wakes: of each thread [s], on the clock of the figures' stamps.
        rate: of all [Hz].
    """
    missed = np.unique(np.concatenate([_missed(one, rate) for one in wakes]))
    found = 0
    for one, other in pairwise(figures):
        begin, end = seconds_of(one.header.stamp) - _BESIDE, seconds_of(other.header.stamp) + _BESIDE
        by_c = int(((missed >= begin * rate) & (missed <= end * rate)).sum())
        found += max(0, int(other.missed_deadlines) - int(one.missed_deadlines) - by_c)
    return found


def _missed(wakes: Array, rate: float) -> Array:
    """Deadlines, in periods, that a thread of C met more than half a period late."""
    due = np.arange(len(wakes)) / rate
    due += (wakes - due).min()
    return np.round(due[wakes - due > 0.5 / rate] * rate)


def _compiled(folder: str) -> str:
    """Compile the thread of C into a folder; return the program."""
    program = f"{folder}/fifo_timer"
    source = Path(__file__).with_name("fifo_timer.c")
    subprocess.check_call(["cc", "-O2", "-o", program, str(source)])
    return program


def _statistics_of(pattern: str) -> Iterator[tuple[int, str, list[str]]]:
    """Number, name and further fields of the processes, or threads, whose files in /proc match."""
    for file in Path("/proc").glob(pattern):
        with contextlib.suppress(OSError):
            name, _, rest = file.read_text().rpartition(")")
            yield int(file.parent.name), name.partition("(")[2], rest.split()


def _processor_time(root: int) -> float:
    """What a process and all that descend from it have used so far [s]."""
    processes = {number: fields for number, _, fields in _statistics_of("[0-9]*/stat")}

    def descends(number: int) -> bool:
        while number in processes and number != root:
            number = int(processes[number][_PARENT])
        return number == root

    used = sum(int(ticks) for number in processes if descends(number) for ticks in processes[number][_TIMES])
    return used / os.sysconf("SC_CLK_TCK")


def _stolen() -> float:
    """Time that the processors of a virtual machine wanted and did not get [s], since it started."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _looking() -> Iterator[Counter[str]]:
    """Look at the threads of all processes meanwhile; counts looks by the names of those under SCHED_FIFO."""
    seen: Counter[str] = Counter()
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_EVERY):
            seen["looks"] += 1
            for _, name, fields in _statistics_of("[0-9]*/task/[0-9]*/stat"):
                if fields[_POLICY] == _FIFO and fields[_PARENT] != _KERNEL:
                    seen[name] += 1

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


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


if __name__ == "__main__":
    main()
