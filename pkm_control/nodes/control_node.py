# SPDX-License-Identifier: Apache-2.0
"""The nodes `hardware` and `controller` in one process, and their one loop in a process of its own.

Between machine and controller there is a call, not a topic. States, commands and references are published for whoever
listens, at a rate of their own.
"""

from __future__ import annotations

from rclpy.node import Node

from pkm_control.loop.scheduling import ask_for_short_slices
from pkm_control.nodes.controller_node import ControllerNode
from pkm_control.nodes.hardware_node import HardwareNode
from pkm_control.nodes.shared_loop import SharedLoop
from pkm_description.ros.process import run_nodes


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    shared = SharedLoop()  # forked from here, before there are other threads
    ask_for_short_slices()  # of this process's threads to come: a stop is heard soon, whatever else runs

    def make() -> list[Node]:
        return [ControllerNode(shared), HardwareNode(shared)]

    try:
        return run_nodes(make, args)
    finally:
        shared.end()


if __name__ == "__main__":
    raise SystemExit(main())
