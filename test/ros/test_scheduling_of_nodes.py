# SPDX-License-Identifier: Apache-2.0
"""Which threads of a node's process go before ordinary ones: the loop's alone, and none where it is not permitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

NODE = """
import json, os, sys, threading, time
from pathlib import Path
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from pkm_bringup.nodes.node_parts import loop_scheduling
from pkm_bringup.nodes.node_parts import declare_settings

def refuse(*_):
    raise PermissionError(1, "Operation not permitted")

if sys.argv[1] == "refused":
    os.sched_setscheduler = refuse
rclpy.init(args=["--ros-args", "-p", f"realtime_priority:={0 if sys.argv[1] == 'off' else 40}"])
node = Node("loop")
settings = declare_settings(node, {"realtime_priority": "realtime_priority"})
scheduling = loop_scheduling(node, settings["realtime_priority"])
over = threading.Event()

def loop():
    scheduling.request()
    over.wait()

thread = threading.Thread(target=loop)
thread.start()
executor = SingleThreadedExecutor()
executor.add_node(node)
end = time.monotonic() + 1.0
while time.monotonic() < end:
    executor.spin_once(timeout_sec=0.1)

def of(number):
    return os.sched_getscheduler(number) & ~os.SCHED_RESET_ON_FORK, os.sched_getparam(number).sched_priority

others = {
    path.read_text().strip(): of(int(path.parent.name))
    for path in Path("/proc/self/task").glob("*/comm")
    if int(path.parent.name) != thread.native_id
}
print(json.dumps([of(thread.native_id), others]), flush=True)
over.set()
node.destroy_node()
rclpy.shutdown()
"""
ORDINARY = [os.SCHED_OTHER, 0]


def policies(how: str) -> tuple[list[int], dict[str, list[int]], str]:
    """Policy and priority of the loop's thread, of all others by name, and what was logged."""
    done = subprocess.run([sys.executable, "-c", NODE, how], capture_output=True, text=True, timeout=60.0, check=True)
    loop, others = json.loads(done.stdout.splitlines()[-1])
    return loop, others, done.stdout + done.stderr


def permitted() -> bool:
    """Whether a thread here may be raised; asked in one that ends."""
    seen: list[bool] = []

    def ask() -> None:
        try:
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(41))
        except OSError:
            return
        seen.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return bool(seen)


pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="on a single core nothing goes before the others")


@pytest.mark.skipif(not permitted(), reason="real-time priorities are not permitted here")
def test_the_loop_alone_goes_first() -> None:
    loop, others, _ = policies("permitted")
    assert loop == [os.SCHED_FIFO, 40]
    assert any(name.startswith("dds.") for name in others)
    assert all(one == ORDINARY for one in others.values())


@pytest.mark.by_day("refused")
@pytest.mark.parametrize("how", ["off", "refused"])
def test_all_stay_ordinary_where_it_is_not_wanted_or_not_permitted(how: str) -> None:
    loop, others, said = policies(how)
    assert loop == ORDINARY
    assert all(one == ORDINARY for one in others.values())
    assert ("no real-time scheduling (Operation not permitted)" in said) == (how == "refused")
