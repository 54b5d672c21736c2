# SPDX-License-Identifier: Apache-2.0
"""Questions as people write them: requirements and boxes in words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.proof.requirements import Accuracy, Effort, Inside, Margin, NoSingularity, Requirement
from pkm_analysis.requirements.names import FORMS
from pkm_analysis.requirements.words import read_bound, read_range, read_value
from pkm_description.mechanism import Array


def read_requirement(robot: Robot, text: str, sensors: tuple[float, ...] = ()) -> Requirement:
    """A requirement that can be proved, one of `words.FORMS`.

    Args:
        sensors: largest errors of the actuators' sensors [rad, m], one for each or one for all, for errors of the pose.

    Raises:
        AnalysisError: unreadable, not provable, or the unit is missing or wrong.
    """
    about = f"requirement '{text}'"
    words = " ".join(text.split())
    if words == "inside":
        return Inside()
    if words == "no singularity":
        return NoSingularity()
    if words.replace(" ", "") == "effort_at_rest<limits":
        return Effort(robot.dynamics)
    bound = read_bound(text, f"write one of: {'; '.join(FORMS)}")
    name, above = bound.name, bound.above
    per = {"m": ("1", "1"), "rad": ("m/rad", "rad/m")}.get(robot.actuator_unit, ("m/(m or rad)", "(m or rad)/m"))
    if name in ("type1", "psi", "type2"):
        unit = per[name == "type2"]
        return Margin(name, bound.in_si(unit), above, "" if unit == "1" else unit)
    if name == "margin":  # the smaller of two numbers whose units are each other's inverse
        return Margin(name, bound.in_si("1"), above)
    if name not in ("position_error", "turning_error", "effort_at_rest"):
        raise AnalysisError(about, f"nothing is proved of '{name}'", f"write one of: {'; '.join(FORMS)}")
    if above:
        raise AnalysisError(about, "a lower bound is not proved here", "ask for less than that")
    if name in ("position_error", "turning_error"):
        if not sensors:
            raise AnalysisError(about, "it depends on the sensors' errors", "give them: --sensor-error NUMBER UNIT")
        turning = name == "turning_error"
        return Accuracy(sensors, bound.in_si("rad" if turning else "m"), turning)
    unit = {"m": "N", "rad": "N m"}.get(robot.actuator_unit, "N or N m")
    return Effort(robot.dynamics, (bound.in_si(unit),))


def read_point(coordinates: TaskCoordinates, words: Iterable[str]) -> Array:
    """Task coordinates (c,) from words such as "x=0.1" or "yaw=10deg"; home's where not named."""
    point = np.array([c.home for c in coordinates.all])
    for word in words:
        c, value = read_value(coordinates, word)
        point[coordinates.all.index(c)] = value
    return point


def read_box(coordinates: TaskCoordinates, words: Iterable[str]) -> Array:
    """Bounds (c, 2) of coordinates from words such as "x=-0.1:0.1", "yaw=-10:10deg" or "z=-800mm" (held).

    Those not named are held at home. `AnalysisError` for an unreadable word, an unknown coordinate, or an empty range.
    """
    bounds = np.array([[c.home, c.home] for c in coordinates.all])
    for word in words:
        c, ends = read_range(coordinates, word, optional=True)
        bounds[coordinates.all.index(c)] = ends
    return bounds
