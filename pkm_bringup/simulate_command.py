# SPDX-License-Identifier: Apache-2.0
"""The main job as a command without ROS: controller, simulated machine and browser page in real time, then the report.

    python -m pkm_bringup.simulate_command delta
    python -m pkm_bringup.simulate_command my_robot.urdf.xacro --motion my_motion.csv --cycles 5 --no-page

`pkm_bringup.runner` and the launch files do the same over the ROS nodes.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pkm_bringup.command_line.outputs import check_host, check_report
from pkm_client import options
from pkm_control.controllers.force_task import read_force_file
from pkm_control.keep_out import read_keep_outs
from pkm_control.loop_settings import Setup
from pkm_control.motion.compensation import compliance_values
from pkm_control.motion.files.shipped import AUTO, NONE, find_motion
from pkm_control.operator_interface import LAWS, POSITION
from pkm_control.tool import read_tools
from pkm_description.load import expand, xacro_arguments
from pkm_runtime.errors import PkmError

_RUN, _JOB = "pkm_bringup.command_line.one_process", "pkm_bringup.simulated_job"  # loaded once all is in order


@dataclass(frozen=True)
class Options(Setup):
    """The values of the command line; those of the robot are its `Setup`."""

    robot: str = ""
    xacro_args: str = ""
    motion: str = AUTO
    cycles: int = 1
    stay: bool = False
    report: Path = Path()
    page: bool = False
    host: str = ""
    port: int = 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "simulate",
        "Bring a robot to life in one process, without ROS: simulated machine, controller, browser page. It\n"
        "does a motion; then the figures are printed and written. Ctrl-C ends it at any time.",
    )
    options.add_robot(p, "delta")
    motion, control = p.add_argument_group("motion"), p.add_argument_group("control")
    options.add(motion, "motion", help=f"{options.MOTION}, or none; it is held at home then")
    for name in ("tool_file", "cycles"):
        options.add(motion, name)
    options.add(motion, "stay", default=False)
    options.add(control, "rate")
    options.add(control, "controller", choices=LAWS, help="control law")
    for name in ("natural_frequency", "damping"):
        options.add(control, name)
    machine, output = p.add_argument_group("machine"), p.add_argument_group("output")
    for name in ("realistic", "hidden_payload", "force_file", "keep_out_file", "compliance_file"):
        options.add(machine, name)
    options.add(output, "report", type=Path)
    for name in ("page", "host", "port"):
        options.add(output, name)
    return p


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """The options of a command line; a natural frequency that the rate does not permit is lowered with a notice."""
    command = parser()
    given = Options(**vars(command.parse_args(arguments)))
    if given.controller == POSITION and (given.hidden_payload > 0.0 or given.realistic):
        option = "--realistic" if given.realistic else "--hidden-payload"
        command.error(
            f"{option} is of a machine with masses; with --controller {POSITION} it is at its commanded position"
        )
    delay, most = 0.5 + given.delay, given.highest_frequency
    if given.natural_frequency <= most or given.controller == POSITION:
        return given
    print(
        f"--natural-frequency is lowered from {given.natural_frequency:g} to {most:.3g} rad/s: {given.rate:g} Hz with "
        f"a delay of {delay:g} periods and a damping of {given.damping:g} carry no more",
        file=sys.stderr,
    )
    return replace(given, natural_frequency=most)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted."""
    given = read_options(arguments)
    try:
        _check(given)
    except (PkmError, ValueError) as error:
        print(f"pkm simulate: {error}", file=sys.stderr)
        return 2
    run, simulate = importlib.import_module(_RUN).run_in_one_process, importlib.import_module(_JOB).simulate
    return int(run("simulate", given.robot, given.xacro_args, lambda mechanism, ends: simulate(mechanism, given, ends)))


def _check(given: Options) -> None:
    check_report(given.report)
    if given.page:
        check_host(given.host)
    if given.motion not in (AUTO, NONE):
        find_motion(given.motion)
    for read, file in (
        (read_force_file, given.force_file),
        (read_keep_outs, given.keep_out_file),
        (read_tools, given.tool_file),
        (compliance_values, given.compliance_file),
    ):
        read(file)
    expand(given.robot, xacro_arguments(given.xacro_args))


if __name__ == "__main__":
    raise SystemExit(main())
