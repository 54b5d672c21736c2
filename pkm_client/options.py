# SPDX-License-Identifier: Apache-2.0
"""The settings of a run, as one table for launch arguments, nodes and commands, and the options of commands."""

from __future__ import annotations

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pkm_control.loop_settings import DAMPING, LAWS, NATURAL_FREQUENCY
from pkm_control.motion.files.shipped import motion_names
from pkm_description.command_options import ROBOT, XACRO_ARGS
from pkm_description.command_options import add_robot as add_robot
from pkm_hardware.machine_kinds import KINDS, SIMULATED
from pkm_runtime.scheduling import PRIORITY

SWITCH = ("true", "false")
_NEAR = 0.8  # similarity from which the name of an option is suggested
MOTION = f"motion to run: a CSV file, {', '.join(motion_names())}, or auto (what suits the robot)"


@dataclass(frozen=True)
class Setting:
    """A setting, with its default as text. `takes`: its only texts, or what its text stands for; `span` bounds a
    number. `group` is for the help. As a parameter of a node, only one that is `live` may change later.
    """

    name: str
    default: str
    group: str
    takes: str | tuple[str, ...]
    description: str
    span: tuple[float, float] | None = None
    live: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Its only texts, if any."""
        return self.takes if isinstance(self.takes, tuple) else ()


SETTINGS = (
    Setting("robot", "delta", "robot", "TEXT", ROBOT),
    Setting("xacro_args", "", "robot", "TEXT", XACRO_ARGS),
    Setting(
        "motion",
        "auto",
        "motion",
        "FILE|NAME",
        f"{MOTION}, or none; with a machine that is not simulated, auto is none",
    ),
    Setting(
        "tool_file", "", "motion", "FILE", "file of the robot's tools, which motions may name (docs/motion_files.md)"
    ),
    Setting("motion_folder", "", "motion", "DIR", "folder whose motion files may be asked for while the robot runs"),
    Setting("most_waypoints", "500", "motion", "N", "waypoints of a motion that may be asked for", (2, 1000000)),
    Setting("cycles", "20", "motion", "N", "number of runs of the motion", (1, 1000000)),
    Setting("stay", "true", "motion", SWITCH, "keep the robot running when the motion is done"),
    Setting("controller", LAWS[0], "control", (*LAWS, "none"), "control law, or none"),
    Setting("rate", "1000.0", "control", "HZ", "rate of the machine and of the controller [Hz]", (10.0, 10000.0)),
    Setting(
        "natural_frequency",
        str(NATURAL_FREQUENCY),
        "control",
        "RAD/S",
        "natural frequency of the tracking error [rad/s]; lowered to what the rate carries",
        (0.1, 1000.0),
        live=True,
    ),
    Setting(
        "damping",
        str(DAMPING),
        "control",
        "RATIO",
        "damping of the tracking error; 1 is critical",
        (0.3, 10.0),
        live=True,
    ),
    Setting("fallback", "gravity", "control", ("gravity", "zero"), "efforts when the measured state is stale"),
    Setting(
        "hardware",
        SIMULATED,
        "machine",
        (SIMULATED, *KINDS, "none"),
        "who is the machine: our simulation, a driver (loopback: none at all, what is commanded is read), or nobody "
        "(yours, or ros2_control)",
    ),
    Setting(
        "hardware_file",
        "",
        "machine",
        "FILE",
        "file of the machine: port, signs, offsets, units, limits (docs/hardware.md)",
    ),
    Setting(
        "simulate",
        "false",
        "machine",
        SWITCH,
        "a simulated device in place of the servos, Dynamixels or ODrives; their driver speaks to it",
    ),
    Setting("keep_out_file", "", "control", "FILE", "file of places that the tool keeps out of (docs/keep_out.md)"),
    Setting(
        "compliance_file",
        "",
        "control",
        "FILE",
        "file of how the robot gives way, against which its platform is then led (docs/compensation.md)",
    ),
    Setting("conveyor_file", "", "control", "FILE", "file of conveyors that motions may ride on (docs/conveyor.md)"),
    Setting(
        "measurement_file",
        "measurements.csv",
        "output",
        "FILE",
        "file that measurements for a calibration are written to (docs/calibration.md)",
    ),
    Setting(
        "force_file",
        "",
        "machine",
        "FILE",
        "file of the force laws: task frame, sensor, what a simulated machine may touch (docs/force.md)",
    ),
    Setting(
        "realistic",
        "false",
        "machine",
        SWITCH,
        "machine with encoders, a delay of one period, and a fifth more inertia than its description says",
    ),
    Setting(
        "hidden_payload",
        "0.0",
        "machine",
        "KG",
        "mass that the simulated machine carries and the controller does not know of [kg]",
        (0.0, 1e6),
    ),
    Setting(
        "realtime_priority",
        str(PRIORITY),
        "ROS",
        "TEXT",
        "SCHED_FIFO priority of the control loop, where permitted; 0: ordinary scheduling",
        (0, 98),
    ),
    Setting(
        "start",
        "auto",
        "machine",
        ("auto", "active", "manual"),
        "who enables the drives: active, the robot itself at once; manual, somebody (pkm enable); auto, the robot "
        "itself where it is simulated, and somebody where it is not",
    ),
    Setting("report", "reports", "output", "DIR", "directory for the page (PNG, PDF, HTML) and the table of the run"),
    Setting("page", "true", "output", SWITCH, "show the robot in a browser page"),
    Setting(
        "layers",
        "",
        "output",
        "TEXT",
        "surfaces around the robot: .glb files of pkm analyse or folders of them, with commas between",
    ),
    Setting(
        "host",
        "127.0.0.1",
        "output",
        "ADDRESS",
        "listening address of the page; 127.0.0.1: this computer alone, 0.0.0.0: any network",
    ),
    Setting("port", "8080", "output", "PORT", "first port tried for the browser page", (1, 65535)),
    Setting(
        "operate",
        "local",
        "output",
        ("local", "everyone", "nobody"),
        "who may command from the page: browsers on this computer, everyone who reaches it, or nobody",
    ),
    Setting("browser", "false", "output", SWITCH, "open the page in a browser, where there is a display"),
    Setting("joystick", "false", "control", SWITCH, "steer the platform by what a node of the package joy publishes"),
    Setting("namespace", "", "ROS", "NAME", "namespace of all nodes and topics"),
    Setting("frame_prefix", "", "ROS", "TEXT", "before the name of every frame of the robot, such as left/"),
    Setting(
        "description",
        "own",
        "ROS",
        ("own", "other"),
        "who publishes robot_description: a node of ours, or another (robot_state_publisher)",
    ),
    Setting("use_sim_time", "false", "ROS", SWITCH, "take the time from /clock"),
    Setting(
        "publish_rate",
        "100.0",
        "ROS",
        "HZ",
        "highest rate of states, references and efforts as they are published [Hz]",
        (1.0, 2000.0),
    ),
)
SETTING = {one.name: one for one in SETTINGS}


def typed_value(text: str) -> bool | int | float | str:
    """A text as a boolean, an integer, a float, or itself."""
    if text in SWITCH:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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
    """Names of the options that a command line sets, whatever their defaults. The parser `fresh` cannot be used
    afterwards; it took `arguments` already, by default those of the process.
    """
    for action in fresh._actions:
        action.default = argparse.SUPPRESS
    return set(vars(fresh.parse_args(arguments)))


def add(group: argparse._ActionsContainer, name: str, **changed: Any) -> None:
    """Add the option of a setting, whose name has hyphens there; `changed` are arguments of `add_argument`."""
    one = SETTING[name]
    default = typed_value(one.default)
    words: dict[str, Any] = {"default": default, "help": one.description}
    if one.choices == SWITCH:
        words["action"] = Switch
    elif one.choices:
        words["choices"] = one.choices
    else:
        words["metavar"] = one.takes
    if one.span is not None:
        kind, what = (int, "an integer") if isinstance(default, int) else (float, "a number")
        words["type"] = within(*one.span, f"{what} from {one.span[0]:.9g} to {one.span[1]:.9g}", kind)
    group.add_argument(
        f"--{name.replace('_', '-')}", **{"default": default, "help": one.description, **words, **changed}
    )


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
count = within(1, 1_000_000, "an integer from 1 to 1000000", int)
