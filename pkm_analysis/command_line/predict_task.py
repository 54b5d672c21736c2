# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT predict MOTION`: what a motion asks of drives and joints, and which drives provide it."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pkm_analysis
from pkm_analysis import prediction
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import plain_parser
from pkm_analysis.command_line.task_answers import Found, Task, add_output, add_picture
from pkm_description.mechanism import Inertial

if TYPE_CHECKING:
    from pkm_analysis.prediction import Choice, Gear
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

MOTIONS = "pkm_control.motion.files.sampled_motion"  # reads and plans motion files; imported by name
EXCEEDED = 3
SHOWN = 3  # choices printed per joint


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = plain_parser(
        "predict",
        "What a motion asks of every drive: peak and RMS effort and speed, power, energy, thermal duty;\n"
        "what every joint transmits; and which limits of the description it exceeds. With a table of motors, and of\n"
        "gears, which of them provide it, and why the others do not.",
        "Times in the motion file are kept, whatever they ask for; without times it is run as fast as limits\n"
        "allow. Tables are CSV: name, continuous [N m], peak [N m], speed [rpm], inertia [kg cm^2] of motors;\n"
        "name, ratio, and efficiency, inertia [kg cm^2], peak [N m], speed [rpm] of gears.\n"
        f"Exit status: 0 within all limits, {EXCEEDED} beyond some or too hot, 1 no answer, 2 wrong command line.",
        "MOTION [options]",
    )
    p.add_argument("motion", metavar="MOTION", help="a motion file (CSV), a motion that ships, or auto")
    p.add_argument(
        "--payload",
        type=_not_negative,
        default=0.0,
        metavar="KG",
        help="mass at the platform's origin, where the file says none [kg]",
    )
    p.add_argument("--closed", action="store_true", help="add a way back where the motion ends elsewhere")
    p.add_argument("--rest", type=_not_negative, default=0.0, metavar="S", help="rest after each run [s]")
    text = "effort that each drive can give for ever [N m, N], for its thermal duty"
    p.add_argument("--continuous", type=_positive, nargs="+", metavar="EFFORT", help=text)
    p.add_argument("--motors", metavar="FILE", help="table of motors to choose from")
    p.add_argument("--gears", metavar="FILE", help="table of gears to choose from; without, motors drive directly")
    add_output(p)
    add_picture(p)
    return p


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
    pushed = motion.wrench is not None  # the file defines the load
    found = prediction.predict(robot.dynamics, *motion[:4], payload=None if pushed else payload, wrench=motion.wrench)
    numbers: dict[str, Any] = {**found.to_dict(), "notes": list(motion.notes)}
    lines, hot = list(motion.notes), False
    if given.continuous:
        duty = found.duty(given.continuous, given.rest)
        numbers["thermal_duty"] = dict(zip(found.names, duty.tolist(), strict=True))
        hot = bool((duty > 1.0).any())
        verdicts = ("too hot" if one > 1.0 else "fits" for one in duty)
        lines += [f"{n}: duty {d:.3g}, {v}" for n, d, v in zip(found.names, duty, verdicts, strict=True)]
    choices = prediction.choose_drives(found, motors, gears, given.rest)
    if choices:
        numbers["choices"] = [_listed(one) for one in choices]
        lines += _table(choices, gears)
    status = EXCEEDED if found.exceeded or hot else 0
    return Found(robot.name, "what a motion asks for", [found], numbers, lines, status)


def _listed(one: Choice) -> dict[str, Any]:
    return {
        "joint": one.joint,
        "motor": one.motor.name,
        "gear": one.gear.name,
        "fits": one.ok,
        "reason": one.reason,
        "uses": one.uses,
        "losses": one.losses,
    }


def _table(choices: Sequence[Choice], gears: Sequence[Gear]) -> list[str]:
    """The best choices of each joint, and how many more there are."""
    lines: list[str] = []
    for joint in dict.fromkeys(one.joint for one in choices):
        own = [one for one in choices if one.joint == joint]
        fit = sum(one.ok for one in own)
        lines.append(f"{joint}: {fit} of {len(own)} pairs of motor and gear fit")
        lines += [
            f"  {one.motor.name} with {one.gear.name}: {'fits' if one.ok else 'fails'}, {one.reason}"
            for one in own[:SHOWN]
        ]
    return lines


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


TASKS = {"predict": Task(parser, _answer, _wrong)}
