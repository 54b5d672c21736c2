# SPDX-License-Identifier: Apache-2.0
"""`pkm cycle`: how many cycles per minute a robot does between two places, with a payload, and what bounds it.

The motion is planned as it would be run, and the efforts and speeds of its actuators follow from inverse dynamics:
nothing is simulated, so the answer is there at once.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkm_bringup.command_line import cycle_search
from pkm_bringup.command_line.cycle_search import LIFT, CannotPickError, Places, pick_and_place
from pkm_client import options
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.planning import MotionPlanner
from pkm_description import command_options, load_mechanism
from pkm_description.command_options import wrong
from pkm_description.load import xacro_arguments
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError
from pkm_runtime.json_text import json_text
from pkm_runtime.kernels.kernel_cache import making
from pkm_runtime.whole_files import write_whole
from pkm_viewer.report.report import Use, three_digits

_RATE = 1000.0  # Hz, at which efforts and speeds are looked at
_STILL = 1e-9  # m/s or rad/s: rounding
_APART = 1e-9  # m


@dataclass(frozen=True, eq=False)
class Figures:
    """Load of a robot in a cycle."""

    robot: str
    motion: str
    duration: float  # s
    payload: float  # kg
    reserve: float
    notes: tuple[str, ...]
    actuated_names: tuple[str, ...]
    effort: Use
    speed: Use
    platform_speed: float  # m/s
    platform_acceleration: float  # m/s^2
    platform_turn_rate: float  # rad/s
    platform_turn_acceleration: float  # rad/s^2

    @property
    def cycles_per_minute(self) -> float:
        """Cycles per minute of the plan."""
        return 60.0 / self.duration


def planner_of(dynamics: Dynamics, payload: float = 0.0, reserve: float = USUAL_RESERVE) -> MotionPlanner:
    """The planner of cycles with a point mass [kg] at the platform's origin; `reserve` as in `MotionPlanner`."""
    carried = Inertial(mass=payload) if payload > 0.0 else None
    limits = ActuatorLimits.of(dynamics.mechanism)
    return MotionPlanner(dynamics, limits, reserve=reserve, payload=carried)


def cycle_figures(
    dynamics: Dynamics, motion: MotionFile, payload: float = 0.0, reserve: float = USUAL_RESERVE
) -> Figures:
    """Plan a motion as a cycle and return its load; `PkmError` where it cannot. Parameters as in `planner_of`."""
    kinematics, limits = dynamics.kinematics, ActuatorLimits.of(dynamics.mechanism)
    planner = planner_of(dynamics, payload, reserve)
    cycle = planner.plan_closed(motion)
    at = cycle.sampled(_RATE)
    carried = cycle.events.carried(at.times, planner.payload)
    wrench = carried.wrench(dynamics.mechanism.gravity, at.pose, at.twist, at.acceleration)
    there = kinematics.at(at.pose, mode=0)
    effort = np.asarray(dynamics.inverse(there, at.twist, at.acceleration, wrench).effort)
    speed = np.asarray(there.motion(at.twist).actuated_velocities)
    return Figures(
        robot=dynamics.mechanism.name,
        motion=motion.source,
        duration=cycle.duration,
        payload=payload,
        reserve=reserve,
        notes=cycle.notes,
        actuated_names=limits.names,
        effort=Use.of_efforts(np.array([effort.min(axis=0), effort.max(axis=0)]), _rms(effort), limits),
        speed=Use.of_speeds(np.abs(speed).max(axis=0), _rms(speed), limits),
        platform_speed=float(np.linalg.norm(at.twist[:, :3], axis=1).max()),
        platform_acceleration=float(np.linalg.norm(at.acceleration[:, :3], axis=1).max()),
        platform_turn_rate=float(np.linalg.norm(at.twist[:, 3:6], axis=1).max()),
        platform_turn_acceleration=float(np.linalg.norm(at.acceleration[:, 3:], axis=1).max()),
    )


def as_text(figures: Figures) -> str:
    """The printed text of the command."""
    carried = f" with {figures.payload:g} kg" if figures.payload else ""
    lines = [
        f"{figures.robot}, {figures.motion}{carried}: {figures.cycles_per_minute:.1f} cycles per minute "
        f"({figures.duration:.4f} s each)",
        f"platform: up to {_of_platform(figures)}",
        "",
    ]
    width = max(len(name) for name in figures.actuated_names)
    lines.append(f"{'actuator':<{width}}  {'effort: peak, RMS':<36}  speed: peak, RMS")
    for i, name in enumerate(figures.actuated_names):
        effort, speed = _share(figures.effort, i), _share(figures.speed.in_degrees(), i)
        lines.append(f"{name:<{width}}  {effort:<36}  {speed}")
    bounds = f"what bounds it (plans use {1.0 - figures.reserve:.0%} of efforts and speeds)"
    return "\n".join([*lines, "", bounds, *(f"  {note}" for note in figures.notes)])


def _of_platform(figures: Figures) -> str:
    moves = (figures.platform_speed, figures.platform_acceleration, "m")
    turns = (math.degrees(figures.platform_turn_rate), math.degrees(figures.platform_turn_acceleration), "deg")
    done = [(speed, more, unit) for speed, more, unit in (moves, turns) if speed > _STILL]
    return "; ".join(
        f"{three_digits(speed)} {unit}/s and {three_digits(more)} {unit}/s^2" for speed, more, unit in done or [moves]
    )


def as_json(figures: Figures, search: dict[str, Any] | None = None) -> str:
    """The figures as JSON, in SI units, with those of a search."""
    actuators = [
        {
            "name": name,
            **{
                f"{what}_{key}": value
                for what, use in (("effort", figures.effort), ("speed", figures.speed))
                for key, value in (("peak", use.peak[i]), ("rms", use.rms[i]), ("limit", use.limit[i]))
            },
        }
        for i, name in enumerate(figures.actuated_names)
    ]
    alike: tuple[str, ...] = ("robot", "motion", "cycles_per_minute", "duration", "payload", "reserve")
    alike += ("platform_speed", "platform_acceleration", "platform_turn_rate", "platform_turn_acceleration")
    found: dict[str, Any] = {name: getattr(figures, name) for name in alike}
    found |= {"bounded_by": list(figures.notes), "actuators": actuators}
    return json_text(found if search is None else {**found, "search": search})


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "cycle",
        "How many cycles per minute a robot does between two places, what that asks of its actuators, and\n"
        "what bounds it. Nothing is simulated and no ROS is needed. Without --pick and --place, a motion that\n"
        "ships is timed.",
    )
    options.add_robot(p)
    places = p.add_argument_group("places")
    for name in ("--pick", "--place"):
        places.add_argument(
            name, nargs=3, type=command_options.length, metavar=("X", "Y", "Z"), help=f"where to {name[2:]} [m]"
        )
    text = "frame of both places; home: relative to the home pose"
    places.add_argument("--frame", choices=("base", "home"), default="base", help=text)
    for name, kind, default, unit, text in (
        ("--turn", command_options.number, 0.0, "DEG", "turn about z from pick to place [deg]"),
        ("--lift", command_options.distance, None, "M", f"lift before moving across [m]; {LIFT:g} if possible"),
        ("--rounding", command_options.distance, None, "M", "rounding of the corners [m]; default: the lift"),
        ("--dwell", command_options.not_negative, 0.02, "S", "rest at each place [s]"),
    ):
        places.add_argument(name, type=kind, default=default, metavar=unit, help=text)
    options.add(places, "motion", help=options.MOTION)
    options.add(places, "tool_file")
    load = p.add_argument_group("load")
    text = "mass at the platform's origin [kg], or such as 500g"
    load.add_argument("--payload", type=command_options.mass, default=0.0, metavar="KG", help=text)
    text = "share of efforts and speeds reserved for the controller, 0 to 0.9"
    load.add_argument("--reserve", type=command_options.share, default=USUAL_RESERVE, metavar="SHARE", help=text)
    free = p.add_argument_group("search")
    text = "search for the fastest lift and rounding of the corners"
    free.add_argument("--optimise", action=options.Switch, default=False, help=text)
    for name, kind, default, unit, text in (
        ("--clearance", command_options.positive, None, "M", "smallest allowed lift [m]; default: --lift"),
        (
            "--highest",
            command_options.positive,
            None,
            "M",
            "largest allowed lift [m]; default: four times the smallest",
        ),
        ("--shift", command_options.not_negative, 0.0, "M", "largest displacement of both places [m]"),
        ("--candidates", command_options.count, 60, "N", "cycles to plan, at most"),
    ):
        free.add_argument(name, type=kind, default=default, metavar=unit, help=text)
    output = p.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print the figures as JSON")
    output.add_argument("--write", metavar="FILE", help="write the cycle as a motion file")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0, 1 where the robot cannot do it, 2 for a wrong command line."""
    command = parser()
    given = command.parse_args(arguments)
    if (given.pick is None) != (given.place is None):
        command.error("give both --pick and --place, or neither")
    if given.pick is None and (given.turn or given.lift is not None or given.rounding is not None):
        command.error("--turn, --lift and --rounding belong to --pick and --place")
    if given.pick is not None and "motion" in options.chosen(parser(), arguments):
        command.error("--pick and --place are a motion of their own: leave out --motion, or them")
    if given.tool_file and (given.pick is not None or given.optimise):
        command.error("--tool-file is of a motion file: leave it out with --pick and --place, and with --optimise")
    if not given.optimise and {"clearance", "highest", "shift", "candidates"} & options.chosen(parser(), arguments):
        command.error("--clearance, --highest, --shift and --candidates belong to --optimise")
    if given.write and not given.optimise and given.pick is None:
        command.error("--write is of a cycle between --pick and --place, or of --optimise")
    found = ""
    search: dict[str, Any] | None = None
    try:
        with making("building the robot"):
            dynamics = Dynamics(load_mechanism(given.robot, xacro_arguments(given.xacro_args)))
        places = _places(command, given, dynamics.kinematics)
        if places is not None and given.optimise:
            places, found, search = _optimised(given, dynamics, places)
        motion = (
            motion_named(given.motion, dynamics.kinematics, given.tool_file)
            if places is None
            else pick_and_place(dynamics.kinematics, places)
        )
        with making("planning the motion"):
            figures = cycle_figures(dynamics, motion, given.payload, given.reserve)
        if given.write:
            _write(given.write, motion)
    except PkmError as error:
        return wrong("cycle", error)
    print(as_json(figures, search) if given.json else found + as_text(figures))
    return 0


def _places(command: argparse.ArgumentParser, given: argparse.Namespace, kinematics: Kinematics) -> Places | None:
    if given.pick is None:
        return cycle_search.usual_places(kinematics, given.dwell) if given.optimise else None
    turn = math.radians(given.turn)
    points = np.array(given.pick), np.array(given.place)
    if np.linalg.norm(points[1] - points[0]) < _APART and not given.turn:
        command.error("--pick and --place are the same place")
    return Places(*points, given.frame == "home", turn, given.lift, given.rounding, given.dwell)


def _optimised(given: argparse.Namespace, dynamics: Dynamics, places: Places) -> tuple[Places, str, dict[str, Any]]:
    least = given.clearance or places.lift or LIFT
    freedom = cycle_search.Freedom(least, given.highest or 4.0 * least, given.shift, given.candidates)
    look = cycle_search.CycleSearch(planner_of(dynamics, given.payload, given.reserve), places, freedom)
    with making("looking for the fastest cycle", look.in_words):
        first, best = look.run()
    numbers = {
        "duration_before": first.duration,
        "candidates": look.tried,
        "lift": best.lift,
        "rounding": best.rounding,
        "shift": best.shift(first).tolist(),
    }
    return best.places, cycle_search.in_words(first, best, look.tried) + "\n\n", numbers


def _write(path: str, motion: MotionFile) -> None:
    try:
        write_whole(path, cycle_search.as_file(motion))
    except OSError as error:
        raise CannotPickError(f"{path} cannot be written: {error.strerror}") from error


def _rms(values: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def _share(use: Use, i: int) -> str:
    text = f"{use.peak[i]:.4g}, {use.rms[i]:.4g}"
    if not np.isfinite(use.limit[i]):
        return f"{text} {use.units[i]}"
    return f"{text} of {use.limit[i]:.4g} {use.units[i]} ({use.peak_share[i]:.0%}, {use.rms_share[i]:.0%})"
