# SPDX-License-Identifier: Apache-2.0
"""The command line of `simulate_command`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pkm_client import options
from pkm_control.controllers.law_settings import (
    POSITION,
)
from pkm_control.simulation_setup import Setup


@dataclass(frozen=True)
class Options:
    """The values of the command line."""

    robot: str
    xacro_args: str
    motion: str
    tool_file: str
    cycles: int
    stay: bool
    rate: float
    controller: str
    natural_frequency: float
    damping: float
    realistic: bool
    hidden_payload: float
    force_file: str
    keep_out_file: str
    report: Path
    page: bool
    host: str
    port: int

    @property
    def setup(self) -> Setup:
        """The settings of the robot."""
        return Setup(
            self.rate,
            self.controller,
            self.natural_frequency,
            self.damping,
            self.realistic,
            self.hidden_payload,
            self.force_file,
            self.keep_out_file,
            tool_file=self.tool_file,
        )


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "simulate",
        "Bring a robot to life in one process, without ROS: simulated machine, controller, browser page. It\n"
        "does a motion; then the figures are printed and written. Ctrl-C ends it at any time.",
    )
    options.add_robot(p, "delta")
    motion = p.add_argument_group("motion")
    options.add_motion(motion)
    options.add_tool_file(motion)
    motion.add_argument("--cycles", type=options.count, default=20, metavar="N", help=options.CYCLES)
    motion.add_argument("--stay", action=options.Switch, default=False, help=options.STAY)
    options.add_control(p.add_argument_group("control"))
    machine = p.add_argument_group("machine")
    machine.add_argument("--realistic", action=options.Switch, default=False, help=options.REALISTIC)
    machine.add_argument(
        "--hidden-payload",
        type=options.not_negative,
        default=0.0,
        metavar="KG",
        help=options.HIDDEN_PAYLOAD,
    )
    machine.add_argument("--force-file", default="", metavar="FILE", help=options.FORCE_FILE)
    machine.add_argument("--keep-out-file", default="", metavar="FILE", help=options.KEEP_OUT_FILE)
    output = p.add_argument_group("output")
    options.add_report(output)
    options.add_page(output)
    return p


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """The options of a command line, by default the process's own. Ends the process where it is wrong.
    A natural frequency that the rate does not permit is lowered with a notice, as in the controller's node.
    """
    command = parser()
    given = Options(**vars(command.parse_args(arguments)))
    if given.controller == POSITION and (given.hidden_payload > 0.0 or given.realistic):
        option = "--realistic" if given.realistic else "--hidden-payload"
        command.error(
            f"{option} is of a machine with masses; with --controller {POSITION} it is where it is told to be"
        )
    delay, most = 0.5 + given.setup.delay, given.setup.highest_frequency
    if given.natural_frequency <= most or given.controller == POSITION:
        return given
    print(
        f"--natural-frequency is lowered from {given.natural_frequency:g} to {most:.3g} rad/s: {given.rate:g} Hz with "
        f"a delay of {delay:g} periods and a damping of {given.damping:g} carry no more",
        file=sys.stderr,
    )
    return replace(given, natural_frequency=most)
