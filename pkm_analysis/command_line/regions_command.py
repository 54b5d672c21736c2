# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT regions`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line import question
from pkm_analysis.command_line.answers import Found, add_picture, answered

if TYPE_CHECKING:
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.sweeps import Sweeps

MANY = 8  # most working modes of `--modes all`


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = question.parser(
        "regions",
        "The singularity-free regions of working modes: how large they are, which of them touch and through which\n"
        "singularity, and which assembly modes are in one region, so that the robot changes between them without one.",
        "Exit status: 0 found, 1 there is none, 2 wrong command line.",
    )
    text = f"working modes, as 0,1,2, home (which is 0), or all of them (at most {MANY}); home by default"
    p.add_argument("--modes", metavar="N,N", help=text)
    p.add_argument("--assembly", action="store_true", help="find home's assembly modes, and the region of each")
    p.add_argument("--no-joint-limits", action="store_true", help="do without limits of joints")
    add_picture(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        where = question.where(analysis, given)
        found = analysis.regions(**where, modes=_modes(analysis, given.modes), joint_limits=not given.no_joint_limits)
        numbers, lines = found.to_dict(), []
        if given.assembly:
            assembled = found.assembly_modes()
            numbers["assembly_modes"] = [
                {"label": a.label, "mode": a.mode, "at": a.point.tolist(), "region": a.region} for a in assembled
            ]
            for a in assembled:
                at = zip(found.graph.domain.coordinates, a.point, strict=True)
                place = ", ".join(f"{c.label} {value:.6g} {c.unit}" for c, value in at)
                lines.append(f"assembly mode {a.label} at {place}: region {a.region or 'none of these'}")
        return Found(analysis.robot.name, "regions", [found], numbers, lines)

    return answered("regions", given, answer)


def _modes(analysis: Analysis, text: str | None) -> list[int] | None:
    if text is None:
        return None
    if text == "all":
        return list(range(min(analysis.robot.kinematics.n_modes, MANY)))
    try:
        return [0 if word.strip() == "home" else int(word) for word in text.split(",")]
    except ValueError:
        raise AnalysisError(f"--modes {text}", "it cannot be read", "write numbers, as 0,1, or home, or all") from None
