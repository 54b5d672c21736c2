# SPDX-License-Identifier: Apache-2.0
"""The settings of a run (`settings.csv`) for launch arguments, nodes and commands, and the options of commands."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkm_control.motion.files.shipped import motion_names
from pkm_control.operator_interface import DAMPING, LAWS, NATURAL_FREQUENCY
from pkm_description.command_options import ROBOT, XACRO_ARGS, Parser, within
from pkm_description.command_options import add_robot as add_robot
from pkm_hardware.machine_kinds import KINDS, SIMULATED
from pkm_runtime.scheduling import PRIORITY

SWITCH = ("true", "false")
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


def typed_value(text: str) -> Any:
    """A text as a boolean, an integer, a float, or itself."""
    if text in SWITCH:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read_settings() -> Iterator[Setting]:
    """The rows of `settings.csv`, in which names in braces stand for what is known elsewhere."""
    known = {"NATURAL_FREQUENCY": NATURAL_FREQUENCY, "DAMPING": DAMPING, "PRIORITY": PRIORITY, "SIMULATED": SIMULATED}
    known |= {"LAW": LAWS[0], "LAWS": "|".join(LAWS), "KINDS": "|".join(KINDS)}
    known |= {"ROBOT": ROBOT, "XACRO_ARGS": XACRO_ARGS, "MOTION": MOTION}
    with (Path(__file__).parent / "settings.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            one = {key: text.format(**known) for key, text in row.items()}
            takes = tuple(one["choices"].split("|")) if one["choices"] else one["takes"]
            span = (typed_value(one["lowest"]), typed_value(one["highest"])) if one["lowest"] else None
            yield Setting(one["name"], one["default"], one["group"], takes, one["description"], span, bool(one["live"]))


SETTINGS = tuple(_read_settings())
SETTING = {one.name: one for one in SETTINGS}


class Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Prints defaults where there are any, and keeps the lines of descriptions."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=100)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, "", [], argparse.SUPPRESS) or isinstance(action, argparse._StoreTrueAction):
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
        super().__init__(names, dest, nargs="?", default=default, choices=SWITCH, help=help)
        self.metavar = "true|false"

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Set the value."""
        negated = option is not None and option.startswith("--no-")
        if negated and values is not None:
            parser.error(f"argument {option}: takes no value")
        setattr(namespace, self.dest, not negated and values != "false")


class _SwitchParser(Parser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Let a word follow a switch that is no value of it, such as the robot in `--no-page delta`."""
        words = list(sys.argv[1:] if args is None else args)
        switches = {name for action in self._actions if isinstance(action, Switch) for name in action.option_strings}
        end = words.index("--") if "--" in words else len(words)
        for k, word in enumerate(words[:end]):
            if word in switches and words[k + 1 : k + 2] and words[k + 1] not in SWITCH:
                words[k] = f"--{word[5:]}=false" if word.startswith("--no-") else f"{word}=true"
        return super().parse_known_args(words, namespace)


def parser(word: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of the command `pkm word`, without options; the epilog comes after them."""
    return _SwitchParser(f"pkm {word}", description=description, epilog=epilog, formatter_class=Help)


def chosen(fresh: argparse.ArgumentParser, arguments: Sequence[str] | None) -> set[str]:
    """Names of the options that a command line sets, whatever their defaults; the parser `fresh` is used up."""
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
