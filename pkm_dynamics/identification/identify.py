# SPDX-License-Identifier: Apache-2.0
"""Identification of parameters from a recorded motion, and their validation on another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.identification.feasible import Feasible, feasible_estimate
from pkm_dynamics.identification.least_squares import Estimate, estimate
from pkm_dynamics.identification.recorded import Recorded, RecordingError, low_pass, motions_of, uniform
from pkm_dynamics.linear_form.base_parameters import BaseParameters, base_parameters

CUTOFF = 30.0  # Hz: what is faster in positions and efforts is taken for noise
SLOWEST = 0.005  # rad/s or m/s: joints that move slower are near reversal, where Coulomb friction is not understood


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of a recording: regressors (n, m, n_parameters) and efforts (n, m) less springs', filtered alike."""

    psi: Array
    efforts: Array


@dataclass(frozen=True, eq=False)
class Validation:
    """Prediction errors (m,) of the efforts of a motion outside the fit.

    `error`: root mean square [N m or N]; `relative`: over that of the efforts; `described`: that of the description.
    """

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


def equations(dynamics: Dynamics, recorded: Recorded, cutoff: float = CUTOFF) -> Equations:
    """Equations of a recording, low-pass filtered at `cutoff` [Hz] and thinned to twice the filter's rate.

    Regressor and efforts pass the same filter, which therefore leaves the equations valid. One period of the cutoff
    frequency is left out at both ends and, of robots with friction, motion too slow to tell its sign.
    """
    recorded = uniform(recorded)
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
    return Equations(psi_low[thinned], efforts[thinned])


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
    system = equations(dynamics, recorded, cutoff)
    found = estimate(system.psi, system.efforts, base)
    physical = feasible_estimate(found, dynamics.parameters) if feasible else None
    validation = None
    if validate is not None:
        values = found.values if physical is None else physical.base_values
        validation = predict(dynamics, base, values, equations(dynamics, validate, cutoff))
    return Identified(dynamics, base, found, physical, validation)


def predict(dynamics: Dynamics, base: BaseParameters, values: Array, system: Equations) -> Validation:
    """Compare predictions by base parameters (r,) with the efforts of other equations."""
    size = np.sqrt(np.mean(system.efforts**2, axis=0))
    error = np.sqrt(np.mean((base.reduce(system.psi) @ values - system.efforts) ** 2, axis=0))
    described = np.sqrt(np.mean((system.psi @ dynamics.parameters.values - system.efforts) ** 2, axis=0))
    return Validation(error, error / size, described / size)
