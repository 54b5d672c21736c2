# SPDX-License-Identifier: Apache-2.0
"""Options that tasks share: which robot, where, under which conditions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pkm_analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.task_answers import add_output
from pkm_analysis.requirements.words import in_si, read_quantity, read_range, read_value
from pkm_description.command_options import add_robot

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import Robot
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.domain import Range
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps


def plain_parser(
    task: str, description: str, epilog: str = "", usage: str | None = "[options]"
) -> argparse.ArgumentParser:
    """The parser of a task, with the robot alone; without `usage`, that of its options."""
    prog = f"pkm analyse ROBOT {task}"
    p = argparse.ArgumentParser(
        prog=prog,
        usage=None if usage is None else f"{prog} {usage}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_robot(p)
    return p


def parser(task: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """The parser of a task over a domain, with the options that these share."""
    p = plain_parser(task, description, epilog)
    p.add_argument("--vary", metavar="NAMES", help="coordinates that vary, such as x,y,z (default: all)")
    p.add_argument(
        "--range", action="append", default=[], metavar="NAME=A:B", help="range of one, such as x=-300mm:300mm"
    )
    p.add_argument(
        "--hold", action="append", default=[], metavar="NAME=VALUE", help="value of another, such as yaw=20deg"
    )
    p.add_argument("--require", action="append", default=[], metavar="BOUND", help="such as 'type2 > 0.2 rad/m'")
    add_mode(p)
    add_assumed(p)
    add_resolution(p)
    add_output(p)
    return p


def add_mode(p: argparse.ArgumentParser) -> None:
    """Add the option for the working mode."""
    p.add_argument("--mode", type=int, metavar="N", help="number of a working mode (default: home's)")


def add_resolution(p: argparse.ArgumentParser) -> None:
    """Add the option for how fine grids are."""
    p.add_argument("--resolution", type=int, metavar="N", help="nodes along a coordinate")


def add_assumed(p: argparse.ArgumentParser) -> None:
    """Add the options for what is assumed of the drives."""
    p.add_argument("--stiffness", type=float, metavar="K", help="of the drives [N m/rad or N/m], for natural_frequency")
    add_sensor_error(p)


def add_sensor_error(p: argparse.ArgumentParser) -> None:
    """Add the option for the errors of the drives' sensors."""
    text = "largest error of the drives' sensors, such as 0.01 deg, for position_error and turning_error"
    p.add_argument("--sensor-error", nargs="+", metavar=("NUMBER", "UNIT"), help=text)


def sensor_errors(robot: Robot, words: list[str] | None) -> tuple[float, ...]:
    """One error [rad, m] for all sensors, or none; `words` are a number and its unit, or one word of both."""
    if not words:
        return ()
    text = " ".join(words)
    about = f"--sensor-error {text}"
    number, unit = read_quantity(text, about, "write 0.01 deg")
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
    ranges = ranges_of(analysis, given.range)
    hold = values_of(analysis, given.hold)
    vary = given.vary.split(",") if given.vary else list(ranges) or None
    if not given.vary and not slices:
        usual = [c.name for c in analysis.robot.coordinates.free[:3]]
        if set(usual).issuperset(ranges):  # one range leaves the others free unless held
            vary = [name for name in usual if name not in hold] if hold.keys() & set(usual) else None
    return {"ranges": ranges, "vary": vary, "hold": hold, "requirements": given.require, "resolution": given.resolution}


def ranges_of(analysis: Analysis, texts: Iterable[str]) -> dict[str, Range]:
    """Ranges [m, rad] by name from texts NAME=LOWER:UPPER, units optional."""
    found = (read_range(analysis.robot.coordinates, text) for text in texts)
    return {c.name: ends for c, ends in found}


def values_of(analysis: Analysis, texts: Iterable[str]) -> dict[str, float]:
    """Values [m, rad] by name from texts NAME=VALUE, unit optional."""
    found = (read_value(analysis.robot.coordinates, text) for text in texts)
    return {c.name: value for c, value in found}
