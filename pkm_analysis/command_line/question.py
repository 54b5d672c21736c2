# SPDX-License-Identifier: Apache-2.0
"""Tasks and their options, and what people say in them: which robot, where, under which conditions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pkm_analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.task_answers import Answer, add_output
from pkm_analysis.requirements.grammar import in_si, read_number
from pkm_description.command_options import add_robot

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import Robot
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.domain import Range, TaskCoordinates
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

SEVERAL: dict[str, Any] = {"nargs": "+", "action": "extend", "default": []}
SHARED: dict[str, dict[str, Any]] = {  # options of several tasks: what argparse is told
    "--vary": {"metavar": "NAMES", "help": "coordinates that vary, such as x,y,z (default: all)"},
    "--range": {**SEVERAL, "metavar": "NAME=A:B", "help": "ranges, such as x=-300mm:300mm yaw=-10:10deg"},
    "--hold": {**SEVERAL, "metavar": "NAME=VALUE", "help": "values of others, such as yaw=20deg"},
    "--require --that": {
        "action": "append",
        "default": [],
        "metavar": "BOUND",
        "help": "what is to hold, such as 'type2 > 0.2 rad/m' or 'no singularity'; may be given several times",
    },
    "--mode": {"type": int, "metavar": "N", "help": "number of a working mode (default: home's)"},
    "--stiffness": {"type": float, "metavar": "K", "help": "of the drives [N m/rad or N/m], for natural_frequency"},
    "--sensor-error": {
        "nargs": "+",
        "metavar": ("NUMBER", "UNIT"),
        "help": "largest error of the drives' sensors, such as 0.01 deg, for position_error and turning_error",
    },
    "--resolution": {"type": int, "metavar": "N", "help": "nodes along a coordinate"},
    "--quantity": {"default": "type2", "metavar": "NAME", "help": "what is asked for, see map --help (default: type2)"},
    "--layer": {"metavar": "FILE", "help": "surfaces as .glb, which 'pkm run --layers' and RViz show"},
    "--no-joint-limits": {"action": "store_true", "help": "do without limits of joints"},
    "--closed": {"action": "store_true", "help": "of a motion: add a way back where it ends elsewhere"},
}
CONDITIONS = ("--require --that", "--mode", "--stiffness", "--sensor-error")
WHERE = ("--vary", "--range", "--hold", *CONDITIONS, "--resolution")
EXIT = "Exit status: 0 found, 1 there is none, or a question with a fault, 2 wrong command line."


@dataclass(frozen=True)
class Task:
    """A task of the command: `options` are names of `SHARED`, `own` ones come with what argparse is told.

    Of the options `either` at most one is given, and one at least where that is `needed`. `wrong` says what is wrong
    with options that are readable; `no_answer` is the exit status without an answer.
    """

    word: str
    description: str
    answer: Answer
    options: tuple[str, ...] = WHERE
    own: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    epilog: str = EXIT
    usage: str | None = "[options]"
    either: tuple[str, ...] = ()
    needed: bool = False
    wrong: Callable[[argparse.Namespace], str] = lambda given: ""
    no_answer: int = 1

    def parser(self) -> argparse.ArgumentParser:
        """Its command line."""
        prog, form = f"pkm analyse ROBOT {self.word}", argparse.RawDescriptionHelpFormatter
        usage = self.usage and f"{prog} {self.usage}"
        p = argparse.ArgumentParser(
            prog=prog, usage=usage, description=self.description, epilog=self.epilog, formatter_class=form
        )
        add_robot(p)
        one = p.add_mutually_exclusive_group(required=self.needed) if self.either else p
        for name, told in {**{name: SHARED[name] for name in self.options}, **self.own}.items():
            (one if name in self.either else p).add_argument(*name.split(), **told)
        add_output(p)
        p.add_argument("--picture", metavar="FILE", help="picture as .png, .svg or .pdf")
        return p


def sensor_errors(robot: Robot, words: list[str] | None) -> tuple[float, ...]:
    """One error [rad, m] for all sensors, or none; `words` are a number and its unit, or one word of both."""
    if not words:
        return ()
    about = f"--sensor-error {' '.join(words)}"
    number, unit = read_number(" ".join(words), about, "write 0.01 deg")
    if robot.actuator_unit not in ("m", "rad"):
        raise AnalysisError(about, "some drives turn and others slide", "give one for each: Analysis(..., sensors=...)")
    return (in_si(number, unit, robot.actuator_unit, about),)


def asked(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Analysis:
    """The analysis of a robot, with what the command line assumes of it."""
    analysis = pkm_analysis.Analysis(mechanism, given.mode, given.stiffness, sweeps)
    sensors = sensor_errors(analysis.robot, given.sensor_error)
    analysis.assumed = analysis.assumed._replace(sensors=sensors)
    return analysis


def where(analysis: Analysis, given: argparse.Namespace, slices: bool = False) -> dict[str, Any]:
    """Domain and conditions as arguments of `Analysis`; with `slices` only coordinates with a range vary."""
    task = analysis.robot.coordinates
    ranges, hold = ranges_of(task, given.range), values_of(task, given.hold)
    vary = given.vary.split(",") if given.vary else list(ranges) or None
    if not given.vary and not slices:
        usual = [c.name for c in task.free[:3]]
        if set(usual).issuperset(ranges):  # one range leaves the others free unless held
            vary = [name for name in usual if name not in hold] if hold.keys() & set(usual) else None
    return {"ranges": ranges, "vary": vary, "hold": hold, "requirements": given.require, "resolution": given.resolution}


def ranges_of(task: TaskCoordinates, texts: Iterable[str], optional: bool = False) -> dict[str, Range]:
    """Ranges [m, rad] by name from texts NAME=LOWER:UPPER, units optional; with `optional` also NAME=VALUE."""
    return {c.name: ends for c, ends in (task.read_range(text, optional) for text in texts)}


def values_of(task: TaskCoordinates, texts: Iterable[str]) -> dict[str, float]:
    """Values [m, rad] by name from texts NAME=VALUE, unit optional."""
    return {c.name: value for c, value in map(task.read_value, texts)}
