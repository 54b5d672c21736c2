# SPDX-License-Identifier: Apache-2.0
"""The force file (YAML): the task of the force laws, the force-torque sensor, and solids near a simulated machine.

`docs/force.md` has every key. Errors name the element, the problem and the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkm_control.controllers.force.force_task import AXES, CONTACT_STIFFNESS, STIFFNESS, ForceTask
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_rpy
from pkm_hardware.simulated.surroundings import Hole, Plane, Surroundings, peg
from pkm_runtime.yaml_section import Section, read_yaml

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
    """A plane, with its hole if it has one."""
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
