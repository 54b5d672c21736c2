# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT sweep`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_analysis.command_line import question
from pkm_analysis.command_line.answers import Found, add_picture, answered

if TYPE_CHECKING:
    from pkm_analysis.sweeps import Sweeps


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = question.parser(
        "sweep",
        "Statistics of a quantity over very many poses, on a grid or at random: mean, deviation, histogram, the least\n"
        "and the largest value with their poses, what stops the robot how often. Memory does not grow with the number.",
        "Exit status: 0 found, 1 nothing there, 2 wrong command line.",
    )
    p.add_argument("--quantity", default="type2", metavar="NAME", help="as for map (default: type2)")
    p.add_argument("--poses", type=float, default=1e6, metavar="N", help="how many, about (default: 1e6)")
    p.add_argument("--random", type=int, metavar="SEED", help="at random rather than on a grid")
    add_picture(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    command = parser()
    given = command.parse_args(sys.argv[1:] if arguments is None else arguments)
    if not 1.0 <= given.poses <= 1e15:
        command.error(f"--poses {given.poses:g} is no number of poses")
    if given.random is not None and given.random < 0:
        command.error("--random takes a seed that is not negative")

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        where = question.where(analysis, given)
        where.pop("resolution")
        found = analysis.sweep(given.quantity, **where, poses=int(given.poses), seed=given.random)
        return Found(analysis.robot.name, f"sweep of {found.quantity.name}", [found])

    return answered("sweep", given, answer)
