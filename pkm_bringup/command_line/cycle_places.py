# SPDX-License-Identifier: Apache-2.0
"""The cycle between two places: up, across, down, and back, as far as a robot can."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_control.motion.files.motion_file import MotionFile, in_metres, looks_like_millimetres
from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import PlatformLimits
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

LIFT = 0.025  # m, as in the cycle that ships
_IN_SPACE = 1e-6  # part of a direction that may lie outside the motion space


class CannotPickError(PkmError):
    """The robot cannot do the requested cycle."""


@dataclass(frozen=True)
class Places:
    """Ends of a cycle: points [m], `turn` about z between them [rad], `lift` [m] (None: chosen to suit), ..."""

    pick: Array
    place: Array
    from_home: bool
    turn: float
    lift: float | None
    rounding: float | None  # m; None: as much as the lift
    dwell: float  # s, at either place


def _stations(pick: Array, place: Array, lift: float) -> tuple[list[Array], list[str]]:
    """Poses (7,) of a cycle, and their names."""
    if not lift > 0.0:
        return [pick, place, pick], ["pick", "place", "pick"]
    raised = np.array([0.0, 0.0, lift, 0.0, 0.0, 0.0, 0.0])
    return (
        [pick, pick + raised, place + raised, place, place + raised, pick + raised, pick],
        ["pick", "lifted", "above place", "place", "lifted", "above pick", "pick"],
    )


def pick_and_place(kinematics: Kinematics, places: Places) -> MotionFile:
    """The cycle between two places, base frame; `CannotPickError` where the robot lacks a degree of freedom for it."""
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
        lift = LIFT if moves(kinematics, np.concatenate([up, np.zeros(3)])) else 0.0
    elif lift > 0.0:
        _require(kinematics, np.concatenate([up, np.zeros(3)]), "up, by --lift")
    turned = (Rotation.from_rotvec([0.0, 0.0, places.turn]) * Rotation.from_quat(home[3:])).as_quat()
    at_pick, at_place = np.concatenate([pick, home[3:]]), np.concatenate([place, turned])
    stations, labels = _stations(at_pick, at_place, lift)
    stops = np.array([label in ("pick", "place") for label in labels])
    dwells = np.where(stops, places.dwell, 0.0)
    dwells[-1] = 0.0  # the next cycle begins with it
    blends = np.where(stops, 0.0, lift if places.rounding is None else places.rounding)
    named, free = tuple(labels), PlatformLimits.none()
    return MotionFile.through("pick and place", np.array(stations), named, free, blends=blends, dwells=dwells)


def moves(kinematics: Kinematics, direction: Array) -> bool:
    """Whether a direction of the platform (6,), base axes, lies in the motion space at home."""
    space = np.asarray(kinematics.subspace(np.asarray(kinematics.home)))
    scale = np.array([1.0] * 3 + [kinematics.characteristic_length] * 3)
    missing = scale * (direction - space @ np.linalg.lstsq(space, direction, rcond=None)[0])
    return bool(np.linalg.norm(missing) <= _IN_SPACE * max(float(np.linalg.norm(scale * direction)), 1e-12))


def _require_metres(kinematics: Kinematics, places: Places) -> None:
    size = float(kinematics.engine.size)
    for name, point in (("--pick", places.pick), ("--place", places.place)):
        if looks_like_millimetres(kinematics, point):
            given = " ".join(f"{x:g}" for x in point)
            raise CannotPickError(
                f"{name} {given} is {np.linalg.norm(point):.4g} m away, and {kinematics.mechanism.name} measures about "
                f"{size:.2g} m; places are in metres: if these are mm, give {name} {in_metres(point)}"
            )
    if places.lift is not None and looks_like_millimetres(kinematics, places.lift):
        raise CannotPickError(f"--lift {places.lift:g} is in metres: if this is mm, give --lift {places.lift / 1e3:g}")


def _require(kinematics: Kinematics, direction: Array, what: str) -> None:
    if kinematics.constant_space and not moves(kinematics, direction):
        mechanism = kinematics.mechanism
        raise CannotPickError(
            f"{mechanism.name} cannot move {what}: its platform has {mechanism.mobility.platform} degrees of freedom "
            f"({mechanism.mobility.motion})"
        )
