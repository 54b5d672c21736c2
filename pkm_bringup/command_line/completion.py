# SPDX-License-Identifier: Apache-2.0
"""`pkm completion`: a shell's completion of commands, options, robots and motions; made by shtab.

The script holds all names, so that completing starts no Python; it is made anew after an update.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from pkm_bringup.cli import COMMANDS, command
from pkm_control.motion.files.shipped import AUTO, motion_names
from pkm_description import robot_names

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "RECORDING")  # metavars that stand for files

_WHERE = """\
  bash   pkm completion bash > ~/.local/share/bash-completion/completions/pkm
  zsh    pkm completion zsh > ~/.zfunc/_pkm          (with fpath+=~/.zfunc before compinit)
  fish   pkm completion fish > ~/.config/fish/completions/pkm.fish"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="pkm completion",
        description="Print what a shell needs to complete commands, options, robots and motions. Needs the package\n"
        "shtab: pip install shtab.",
        epilog=f"Where it goes:\n{_WHERE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("shell", choices=SHELLS, help="your shell")
    return p


def script(shell: str) -> str:
    """The script for one of `SHELLS`; `ImportError` where shtab is not installed."""
    shtab = importlib.import_module("shtab")
    whole = argparse.ArgumentParser(prog="pkm")
    parts = whole.add_subparsers(metavar="COMMAND")
    for word, (_, what) in COMMANDS.items():
        one = command(word).parser()
        part = parts.add_parser(word, help=what, parents=[one], add_help=False, conflict_handler="resolve")
        for action in part._actions:
            if action.dest == "robot":
                action.choices = robot_names()
            elif action.dest == "motion":
                action.choices = [AUTO, *motion_names()]
            elif action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(whole, shell=shell))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where shtab is missing."""
    given = parser().parse_args(arguments)
    try:
        print(script(given.shell), end="")
    except ImportError:
        print("pkm completion: needs the package shtab: pip install shtab", file=sys.stderr)
        return 1
    return 0
