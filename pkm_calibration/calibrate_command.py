# SPDX-License-Identifier: Apache-2.0
"""`pkm calibrate`: of a printer, by what its firmware has measured, or of any robot, by measurements."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from pkm_calibration.printers.printer_command import begins_with_mcode


def _module(words: Sequence[str]) -> str:
    """The module of the command: of printers for Klipper's file, by its ending, or one with M665 at its head."""
    file = next((word for word in words if not word.startswith("-")), "")
    printer = file.lower().endswith(".cfg") or begins_with_mcode(Path(file))
    return f"pkm_calibration.{'printers.printer_command' if printer else 'robots.robot_command'}"


def parser() -> argparse.ArgumentParser:
    """The command line for robots."""
    made: argparse.ArgumentParser = importlib.import_module(_module([])).parser()
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return int(importlib.import_module(_module(words)).main(words))
