# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT predict MOTION`: what a motion asks of drives and joints, and which drives provide it."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, Any

import pkm_analysis
from pkm_analysis import prediction
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import Task
from pkm_analysis.command_line.task_answers import MOTIONS, Found
from pkm_description.mechanism import Inertial

if TYPE_CHECKING:
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

EXCEEDED = 3


def _wrong(given: argparse.Namespace) -> str:
    return "--gears need --motors" if given.gears and not given.motors else ""


def _answer(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    motors = prediction.read_motors(given.motors) if given.motors else []
    gears = prediction.read_gears(given.gears) if given.gears else [prediction.DIRECT]
    robot = pkm_analysis.Robot(mechanism, sweeps=sweeps)
    drives = len(robot.kinematics.actuated_names)
    if given.continuous and len(given.continuous) not in (1, drives):
        raise AnalysisError("--continuous", f"these are {len(given.continuous)} efforts", f"give 1 or {drives}")
    payload = Inertial(mass=given.payload) if given.payload else None
    motion = importlib.import_module(MOTIONS).sampled_motion(robot.dynamics, given.motion, payload, given.closed)
    load = {"payload": payload} if motion.wrench is None else {"wrench": motion.wrench}  # of the file
    found = prediction.predict(robot.dynamics, *motion[:4], **load, name=given.motion)
    rest = _rest(given, found.duration)
    cycles = 60.0 / (found.duration + rest)
    numbers: dict[str, Any] = {**found.to_dict(), "notes": list(motion.notes), "cycles_per_minute": cycles}
    lines, hot = [*motion.notes, f"{cycles:.4g} cycles per minute, with a rest of {rest:.4g} s after each"], False
    if given.continuous:
        duty = found.duty(given.continuous, rest)
        numbers["thermal_duty"] = dict(zip(found.names, duty.tolist(), strict=True))
        hot = bool((duty > 1.0).any())
        verdicts = ("too hot" if one > 1.0 else "fits" for one in duty)
        each = zip(found.names, duty, verdicts, strict=True)
        lines += [f"{name}: thermal duty {100.0 * one:.3g} %, {verdict}" for name, one, verdict in each]
    choices = prediction.choose_drives(found, motors, gears, rest)
    results: list[Any] = [found, choices] if choices else [found]
    numbers |= choices.to_dict() if choices else {}
    status = EXCEEDED if found.exceeded or hot else 0
    return Found(robot.name, "what a motion asks for", results, numbers, lines, status)


def _rest(given: argparse.Namespace, duration: float) -> float:
    """Rest after each run [s]."""
    if given.cycles_per_minute is None:
        return float(given.rest)
    rest = 60.0 / given.cycles_per_minute - duration
    if rest < 0.0:
        problem = f"one takes {duration:.4g} s, which is {60.0 / duration:.4g} a minute"
        raise AnalysisError("--cycles-per-minute", problem, "ask for fewer, or for a faster motion")
    return float(rest)


def _not_negative(text: str) -> float:
    value = float(text)
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is negative or no number")
    return value


def _positive(text: str) -> float:
    value = _not_negative(text)
    if value == 0.0:
        raise argparse.ArgumentTypeError("it is zero")
    return value


_NUMBER = {"type": _not_negative, "default": 0.0}
_PREDICT = Task(
    "predict",
    "What a motion asks of every drive: peak and RMS effort and speed, power, energy, thermal duty;\n"
    "what every joint transmits; and which limits of the description it exceeds. With a table of motors, and of\n"
    "gears, which of them provide it, which fit all drives, and why the others do not.",
    _answer,
    ("--closed",),
    {
        "motion": {"metavar": "MOTION", "help": "a motion file (CSV), a motion that ships, or auto"},
        "--payload": {
            **_NUMBER,
            "metavar": "KG",
            "help": "mass at the platform's origin, where the file says none [kg]",
        },
        "--rest": {**_NUMBER, "metavar": "S", "help": "rest after each run [s]"},
        "--cycles-per-minute": {"type": _positive, "metavar": "N", "help": "runs per minute, with a rest after each"},
        "--continuous": {
            "type": _positive,
            "nargs": "+",
            "metavar": "EFFORT",
            "help": "effort that each drive can give for ever [N m, N], for its thermal duty",
        },
        "--motors": {"metavar": "FILE", "help": "table of motors to choose from"},
        "--gears": {"metavar": "FILE", "help": "table of gears to choose from; without, motors drive directly"},
    },
    "Times in the motion file are kept, whatever they ask for; without times it is run as fast as limits\n"
    "allow. Tables are CSV: name, continuous [N m], peak [N m], speed [rpm], inertia [kg cm^2] of motors;\n"
    "name, ratio, and efficiency, inertia [kg cm^2], peak [N m], speed [rpm] of gears.\n"
    f"Exit status: 0 within all limits, {EXCEEDED} beyond some or too hot, 1 no answer, 2 wrong command line.",
    "MOTION [options]",
    ("--rest", "--cycles-per-minute"),
    wrong=_wrong,
)
TASKS = {"predict": _PREDICT}
