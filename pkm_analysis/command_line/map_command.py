# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT map`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_analysis.command_line import question
from pkm_analysis.command_line.answers import Found, add_picture, answered
from pkm_analysis.requirements.names import IN_WORDS

if TYPE_CHECKING:
    from pkm_analysis.sweeps import Sweeps


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = question.parser(
        "map",
        "A quantity over a slice of the workspace, or a volume ('--vary x,y,z', shown as slices and as\n"
        "surfaces of one value), in colour and with its unit, its worst point beside its mean, and the loci of\n"
        "singularities of type 1 and type 2 as curves.",
        textwrap.fill(f"Quantities: {IN_WORDS}.", 112) + "\n"
        "Exit status: 0 found, 1 nothing there, 2 wrong command line.",
    )
    p.add_argument("--quantity", default="type2", metavar="NAME", help="what is mapped (default: type2)")
    p.add_argument(
        "--layer", metavar="FILE", help="slices and surfaces as .glb, which 'pkm run --layers' and RViz show"
    )
    add_picture(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        found = analysis.map(given.quantity, **question.where(analysis, given, slices=True))
        if given.layer:
            found.save(given.layer)
        return Found(analysis.robot.name, found.quantity.name, [found])

    return answered("map", given, answer)
