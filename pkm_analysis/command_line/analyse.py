# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT [TASK]`: what a robot can do, and how well.

Tasks are in modules that are imported on demand; the robot is the first argument of each.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pkm_analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import Task
from pkm_analysis.command_line.task_answers import Found, add_output, answered
from pkm_analysis.requirements.grammar import nearest
from pkm_description.command_options import add_robot

if TYPE_CHECKING:
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

OVERVIEW = ("type2", "condition")  # mapped by default

DOMAIN, PREDICT = ("pkm_analysis.command_line.domain_tasks", "pkm_analysis.command_line.predict_task")
TASKS = {  # word: module, and what it does
    "workspace": (DOMAIN, "where it can be: volume, border as a mesh, and what stops it there"),
    "tilt": (DOMAIN, "how far it can tilt in every direction at a place"),
    "map": (DOMAIN, "any quantity over a slice, with the loci of singularities"),
    "loci": (DOMAIN, "singularities of all types as surfaces over a volume"),
    "regions": (DOMAIN, "singularity-free regions, which of them touch, and the assembly modes in each"),
    "path": (DOMAIN, "a path that meets no singularity and keeps margins, or that there is none"),
    "sweep": (DOMAIN, "statistics of a quantity over very many poses"),
    "prove": (DOMAIN, "whether something holds at every pose of a box or of a path"),
    "predict": (PREDICT, "what a motion asks of drives and joints; drives to choose from"),
}


def task_of(word: str) -> Task:
    """The task of a word of `TASKS`."""
    found: Task = importlib.import_module(TASKS[word][0]).TASKS[word]
    return found


def parser() -> argparse.ArgumentParser:
    """The command line without a task."""
    tasks = "".join(f"\n  {word:<9}  {what}" for word, (_, what) in TASKS.items())
    p = argparse.ArgumentParser(
        prog="pkm analyse",
        description="Say what a robot can do, and how well. With a task after the robot, that task in full.",
        epilog=f"tasks:{tasks}\n\n'pkm analyse ROBOT TASK --help' tells the options of a task.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_robot(p)
    add_output(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: the exit code of the task; 1 where the robot cannot be used, 2 for a wrong command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    task = next((word for word in words[:2] if word in TASKS), None)  # `analyse workspace delta` works as well
    if task is not None:
        words.remove(task)
        asked = task_of(task)
        options = asked.parser()
        given = options.parse_args(words)
        if wrong := asked.wrong(given):
            options.error(wrong)
        return answered(task, given, asked.answer, asked.no_answer)
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
    home = [str(kinematics), str(kinematics.singularity(kinematics.home))]
    return Found(analysis.robot.name, "what it can do", [*tilts, found, *charts], numbers, home)
