# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT [TASK]`: what a robot can do, and how well; the robot is the first argument of each task."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pkm_analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import Found, add_output, answered
from pkm_analysis.command_line.tasks import TASKS
from pkm_description.command_options import Parser, add_robot
from pkm_runtime.errors import nearest

if TYPE_CHECKING:
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

OVERVIEW = ("type2", "isotropy")  # mapped by default


def parser() -> argparse.ArgumentParser:
    """The command line without a task."""
    tasks = "".join(f"\n  {one.word:<9}  {one.brief}" for one in TASKS.values())
    p = Parser(
        prog="pkm analyse",
        description="Say what a robot can do, and how well. With a task after the robot, that task in full.",
        epilog=f"tasks:{tasks}\n\n'pkm analyse ROBOT TASK --help' tells the options of a task.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_robot(p)
    add_output(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: the exit status of the task, 2 where it cannot be answered."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    task = next((word for word in words[:2] if word in TASKS), None)  # `analyse workspace delta` works as well
    if task is not None:
        words.remove(task)
        asked = TASKS[task]
        options = asked.parser()
        given = options.parse_args(words)
        if wrong := asked.wrong(given):
            options.error(wrong)
        return answered(task, given, asked.answer)
    command = parser()
    if len(words) > 1 and not words[1].startswith("-") and not words[0].startswith("-"):
        hint = nearest(words[1], TASKS, f"choose one of {', '.join(TASKS)}")
        command.error(f"no such task as '{words[1]}'; {hint}")
    given, rest = command.parse_known_args(words)
    if rest:
        late = next((word for word in rest if word in TASKS), "")
        hint = f"; a task comes right after the robot: pkm analyse {given.robot} {late} ..." if late else ""
        command.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return answered("", given, _overview)


def _overview(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = pkm_analysis.Analysis(mechanism, sweeps=sweeps)
    kinematics, found = analysis.robot.kinematics, analysis.workspace()
    tilts = []
    with contextlib.suppress(AnalysisError):  # most platforms do not turn about two axes
        tilts.append(analysis.tilt())
    names = [c.name for c in found.domain.coordinates][:2]
    charts = [analysis.map(quantity, vary=names) for quantity in OVERVIEW]
    numbers = {"robot": analysis.robot.name, "workspace": found.to_dict(), "maps": [c.to_dict() for c in charts]}
    numbers |= {"tilt": tilts[0].to_dict()} if tilts else {}
    home = [*str(kinematics).splitlines(), *str(kinematics.singularity(kinematics.home)).splitlines()]
    return Found(analysis.robot.name, "what it can do", [*tilts, found, *charts], numbers, home)
