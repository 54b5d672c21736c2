# SPDX-License-Identifier: Apache-2.0
"""Parameter files: the result of an identification as YAML, and a mechanism with its parameters.

Bodies are written as in URDF (mass, centre of mass, inertia about it, axes of the link), to be copied into a
description by hand; links that are fixed to a body are included in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pkm_description.mechanism import Array, Inertial, symmetric_of
from pkm_dynamics.identification.identify import Identified
from pkm_dynamics.linear_form.regressor import ParameterSet
from pkm_runtime.errors import PkmError
from pkm_runtime.whole_files import write_whole
from pkm_runtime.yaml_section import YamlError, read_yaml_text

DIGITS = 9


class ParameterFileError(PkmError):
    """A parameter file that cannot be used."""


def _number(value: Any) -> float:
    return float(f"{float(value):.{DIGITS}g}")


def document(found: Identified) -> dict[str, Any]:
    """Content of a parameter file, as plain dictionaries."""
    parameters, estimate = found.dynamics.parameters, found.estimate
    names = found.dynamics.kinematics.actuated_names
    base = [
        {
            "group": rule,
            "value": _number(value),
            "standard_deviation": _number(deviation),
            "confidence_95": [_number(value - half), _number(value + half)],
        }
        for rule, value, deviation, half in zip(
            found.base.rules, estimate.values, estimate.deviations, estimate.interval, strict=True
        )
    ]
    text: dict[str, Any] = {
        "robot": found.dynamics.mechanism.name,
        "equations": len(estimate.y),
        "condition_number": _number(estimate.condition),
        "effort_noise": {name: _number(value) for name, value in zip(names, estimate.noise, strict=True)},
        "base_parameters": base,
    }
    if found.feasible is not None:
        text["bodies"] = bodies(parameters, found.feasible.values)
        text["joints"] = joints(parameters, found.feasible.values)
        text["feasible_residual"] = _number(found.feasible.residual)
        text["least_squares_residual"] = _number(found.feasible.least_squares_residual)
    if found.validation is not None:
        text["validation"] = {
            name: {"error": _number(e), "relative_error": _number(r), "relative_error_of_description": _number(d)}
            for name, e, r, d in zip(
                names, found.validation.error, found.validation.relative, found.validation.described, strict=True
            )
        }
    return text


def bodies(parameters: ParameterSet, values: Array) -> dict[str, Any]:
    """Mass, centre of mass and central inertia of every body, by link."""
    found = {}
    for link in parameters.bodies:
        inertial = parameters.inertial_of(values, link)
        upper = inertial.inertia[np.triu_indices(3)]
        found[link] = {
            "mass": _number(inertial.mass),
            "centre_of_mass": [_number(x) for x in inertial.com],
            "inertia": dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), map(_number, upper), strict=True)),
        }
    return found


def joints(parameters: ParameterSet, values: Array) -> dict[str, Any]:
    """Armature and friction of every joint."""
    found: dict[str, Any] = {}
    inertial = {at + k for at in parameters.bodies.values() for k in range(10)}
    for k, name in enumerate(parameters.names):
        if k not in inertial:
            joint, _, what = name.rpartition(".")
            found.setdefault(joint, {})[what] = _number(values[k])
    return found


def write(found: Identified, path: Path) -> None:
    """Write a parameter file."""
    write_whole(
        path,
        "# Identified parameters. SI units; bodies in the axes of their links, inertias about the centre of mass.\n"
        + yaml.safe_dump(document(found), sort_keys=False, width=110),
    )


def read(path: Path, parameters: ParameterSet) -> Array:
    """Values (n,) of a parameter file, the description's where it has none; `ParameterFileError` if unusable."""
    try:
        text = read_yaml_text(path.read_text(encoding="utf-8"))
        return _values_of(text, path, parameters)
    except (OSError, YamlError) as error:
        raise ParameterFileError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ParameterFileError(f"{path}: a value is not a number ({error})") from error


def _values_of(text: Any, path: Path, parameters: ParameterSet) -> Array:
    if not isinstance(text, dict) or "bodies" not in text:
        raise ParameterFileError(f"{path}: no `bodies`; write the file with a feasible estimate")
    values = np.array(parameters.values)
    index = {name: k for k, name in enumerate(parameters.names)}
    for link, body in text["bodies"].items():
        if link not in parameters.bodies:
            raise ParameterFileError(f"{path}: the robot has no body '{link}'")
        at = parameters.bodies[link]
        m, com = float(body["mass"]), np.array(body["centre_of_mass"], dtype=np.float64)
        central = np.array([float(body["inertia"][key]) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")])
        values[at : at + 10] = Inertial(m, com, symmetric_of(central)).ten
    for joint, given in text.get("joints", {}).items():
        for what, value in given.items():
            if f"{joint}.{what}" not in index:
                raise ParameterFileError(f"{path}: the robot has no parameter '{joint}.{what}'")
            values[index[f"{joint}.{what}"]] = float(value)
    if not np.isfinite(values).all():
        raise ParameterFileError(f"{path}: {parameters.names[int(np.argmin(np.isfinite(values)))]} is not finite")
    return values
