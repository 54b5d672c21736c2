# SPDX-License-Identifier: Apache-2.0
"""Identification of parameters from a recorded motion, their validation on another one, and the file of the result.

In the file, YAML, bodies are written as in URDF (mass, centre of mass, inertia about it, axes of the link), to be
copied into a description by hand; links that are fixed to a body are included in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial, symmetric_of
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.identification.estimates import Estimate, Feasible, estimate, feasible_estimate
from pkm_dynamics.identification.recorded import Recorded, RecordingError, low_pass, motions_of, uniform
from pkm_dynamics.linear_form import ParameterSet
from pkm_dynamics.linear_form.base_parameters import BaseParameters, base_parameters
from pkm_runtime.errors import PkmError
from pkm_runtime.whole_files import write_whole
from pkm_runtime.yaml_section import YamlError, read_yaml_text

CUTOFF = 30.0  # Hz: what is faster in positions and efforts is taken for noise
BLURRED = 0.02  # of what a motion shows of a direction of parameters, made by noise of positions: they bend it
LEADING = 0.1  # of such a direction: parameters with at least this part of it
SLOWEST = 0.005  # rad/s or m/s: joints that move slower are near reversal, where Coulomb friction is not understood


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of a recording: regressors (n, m, n_parameters) and efforts (n, m) less springs', filtered alike."""

    psi: Array
    efforts: Array


@dataclass(frozen=True, eq=False)
class Validation:
    """Prediction errors (m,) outside the fit: rms [N m or N], over that of the efforts, and that of the description."""

    error: Array
    relative: Array
    described: Array


@dataclass(frozen=True, eq=False)
class Identified:
    """Result of an identification: base parameters with confidence, and feasible ones where a solver is installed."""

    dynamics: Dynamics
    base: BaseParameters
    estimate: Estimate
    feasible: Feasible | None
    validation: Validation | None = None
    blurred: tuple[str, ...] = ()  # parameters that noise of the positions may bend beyond their intervals


def equations(dynamics: Dynamics, recorded: Recorded, cutoff: float = CUTOFF) -> Equations:
    """Equations of a recording, low-pass filtered at `cutoff` [Hz] and thinned to twice the filter's rate.

    Regressor and efforts pass the same filter, which therefore leaves the equations valid. One period of the cutoff
    frequency is left out at both ends and, of robots with friction, motion too slow to tell its sign.
    """
    psi, efforts, rows = _filtered(dynamics, uniform(recorded, cutoff), cutoff)
    return Equations(psi[rows], efforts[rows])


def _filtered(dynamics: Dynamics, recorded: Recorded, cutoff: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    kinematics = dynamics.kinematics
    motions = motions_of(kinematics, recorded, cutoff)
    moving = kinematics.motion(motions.pose, motions.twist).velocities
    psi, _ = dynamics.regressor(motions.pose, motions.twist, motions.acceleration)
    bad = np.flatnonzero(~np.isfinite(psi).all(axis=(1, 2)))
    if len(bad):
        at = recorded.times[bad[0]]
        raise RecordingError(f"at {at:.3f} s the robot is singular or outside its workspace; remove that part")
    slow = np.abs(moving).min(axis=1) < SLOWEST if dynamics.friction else np.zeros(len(psi), dtype=bool)
    psi_low = low_pass(psi, recorded.rate, cutoff)
    efforts = low_pass(recorded.efforts - dynamics.spring_efforts(motions.pose), recorded.rate, cutoff)
    step = max(1, int(recorded.rate / (2.0 * cutoff)))
    edge = int(np.ceil(recorded.rate / cutoff))
    keep = np.zeros(len(psi), dtype=bool)
    keep[edge : len(psi) - edge : step] = True
    thinned = keep & ~slow
    if np.count_nonzero(thinned) * psi.shape[1] < psi.shape[2]:
        thinned = keep
    if not thinned.any():
        raise RecordingError(f"{len(psi)} samples are too few for a cutoff of {cutoff:g} Hz")
    return psi_low, efforts, thinned


def identify(
    dynamics: Dynamics,
    recorded: Recorded,
    cutoff: float = CUTOFF,
    base: BaseParameters | None = None,
    validate: Recorded | None = None,
    feasible: bool = True,
) -> Identified:
    """Identify a robot from a recording, filtered at `cutoff` [Hz], and validate by another; `base` may be known."""
    base = base_parameters(dynamics) if base is None else base
    recorded = uniform(recorded, cutoff)
    psi, efforts, rows = _filtered(dynamics, recorded, cutoff)
    found = estimate(psi[rows], efforts[rows], base)
    physical = feasible_estimate(found, dynamics.parameters) if feasible else None
    validation = None
    if validate is not None:
        values = found.values if physical is None else physical.base_values
        validation = predict(dynamics, base, values, equations(dynamics, validate, cutoff))
    return Identified(dynamics, base, found, physical, validation, _blurred(dynamics, recorded, cutoff, found, rows))


def _blurred(
    dynamics: Dynamics, recorded: Recorded, cutoff: float, found: Estimate, rows: NDArray[np.bool_]
) -> tuple[str, ...]:
    # Noise of positions is in the regressor, too, where least squares take it for the motion. More of such noise, once
    # forwards and once backwards, shows how much of each direction of parameters is noise.
    rough = recorded.positions - low_pass(recorded.positions, recorded.rate, cutoff)
    fast = max(0.1, 1.0 - 2.0 * cutoff / recorded.rate)  # of white noise, faster than the filter
    noise = np.std(rough, axis=0) / np.sqrt(fast) * np.random.default_rng(0).standard_normal(rough.shape)
    try:
        ahead, behind = (
            _filtered(dynamics, replace(recorded, positions=recorded.positions + one), cutoff)[0][rows]
            for one in (noise, -noise)
        )
    except PkmError:  # beyond a singularity
        return ()
    off = (found.base.reduce(ahead - behind) / (2.0 * found.noise[:, None])).reshape(found.W.shape)
    size = np.linalg.norm(found.W, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    _, s, Vt = np.linalg.svd(found.W / size, full_matrices=False)
    share = np.sum((off / size @ Vt.T) ** 2, axis=0) / np.maximum(s, 1e-300) ** 2
    bent = np.abs(Vt[share > BLURRED]).max(axis=0, initial=0.0) > LEADING
    return tuple(name for name, one in zip(found.base.names, bent, strict=True) if one)


def predict(dynamics: Dynamics, base: BaseParameters, values: Array, system: Equations) -> Validation:
    """Compare predictions by base parameters (r,) with the efforts of other equations."""
    size = np.sqrt(np.mean(system.efforts**2, axis=0))
    error = np.sqrt(np.mean((base.reduce(system.psi) @ values - system.efforts) ** 2, axis=0))
    described = np.sqrt(np.mean((system.psi @ dynamics.parameters.values - system.efforts) ** 2, axis=0))
    return Validation(error, error / size, described / size)


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
        "blurred_by_noise_of_positions": list(found.blurred),
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
