# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT loci`."""

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
        "loci",
        "Singularities of type 1, type 2, of the constraints and inside limbs as surfaces over three coordinates,\n"
        "where the limbs reach: with their areas, as a picture, and as a layer for the browser page and RViz.",
        "Exit status: 0 found, 1 there is no answer, 2 wrong command line.",
    )
    p.add_argument("--layer", metavar="FILE", help="surfaces as .glb, which 'pkm run --layers' and RViz show")
    add_picture(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        where = question.where(analysis, given)
        found = analysis.loci(where["ranges"], vary=where["vary"], hold=where["hold"], resolution=where["resolution"])
        if given.layer:
            found.save(given.layer)
        return Found(analysis.robot.name, "loci of singularities", [found])

    return answered("loci", given, answer)
