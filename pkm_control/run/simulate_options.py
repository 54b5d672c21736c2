# SPDX-License-Identifier: Apache-2.0
"""The command line of `simulate_command`: what may be asked for, and what was."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pkm_control.controllers.law_settings import DAMPING, LAWS, NATURAL_FREQUENCY, highest_natural_frequency
from pkm_control.motion.shipped import motion_names
from pkm_description import robot_names


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    robot: str
    motion: str
    cycles: int
    stay: bool
    rate: float
    law: str
    natural_frequency: float
    damping: float
    hidden_payload: float
    page: bool
    host: str
    port: int
    report_dir: Path


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Tells defaults, but not those of switches, which say nothing."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if isinstance(action.default, bool) else super()._get_help_string(action)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    motions = ", ".join(motion_names())
    p = argparse.ArgumentParser(
        prog="pkm simulate",
        description="Bring a robot to life from its description: simulated hardware, controller, browser page. It does "
        "the motion of a file; then the figures are printed and written. Ctrl-C ends it at any time and leaves nothing "
        "running.",
        formatter_class=_Help,
    )
    p.add_argument(
        "robot",
        nargs="?",
        default="delta",
        help=f"a robot of the gallery ({', '.join(robot_names())}), or a .urdf or .xacro file",
    )
    motion = p.add_argument_group("motion")
    motion.add_argument(
        "--motion",
        default="auto",
        metavar="FILE",
        help=f"motion file (CSV), or one that ships: {motions}; auto: what suits the robot",
    )
    motion.add_argument(
        "--cycles", type=_count, default=20, metavar="N", help="how often the motion is done and measured"
    )
    motion.add_argument("--stay", action="store_true", help="go on with the motion after the report, until Ctrl-C")
    control = p.add_argument_group("control")
    control.add_argument("--rate", type=_positive, default=1000.0, metavar="HZ", help="rate of the control loop")
    control.add_argument("--law", choices=LAWS, default=LAWS[0], help="control law")
    control.add_argument(
        "--natural-frequency",
        type=_positive,
        default=NATURAL_FREQUENCY,
        metavar="RAD/S",
        help="of the closed loop's tracking error",
    )
    control.add_argument(
        "--damping", type=_positive, default=DAMPING, metavar="RATIO", help="of the same; 1 is critical"
    )
    control.add_argument(
        "--hidden-payload",
        type=_not_negative,
        default=0.0,
        metavar="KG",
        help="mass that the simulated machine carries and the controller does not know of",
    )
    output = p.add_argument_group("output")
    output.add_argument("--no-page", dest="page", action="store_false", help="do not serve the browser page")
    output.add_argument(
        "--host",
        default="127.0.0.1",
        help="address that the page listens on; 0.0.0.0: on all networks",
    )
    output.add_argument("--port", type=_port, default=8080, help="first port to try for the page")
    output.add_argument(
        "--report-dir", type=Path, default=Path("reports"), metavar="DIR", help="where picture and table are written"
    )
    return p


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """Return what a command line asks for; without arguments, the process's own. Ends the process where it is wrong."""
    command = parser()
    options = Options(**vars(command.parse_args(arguments)))
    most = highest_natural_frequency(1.0 / options.rate, options.damping)
    if options.natural_frequency > most:
        command.error(
            f"--natural-frequency {options.natural_frequency:g} rad/s is more than a rate of {options.rate:g} Hz and a "
            f"damping of {options.damping:g} carry: {most:.3g} rad/s"
        )
    return options


def _number(text: str) -> float:
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def _positive(text: str) -> float:
    if _number(text) <= 0.0:
        raise argparse.ArgumentTypeError(f"{text} is not greater than zero")
    return _number(text)


def _not_negative(text: str) -> float:
    if _number(text) < 0.0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return _number(text)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port, 1 to 65535")
    return value
