# SPDX-License-Identifier: Apache-2.0
"""The one estimator of every calibration: robust nonlinear least squares that says what the data cannot tell.

Measurements y = f(x) + noise of parameters x, which the caller gives as residuals r = f(x) - y and dr/dx. With W =
1/standard deviations and S = the errors expected of the parameters, the singular values of W J S say what is seen:
along a direction of singular value s the data narrow a combination of parameters to 1/s of the error expected of it.
Where s < `SEEN`, they tell less than was known before, and the direction is held at its start (Hollerbach and Wampler,
"The calibration index and taxonomy for robot kinematic calibration methods", IJRR 1996, on scaling and rank). The step
is that of Levenberg and Marquardt (Nielsen, "Damping parameter in Marquardt's method", 1999). Outliers are found by the
externally studentised residual, one after the other (Cook and Weisberg, "Residuals and influence in regression", 1982,
chapter 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.special
from numpy.typing import NDArray

from pkm_runtime.errors import PkmError

Array = NDArray[np.float64]
Residuals = Callable[[Array], tuple[Array, Array]]

CONFIDENCE = 0.95
SEEN = 1.0  # least singular value of a direction that is estimated
NUMERICALLY_SEEN = 1e-9  # the same, of the largest singular value: below it there is rounding alone
FALSE_ALARM = 0.01  # chance that one calibration without outliers names one
MOST_OUTLIERS = 0.3  # of all measurements: with more, which ones they are is no longer known
_STEPS = 200
_SHOWN = 0.15  # of the largest coefficient: parameters with less are left out of the words for a direction


class EstimationError(PkmError):
    """Measurements from which nothing can be estimated."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A combination of parameters: `coefficients` (n,) in their units, the largest 1, and the parameters in words."""

    coefficients: Array
    names: tuple[str, ...]  # that take part, the largest first
    words: str


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters with what is known of them, in the parameters' and the measurements' own units.

    `covariance` (n, n) comes from the noise; `held_covariance` (n, n) from what is held, were the start off by the
    errors expected of it. `deviations` (m,) are the standard deviations of the measurements, given or found.
    `residuals` (m,) are those of all measurements, the outliers' too; `rms_before` and `rms_after` are without
    outliers. `held` are the parameters that gave way as a whole, `unseen` the combinations held beside them. `freedom`:
    measurements less what they determine. `converged` false: the best that was found in the steps allowed.
    """

    names: tuple[str, ...]
    start: Array
    values: Array
    covariance: Array
    held_covariance: Array
    singular_values: Array
    rank: int
    held: tuple[str, ...]
    unseen: tuple[Direction, ...]
    outliers: tuple[int, ...]  # groups, in the order in which they were found
    residuals: Array
    deviations: Array
    known: bool
    freedom: int
    rms_before: float
    rms_after: float
    converged: bool

    @property
    def factor(self) -> float:
        """Half-width of an interval in standard deviations: normal for known noise, Student's t for estimated noise."""
        share = 0.5 * (1.0 + CONFIDENCE)
        if self.known:
            return float(scipy.special.ndtri(share))
        return float(scipy.special.stdtrit(self.freedom, share)) if self.freedom > 0 else np.inf

    def half_widths(self, held: bool = True) -> Array:
        """Half-widths (n,) of the 95 % intervals; without `held`, as if all that is held were exact."""
        own = self.factor * np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        normal = float(scipy.special.ndtri(0.5 * (1.0 + CONFIDENCE)))
        others = normal * np.sqrt(np.maximum(np.diag(self.held_covariance), 0.0)) if held else 0.0
        return np.asarray(np.hypot(own, others))

    def interval(self, name: str, held: bool = True) -> tuple[float, float]:
        """The 95 % interval of a parameter."""
        k = self.names.index(name)
        half = float(self.half_widths(held)[k])
        return float(self.values[k]) - half, float(self.values[k]) + half

    @property
    def correlations(self) -> Array:
        """Correlations (n, n) by the noise; 0 for what is held."""
        size = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        scale = np.outer(size, size)
        return np.divide(self.covariance, scale, out=np.zeros_like(scale), where=scale > 0.0)


@dataclass(frozen=True)
class _Problem:
    """What is asked, over the rows that are used: `basis` (n, k) are the scaled directions that may move."""

    residuals: Residuals
    start: Array
    scales: Array
    rows: NDArray[np.bool_]
    weights: Array
    basis: Array

    def at(self, y: Array) -> tuple[Array, Array]:
        """Weighted residuals, and their derivatives by y, of the rows used."""
        r, J = self.residuals(self.place(y))
        w = self.weights[self.rows]
        return w * r[self.rows], w[:, None] * ((J[self.rows] * self.scales) @ self.basis)

    def place(self, y: Array) -> Array:
        """Parameters at coordinates y (k,)."""
        return np.asarray(self.start + self.scales * (self.basis @ y))


def estimate(
    residuals: Residuals,
    start: Array | Sequence[float],
    names: Sequence[str],
    scales: Array | Sequence[float],
    deviations: Array | float | None,
    *,
    known: bool = True,
    kinds: Sequence[int] | NDArray[np.int64] | None = None,
    groups: Sequence[int] | NDArray[np.int64] | None = None,
    give_way: Sequence[Sequence[str]] = (),
    reject: bool = True,
    rows: NDArray[np.bool_] | None = None,
) -> Estimate:
    """Estimate parameters from measurements.

    Args:
        residuals: of parameters (n,): r (m,), predicted less measured, and dr/dparameters (m, n), in the measurements'
            units; not finite where the parameters are impossible.
        start: parameters (n,) to start from, which are possible.
        names: of the parameters.
        scales: the errors (n,) expected of the start.
        deviations: standard deviations of the measurements, (m,) or one; None: estimated from the residuals.
        known: false: `deviations` are only what is expected, and a factor on them is estimated for each kind.
        kinds: of each row: rows of one kind share that factor (Helmert's variance components).
        groups: the measurement that a row belongs to: its rows are outliers together.
        give_way: sets of parameters that are held, one set after the other, where the data do not see everything; what
            is still unseen then is held as combinations, by the least change in units of `scales`.
        reject: false: outliers are not looked for.
        rows: (m,) which rows are used; the others are predicted only.

    Raises:
        EstimationError: no measurement sees anything, or the start is impossible.
    """
    x0, size = np.asarray(start, dtype=float), np.asarray(scales, dtype=float)
    r0, J0 = residuals(x0)
    m = len(r0)
    if not (m and np.isfinite(r0).all() and np.isfinite(J0).all()):
        raise EstimationError("there is no measurement, or the start values are impossible for some of them")
    known = known and deviations is not None
    expected = np.broadcast_to(np.asarray(1.0 if deviations is None else deviations, dtype=float), m).copy()
    kind = np.zeros(m, dtype=int) if kinds is None else np.asarray(kinds, dtype=int)
    group = np.arange(m) if groups is None else np.asarray(groups, dtype=int)
    used = np.ones(m, dtype=bool) if rows is None else np.asarray(rows, dtype=bool).copy()
    most, outliers = int(MOST_OUTLIERS * len(np.unique(group[used]))), list[int]()
    sets = [np.array([names.index(one) for one in together]) for together in give_way]
    problem = _Problem(residuals, x0, size, used, 1.0 / expected, np.eye(len(x0)))
    fitted = _fitted(problem, sets, expected, kind, known, deviations is None)
    while reject and len(outliers) < most:
        worst = _worst(fitted, group, expected if deviations is not None else np.zeros(m), known)
        if worst is None:
            break
        outliers.append(worst)
        problem = replace(problem, rows=problem.rows & (group != worst))
        fitted = _fitted(problem, sets, expected, kind, known, deviations is None)
    return _described(fitted, names, tuple(outliers), known, r0)


@dataclass(frozen=True)
class _Fit:
    """A fit: the problem at its end, its coordinates, and what the directions that move or do not look like."""

    problem: _Problem
    y: Array
    held: NDArray[np.int64]
    singular_values: Array
    unseen: Array  # scaled directions (n, k)
    converged: bool
    freedom: int


def _fitted(
    problem: _Problem, sets: Sequence[Array], expected: Array, kind: NDArray[np.int64], known: bool, blind: bool
) -> _Fit:
    """Fit, with rank and noise that agree with the residuals; `blind`: nothing was said of the noise."""
    values = problem.start
    fit: _Fit | None = None
    for _ in range(4):
        least = SEEN if known or not blind or fit is not None else 0.0
        basis, unseen, held, s = _split(problem, values, sets, least)
        if fit is not None and basis.shape == fit.problem.basis.shape and np.array_equal(held, fit.held):
            turned = np.linalg.norm(basis - fit.problem.basis @ (fit.problem.basis.T @ basis))
            if turned < 1e-3 and known:
                return replace(fit, singular_values=s)
        problem = replace(problem, basis=basis)
        y, converged = _solved(problem, basis.T @ ((values - problem.start) / problem.scales))
        freedom = int(problem.rows.sum()) - basis.shape[1]
        weights = problem.weights if known else _weights(problem, y, expected, kind, freedom)
        settled = np.allclose(weights, problem.weights, rtol=1e-3)
        problem = replace(problem, weights=weights)
        values = problem.place(y)
        fit = _Fit(problem, y, held, s, unseen, converged, freedom)
        if settled and not known:
            break
    assert fit is not None
    return fit


def _split(
    problem: _Problem, values: Array, sets: Sequence[Array], least: float
) -> tuple[Array, Array, NDArray[np.int64], Array]:
    """Scaled directions (n, k) that are seen, and not; parameters held as a whole; singular values of the others."""
    J = problem.residuals(values)[1]
    A = (problem.weights[:, None] * J * problem.scales)[problem.rows]
    n = A.shape[1]
    held = np.zeros(n, dtype=bool)
    waiting = list(sets)
    while True:
        free = np.flatnonzero(~held)
        _, s, Vt = np.linalg.svd(A[:, free])
        s = np.concatenate([s, np.zeros(len(free) - len(s))])
        rank = int((s > max(least, NUMERICALLY_SEEN * s[0])).sum()) if s[0] > 0.0 else 0
        if rank == len(free) or not waiting:
            break
        held[waiting.pop(0)] = True
    if rank == 0:
        raise EstimationError("the measurements see none of the parameters")
    V = np.zeros((n, len(free)))
    V[free] = Vt.T
    return V[:, :rank], V[:, rank:], np.flatnonzero(held), s


def _solved(problem: _Problem, y: Array) -> tuple[Array, bool]:
    """The least squares by the method of Levenberg and Marquardt, and whether it converged."""
    r, A = problem.at(y)
    if not np.isfinite(r).all():
        y = np.zeros_like(y)
        r, A = problem.at(y)
    cost, damping, grow = float(r @ r), 1e-4 * float(np.max(np.sum(A * A, axis=0))), 2.0
    for _ in range(_STEPS):
        gradient = A.T @ r
        step = -np.linalg.solve(A.T @ A + damping * np.eye(len(y)), gradient)
        foreseen = -float(step @ (2.0 * gradient + A.T @ (A @ step)))
        if foreseen <= 1e-14 * cost or float(np.max(np.abs(step))) < 1e-12:
            return y, True
        trial, derivatives = problem.at(y + step)
        new = float(trial @ trial) if np.isfinite(trial).all() and np.isfinite(derivatives).all() else np.inf
        if new < cost:
            quality = (cost - new) / foreseen
            damping, grow = damping * max(1.0 / 3.0, 1.0 - (2.0 * quality - 1.0) ** 3), 2.0
            y, r, A, cost = y + step, trial, derivatives, new
        else:
            damping, grow = damping * grow, 2.0 * grow
            if not np.isfinite(damping):
                return y, True
    return y, False


def _weights(problem: _Problem, y: Array, expected: Array, kind: NDArray[np.int64], freedom: int) -> Array:
    """1 / standard deviations of all rows, where a factor on those expected is estimated for each kind.

    A kind's sum of squares is shared out by what of its redundancy the fit leaves: its rows less the trace of its part
    of the hat matrix. Kinds with less than two, or all of them if one has it so, have a common factor.
    """
    weights = 1.0 / expected
    if freedom <= 0:
        return weights
    for _ in range(20):
        r, A = replace(problem, weights=weights).at(y)
        Q = np.linalg.qr(A)[0]
        redundancy, kinds = 1.0 - np.sum(Q * Q, axis=1), kind[problem.rows]
        of_kind = [(kinds == one) for one in np.unique(kinds)]
        if min(float(redundancy[rows].sum()) for rows in of_kind) < 2.0:
            of_kind = [np.ones(len(r), dtype=bool)]
        factors = np.ones_like(weights)
        for rows in of_kind:
            factor = np.sqrt(float(r[rows] @ r[rows]) / max(float(redundancy[rows].sum()), 1e-300))
            everywhere = np.isin(kind, np.unique(kinds[rows]))
            factors[everywhere] = max(factor, 1e-9)
        weights = weights / factors
        if np.allclose(factors, 1.0, rtol=1e-4):
            break
    return np.clip(weights, 1e-6 / expected, 1e9 / expected)


def _worst(fit: _Fit, group: NDArray[np.int64], least: Array, known: bool) -> int | None:
    """The measurement that fits so badly that chance explains it in `FALSE_ALARM` of all calibrations, or none."""
    problem = fit.problem
    r, A = problem.at(fit.y)
    Q = np.linalg.qr(A)[0]
    here, total = group[problem.rows], float(r @ r)
    small = least[problem.rows] * problem.weights[problem.rows]
    candidates, found, lowest = np.unique(here), None, np.inf
    for one in candidates:
        rows = here == one
        k = int(rows.sum())
        left = fit.freedom - k
        if (np.abs(r[rows]) < small[rows]).all() or (left < 2 and not known):
            continue
        rest = np.eye(k) - Q[rows] @ Q[rows].T
        if np.linalg.eigvalsh(rest)[0] < 1e-6:  # nothing else sees what it measures
            continue
        lost = float(r[rows] @ np.linalg.solve(rest, r[rows]))
        if known:
            chance = float(scipy.special.chdtrc(k, lost))
        else:
            chance = float(scipy.special.fdtrc(k, left, (lost / k) / max((total - lost) / left, 1e-300)))
        if chance < lowest or (chance == lowest == 0.0):
            found, lowest = int(one), chance
    return found if lowest < FALSE_ALARM / len(candidates) else None


def _described(fit: _Fit, names: Sequence[str], outliers: tuple[int, ...], known: bool, r0: Array) -> Estimate:
    problem, n = fit.problem, len(names)
    values = problem.place(fit.y)
    r, J = problem.residuals(values)
    A = (problem.weights[:, None] * J * problem.scales)[problem.rows]
    S = np.diag(problem.scales)
    inner = np.linalg.pinv(A @ problem.basis)
    move = S @ problem.basis @ inner  # of the parameters, for one standard deviation of each measurement
    fixed = np.concatenate([np.eye(n)[:, fit.held], fit.unseen], axis=1)
    spread = S @ fixed - move @ A @ fixed
    used = problem.rows

    def rms(of: Array) -> float:
        return float(np.sqrt(np.mean(of[used] ** 2)))

    return Estimate(
        names=tuple(names),
        start=problem.start,
        values=values,
        covariance=move @ move.T,
        held_covariance=spread @ spread.T,
        singular_values=fit.singular_values,
        rank=problem.basis.shape[1],
        held=tuple(names[k] for k in fit.held),
        unseen=tuple(direction(problem.scales * v, names) for v in fit.unseen.T),
        outliers=outliers,
        residuals=r,
        deviations=1.0 / problem.weights,
        known=known,
        freedom=fit.freedom,
        rms_before=rms(r0),
        rms_after=rms(r),
        converged=fit.converged,
    )


def direction(coefficients: Array, names: Sequence[str]) -> Direction:
    """A combination of parameters in words, such as `1 a - 0.5 b`; what has little part in it is left out."""
    scaled = coefficients / coefficients[np.argmax(np.abs(coefficients))]
    order = [int(k) for k in np.argsort(-np.abs(scaled), kind="stable") if abs(scaled[k]) >= _SHOWN]
    words = " ".join(
        f"{'-' if scaled[k] < 0.0 else '+' if place else ''}{' ' if place else ''}{abs(scaled[k]):.2g} {names[k]}"
        for place, k in enumerate(order)
    )
    return Direction(scaled, tuple(names[k] for k in order), words)


def held_out_rms(
    fit: Callable[[NDArray[np.bool_]], Estimate], groups: Sequence[int] | NDArray[np.int64], folds: int = 5
) -> float:
    """Root mean square of residuals of measurements that had no part in the estimate that predicts them.

    Args:
        fit: estimates from the rows of a mask (m,), as `estimate` does with `rows`.
        groups: the measurement of each row (m,); whole measurements are kept aside, every `folds`-th at a time.
        folds: number of parts; measurements that were outliers of their own part's fit are predicted all the same.
    """
    group = np.asarray(groups)
    every = np.unique(group)
    parts = min(folds, len(every))
    squares = list[float]()
    for part in range(parts):
        aside = np.isin(group, every[part::parts])
        squares += list(fit(~aside).residuals[aside] ** 2)
    return float(np.sqrt(np.mean(squares)))
