# SPDX-License-Identifier: Apache-2.0
"""Options shared by all commands with a robot, one explanation each; files that they write. Imports nothing heavy."""

from __future__ import annotations

import argparse
import difflib
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pkm_runtime.describable import SCALES, number_and_unit
from pkm_runtime.errors import UsageError
from pkm_runtime.whole_files import write_whole

ROBOT = "a robot of the gallery, or the path of a description (URDF, xacro, YAML, MJCF, SDF or USD)"
XACRO_ARGS = "arguments of the robot's xacro file: 'name:=value name:=value' (pkm check ROBOT --args)"
_COMMENTS = {".md": "\n<!-- {} -->"} | dict.fromkeys((".c", ".h", ".hpp", ".comp", ".ino"), "/* {} */")
NO, WRONG, OPEN = 1, 2, 3  # exit statuses: the answer is no, or it failed; asked wrongly; neither yes nor no follows
CORRECTIONS = "file of corrections: the robot as it was built (pkm calibrate)"
_NEAR = 0.8  # similarity from which the name of an option is suggested


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, with the nearest option, rather than after a page of all of them."""

    def error(self, message: str) -> NoReturn:
        """End with exit status 2."""
        known = [name for action in self._actions for name in action.option_strings]
        unknown = message.partition("unrecognized arguments:")[2]
        words = re.findall(r"(?<!\S)(?:--[\w-]+|\w+(?=:=))", unknown)  # --name, or name:=value as launch has it
        words = [f"--{word.removeprefix('--').replace('_', '-')}" for word in words]
        near = [match for word in words for match in difflib.get_close_matches(word, known, 1, _NEAR)]
        hint = f"; did you mean {' '.join(near)}?" if near else ""
        self.exit(2, f"{self.prog}: error: {message}{hint} ('{self.prog} --help' tells all options)\n")


class _RobotArguments(argparse.Action):
    """Joins what describes the robot to one text, `xacro_args`, whichever options say it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest, "")
        setattr(namespace, self.dest, f"{before} {with_corrections(values) if self.const else values}".strip())


def with_corrections(file: str) -> str:
    """The argument of a robot that is a file of corrections."""
    return shlex.quote(f"corrections:={file}")


def add_robot(p: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the robot and the arguments of its file to a parser; without a default the robot is required."""
    optional: dict[str, Any] = {} if default is None else {"nargs": "?", "default": default}
    p.add_argument("robot", metavar="ROBOT", help=ROBOT, **optional)
    p.add_argument("--xacro-args", action=_RobotArguments, default="", metavar="'NAME:=VALUE ...'", help=XACRO_ARGS)
    p.add_argument(
        "--corrections",
        dest="xacro_args",
        action=_RobotArguments,
        const=True,
        default="",
        metavar="FILE",
        help=CORRECTIONS,
    )


def add_output(p: argparse.ArgumentParser, required: bool = False) -> None:
    """Add the output file to a parser."""
    text = "file to write" if required else "file to write; standard output if not given"
    p.add_argument("-o", "--output", required=required, metavar="FILE", help=text)


def wrong(command: str, error: Exception, remedy: str = "") -> int:
    """Print why a command cannot do what it is asked; the exit status of that."""
    if isinstance(error, BrokenPipeError):  # a reader such as head has enough
        raise error
    problem = f"{error.filename}: {error.strerror}{remedy}" if isinstance(error, OSError) else error
    print(f"pkm {command}: {problem}", file=sys.stderr)
    return WRONG


def write_output(text: str, file: str | None) -> None:
    """Write text where `add_output` says."""
    if file:
        write_whole(file, text)
    else:
        print(text, end="")


def write_files(folder: Path, files: Mapping[str, str], command: str) -> None:
    """Write texts by file name with a line that names the command; nothing where a file without it is in the way."""
    mark = f"Written by pkm {command}, which overwrites what has this line."
    for name in files:
        file = folder / name
        if file.exists() and not (file.is_file() and mark in file.read_text(encoding="utf-8", errors="replace")):
            problem = f"it is there, and was not written by pkm {command}"
            raise UsageError(str(file), problem, "name another folder, or move it away")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        comment = _COMMENTS.get(Path(name).suffix, "# {}")
        write_whole(folder / name, f"{text}{comment.format(mark)}\n")


# Numbers


def within(
    lowest: float, highest: float, words: str, kind: type[float] | type[int] = float, units: Sequence[str] = ()
) -> Callable[[str], Any]:
    """A parser of numbers from `lowest` to `highest`, with `units` in SI those of them; errors say in `words` what."""
    scales = {name: scale for unit in units for name, scale in SCALES[unit].items()}

    def parse(text: str) -> float | int:
        value, unit = number_and_unit(text) if scales else (kind(text), "")
        if unit and unit not in scales:
            raise argparse.ArgumentTypeError(f"{text.strip()} has none of its units: {', '.join(scales)}")
        value *= scales.get(unit, 1)
        if not lowest <= value <= highest:  # true of NaN
            raise argparse.ArgumentTypeError(f"{text.strip()} is not {words}")
        return value

    parse.__name__ = "integer" if kind is int else "number"  # which argparse calls a text that is none
    return parse


_LARGEST, _SMALLEST = sys.float_info.max, math.ulp(0.0)
number = within(-_LARGEST, _LARGEST, "a finite number")
length, velocity, turn_rate = (
    within(-_LARGEST, _LARGEST, "a finite number", units=(unit,)) for unit in ("m", "m/s", "rad/s")
)
speed = within(_SMALLEST, _LARGEST, "a finite number greater than zero", units=("m/s",))
positive = within(_SMALLEST, _LARGEST, "a finite number greater than zero")
not_negative = within(0.0, _LARGEST, "a finite number, zero or greater")
mass, distance = (within(0.0, _LARGEST, "a finite number, zero or greater", units=(unit,)) for unit in ("kg", "m"))
share = within(0.0, 0.9, "between 0 and 0.9")
count = within(1, 1_000_000, "an integer from 1 to 1000000", int)


def coordinate(text: str) -> tuple[float, str]:
    """A number in SI units, and "m" or "rad" where its text ends in a unit of them, else an empty text."""
    unit = number_and_unit(text)[1]
    si = next((one for one in ("m", "rad") if unit in SCALES[one]), "")
    return within(-_LARGEST, _LARGEST, "a finite number", units=(si or "m",))(text), si


coordinate.__name__ = "number"
