# SPDX-License-Identifier: Apache-2.0
"""The main job as a command without ROS: controller, simulated machine and browser page in real time, then the report.

    python -m pkm_control.run.simulate_command delta
    python -m pkm_control.run.simulate_command my_robot.urdf.xacro --motion my_motion.csv --cycles 5 --no-page

`pkm_control.run.runner` and the launch files do the same over the ROS nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pkm_control.command_line.one_process import run_in_one_process
from pkm_control.command_line.outputs import check_host, check_report
from pkm_control.run.simulate_options import parser, read_options
from pkm_control.run.simulated_job import simulate

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
    return run_in_one_process(
        options.robot, options.xacro_args, lambda mechanism, interruption: simulate(mechanism, options, interruption)
    )


if __name__ == "__main__":
    raise SystemExit(main())
