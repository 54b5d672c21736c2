# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT workspace`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line import question
from pkm_analysis.command_line.answers import Found, add_picture, answered
from pkm_analysis.requirements.names import KINDS

if TYPE_CHECKING:
    from pkm_analysis.sweeps import Sweeps
    from pkm_analysis.workspace.largest import Box, Cylinder


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = question.parser(
        "workspace",
        "Where a robot can be: within reach, limits of all joints, and bounds of your own. Its size with an error,\n"
        "its border as a mesh, and at each point of it what stops the robot there.",
        "Exit status: 0 found, 1 there is none (empty, endless, a question with a fault), 2 wrong command line.",
    )
    p.add_argument("--tolerance", type=float, metavar="M", help="how far the border may be off [m]")
    p.add_argument("--mesh", metavar="FILE", help="border as .stl, .ply or .obj")
    add_picture(p)
    p.add_argument("--kind", choices=KINDS, help="positions over orientations, instead of a held orientation")
    p.add_argument("--turn", action="append", default=[], metavar="NAME=A:B", help="range of an angle for --kind")
    p.add_argument("--turn-steps", type=int, default=13, metavar="N", help="values of each angle tried (default: 13)")
    p.add_argument("--largest", action="store_true", help="find the largest box and the largest cylinder inside")
    p.add_argument("--no-joint-limits", action="store_true", help="do without limits of joints")
    p.add_argument("--no-platform-limits", action="store_true", help="do without limits of the platform itself")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer(sweeps: Sweeps) -> Found:
        analysis = question.asked(given, sweeps)
        where = question.where(analysis, given)
        if given.kind:
            found = analysis.positions(
                given.kind,
                question.ranges_of(analysis, given.turn) or None,
                steps=given.turn_steps,
                ranges=where["ranges"],
                requirements=where["requirements"],
                tolerance=given.tolerance,
                resolution=where["resolution"],
            )
        else:
            if given.mesh:
                analysis.conditions(where["vary"], where["hold"], platform_limits=False).domain.check_surface()
            found = analysis.workspace(
                **where,
                tolerance=given.tolerance,
                joint_limits=not given.no_joint_limits,
                platform_limits=not given.no_platform_limits,
            )
        if given.mesh:
            found.save(given.mesh)
        inner: dict[str, Box | Cylinder] = {}
        lines = []
        for name, find in (("largest_box", found.largest_box), ("largest_cylinder", found.largest_cylinder)):
            try:
                if given.largest:
                    inner[name] = find()
            except AnalysisError as none:  # the workspace is an answer without it
                lines.append(f"no {name.replace('_', ' ')}: {none}")
        numbers = {**found.to_dict(), **{name: one.to_dict() for name, one in inner.items()}}
        return Found(analysis.robot.name, "workspace", [found, *inner.values()], numbers, lines)

    return answered("workspace", given, answer)
