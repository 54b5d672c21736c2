# SPDX-License-Identifier: Apache-2.0
"""The command `pkm export`: a robot as C, as a component of LinuxCNC, or as a MuJoCo model."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from pkm_description.command_options import Parser, add_output, add_robot, write_files, write_output, wrong
from pkm_description.formats.convert import WRITERS
from pkm_description.load import load_mechanism, xacro_arguments
from pkm_description.mechanism import Mechanism
from pkm_runtime.errors import PkmError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog="pkm export",
        description="Write a parallel robot as C99 with its kinematics and dynamics, as kinematics of LinuxCNC, or as a"
        " MuJoCo model (MJCF).",
        epilog="Exit status: 0 written, 2 an unusable description, or a robot that cannot be written so.",
    )
    add_robot(p)
    p.add_argument(
        "--to",
        choices=("mujoco", "c", "linuxcnc"),
        default="mujoco",
        help="format to write; SDF, USD, URDF: pkm convert (default: mujoco)",
    )
    p.add_argument("--scalar", choices=("double", "float"), default="double", help="number type of the C code")
    text = "files of the C code: for CMake, or an Arduino library"
    p.add_argument("--layout", choices=("cmake", "arduino"), default="cmake", help=text)
    add_output(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    command = parser()
    given = command.parse_args(arguments)
    if given.to != "mujoco" and not given.output:
        command.error(f"--to {given.to} writes several files: name a folder with -o DIR")
    if given.to == "mujoco" and given.scalar == "float":
        command.error("--scalar float is of C code: add --to c, or leave it out")
    if given.to != "c" and given.layout == "arduino":
        command.error("--layout arduino is of C code: add --to c, or leave it out")
    try:
        mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        if given.to == "mujoco":
            text, notes = WRITERS["mjcf"](mechanism)
            write_output(text, given.output)
            print(*(f"in the MJCF file: {note}" for note in notes), sep="\n", file=sys.stderr)
            return 0
        files = _in_c(given, mechanism)
        write_files(Path(given.output), files, "export")
    except (PkmError, OSError) as error:
        return wrong("export", error, "; name another place with -o")
    print(f"{given.output}: {', '.join(files)}")
    return 0


def _in_c(given: argparse.Namespace, mechanism: Mechanism) -> dict[str, str]:
    # late: a MuJoCo model needs no kernels
    making = importlib.import_module("pkm_runtime.kernels.kernel_cache").making
    with making(f"writing {mechanism.name} in C"):
        dynamics = importlib.import_module("pkm_dynamics").Dynamics(mechanism)
        robot = importlib.import_module("pkm_dynamics.export_c.c_files").CFiles(dynamics, given.scalar == "float")
        if given.layout == "arduino":
            return dict(importlib.import_module("pkm_dynamics.export_c.machines").arduino_library(robot))
        more = {}
        if given.to == "linuxcnc":
            more = importlib.import_module("pkm_dynamics.export_c.machines").linuxcnc_files(robot)
        return robot.files | more
