# SPDX-License-Identifier: Apache-2.0
"""Estimates of dynamic parameters: weighted least squares, physically feasible ones, and gains of the drives.

Least squares fit base parameters. Every actuator weighs by the noise of its own effort, from a first, unweighted fit
(Gautier, "Dynamic identification of robots with power model", ICRA 1997).

The ten parameters of a body are those of some distribution of positive mass where its pseudo-inertia matrix

    [[ tr(I)/2 E - I,  h ],
     [ h^T,            m ]]

is positive semidefinite (Wensing, Kim and Slotine, "Linear matrix inequalities for physically consistent inertial
parameter identification", IEEE RA-L 2018). With non-negative friction and rotor inertia the fit is a convex programme,
for Clarabel (`pip install clarabel`). Prior values, the description's, fill what the motion does not tell.

Signals of drives (current or command) s = effort / gain alone give parameters only up to the gain. The same motion with
a known payload fixes the scale (Gautier and Briot, "Global identification of joint drive gains and dynamic parameters
of robots", ASME JDSMC 2014). All recordings are fitted at once, with the noise in the signals, to

    s_a = c_a (Psi_base,a beta + Psi_payload,a p_payload),   c_a = 1 / gain_a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts load when they are first used
import scipy.sparse
import scipy.special

from pkm_description.mechanism import Array, Inertial, symmetric_of
from pkm_dynamics.linear_form import ParameterSet, payload_parameters
from pkm_dynamics.linear_form.base_parameters import BaseParameters
from pkm_runtime.errors import PkmError

CONFIDENCE = 0.95


class ExcitationTooPoorError(PkmError):
    """A recording on which some base parameters do not show."""

    def __init__(self, names: tuple[str, ...], condition: float) -> None:
        self.names, self.condition = names, condition
        super().__init__(
            f"the motion does not excite {', '.join(names)} (condition number {condition:.1e}); "
            "record a richer motion, or leave friction out"
        )


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters with their uncertainty.

    `values`, `deviations` (standard) and `interval` (r,): the half-width of the 95 % confidence interval. `covariance`
    (r, r). `noise` (m,): standard deviation of each actuator's residual [N m or N]. `condition` is that of the weighted
    regressor with columns of unit length. `W` (k, r) and `y` (k,) are the weighted equations.
    """

    base: BaseParameters
    values: Array
    deviations: Array
    interval: Array
    covariance: Array
    noise: Array
    condition: float
    W: Array
    y: Array

    def certain(self, percent: float = 10.0) -> np.ndarray:
        """Mask (r,) of the base parameters within this relative standard deviation."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.deviations < 0.01 * percent * np.abs(self.values)

    def text(self) -> str:
        """Table of group, value and interval."""
        width = max(len(name) for name in self.base.names)
        lines = [f"{'group led by':{width}} {'value':>13} {'+- 95 %':>11} {'%':>8}"]
        for name, value, half in zip(self.base.names, self.values, self.interval, strict=True):
            relative = 100.0 * half / abs(value) if value else np.inf
            lines.append(f"{name:{width}} {value:13.6g} {half:11.3g} {relative:8.2f}")
        return "\n".join(lines)


def estimate(psi: Array, efforts: Array, base: BaseParameters) -> Estimate:
    """Fit base parameters to efforts (n, m) [N m or N], from regressors of all parameters (n, m, n_parameters)."""
    W3 = base.reduce(psi)
    n, m, r = W3.shape
    first = np.asarray(np.linalg.lstsq(W3.reshape(-1, r), efforts.reshape(-1), rcond=None)[0], dtype=np.float64)
    noise = _noise(W3, efforts, first)
    weights = 1.0 / noise
    W = (W3 * weights[:, None]).reshape(-1, r)
    y = (efforts * weights).reshape(-1)
    size = np.linalg.norm(W, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    _, s, Vt = np.linalg.svd(W / size, full_matrices=False)
    condition = float(s[0] / s[-1]) if s[-1] > 0.0 else np.inf
    if not condition < 1e7 or n * m <= r:
        silent = np.flatnonzero(np.abs(Vt[-1]) > 0.3)
        raise ExcitationTooPoorError(tuple(base.names[k] for k in silent), condition)
    values = np.asarray(np.linalg.lstsq(W / size, y, rcond=None)[0] / size, dtype=np.float64)
    freedom = n * m - r
    variance = float(np.sum((W @ values - y) ** 2)) / freedom
    inverse = (Vt.T / s**2) @ Vt
    covariance = variance * inverse / np.outer(size, size)
    deviations = np.sqrt(np.diagonal(covariance))
    factor = float(scipy.special.stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE))
    return Estimate(
        base, values, deviations, factor * deviations, covariance, _noise(W3, efforts, values), condition, W, y
    )


def _noise(W3: Array, efforts: Array, values: Array) -> Array:
    residual = efforts - W3 @ values
    freedom = max(1.0, len(W3) - W3.shape[2] / W3.shape[1])
    found = np.sqrt(np.sum(residual**2, axis=0) / freedom)
    return np.maximum(found, 1e-9 * max(float(np.abs(efforts).max()), 1e-300))


PRIOR = 0.1  # of a standard deviation of the measurements: weight of a departure from the description by one scale
TINY = 0.1  # of the largest mass or radius of gyration: bodies that are smaller, or have none, may have that


class SolverMissingError(PkmError):
    """Clarabel is not installed."""


class FeasibilityError(PkmError):
    """The convex solver gave no answer."""


@dataclass(frozen=True, eq=False)
class Feasible:
    """Feasible parameters (n,), their base parameters (r,), and weighted residuals, also that of least squares."""

    values: Array
    base_values: Array
    residual: float  # root mean square of the weighted equations, in standard deviations
    least_squares_residual: float


def pseudo_inertia(ten: Array) -> Array:
    """Pseudo-inertia matrix (4, 4) of the parameters (10,) of a body."""
    inertia = symmetric_of(ten[4:10])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = ten[1:4]
    P[3, 3] = ten[0]
    return P


def feasible_estimate(found: Estimate, parameters: ParameterSet) -> Feasible:
    """Parameters (n,) of positive mass distributions that fit an estimate's equations best, and priors by PRIOR."""
    try:
        import clarabel
    except ImportError as error:
        raise SolverMissingError("feasible estimates need the convex solver Clarabel: pip install clarabel") from error
    prior, scale, r = parameters.values, _scales(parameters, found), len(found.values)
    # x = p / scale = x_prior + Q1 L (u + c) + Q2 v: u are residuals in standard deviations, c those of the prior, and v
    # is what the motion does not tell. In p the solver's accuracy, relative to the whole, would lose the prior.
    R: Array = np.linalg.qr(found.W, mode="r")  # type: ignore[assignment]
    c = R @ (found.values - found.base.values(prior))
    Q, T = np.linalg.qr((R @ found.base.grouping * scale).T, mode="complete")
    L = np.linalg.inv(T[:r]).T
    way = np.column_stack([Q[:, :r] @ L, Q[:, r:]]) * scale[:, None]
    start = prior + way[:, :r] @ c
    P = PRIOR**2 * np.eye(len(prior))
    P[:r, :r] = np.eye(r) + PRIOR**2 * L.T @ L
    q = np.concatenate([PRIOR**2 * L.T @ L @ c, np.zeros(len(prior) - r)])
    rows, cones = _cones(parameters, clarabel)
    P, G = scipy.sparse.csc_matrix(np.triu(P)), scipy.sparse.csc_matrix(rows @ way)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(P, q, G, -rows @ start, cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        raise FeasibilityError(f"the convex solver ended with {solution.status}")
    values = start + way @ np.asarray(solution.x)
    base_values = found.base.values(values)

    def residual(at: Array) -> float:
        return float(np.sqrt(np.mean((found.W @ at - found.y) ** 2)))

    return Feasible(values, base_values, residual(base_values), residual(found.values))


def _scales(parameters: ParameterSet, found: Estimate) -> Array:
    # from a body's mass and radius of gyration, for tiny bodies those of the largest; of a joint, what would need all
    # of the efforts, where it shows
    prior = parameters.values
    scale = np.maximum(np.abs(prior), 1e-3)
    alone = np.linalg.norm(found.y) / np.maximum(np.linalg.norm(found.W, axis=0), 1e-300)
    scale[found.base.leading] = np.maximum(scale[found.base.leading], alone)
    tens = np.array([prior[at : at + 10] for at in parameters.bodies.values()])
    traces = np.maximum(tens[:, [4, 7, 9]].sum(axis=1), 0.0)
    heavy = tens[:, 0].max() or 1.0
    masses = np.maximum(tens[:, 0], TINY * heavy)
    radii = np.sqrt(traces / masses)
    radii = np.maximum(radii, TINY * (radii.max() or 1.0))
    for at, mass, radius in zip(parameters.bodies.values(), masses, radii, strict=True):
        scale[at] = mass
        scale[at + 1 : at + 4] = mass * radius
        scale[at + 4 : at + 10] = mass * radius**2
    return scale


def _cones(parameters: ParameterSet, clarabel: object) -> tuple[Array, list[object]]:
    """Rows and cones with -`rows` p in the cones: the joints' p >= 0, the bodies' matrices."""
    n = len(parameters)
    inertial = np.zeros(n, dtype=bool)
    for at in parameters.bodies.values():
        inertial[at : at + 10] = True
    joints = np.flatnonzero(~inertial)
    rows = [-np.eye(n)[joints]]
    cones: list[object] = []
    if len(joints):
        cones.append(clarabel.NonnegativeConeT(len(joints)))  # type: ignore[attr-defined]
    # the upper triangle column by column, entries off the diagonal times sqrt(2), is the solver's form of a matrix
    upper = [(i, j) for j in range(4) for i in range(j + 1)]
    unit = np.array([pseudo_inertia(e) for e in np.eye(10)])
    block = np.array([[unit[k, i, j] * (1.0 if i == j else np.sqrt(2.0)) for k in range(10)] for i, j in upper])
    for at in parameters.bodies.values():
        wide = np.zeros((10, n))
        wide[:, at : at + 10] = -block
        rows.append(wide)
        cones.append(clarabel.PSDTriangleConeT(4))  # type: ignore[attr-defined]
    return np.vstack(rows), cones


class NoKnownLoadError(PkmError):
    """Recordings that do not fix the scale of the efforts."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Regressors (n, m, n_parameters) of a motion, the drives' signals (n, m), and what is known: payload, springs."""

    psi: Array
    signals: Array
    payload: Inertial | None = None
    springs: Array | float = 0.0  # `Dynamics.spring_efforts` (n, m)


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains (m,) [effort per unit of signal], half-widths (m,) of their 95 % confidence, and base parameters (r,)."""

    gains: Array
    interval: Array
    base_values: Array


def drive_gains(
    recordings: Sequence[Loaded], base: BaseParameters, parameters: ParameterSet, platform: str
) -> DriveGains:
    """Fit gains and base parameters to recordings; `NoKnownLoadError` without a payload, which leaves only ratios."""
    if not any(r.payload is not None and r.payload.mass > 0.0 for r in recordings):
        raise NoKnownLoadError(
            "drive gains need a recording with a known payload; without one, only ratios are identifiable"
        )
    W = np.concatenate([base.reduce(r.psi) for r in recordings])
    known = np.concatenate(
        [
            r.psi
            @ (np.zeros(len(parameters)) if r.payload is None else payload_parameters(parameters, platform, r.payload))
            + r.springs
            for r in recordings
        ]
    )
    s = np.concatenate([r.signals for r in recordings])
    n, m, r = W.shape
    # linear in beta and gains, with the noise on the wrong side: a start that is near
    left = np.zeros((n, m, r + m))
    left[:, :, :r] = W
    left[:, np.arange(m), r + np.arange(m)] = -s
    start = np.linalg.lstsq(left.reshape(n * m, -1), -known.reshape(-1), rcond=None)[0]
    beta, gains = start[:r], start[r:]
    if not (gains != 0.0).all():
        raise NoKnownLoadError("a drive's signal has no part that moves the robot; its gain is not identifiable")
    noise = np.sqrt(np.mean((s - (W @ beta + known) / gains) ** 2, axis=0))
    noise = np.maximum(noise, 1e-9 * np.abs(s).max())
    size = np.maximum(np.linalg.norm(W.reshape(-1, r), axis=0), 1e-300)

    def residual(x: Array) -> Array:
        return np.asarray((((W @ (x[:r] / size) + known) * x[r:] - s) / noise).reshape(-1))

    def jacobian(x: Array) -> Array:
        J = np.zeros((n, m, r + m))
        J[:, :, :r] = W / size * (x[r:] / noise)[:, None]
        J[:, np.arange(m), r + np.arange(m)] = (W @ (x[:r] / size) + known) / noise
        return J.reshape(n * m, r + m)

    answer = scipy.optimize.least_squares(
        residual, np.concatenate([beta * size, 1.0 / gains]), jacobian, x_scale="jac", method="trf"
    )
    found = 1.0 / answer.x[r:]
    freedom = n * m - r - m
    J = jacobian(answer.x)
    scale = np.linalg.norm(J, axis=0)
    covariance = np.linalg.pinv((J / scale).T @ (J / scale)) / np.outer(scale, scale) * 2.0 * answer.cost / freedom
    factor = float(scipy.special.stdtrit(freedom, 0.5 + 0.5 * CONFIDENCE))
    half = factor * np.sqrt(np.diagonal(covariance)[r:]) * found**2
    return DriveGains(found, half, answer.x[:r] / size)
