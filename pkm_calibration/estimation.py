# SPDX-License-Identifier: Apache-2.0
"""The estimator of all calibrations: nonlinear least squares over named parameters, honest about what it cannot know.

Levenberg's and Marquardt's method on residuals over their standard deviations, at first with Huber's weights (1964).
Measurements whose studentised residuals in that fit are larger than noise are left out, the worst first, and named. The
others are then fitted without weights.
Parameters are scaled by the size of the errors that are expected of them. A direction in their space that the
measurements know less well than that, by its singular value, is held where it began, and its uncertainty is taken to be
the expected one; intervals contain both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError


class ContradictionError(PkmError):
    """Most measurements do not go with each other."""


Residuals = Callable[[Array], tuple[Array, Array]]

ITERATIONS = 60
SETTLED = 1e-5  # of the expected errors: a step that need not be taken
LEVEL = 1e-9  # of the sum of squares: what configurations that close to rounding only change in it
BEGUN = 1e-2  # of them: such a step of the robust fit, unless it leaves measurements out
UNSEEN = 1.0  # expected errors: a direction with a larger standard deviation is held
PART = 0.1  # of a direction: what parameters that it is named by have at least
TAKES_PART = 0.3  # in unseen directions: such a parameter is not identified
HUBER = 1.345  # standard deviations, beyond which residuals count linearly
SURE = 0.01  # probability that good measurements have an outlier at all, or too large residuals
FREE = 0.9  # of a residual's leverage: beyond, the estimate follows it
WORST = 0.6  # of the largest residual: what is left out together with it
LEAST_NOISE = 1e-3  # of the standard deviations that are assumed: exact numbers have that of rounding
BEYOND = 30.0  # standard deviations, in the median, that nothing explains
MOST = 0.3  # of all groups, as outliers
TURNS = 12  # at most, until groups are divided, or two noises known
TELLS = 3.0  # times the noise: a shift of a group that tells its side
WRONG = 100.0  # times what is usual of numbers that no shift changes
CUTS = 60  # between which runs of groups are tried
LEAST_SIZE = 0.5  # of expected errors, that machines have


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of parameters, and how well they are known.

    `interval95` (k, 2) and `covariance` (k, k) include what is expected of `unseen` directions, told in words;
    `unidentified` are the parameters that take part in these. `outliers` are groups of residuals that do not fit.
    `noise` is the standard deviation of residuals over the one given (1 where chance may be why), `rms_before` and
    `rms_after` are those of all residuals but outliers', `freedoms` counts residuals beyond the `rank`.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    interval95: Array
    rank: int
    unseen: tuple[str, ...]
    unidentified: tuple[str, ...]
    outliers: tuple[Any, ...]
    noise: float
    rms_before: float
    rms_after: float
    freedoms: int
    residuals: Array

    @property
    def correlations(self) -> Array:
        """Correlation (k, k) of each two parameters."""
        size = np.sqrt(np.diag(self.covariance))
        safe = np.where(size > 0.0, size, 1.0)
        return np.asarray(self.covariance / np.outer(safe, safe))

    def of_first(self, k: int) -> Estimate:
        """The same of the first k parameters alone; what is unseen of the others counts as unseen of these."""
        return replace(
            self,
            names=self.names[:k],
            values=self.values[:k],
            covariance=self.covariance[:k, :k],
            interval95=self.interval95[:k],
            rank=self.rank - (len(self.names) - k),
            unidentified=tuple(name for name in self.unidentified if name in self.names[:k]),
        )


def estimate(
    residuals: Residuals,
    start: Array,
    *,
    names: Sequence[str],
    scales: Array,
    sigma: Array | None = None,
    groups: Sequence[Hashable] | NDArray[Any] | None = None,
    trusted: Collection[Hashable] = (),
) -> Estimate:
    """Values that bring residuals (m,) to their least, given with their derivatives (m, k).

    Args:
        residuals: of values (k,); not finite where there are none.
        start: values (k,) to begin with, at which unseen directions stay.
        scales: (k,) errors that are expected of the parameters, in their units.
        sigma: standard deviations (m,); None: all alike, and estimated.
        groups: which measurement each residual is of; a measurement is an outlier as a whole.
        trusted: those of them that are no outliers.

    PkmError: there are no residuals at the start. ContradictionError: no values explain most of the measurements.
    """
    start, scales = np.asarray(start, dtype=np.float64), np.asarray(scales, dtype=np.float64)
    r = residuals(start)[0]
    if not np.isfinite(r).all():
        raise PkmError("the measurements have no residuals at the start of the estimate")
    width = np.ones(len(r)) if sigma is None else np.asarray(sigma, dtype=np.float64)
    labels = np.arange(len(r)) if groups is None else np.asarray(groups)
    members = np.unique(labels, return_inverse=True)[1]
    there = np.ones(len(r), dtype=bool)
    out: list[Any] = []
    known = sigma is not None
    fit = _robust(_Fit(residuals, start, scales, width, there, known), members)
    if known and (times := float(np.median(np.abs(fit.r)))) > BEYOND:
        raise ContradictionError(
            f"the measurements are inconsistent: half of them deviate by {times:.3g} standard deviations"
        )
    open_ = ~np.isin(labels, np.array(list(trusted)))
    while fit.outliers(labels, open_) and (found := fit.run(members[there]).outliers(labels, open_)):  # it has settled
        out += found
        there = ~np.isin(labels, out)
        if len(out) > MOST * len(np.unique(labels)):
            raise ContradictionError(
                f"{len(out)} of {len(np.unique(labels))} measurements are inconsistent with the others: no set of "
                "parameters explains most of them"
            )
        fit = _Fit(residuals, fit.values, scales, width, there, known).run(members[there], BEGUN)
    fit = _Fit(residuals, fit.values, scales, width, there, known).run()
    return fit.estimate(names, out, r / width, start)


def _robust(fit: _Fit, members: NDArray[np.int64]) -> _Fit:
    """The fit with Huber's weights.

    Far from the answer, residuals that parameters would explain look like noise, which hides these parameters. So the
    noise is first taken to be what was assumed, and that is believed where no direction is lost to the noise found.
    """
    if fit.known:
        return fit.run(members, BEGUN)
    start = fit.values
    fit.assumed_noise = 1.0
    fit.run(members, BEGUN)
    seen = fit.seen.sum()
    fit.assumed_noise = None
    if fit.seen.sum() < seen:
        fit.values = start
        fit.run(members, BEGUN)
    return fit


class _Fit:
    def __init__(
        self, residuals: Residuals, values: Array, scales: Array, width: Array,
        there: NDArray[np.bool_], known: bool,
    ) -> None:  # fmt: skip
        self.residuals, self.values, self.scales = residuals, values, scales
        self.width, self.there, self.known = width, there, known
        self.noise, self.weights = 1.0, np.ones(int(there.sum()))
        self.assumed_noise: float | None = None  # the noise by which directions are seen, in place of the one found

    def at(self, values: Array) -> tuple[Array, Array]:
        r, J = self.residuals(values)
        return r[self.there] / self.width[self.there], J[self.there] * (self.scales / self.width[self.there, None])

    def run(self, members: NDArray[np.int64] | None = None, settled: float = SETTLED) -> _Fit:
        """Minimise; with Huber's weights where it is said of which measurement each residual is a member (m,)."""
        self.r, self.J = self.at(self.values)
        damping = 1e-3
        for _ in range(ITERATIONS):
            self.noise = self._noise()
            if members is not None:  # one weight for all of a measurement: how its residuals are turned does not count
                square = np.bincount(members, self.r**2) / np.maximum(np.bincount(members), 1)
                size = np.sqrt(square)[members] / self.noise
                self.weights = np.sqrt(np.minimum(1.0, HUBER / np.maximum(size, HUBER)))
            U, s, Vt, seen = self._decomposed()
            weighted = self.weights * self.r
            cost = float(weighted @ weighted)
            along = U.T @ weighted
            whole = Vt[seen].T @ (along[seen] / s[seen])  # the step without damping
            if np.abs(whole).max(initial=0.0) < settled:
                break
            while True:
                step = -(Vt.T @ np.where(seen, s / (s * s + damping * s[0] ** 2) * along, 0.0))
                trial = self.values + step * self.scales
                r, J = self.at(trial)
                size = self.weights * r
                if np.isfinite(r).all() and np.isfinite(J).all() and size @ size <= cost * (1.0 + LEVEL):
                    break
                damping = max(10.0 * damping, 1e-9)
                if damping > 1e6:
                    return self
            self.values, self.r, self.J = trial, r, J
            damping *= 1e-3
            damping = damping if damping > 1e-12 else 0.0
        self.noise = self._noise()
        return self

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Directions that the measurements know."""
        return self._decomposed()[3]

    def _noise(self) -> float:
        """Standard deviation of the weighted residuals, from their middle half where it is not known."""
        if self.known:
            return 1.0
        used = self.r.size / max(1, self.r.size - min(self.J.shape))
        return max(1.4826 * float(np.median(np.abs(self.r))) * np.sqrt(used), 1e-300)

    def _decomposed(self) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        Q, R = np.linalg.qr(self.weights[:, None] * self.J)
        U, s, Vt = np.linalg.svd(R, full_matrices=False)
        U = Q @ U
        noise = self.noise if self.known else min(self.noise, float(np.sqrt(np.mean(self.r**2))) or self.noise)
        noise = self.assumed_noise or noise
        return U, s, Vt, np.asarray((s > noise / UNSEEN) & (s > 1e-10 * s[0]))

    def outliers(self, labels: NDArray[Any], open_: NDArray[np.bool_]) -> list[Any]:
        """Groups whose residuals are too large to be of the noise, all others being as they are, where `open_` (m,)."""
        U, _, _, seen = self._decomposed()
        leverage = (U[:, seen] ** 2).sum(axis=1)
        freedoms = max(1, self.r.size - int(seen.sum()))
        size = np.abs(self.r) / np.sqrt(np.maximum(1.0 - leverage, 1e-6))
        free = leverage < FREE  # what the estimate follows says little of the noise
        middle = 1.4826 * float(np.median(size[free])) if free.sum() > 3 else 0.0
        # Where all are worse than was said, none is an outlier for that.
        size = size / max(self.noise if self.known else LEAST_NOISE, middle)
        level = SURE / self.r.size
        most = -special.ndtri(0.5 * level) if self.known else -special.stdtrit(freedoms, 0.5 * level)
        far = (size > most) & free & open_[self.there]
        far &= size > WORST * size[free].max(initial=0.0)  # the worst first: they make others look bad
        return list(dict.fromkeys(labels[self.there][far].tolist()))

    def estimate(self, names: Sequence[str], out: Sequence[Any], before: Array, start: Array) -> Estimate:
        """The answer, without weights."""
        self.weights[:] = 1.0
        freedoms = self.r.size - int(self._decomposed()[3].sum())
        if not self.known:  # without residuals to spare nothing is known of the noise but what is assumed
            measured = float(np.sqrt(self.r @ self.r / max(1, freedoms)))
            self.noise = max(measured, LEAST_NOISE) if freedoms > 0 else 1.0
        _, s, Vt, seen = self._decomposed()
        freedoms = self.r.size - int(seen.sum())
        full = np.linalg.svd(np.linalg.qr(self.J, mode="r"))[2]
        hidden = np.vstack((Vt[~seen], full[len(s) :]))
        reach = 1.96 if self.known or freedoms < 1 else float(special.stdtrit(freedoms, 0.975))
        if self.known and freedoms > 0 and (square := float(self.r @ self.r)) > special.chdtri(freedoms, SURE):
            self.noise = float(np.sqrt(square / freedoms))  # hardly by chance: more than the noise is in the residuals
            reach = float(special.stdtrit(freedoms, 0.975))
        scaled = (Vt[seen].T * (self.noise / s[seen]) ** 2) @ Vt[seen]
        found = (Vt[seen] @ ((self.values - start) / self.scales)) ** 2 - (self.noise / s[seen]) ** 2
        open_ = UNSEEN**2 * max(1.0, float(found.mean()) if seen.any() else 1.0)  # as far off as what was seen
        covariance = (scaled + open_ * hidden.T @ hidden) * np.outer(self.scales, self.scales)
        half = reach * np.sqrt(np.diag(covariance))
        part = np.linalg.norm(hidden, axis=0) if len(hidden) else np.zeros(len(names))
        return Estimate(
            names=tuple(names),
            values=self.values,
            covariance=covariance,
            interval95=np.column_stack((self.values - half, self.values + half)),
            rank=int(seen.sum()),
            unseen=tuple(_in_words(one, names) for one in _simple(hidden)),
            unidentified=tuple(name for name, one in zip(names, part, strict=True) if one > TAKES_PART),
            outliers=tuple(out),
            noise=self.noise,
            rms_before=float(np.sqrt(np.mean(before[self.there] ** 2))),
            rms_after=float(np.sqrt(np.mean(self.r**2))),
            freedoms=freedoms,
            residuals=self.r,
        )


def second_cluster(
    r: Array, J: Array, shifts: Array, groups: NDArray[np.int64], first: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Array, float]:
    """The groups (n,) that lie beside the others by one shift (3,), and by how many standard deviations.

    Residuals r (m,) over their deviations have derivatives J (m, k) by parameters in expected errors, and `shifts`
    (m, 3) by what a group may be moved by. Groups are divided by turns, from the run of them that a shift explains best
    and from `first` (n,): parameters and shift are fitted, then each group goes to the side that it is nearer to; none
    that the shift moves too little to tell, or with a number that is wrong whatever the shift.
    """
    still = ~shifts.any(axis=1)
    usual = max(float(np.median(np.abs(r[still]))) if still.any() else 0.0, LEAST_NOISE)
    right = ~np.isin(groups, groups[still & (np.abs(r) > WRONG * usual)])
    r, J, shifts = r * right, J * right[:, None], shifts * right[:, None]
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    U, moves = U[:, s > UNSEEN], shifts.any(axis=1)
    if not moves.any():
        return np.zeros(len(first), dtype=bool), np.zeros(3), 0.0
    movable = np.isin(np.arange(len(first)), groups[moves])
    ways = [way for way in (_best_run(r, U, shifts, groups), first) if way.any() and not way[movable].all()]
    found: tuple[NDArray[np.bool_], Array, float] = np.zeros(len(first), dtype=bool), np.zeros(3), 0.0
    telling = movable
    for side in ways:
        for _ in range(TURNS):
            there = side[groups]
            A = np.hstack([U, shifts * there[:, None]])
            x = np.linalg.lstsq(A, r, rcond=1e-9)[0]
            left, moved = r - U @ x[:-3], shifts @ x[-3:]
            near, far = (np.bincount(groups, one**2, len(side)) for one in (left, left - moved))
            if np.array_equal(far < near, side):
                break
            side = far < near
        rest = np.where(there, left - moved, left)
        noise = 1.4826 * float(np.median(np.abs(rest[moves]))) * np.sqrt(len(r) / max(1, len(r) - A.shape[1]))
        apart = float(np.sqrt(np.mean(moved[moves] ** 2)))
        if apart > found[2] * noise and not side[movable].all():  # beside all that tells its place, there is no other
            found = side, x[-3:], apart / max(noise, LEAST_NOISE)
            telling = np.bincount(groups, moved**2, len(side)) > (TELLS * noise) ** 2
    side, shift, apart = found
    return (side & telling, shift, apart) if side[movable].mean() <= 0.5 else (~side & movable & telling, -shift, apart)


def _best_run(r: Array, U: Array, shifts: Array, groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The run of groups (n,) whose common shift lessens residuals r across U the most."""
    n = int(groups.max()) + 1
    cuts = np.unique(np.linspace(0, n, min(n, CUTS) + 1).round().astype(np.int64))
    across = r - U @ (U.T @ r)
    parts = [(groups >= a) & (groups < b) for a, b in pairwise(cuts)]
    g, G, B = (
        np.cumsum([np.zeros_like(one[0]), *one], axis=0)
        for one in (
            [shifts[there].T @ across[there] for there in parts],
            [U[there].T @ shifts[there] for there in parts],
            [shifts[there].T @ shifts[there] for there in parts],
        )
    )
    i, j = np.triu_indices(len(cuts), 1)
    by, along = g[j] - g[i], G[j] - G[i]
    inverse = np.linalg.pinv(B[j] - B[i] - np.swapaxes(along, 1, 2) @ along, rcond=1e-6, hermitian=True)
    gain = np.einsum("ki,kij,kj->k", by, inverse, by)
    gain[j - i == len(cuts) - 1] = 0.0  # all of them
    best = int(np.argmax(gain))
    return np.asarray((np.arange(n) >= cuts[i[best]]) & (np.arange(n) < cuts[j[best]]) & (gain[best] > 0.0))


def one_more(r: Array, J: Array, values: Array, by: Array) -> tuple[float, float]:
    """A further unknown with derivative `by` (m,): its value, and how many standard deviations that is from 0.

    Parameters were estimated as `values` (k,), and may be off by as much as they are then off in the mean: what many
    of them would have to be off by together, for this unknown, counts against them.
    """
    size, noise, k = 1.0, 1.0, len(values)
    zeros = np.zeros((k, 1))
    for _ in range(TURNS):
        A = np.vstack([np.hstack([J, by[:, None]]) / noise, np.hstack([np.eye(k), zeros]) / size])
        b = np.concatenate([-r / noise, -values / size])
        x = np.linalg.lstsq(A, b, rcond=None)[0]
        left = r + J @ x[:-1] + by * x[-1]
        noise = max(float(np.sqrt(np.sum(left**2) / max(1, len(r) - min(k, len(r) - 1)))), LEAST_NOISE)
        size = max(float(np.sqrt(np.mean((values + x[:-1]) ** 2))), LEAST_SIZE)
    inverse = np.linalg.pinv(A.T @ A, hermitian=True)[-1, -1]
    return float(x[-1]), float(abs(x[-1]) / np.sqrt(max(inverse, 1e-300)))


def _simple(hidden: Array) -> Array:
    """A basis (j, k) of the same directions with many zeros: each row led by another parameter."""
    rows = np.array(hidden)
    for at in range(len(rows)):
        pivot = int(np.argmax(np.abs(rows[at:]).max(axis=0)))
        best = at + int(np.argmax(np.abs(rows[at:, pivot])))
        rows[[at, best]] = rows[[best, at]]
        rows[at] /= rows[at, pivot]
        for other in range(len(rows)):
            if other != at:
                rows[other] -= rows[other, pivot] * rows[at]
    return rows


def _in_words(direction: Array, names: Sequence[str]) -> str:
    """A direction by the parameters that have a part in it, the largest first."""
    largest = float(np.abs(direction).max(initial=0.0)) or 1.0
    order = [k for k in np.argsort(-np.abs(direction), kind="stable") if abs(direction[k]) > PART * largest]
    words = [names[order[0]]]
    for k in order[1:5]:
        words.append(f"{'with' if direction[k] * direction[order[0]] > 0 else 'against'} {names[k]}")
    return ", ".join(words) + (f" and {len(order) - 5} more" if len(order) > 5 else "")
