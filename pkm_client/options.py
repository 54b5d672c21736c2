# SPDX-License-Identifier: Apache-2.0
"""Options that several commands take, each with one name, unit, default and explanation."""

from __future__ import annotations

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pkm_control.controllers.law_settings import DAMPING, LAWS, NATURAL_FREQUENCY
from pkm_control.motion.files.shipped import AUTO, motion_names
from pkm_description.command_options import ROBOT, XACRO_ARGS, add_robot

__all__ = ["ROBOT", "XACRO_ARGS", "add_robot"]

MOTION = f"motion to run: a CSV file, {', '.join(motion_names())}, or auto (what suits the robot)"
CYCLES = "how often the motion is run"
STAY = "keep the robot running when the motion is done"
RATE = "rate of the machine and of the controller [Hz]"
CONTROLLER = "control law"
FREQUENCY = "natural frequency of the tracking error [rad/s]; lowered to what the rate carries"
RATIO = "damping of the tracking error; 1 is critical"
HARDWARE_FILE = "file of the machine: port, signs, offsets, units, limits (docs/hardware.md)"
SIMULATE = "a simulated device in place of the servos, Dynamixels or ODrives; their driver speaks to it"
KEEP_OUT_FILE = "file of places that the tool keeps out of (docs/keep_out.md)"
CONVEYOR_FILE = "file of conveyors that motions may ride on (docs/conveyor.md)"
FORCE_FILE = "file of the force laws: task frame, sensor, what a simulated machine may touch (docs/force.md)"
TOOL_FILE = "file of the robot's tools, which motions may name (docs/motion_files.md)"
TOOL = "tool of the tool file whose pose it is, and whose point goes straight"
REALISTIC = "machine with encoders, a delay of one period, and a fifth more inertia than its description says"
HIDDEN_PAYLOAD = "mass that the simulated machine carries and the controller does not know of [kg]"
REPORT = "directory for the page (PNG, PDF, HTML) and the table of the run"
PAGE = "show the robot in a browser page"
LAYERS = "surfaces around the robot: .glb files of pkm analyse or folders of them, with commas between"
HOST = "address that the page listens on; 127.0.0.1: this computer alone, 0.0.0.0: any network"
PORT = "first port tried for the browser page"


_NEAR = 0.8  # similarity from which a name is suggested
METAVARS = {
    "motion": "FILE|NAME",
    "motion_folder": "DIR",
    "most_waypoints": "N",
    "cycles": "N",
    "rate": "HZ",
    "hidden_payload": "KG",
    "natural_frequency": "RAD/S",
    "damping": "RATIO",
    "report": "DIR",
    "hardware_file": "FILE",
    "force_file": "FILE",
    "keep_out_file": "FILE",
    "tool_file": "FILE",
    "conveyor_file": "FILE",
    "host": "ADDRESS",
    "port": "PORT",
    "namespace": "NAME",
    "publish_rate": "HZ",
}


class Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Prints defaults where there are any, and keeps the lines of descriptions."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, "", argparse.SUPPRESS) or isinstance(action, argparse._StoreTrueAction):
            return action.help
        if isinstance(action, Switch):
            if "(default" in str(action.help):
                return action.help
            return f"{action.help} (default: {'yes' if action.default else 'no'})"
        return super()._get_help_string(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, Switch):
            return ", ".join(action.option_strings)
        return super()._format_action_invocation(action)


class Switch(argparse.Action):
    """`--page`, `--page true`, `--page false` or `--no-page`."""

    def __init__(self, option_strings: Sequence[str], dest: str, default: bool = False, help: str = "") -> None:
        names = [*option_strings, *(f"--no-{name.removeprefix('--')}" for name in option_strings)]
        super().__init__(names, dest, nargs="?", default=default, choices=("true", "false"), help=help)
        self.metavar = "true|false"

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Set the value."""
        negated = option is not None and option.startswith("--no-")
        if negated and values is not None:
            parser.error(f"argument {option}: takes no value")
        setattr(namespace, self.dest, not negated and values != "false")


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, with the nearest option, rather than after a page of all of them."""

    def error(self, message: str) -> NoReturn:
        """End with exit status 2."""
        known = [name for action in self._actions for name in action.option_strings]
        words = re.findall(r"(?<!\S)--[\w-]+", message.partition("unrecognized arguments:")[2])
        near = [match for word in words for match in difflib.get_close_matches(word, known, 1, _NEAR)]
        hint = f"; did you mean {' '.join(near)}?" if near else ""
        self.exit(2, f"{self.prog}: error: {message}{hint} ('{self.prog} --help' tells all options)\n")


def parser(word: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of the command `pkm word`, without options; the epilog comes after them."""
    return Parser(f"pkm {word}", description=description, epilog=epilog, formatter_class=Help)


def chosen(fresh: argparse.ArgumentParser, arguments: Sequence[str] | None) -> set[str]:
    """Names of the options that a command line sets, whatever their defaults are.

    The parser `fresh` cannot be used afterwards. `arguments`, which it took already, default to the process's own.
    """
    for action in fresh._actions:
        action.default = argparse.SUPPRESS
    return set(vars(fresh.parse_args(arguments)))


def add_control(group: argparse._ArgumentGroup) -> None:
    """Add the options of a control loop."""
    group.add_argument("--rate", type=positive, default=1000.0, metavar="HZ", help=RATE)
    group.add_argument("--controller", choices=LAWS, default=LAWS[0], help=CONTROLLER)
    group.add_argument("--natural-frequency", type=positive, default=NATURAL_FREQUENCY, metavar="RAD/S", help=FREQUENCY)
    group.add_argument("--damping", type=positive, default=DAMPING, metavar="RATIO", help=RATIO)


def add_motion(group: argparse._ArgumentGroup, default: str | None = AUTO) -> None:
    """Add the option of the motion."""
    group.add_argument("--motion", default=default, metavar="FILE|NAME", help=MOTION)


def add_tool_file(group: argparse._ActionsContainer) -> None:
    """Add the option of the file of tools."""
    group.add_argument("--tool-file", default="", metavar="FILE", help=TOOL_FILE)


def add_page(group: argparse._ArgumentGroup) -> None:
    """Add the option of the browser page."""
    group.add_argument("--page", action=Switch, default=True, help=PAGE)
    group.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help=HOST)
    group.add_argument("--port", type=port, default=8080, metavar="PORT", help=PORT)


def add_report(group: argparse._ArgumentGroup) -> None:
    """Add the option of the report's directory."""
    group.add_argument("--report", type=Path, default=Path("reports"), metavar="DIR", help=REPORT)


# Numbers


def within(lowest: float, highest: float, words: str, kind: type[float] | type[int] = float) -> Callable[[str], Any]:
    """A parser of numbers from `lowest` to `highest`; its `ArgumentTypeError` says in `words` what it takes."""

    def parse(text: str) -> float | int:
        value = kind(text)
        if not lowest <= value <= highest:  # true of NaN
            raise argparse.ArgumentTypeError(f"{text} is not {words}")
        return value

    parse.__name__ = "integer" if kind is int else "number"  # which argparse calls a text that is none
    return parse


_LARGEST, _SMALLEST = sys.float_info.max, math.ulp(0.0)
number = within(-_LARGEST, _LARGEST, "a finite number")
positive = within(_SMALLEST, _LARGEST, "a finite number greater than zero")
not_negative = within(0.0, _LARGEST, "a finite number, zero or greater")
share = within(0.0, 0.9, "between 0 and 0.9")
port = within(1, 65535, "an integer from 1 to 65535", int)
count = within(1, 1_000_000, "an integer from 1 to 1000000", int)
