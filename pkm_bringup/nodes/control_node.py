# SPDX-License-Identifier: Apache-2.0
"""The nodes `hardware` and `controller` in one process, and their one loop in a process of its own.

Between machine and controller is a call, not a topic. States, commands and references are published at their own rates.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

from rclpy.node import Node

from pkm_bringup.command_line.measured import say_drives_may_be_on
from pkm_bringup.nodes.controller_node import ControllerNode
from pkm_bringup.nodes.hardware_node import HardwareNode
from pkm_bringup.nodes.shared_loop import SharedLoop
from pkm_description.ros.process import run_nodes
from pkm_runtime.child_processes import ENDING
from pkm_runtime.scheduling import ask_for_short_slices


def main() -> int:
    """Entry point."""
    shared = SharedLoop()  # forked from here, before there are other threads
    ask_for_short_slices()  # for the threads to come: a stop gets through soon, whatever else runs

    def make() -> Iterator[Node]:
        yield ControllerNode(shared)
        yield HardwareNode(shared)

    code = 1
    try:
        code = run_nodes(make)
    finally:
        for number in ENDING:  # what is left takes a few seconds at most, and must be finished
            signal.signal(number, signal.SIG_IGN)
        if warning := shared.end():
            if not say_drives_may_be_on(warning):
                print(f"pkm control: {warning}", file=sys.stderr, flush=True)
            code = code or 1
    return code
