# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT path`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_analysis.command_line import question
from pkm_analysis.command_line.answers import Found, add_output, add_picture, answered

if TYPE_CHECKING:
    from pkm_analysis.sweeps import Sweeps

NO_PATH = 3


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="pkm analyse ROBOT path",
        usage="pkm analyse ROBOT path --from X=.. Y=.. --to X=.. Y=.. [options]",
        description="A path from one pose to another in one working mode that meets no singularity and keeps chosen\n"
        "margins, checked between its waypoints; or that there is none on a grid whose step is told.",
        epilog="Exit status: 0 found, 1 a question with a fault, 2 wrong command line, 3 there is none.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    question.add_robot(p)
    text = "coordinates, home's where they are not named, such as x=0.1 yaw=20deg"
    p.add_argument("--from", nargs="+", default=[], metavar="NAME=VALUE", dest="start", help=text)
    p.add_argument("--to", nargs="+", required=True, metavar="NAME=VALUE", dest="end", help=text)
    p.add_argument("--that", action="append", default=[], metavar="BOUND", help="such as 'margin > 0.2'")
    p.add_argument("--range", action="append", default=[], metavar="NAME=A:B", help="where a path is looked for")
    p.add_argument("--mode", type=int, metavar="N", help="number of a working mode (default: home's)")
    p.add_argument("--resolution", type=int, metavar="N", help="nodes along a coordinate")
    p.add_argument("--no-joint-limits", action="store_true", help="do without limits of joints")
    p.add_argument("--prove", action="store_true", help="prove by intervals that it is inside and meets no singularity")
    question.add_assumed(p)
    add_picture(p)
    add_output(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer, 3 where there is no path."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        found = analysis.path(
            question.values_of(analysis, given.start),
            question.values_of(analysis, given.end),
            margins=given.that,
            ranges=question.ranges_of(analysis, given.range),
            joint_limits=not given.no_joint_limits,
            resolution=given.resolution,
        )
        proof = [found.prove()] if given.prove and found.found else []
        numbers = {**found.to_dict(), **({"proof": proof[0].to_dict()} if proof else {})}
        lines = []
        for point in found.waypoints:
            at = zip(found.graph.domain.coordinates, point, strict=True)
            lines.append("  " + ", ".join(f"{c.label} {value:.6g} {c.unit}" for c, value in at))
        return Found(analysis.robot.name, "path", [found, *proof], numbers, lines, 0 if found.found else NO_PATH)

    return answered("path", given, answer)
