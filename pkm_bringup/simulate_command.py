# SPDX-License-Identifier: Apache-2.0
"""The main job as a command without ROS: controller, simulated machine and browser page in real time, then the report.

    python -m pkm_bringup.simulate_command delta
    python -m pkm_bringup.simulate_command my_robot.urdf.xacro --motion my_motion.csv --cycles 5 --no-page

`pkm_bringup.runner` and the launch files do the same over the ROS nodes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from pkm_bringup.command_line.outputs import check_host, check_report
from pkm_bringup.simulate_options import Options, parser, read_options
from pkm_control.controllers.force.force_file import read_force_file
from pkm_control.motion.files.shipped import AUTO, find_motion
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_control.space.tool import read_tools
from pkm_description.load import expand, xacro_arguments
from pkm_runtime.errors import PkmError

__all__ = ["main", "parser"]

_RUN, _JOB = "pkm_bringup.command_line.one_process", "pkm_bringup.simulated_job"  # loaded once all is in order


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted."""
    options = read_options(arguments)
    try:
        _check(options)
    except (PkmError, ValueError) as error:
        print(f"pkm simulate: {error}", file=sys.stderr)
        return 2
    run_in_one_process = importlib.import_module(_RUN).run_in_one_process
    simulate = importlib.import_module(_JOB).simulate
    return int(
        run_in_one_process(
            options.robot,
            options.xacro_args,
            lambda mechanism, interruption: simulate(mechanism, options, interruption),
        )
    )


def _check(options: Options) -> None:
    """Refuse at once what can be refused without the robot."""
    check_report(options.report)
    if options.page:
        check_host(options.host)
    if options.motion != AUTO:
        find_motion(options.motion)
    for read, file in (
        (read_force_file, options.force_file),
        (read_keep_outs, options.keep_out_file),
        (read_tools, options.tool_file),
    ):
        read(file)
    expand(options.robot, xacro_arguments(options.xacro_args))


if __name__ == "__main__":
    raise SystemExit(main())
