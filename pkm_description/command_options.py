# SPDX-License-Identifier: Apache-2.0
"""Options shared by all commands with a robot: one name, one explanation. Imports nothing heavy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

ROBOT = "a robot of the gallery, or the path of a .urdf.xacro or .urdf file"
XACRO_ARGS = "arguments of the robot's xacro file: 'name:=value name:=value' (pkm check ROBOT --args)"


def add_robot(p: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the robot and the arguments of its file to a parser; without a default the robot is required."""
    optional: dict[str, Any] = {} if default is None else {"nargs": "?", "default": default}
    p.add_argument("robot", metavar="ROBOT", help=ROBOT, **optional)
    p.add_argument("--xacro-args", default="", metavar="'NAME:=VALUE ...'", help=XACRO_ARGS)


def add_output(p: argparse.ArgumentParser, required: bool = False) -> None:
    """Add the output file to a parser."""
    text = "file to write" if required else "file to write; standard output if not given"
    p.add_argument("-o", "--output", required=required, metavar="FILE", help=text)


def write_output(text: str, file: str | None) -> None:
    """Write text where `add_output` says."""
    if file:
        Path(file).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
