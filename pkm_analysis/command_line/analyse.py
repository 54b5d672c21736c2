# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT [TASK]`: what a robot can do, and how well.

Tasks are in modules that are imported on demand; the robot is the first argument of each.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pkm_analysis
from pkm_analysis.command_line.task_answers import Found, Task, add_output, answered
from pkm_description.command_options import add_robot

if TYPE_CHECKING:
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

OVERVIEW = ("type2", "isotropy")  # mapped by default

DOMAIN = "pkm_analysis.command_line.domain_tasks"
TASKS = {  # word: module, and what it does
    "workspace": (DOMAIN, "where it can be: volume, border as a mesh, and what stops it there"),
    "map": (DOMAIN, "any quantity over a slice, with the loci of singularities"),
    "loci": (DOMAIN, "singularities of all types as surfaces over a volume"),
    "regions": (DOMAIN, "singularity-free regions, which of them touch, and the assembly modes in each"),
    "path": (DOMAIN, "a path that meets no singularity and keeps margins, or that there is none"),
    "sweep": (DOMAIN, "statistics of a quantity over very many poses"),
    "prove": ("pkm_analysis.command_line.prove_task", "whether something holds at every pose of a box or of a path"),
    "predict": (
        "pkm_analysis.command_line.predict_task",
        "what a motion asks of drives and joints; drives to choose from",
    ),
}


def task_of(word: str) -> Task:
    """The task of a word of `TASKS`."""
    found: Task = importlib.import_module(TASKS[word][0]).TASKS[word]
    return found


def parser() -> argparse.ArgumentParser:
    """The command line without a task."""
    width = max((len(word) for word in TASKS), default=0)
    tasks = "".join(f"\n  {word:<{width}}  {what}" for word, (_, what) in TASKS.items())
    p = argparse.ArgumentParser(
        prog="pkm analyse",
        description="Say what a robot can do, and how well. With a task after the robot, that task in full.",
        epilog=f"tasks:{tasks}\n\n'pkm analyse ROBOT TASK --help' tells the options of a task." if TASKS else "",
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
        return _run(task, words)
    command = parser()
    if len(words) > 1 and not words[1].startswith("-") and not words[0].startswith("-"):
        near = difflib.get_close_matches(words[1], TASKS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(TASKS)}"
        command.error(f"no such task as '{words[1]}'; {hint}")
    given, rest = command.parse_known_args(words)
    if rest:
        late = next((word for word in rest if word in TASKS), "")
        hint = f"; a task comes right after the robot: pkm analyse {given.robot} {late} ..." if late else ""
        command.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return answered("", given, _overview)


def _run(word: str, arguments: list[str]) -> int:
    """Exit status of a task."""
    task = task_of(word)
    command = task.parser()
    given = command.parse_args(arguments)
    wrong = task.wrong(given)
    if wrong:
        command.error(wrong)
    return answered(word, given, task.answer, task.no_answer)


def _overview(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = pkm_analysis.Analysis(mechanism, sweeps=sweeps)
    kinematics = analysis.robot.kinematics
    home = [str(kinematics), str(kinematics.singularity(kinematics.home))]
    found = analysis.workspace()
    names = [c.name for c in found.domain.coordinates][:2]
    charts = [analysis.map(quantity, vary=names) for quantity in OVERVIEW]
    numbers = {"robot": analysis.robot.name, "workspace": found.to_dict(), "maps": [c.to_dict() for c in charts]}
    return Found(analysis.robot.name, "what it can do", [found, *charts], numbers, home)
