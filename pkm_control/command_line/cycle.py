# SPDX-License-Identifier: Apache-2.0
"""`pkm cycle`: how many cycles per minute a robot does between two places, with a payload, and what bounds it.

The motion is planned as it would be run, and the efforts and speeds of its actuators follow from inverse dynamics:
nothing is simulated, so the answer is there at once.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_control.command_line import options
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.limits import ActuatorLimits, PlatformLimits
from pkm_control.motion.planning import MotionPlanner
from pkm_control.realism import USUAL_RESERVE
from pkm_control.report.report import Use
from pkm_description import load_mechanism
from pkm_description.errors import PkmError
from pkm_description.load import xacro_arguments
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.making import making

Array = NDArray[np.float64]

_LIFT = 0.025  # m, as in the cycle that ships
_RATE = 1000.0  # Hz, at which efforts and speeds are looked at
_STILL = 1e-9  # m/s or rad/s: rounding
_APART = 1e-9  # m
_FAR = 20.0  # times the robot's size: numbers of that size are mm
_IN_SPACE = 1e-6  # part of a direction that may lie outside the motion space


class CannotPickError(PkmError):
    """What was asked is no motion of this robot."""


@dataclass(frozen=True)
class Places:
    """Between what to move: points [m], `turn` about z between them [rad], `lift` [m] (None: what suits), ..."""

    pick: Array
    place: Array
    from_home: bool
    turn: float
    lift: float | None
    rounding: float | None  # m; None: as much as the lift
    dwell: float  # s, at either place


@dataclass(frozen=True, eq=False)
class Figures:
    """What a cycle asks of a robot."""

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
        """Of the plan."""
        return 60.0 / self.duration


def cycle_figures(
    dynamics: Dynamics, motion: MotionFile, payload: float = 0.0, reserve: float = USUAL_RESERVE
) -> Figures:
    """Plan a motion as a cycle and say what it asks of the actuators.

    Args:
        dynamics: of the robot.
        motion: what to do.
        payload: a point mass at the platform's origin [kg].
        reserve: fraction of efforts and speeds that is left to the controller.

    Returns:
        The figures.

    Raises:
        PkmError: the robot cannot do it.
    """
    kinematics, limits = dynamics.kinematics, ActuatorLimits.of(dynamics.mechanism)
    carried = Inertial(mass=payload) if payload > 0.0 else None
    planner = MotionPlanner(kinematics, dynamics, limits, reserve=reserve, payload=carried)
    cycle = planner.plan_closed(motion)
    at = cycle.sampled(_RATE)
    effort = np.asarray(dynamics.inverse(at.pose, at.twist, at.acceleration, payload=carried, mode=0).effort)
    speed = np.asarray(kinematics.motion(at.pose, at.twist, mode=0).actuated_velocities)
    units = tuple(f"{unit}/s" for unit in limits.length_units)
    return Figures(
        robot=dynamics.mechanism.name,
        motion=motion.source,
        duration=cycle.duration,
        payload=payload,
        reserve=reserve,
        notes=cycle.notes,
        actuated_names=limits.names,
        effort=Use(np.abs(effort).max(axis=0), _rms(effort), limits.effort, limits.effort_units),
        speed=Use(np.abs(speed).max(axis=0), _rms(speed), limits.velocity, units),
        platform_speed=float(np.linalg.norm(at.twist[:, :3], axis=1).max()),
        platform_acceleration=float(np.linalg.norm(at.acceleration[:, :3], axis=1).max()),
        platform_turn_rate=float(np.linalg.norm(at.twist[:, 3:], axis=1).max()),
        platform_turn_acceleration=float(np.linalg.norm(at.acceleration[:, 3:], axis=1).max()),
    )


def _stations(pick: Array, place: Array, lift: float) -> tuple[list[Array], list[str]]:
    """Poses (7,) of a cycle, and what they are called."""
    if not lift > 0.0:
        return [pick, place, pick], ["pick", "place", "pick"]
    raised = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    return (
        [pick, pick + raised, place + raised, place, place + raised, pick + raised, pick],
        ["pick", "lifted", "above place", "place", "lifted", "above pick", "pick"],
    )


def pick_and_place(kinematics: Kinematics, places: Places) -> MotionFile:
    """The cycle between two places: up, across, down, and back the same way.

    Args:
        kinematics: of the robot.
        places: between what.

    Returns:
        The motion, in the base frame.

    Raises:
        CannotPickError: the robot has no such freedom.
    """
    home = np.asarray(kinematics.home, dtype=np.float64)
    name, space = kinematics.mechanism.name, np.asarray(kinematics.subspace(home))
    if not np.linalg.norm(space[:3], axis=0).max() > 1e-9:
        raise CannotPickError(
            f"{name} only turns, so it cannot carry anything from place to place; without --pick and --place its own "
            "motion is timed"
        )
    origin = home[:3] if places.from_home else np.zeros(3)
    pick, place = places.pick + origin, places.place + origin
    _require_metres(kinematics, places)
    _require(kinematics, np.concatenate([place - pick, np.zeros(3)]), "from --pick to --place")
    _require(kinematics, np.concatenate([pick - home[:3], np.zeros(3)]), "from home to --pick")
    if places.turn:
        _require(kinematics, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), "by --turn about z")
    up = np.array([0.0, 0.0, 1.0])
    lift = places.lift
    if lift is None:
        lift = _LIFT if _moves(kinematics, np.concatenate([up, np.zeros(3)])) else 0.0
    elif lift > 0.0:
        _require(kinematics, np.concatenate([up, np.zeros(3)]), "up, by --lift")
    turned = (Rotation.from_rotvec([0.0, 0.0, places.turn]) * Rotation.from_quat(home[3:])).as_quat()
    at_pick, at_place = np.concatenate([pick, home[3:]]), np.concatenate([place, turned])
    stations, labels = _stations(at_pick, at_place, lift)
    stops = np.array([label in ("pick", "place") for label in labels])
    n = len(stations)
    dwells = np.where(stops, places.dwell, 0.0)
    dwells[-1] = 0.0  # the next cycle begins with it
    return MotionFile(
        source="pick and place",
        relative_to_home=False,
        straight=True,
        poses=np.array(stations),
        times=None,
        speeds=np.full(n, math.inf),
        angular_speeds=np.full(n, math.inf),
        blends=np.where(stops, 0.0, lift if places.rounding is None else places.rounding),
        dwells=dwells,
        labels=tuple(labels),
        lines=(),
        limits=PlatformLimits.none(),
    )


def as_text(figures: Figures) -> str:
    """What the command prints."""
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
        effort, speed = _share(figures.effort, i), _share(figures.speed, i)
        lines.append(f"{name:<{width}}  {effort:<36}  {speed}")
    bounds = f"what bounds it (plans use {1.0 - figures.reserve:.0%} of efforts and speeds)"
    return "\n".join([*lines, "", bounds, *(f"  {note}" for note in figures.notes)])


def _of_platform(figures: Figures) -> str:
    """How fast it moves and turns, of these what it does at all."""
    moves = (figures.platform_speed, figures.platform_acceleration, "m")
    turns = (figures.platform_turn_rate, figures.platform_turn_acceleration, "rad")
    done = [(speed, more, unit) for speed, more, unit in (moves, turns) if speed > _STILL]
    return "; ".join(f"{speed:.3g} {unit}/s and {more:.3g} {unit}/s^2" for speed, more, unit in done or [moves])


def as_json(figures: Figures) -> str:
    """The same as JSON, in SI units."""
    actuators = [
        {
            "name": name,
            **{
                f"{what}_{key}": _finite(value)
                for what, use in (("effort", figures.effort), ("speed", figures.speed))
                for key, value in (("peak", use.peak[i]), ("rms", use.rms[i]), ("limit", use.limit[i]))
            },
        }
        for i, name in enumerate(figures.actuated_names)
    ]
    found: dict[str, Any] = {
        "robot": figures.robot,
        "motion": figures.motion,
        "cycles_per_minute": figures.cycles_per_minute,
        "duration": figures.duration,
        "payload": figures.payload,
        "reserve": figures.reserve,
        "platform_speed": figures.platform_speed,
        "platform_acceleration": figures.platform_acceleration,
        "platform_turn_rate": figures.platform_turn_rate,
        "platform_turn_acceleration": figures.platform_turn_acceleration,
        "bounded_by": list(figures.notes),
        "actuators": actuators,
    }
    return json.dumps(found, indent=1)


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
            name, nargs=3, type=options.number, metavar=("X", "Y", "Z"), help=f"where to {name[2:]} [m]"
        )
    places.add_argument("--frame", choices=("base", "home"), default="base", help="of both places; home: from there")
    places.add_argument(
        "--turn", type=options.number, default=0.0, metavar="DEG", help="turn about z from pick to place [deg]"
    )
    places.add_argument(
        "--lift", type=options.not_negative, metavar="M", help=f"how far up, before across [m]; {_LIFT:g} if possible"
    )
    places.add_argument(
        "--rounding", type=options.not_negative, metavar="M", help="of the corners [m]; as much as the lift"
    )
    places.add_argument("--dwell", type=options.not_negative, default=0.02, metavar="S", help="rest at each place [s]")
    options.add_motion(places)
    load = p.add_argument_group("load")
    load.add_argument(
        "--payload", type=options.not_negative, default=0.0, metavar="KG", help="mass at the platform's origin [kg]"
    )
    load.add_argument(
        "--reserve",
        type=options.share,
        default=USUAL_RESERVE,
        metavar="SHARE",
        help="of efforts and speeds, left to the controller, 0 to 0.9",
    )
    p.add_argument_group("output").add_argument("--json", action="store_true", help="print the figures as JSON")
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
    try:
        with making("building the robot"):
            dynamics = Dynamics(load_mechanism(given.robot, xacro_arguments(given.xacro_args)))
        if given.pick is None:
            motion = motion_named(given.motion, dynamics.kinematics)
        else:
            turn = math.radians(given.turn)
            points = np.array(given.pick), np.array(given.place)
            if np.linalg.norm(points[1] - points[0]) < _APART and not given.turn:
                command.error("--pick and --place are the same place")
            places = Places(*points, given.frame == "home", turn, given.lift, given.rounding, given.dwell)
            motion = pick_and_place(dynamics.kinematics, places)
        with making("planning the motion"):
            figures = cycle_figures(dynamics, motion, given.payload, given.reserve)
    except PkmError as error:
        print(f"pkm cycle: {error}", file=sys.stderr)
        return 1
    print(as_json(figures) if given.json else as_text(figures))
    return 0


def _moves(kinematics: Kinematics, direction: Array) -> bool:
    """Whether a direction (6,) lies in the motion space at home."""
    space = np.asarray(kinematics.subspace(np.asarray(kinematics.home)))
    scale = np.array([1.0] * 3 + [kinematics.characteristic_length] * 3)
    missing = scale * (direction - space @ np.linalg.lstsq(space, direction, rcond=None)[0])
    return bool(np.linalg.norm(missing) <= _IN_SPACE * max(float(np.linalg.norm(scale * direction)), 1e-12))


def _require_metres(kinematics: Kinematics, places: Places) -> None:
    size = float(kinematics.engine.size)
    for name, point in (("--pick", places.pick), ("--place", places.place)):
        if np.abs(point).max() > _FAR * size:
            metres = " ".join(f"{x / 1000.0:g}" for x in point)
            given = " ".join(f"{x:g}" for x in point)
            raise CannotPickError(
                f"{name} {given} is {np.linalg.norm(point):.4g} m away, and {kinematics.mechanism.name} measures about "
                f"{size:.2g} m; places are in metres: if these are mm, give {name} {metres}"
            )
    if places.lift is not None and places.lift > _FAR * size:
        raise CannotPickError(f"--lift {places.lift:g} is in metres: if this is mm, give --lift {places.lift / 1e3:g}")


def _require(kinematics: Kinematics, direction: Array, what: str) -> None:
    if kinematics.constant_space and not _moves(kinematics, direction):
        mechanism = kinematics.mechanism
        raise CannotPickError(
            f"{mechanism.name} cannot move {what}: its platform has {mechanism.mobility.platform} freedoms "
            f"({mechanism.mobility.motion})"
        )


def _rms(values: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def _share(use: Use, i: int) -> str:
    text = f"{use.peak[i]:.4g}, {use.rms[i]:.4g}"
    if not np.isfinite(use.limit[i]):
        return f"{text} {use.units[i]}"
    return f"{text} of {use.limit[i]:.4g} {use.units[i]} ({use.peak_share[i]:.0%}, {use.rms_share[i]:.0%})"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


if __name__ == "__main__":
    raise SystemExit(main())
