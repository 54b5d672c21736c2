# SPDX-License-Identifier: Apache-2.0
"""The main job as a command without ROS: controller, simulated machine and browser page in real time, then the report.

    python -m pkm_control.run.simulate_command delta
    python -m pkm_control.run.simulate_command my_robot.urdf.xacro --motion my_motion.csv --cycles 5 --no-page

`pkm_control.run.runner` and the launch files do the same over the ROS nodes.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from pkm_control.command_line.outputs import check_host, check_report
from pkm_control.run.simulate_options import parser, read_options
from pkm_control.run.simulated_job import simulate
from pkm_description import load_mechanism
from pkm_description.errors import PkmError
from pkm_description.load import xacro_arguments

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted."""
    options = read_options(arguments)
    try:
        check_report(options.report)
        if options.page:
            check_host(options.host)
    except ValueError as error:
        print(f"pkm simulate: {error}", file=sys.stderr)
        return 2
    interrupted = threading.Event()

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        interrupted.set()

    previous = {s: signal.signal(s, interrupt) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        mechanism = load_mechanism(options.robot, xacro_arguments(options.xacro_args))
        complete = simulate(mechanism, options, interrupted)
    except PkmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if complete:
        return 0
    return 130 if interrupted.is_set() else 1


if __name__ == "__main__":
    raise SystemExit(main())
