# SPDX-License-Identifier: Apache-2.0
"""What may be wrong with a machine, and by how much: one YAML file, which docs/errors.md describes.

A number has a unit, but for costs, parts, K and 1/K. What is left out has the default of `Tolerances`.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.requirements.grammar import SCALES, in_si, read_number
from pkm_description.mechanism import JointType, Mechanism
from pkm_runtime.yaml_section import Section, read_yaml

UNIFORM, NORMAL = "uniform", "normal"
GRADES = ((1.0, 1.0), (0.5, 2.0), (0.25, 4.0), (0.1, 10.0))  # that cost is inverse to tolerance
EXPANSION = 12e-6  # 1/K, steel


@dataclass(frozen=True)
class Tolerances:
    """Errors that a machine may have, in m, rad and K: see the module."""

    lengths: float = 5e-5
    angles: float = math.radians(0.02)
    ratios: float = 0.0
    sensors: float | Mapping[str, float] = 0.0
    clearance: float | Mapping[str, float] = 0.0
    change: float = 0.0
    expansion: float = EXPANSION
    bodies: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, tuple[float, str]] = field(default_factory=dict)  # number and unit, as written
    distribution: str = UNIFORM
    grades: tuple[tuple[float, float], ...] = GRADES
    costs: Mapping[str, float] = field(default_factory=dict)
    sensor_units: Mapping[str, str] = field(default_factory=dict)  # that a file gave, by drive; of "" for all

    def of(self, name: str, unit: str) -> float:
        """The tolerance of a geometric parameter [m, rad, or 1]."""
        found = {"m": self.lengths, "rad": self.angles, "1": self.ratios}[unit]
        for pattern, (number, written) in self.parameters.items():
            if name == pattern or fnmatch.fnmatchcase(name, pattern):
                found = in_si(number, written, unit, f"tolerance of '{pattern}'")
        return found

    def cost(self, name: str) -> float:
        """By how much a parameter's grades are dearer than those of others."""
        fits = [cost for pattern, cost in self.costs.items() if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        return fits[-1] if fits else 1.0

    def sensor(self, drive: str) -> float:
        """The largest error of a drive's reading [rad or m]."""
        return float(self.sensors.get(drive, 0.0)) if isinstance(self.sensors, Mapping) else self.sensors

    def play(self, joint: str) -> float:
        """The radial clearance of a joint [m]."""
        return float(self.clearance.get(joint, 0.0)) if isinstance(self.clearance, Mapping) else self.clearance

    def check_names(self, parameters: Collection[str], mechanism: Mechanism) -> None:
        """Refuse names that fit nothing, and units that do not fit. Raises `AnalysisError`."""
        drives = {name: mechanism.joint_named[name].unit for name in mechanism.actuated_joints}
        passive = [j.name for j in mechanism.joints if not j.actuated and j.type is not JointType.FIXED]
        joints, links = [*passive, *mechanism.loop_named], [link.name for link in mechanism.links]
        for pattern in (*self.parameters, *self.costs):
            if not any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in parameters):
                raise AnalysisError(
                    f"tolerance of '{pattern}'", "no parameter of the robot has such a name", "see --parameters"
                )
        for what, given, known in (
            ("sensors", self.sensors, drives), ("clearance", self.clearance, joints), ("expansion", self.bodies, links),
        ):  # fmt: skip
            for name in given if isinstance(given, Mapping) else ():
                if name not in known:
                    raise AnalysisError(f"{what} of '{name}'", "there is none", f"known: {', '.join(known)}")
        for name, unit in drives.items():
            if (wrong := self.sensor_units.get(name, self.sensor_units.get("", unit))) != unit:
                remedy = f"give its error as '{name}: 0.01 {'deg' if unit == 'rad' else 'mm'}' below sensors"
                raise AnalysisError(f"sensors of '{name}'", f"its readings are in {unit}, not in {wrong}", remedy)


def read_tolerances(path: str | Path) -> Tolerances:
    """The tolerances of a file. Raises `ConfigurationError` or `AnalysisError` where it cannot be used."""
    source, values = read_yaml(Path(path))
    section = Section(source, "", values)

    def size(key: str, wanted: str, default: float) -> float:
        return _size(section, key, wanted) if section.has(key) else default

    found: dict[str, Any] = {"lengths": size("lengths", "m", 5e-5), "angles": size("angles", "rad", Tolerances.angles)}
    found["ratios"] = size("ratios", "1", 0.0)
    for key, wanted in (("sensors", ""), ("clearance", "m")):
        if section.has(key):
            given = values[key]
            one = Section(source, key, given) if isinstance(given, Mapping) else None
            found[key] = {name: _size(one, name, wanted) for name in given} if one else _size(section, key, wanted)
    given = values.get("sensors", {})
    texts = given if isinstance(given, Mapping) else {"": given}
    written = {name: read_number(str(text), "")[1] for name, text in texts.items()}
    found["sensor_units"] = {name: _kind_of(unit) for name, unit in written.items() if unit}
    if section.has("thermal"):
        heat = Section(source, "thermal", values["thermal"])
        found["change"] = heat.number("change", bounds=(-1000.0, 1000.0))
        found["expansion"] = heat.number("expansion", EXPANSION, bounds=(-1e-3, 1e-3))
        bodies = Section(source, "thermal.bodies", heat.mapping("bodies"))
        found["bodies"] = {str(k): bodies.number(str(k), bounds=(-1e-3, 1e-3)) for k in heat.mapping("bodies")}
        heat.finish()
    found["parameters"] = {
        str(name): read_number(str(text), f"{source}, parameters.{name}", "write a number and its unit, as 0.02 mm")
        for name, text in section.mapping("parameters").items()
    }
    found["distribution"] = section.text("distribution", UNIFORM, (UNIFORM, NORMAL))
    grades = section.rows("grades", 2)
    if any(not (0.0 < part <= 10.0 and cost >= 0.0) for part, cost in grades):
        raise section.wrong("grades", "a part of a tolerance is not positive, or a cost negative", "give [part, cost]")
    if grades:
        found["grades"] = tuple((part, cost) for part, cost in grades)
    costs = Section(source, "costs", section.mapping("costs"))
    found["costs"] = {str(name): costs.number(str(name), bounds=(0.0, 1e9)) for name in section.mapping("costs")}
    section.finish()
    return Tolerances(**found)


def _size(section: Section, key: str, wanted: str) -> float:
    if section.is_number(key):
        plain = section.number(key)
        if plain == 0.0:
            return 0.0
        remedy = f"write '{plain:g} %'" if wanted == "1" else f"write '{plain:g} mm', or deg"
        raise section.wrong(key, f"{plain:g} has no unit", remedy)
    text = section.text(key)
    number, unit = read_number(text, f"{section.source}, {key}", "write a number and its unit, as 0.05 mm")
    found = in_si(number, unit, wanted or _kind_of(unit), f"{section.source}, {key}")
    if not 0.0 <= found <= 1.0:
        raise section.wrong(key, f"{text} is negative, or larger than any tolerance", "give it as 0.05 mm or 0.02 deg")
    return found


def _kind_of(unit: str) -> str:
    return "rad" if unit in SCALES["rad"] else "m"
