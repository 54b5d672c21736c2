# SPDX-License-Identifier: Apache-2.0
"""The task of a platform in contact, and the force file (YAML), which holds it; `docs/force.md` has every key.

The file also has the force-torque sensor, and solids near a simulated machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_quaternion, rotation_from_rpy
from pkm_hardware.simulated.surroundings import Hole, Plane, Surroundings, peg
from pkm_runtime.yaml_section import Section, read_yaml

AXES = ("x", "y", "z", "rx", "ry", "rz")
STIFFNESS = 2000.0  # N/m
CONTACT_STIFFNESS = 2.0e4  # N/m: of what is touched, the sensor and the tool together


@dataclass(frozen=True, eq=False)
class ForceTask:
    """Numbers of the force laws. Wrenches: force [N], then torque about the platform's origin [N m].

    `rotation` (3, 3) takes vectors of the task frame to the base frame. `stiffness` (6,) is along and about its axes
    [N/m, N m/rad], NaN: rotations count at the robot's characteristic length. `contact_stiffness` is of the stiffest
    contact to come [N/m], `wrench` (6,) what the platform shall exert along the `selected` axes (6,), in the task
    frame. The sensor's frame on the platform is at `sensor_place` (3,), turned by `sensor_rotation` (3, 3).
    """

    rotation: Array
    stiffness: Array
    contact_stiffness: float
    selected: NDArray[np.bool_]
    wrench: Array
    sensor_rotation: Array
    sensor_place: Array

    def __post_init__(self) -> None:
        for name in ("rotation", "sensor_rotation"):
            rotation = getattr(self, name)
            if not (np.shape(rotation) == (3, 3) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)):
                raise ValueError(f"{name} of a force task is not a rotation matrix")
        known = self.stiffness[~np.isnan(self.stiffness)]
        if not (np.isfinite(known) & (known >= 0.0)).all() or np.isnan(self.stiffness[:3]).any():
            raise ValueError(f"stiffness is {self.stiffness}; give zero or more")
        if not (math.isfinite(self.contact_stiffness) and self.contact_stiffness > 0.0):
            raise ValueError(f"contact_stiffness is {self.contact_stiffness} N/m; give more than zero")
        if not np.isfinite(self.wrench).all():
            raise ValueError(f"the wanted wrench is not finite: {self.wrench}")

    @staticmethod
    def usual() -> ForceTask:
        """The default task: task frame as the base frame, no axis selected, the sensor in the platform's frame."""
        stiffness = np.array([STIFFNESS] * 3 + [np.nan] * 3)
        none = np.zeros(6, dtype=bool)
        return ForceTask(np.eye(3), stiffness, CONTACT_STIFFNESS, none, np.zeros(6), np.eye(3), np.zeros(3))

    @property
    def axes(self) -> Array:
        """Unit motions (6, 6) along and about the axes of the task frame, base axes, in columns."""
        return np.asarray(np.kron(np.eye(2), self.rotation))

    @property
    def pressed(self) -> Array:
        """Columns (6, k) of `axes` for the selected axes."""
        return self.axes[:, self.selected]

    def stiffness_matrix(self, length: float) -> Array:
        """Stiffness (6, 6) in base axes [N/m, N m/rad]; rotations without one of their own count at a length [m]."""
        usual = np.repeat(np.mean(self.stiffness[:3]) * length**2, 6)
        axes = self.axes
        return np.asarray(axes @ np.diag(np.where(np.isnan(self.stiffness), usual, self.stiffness)) @ axes.T)

    def felt(self, measured: Measured, reading: Array) -> Measured:
        """Add a sensor reading of the same instant: wrench (6,) on the platform, sensor frame."""
        turned = rotation_from_quaternion(measured.pose[3:])
        force, torque = reading.reshape(2, 3) @ (turned @ self.sensor_rotation).T
        torque = torque + np.cross(turned @ self.sensor_place, force)
        return replace(measured, wrench=np.concatenate([force, torque]))


_SOFT = (0.0, 1e12)  # zero or more
_SOME = (1e-9, 1e12)  # more than zero


@dataclass(frozen=True, eq=False)
class ForceFile:
    """The contents of the file. `sensor_frame`: frame of the sensor's messages; empty: the platform's."""

    task: ForceTask
    sensor_frame: str
    surroundings: Surroundings


def read_force_file(path: str) -> ForceFile:
    """Read a force file (ConfigurationError where unusable); an empty path means the defaults and no solids."""
    source, values = read_yaml(path) if path else ("", {})
    top = Section(source, "", values)
    sensor = Section(source, "sensor", top.mapping("sensor"))
    task = _task(Section(source, "task", top.mapping("task")), sensor)
    frame = sensor.text("frame") if sensor.has("frame") else ""
    noise = sensor.number("noise", 0.0, _SOFT)
    sensor.finish()
    around = Section(source, "surroundings", top.mapping("surroundings"))
    top.finish()
    found = _surroundings(around, noise, (task.sensor_rotation, task.sensor_place))
    return ForceFile(task, frame, found)


def _task(section: Section, sensor: Section) -> ForceTask:
    usual = [STIFFNESS] * 3 + [math.nan] * 3
    stiffness = section.numbers("stiffness", (1, 3, 6), usual)
    if len(stiffness) < 6:
        stiffness = [*(stiffness * 3)[:3], *usual[3:]]
    chosen = section.names("force_axes", AXES)
    task: ForceTask = _made(
        section,
        ForceTask,
        rotation=rotation_from_rpy(np.array(section.numbers("rpy", (3,), [0.0] * 3))),
        stiffness=np.array(stiffness),
        contact_stiffness=section.number("contact_stiffness", CONTACT_STIFFNESS, _SOME),
        selected=np.array([axis in chosen for axis in AXES]),
        wrench=np.array(section.numbers("wrench", (6,), [0.0] * 6)),
        sensor_rotation=rotation_from_rpy(np.array(sensor.numbers("rpy", (3,), [0.0] * 3))),
        sensor_place=np.array(sensor.numbers("xyz", (3,), [0.0] * 3)),
    )
    section.finish()
    return task


def _surroundings(section: Section, noise: float, sensor: tuple[Array, Array]) -> Surroundings:
    points = [np.array([point]) for point in section.rows("points", 3)]
    if section.has("peg"):
        one = Section(section.source, "surroundings.peg", section.mapping("peg"))
        radius, length = one.number("radius", bounds=_SOME), one.number("length", bounds=_SOFT)
        tip, axis = one.numbers("tip", (3,)), one.numbers("axis", (3,), [0.0, 0.0, -1.0])
        one.finish()
        points.append(_made(one, peg, radius, length, tip, axis))
    planes = []
    for name, values in section.mapping("planes").items():
        planes.append(_plane(Section(section.source, f"surroundings.planes.{name}", values)))
    section.finish()
    found: Surroundings = _made(
        section, Surroundings, planes, np.concatenate(points) if points else np.zeros((1, 3)), noise, sensor
    )
    return found


def _plane(section: Section) -> Plane:
    hole = None
    values: Mapping[str, Any] = section.mapping("hole")
    if values:
        bore = Section(section.source, f"{section.element}.hole", values)
        mouth, radius = bore.numbers("mouth", (3,)), bore.number("radius", bounds=_SOME)
        hole = Hole((mouth[0], mouth[1], mouth[2]), radius, bore.number("depth", 1e9, _SOME))
        bore.finish()
    usual = Plane((0.0, 0.0, 0.0))
    at, out = section.numbers("point", (3,)), section.numbers("normal", (3,), list(usual.normal))
    plane = Plane(
        (at[0], at[1], at[2]),
        (out[0], out[1], out[2]),
        section.number("stiffness", usual.stiffness, _SOME),
        section.number("damping", usual.damping, _SOFT),
        section.number("friction", usual.friction, _SOFT),
        section.number("creep", usual.creep, _SOME),
        hole,
    )
    section.finish()
    _made(section, plane.row)
    return plane


def _made(section: Section, make: Any, *arguments: Any, **named: Any) -> Any:
    """The object made of numbers of a section; a ValueError becomes an error of the file."""
    try:
        return make(*arguments, **named)
    except ValueError as error:
        raise section.wrong("", str(error), "correct it") from error
