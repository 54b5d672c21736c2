# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT workspace`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from pkm_analysis.command_line import question
from pkm_analysis.report.write_report import write_report


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
    p.add_argument("--picture", metavar="FILE", help="picture as .png, .svg or .pdf")
    p.add_argument("--no-joint-limits", action="store_true", help="do without limits of joints")
    p.add_argument("--no-platform-limits", action="store_true", help="do without limits of the platform itself")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where there is no answer."""
    given = parser().parse_args(sys.argv[1:] if arguments is None else arguments)

    def answer() -> dict[str, Any] | None:
        analysis = question.asked(given)
        found = analysis.workspace(
            **question.where(analysis, given),
            tolerance=given.tolerance,
            joint_limits=not given.no_joint_limits,
            platform_limits=not given.no_platform_limits,
        )
        if given.mesh:
            found.save(given.mesh)
        if given.picture:
            found.plot(given.picture)
        if given.json:
            return found.to_dict()
        page = given.report / f"{analysis.robot.name}_workspace.html"
        write_report(page, f"{analysis.robot.name}: workspace", [found])
        print(found)
        print(f"report: {page}")
        return None

    return question.answered("workspace", answer)
