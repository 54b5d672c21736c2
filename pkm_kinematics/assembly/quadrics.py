# SPDX-License-Identifier: Apache-2.0
"""All solutions of n quadrics in complex projective n-space, by tracking known solutions of a generic system.

The systems are `z^T M_i z = 0`, i = 1..n, with complex symmetric matrices M_i, shape (n, n + 1, n + 1), and unknown
z in P^n, a vector of n + 1 complex numbers up to scale. Projectively, a solution "at infinity" is a point of P^n like
any other, and the double cover of rotations by quaternions vanishes.

Method: coefficient-parameter homotopy (Morgan and Sommese, 1989) along the straight line M(t) = (1 - t) M_a + t M_b. A
quadratic system whose coefficients are linear in t has a Taylor series in t that costs one LU decomposition and one
back substitution per order; its ratio estimates the distance to the nearest singularity of the path, which bounds the
step *before* it is taken (as in Telen, Van Barel, Verschelde, "A robust numerical path tracking algorithm for
polynomial homotopy continuation", 2020), and so keeps paths from jumping onto each other. Every step is corrected by
Newton's method.

Homotopies start at a generic system whose solutions are known: of any n quadrics in P^n 2^n, by Bezout's theorem. In a
smaller family all are found from one by monodromy: coefficients that move around a closed loop permute the solutions,
and for a generic member every solution can be reached from every other one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from pkm_runtime.kernels.compiled import plain

Complex = NDArray[np.complex128]
Terms = tuple[Complex, Complex, Complex]  # a series (ORDER + 1, n + 1), and M(t) and the slope times each of its terms
Scratch = tuple[Complex, Complex, NDArray[np.int64], Complex]

ORDER = 6  # of the Taylor predictor
TRACKED, STALLED = 0, 1  # how a path ended: at the end of the segment, or short of a singular point
SMALLEST_STEP = 1e-11  # fraction of a segment; below it a path counts as stalled
MAX_STEPS = 2000


@plain
def _factor(matrix: Complex, pivots: NDArray[np.int64]) -> bool:
    """LU decomposition with partial pivoting, in place; False where a pivot vanishes."""
    n = matrix.shape[0]
    for k in range(n):
        best, row = -1.0, k
        for i in range(k, n):
            size = matrix[i, k].real ** 2 + matrix[i, k].imag ** 2
            if size > best:
                best, row = size, i
        if not best > 1e-300:
            return False
        pivots[k] = row
        if row != k:
            for j in range(n):
                matrix[k, j], matrix[row, j] = matrix[row, j], matrix[k, j]
        inverse = 1.0 / matrix[k, k]
        for i in range(k + 1, n):
            factor = matrix[i, k] * inverse
            matrix[i, k] = factor
            for j in range(k + 1, n):
                matrix[i, j] -= factor * matrix[k, j]
    return True


@plain
def _solve(matrix: Complex, pivots: NDArray[np.int64], x: Complex) -> None:
    n = matrix.shape[0]
    for k in range(n):
        row = pivots[k]
        if row != k:
            x[k], x[row] = x[row], x[k]
    for i in range(1, n):
        total = x[i]
        for j in range(i):
            total -= matrix[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= matrix[i, j] * x[j]
        x[i] = total / matrix[i, i]


@plain
def _apply(matrices: Complex, z: Complex, out: Complex) -> None:
    n, size = matrices.shape[0], z.shape[0]
    for i in range(n):
        for r in range(size):
            total = 0.0j
            for c in range(size):
                total += matrices[i, r, c] * z[c]
            out[i, r] = total


@plain
def _norm(z: Complex) -> float:
    total = 0.0
    for k in range(z.shape[0]):
        total += z[k].real ** 2 + z[k].imag ** 2
    return np.sqrt(total)


@plain
def _newton_step(
    matrices: Complex, z: Complex, image: Complex, lu: Complex, pivots: NDArray[np.int64], dz: Complex
) -> float:
    """One projective Newton step from z (in place, tangent to the unit sphere); returns its length, inf if singular."""
    n, size = matrices.shape[0], z.shape[0]
    _apply(matrices, z, image)
    for i in range(n):
        value = 0.0j
        for c in range(size):
            value += image[i, c] * z[c]
            lu[i, c] = 2.0 * image[i, c]
        dz[i] = -value
    for c in range(size):
        lu[n, c] = z[c].conjugate()
    dz[n] = 0.0
    if not _factor(lu, pivots):
        return np.inf
    _solve(lu, pivots, dz)
    length = _norm(dz)
    if not np.isfinite(length):
        return np.inf
    for c in range(size):
        z[c] += dz[c]
    return length / _norm(z)


@plain
def _normalise(z: Complex) -> None:
    scale = 1.0 / _norm(z)
    for k in range(z.shape[0]):
        z[k] *= scale


@plain
def refine(matrices: Complex, z: Complex, iterations: int) -> float:
    """Newton's method on one system; z in place, unit norm; returns the length of the last step."""
    n, size = matrices.shape[0], z.shape[0]
    image = np.empty((n, size), dtype=np.complex128)
    lu = np.empty((size, size), dtype=np.complex128)
    pivots = np.empty(size, dtype=np.int64)
    dz = np.empty(size, dtype=np.complex128)
    length = np.inf
    for _ in range(iterations):
        _normalise(z)
        length = _newton_step(matrices, z, image, lu, pivots, dz)
        if not length > 1e-15:
            break
    _normalise(z)
    return length


@plain
def _taylor(
    here: Complex, slope: Complex, z: Complex, factors: tuple[Complex, NDArray[np.int64]], dz: Complex, terms: Terms
) -> None:
    """Taylor series, into `terms`, of the path through z with coefficients `here` that change by `slope` per t."""
    series, fixed, moving = terms
    n, size = here.shape[0], z.shape[0]
    for c in range(size):
        series[0, c] = z[c]
    for k in range(1, ORDER + 1):
        _apply(here, series[k - 1], fixed[k - 1])
        _apply(slope, series[k - 1], moving[k - 1])
        for i in range(n):
            total = 0.0j
            for j in range(1, k):
                for c in range(size):
                    total += fixed[j, i, c] * series[k - j, c]
            for j in range(k):
                for c in range(size):
                    total += moving[j, i, c] * series[k - 1 - j, c]
            dz[i] = -total
        dz[n] = 0.0
        _solve(factors[0], factors[1], dz)
        for c in range(size):
            series[k, c] = dz[c]


@plain
def _safe_stride(series: Complex, tolerance: float, caution: float) -> float:
    """Step that the last terms of a series allow; see `track`. NaN where they are not finite, infinite where zero."""
    last, before = _norm(series[ORDER]), _norm(series[ORDER - 1])
    if not np.isfinite(last):
        return np.nan
    if last == 0.0:
        return np.inf
    return min((tolerance / last) ** (1.0 / ORDER), caution * before / last)


@plain
def _predict(series: Complex, s: float, guess: Complex) -> None:
    for c in range(guess.shape[0]):
        total = series[ORDER, c]
        for k in range(ORDER - 1, -1, -1):
            total = total * s + series[k, c]
        guess[c] = total
    _normalise(guess)


@plain
def _correct(
    here: Complex, guess: Complex, tolerance: float, image: Complex, lu: Complex, pivots: NDArray[np.int64], dz: Complex
) -> bool:
    """Newton's method from a guess, in place; False where it starts too far off or does not converge fast."""
    length = _newton_step(here, guess, image, lu, pivots, dz)
    good = length < 1e3 * tolerance
    while good and length > 1e-7:
        shorter = _newton_step(here, guess, image, lu, pivots, dz)
        good = shorter < 0.1 * length
        length = shorter
    return good


@plain
def _along(start: Complex, slope: Complex, t: float, out: Complex) -> None:
    """out = start + t slope, (n, size, size), by elements: such a line of whole arrays takes seconds to compile."""
    for i in range(out.shape[0]):
        for r in range(out.shape[1]):
            for c in range(out.shape[2]):
                out[i, r, c] = start[i, r, c] + t * slope[i, r, c]


@plain
def track_all(
    start: Complex, end: Complex, points: Complex, tolerance: float, caution: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Track solutions (k, n + 1) of `start` (n, n + 1, n + 1) to `end`, coefficients on a straight line, in place.

    Answers TRACKED or STALLED for each (k,), and the fraction of the way reached. `tolerance` bounds the predicted
    error of a step; `caution` < 1 is the step's fraction of the estimated distance to the nearest singularity.
    """
    count, n, size = points.shape[0], start.shape[0], points.shape[1]
    outcome = np.empty(count, dtype=np.int64)
    reached = np.empty(count)
    slope = np.empty((n, size, size), dtype=np.complex128)
    here = np.empty((n, size, size), dtype=np.complex128)
    image = np.empty((n, size), dtype=np.complex128)
    lu = np.empty((size, size), dtype=np.complex128)
    pivots = np.empty(size, dtype=np.int64)
    dz = np.empty(size, dtype=np.complex128)
    guess = np.empty(size, dtype=np.complex128)
    terms = (
        np.empty((ORDER + 1, size), dtype=np.complex128),
        np.empty((ORDER + 1, n, size), dtype=np.complex128),
        np.empty((ORDER + 1, n, size), dtype=np.complex128),
    )
    for i in range(n):
        for r in range(size):
            for c in range(size):
                slope[i, r, c] = end[i, r, c] - start[i, r, c]
    for k in range(count):
        z = points[k]
        outcome[k], reached[k] = STALLED, 0.0
        _along(start, slope, 0.0, here)
        _normalise(z)
        if not _newton_step(here, z, image, lu, pivots, dz) < 1e-2:
            continue
        t = 0.0
        for _ in range(MAX_STEPS):
            _taylor(here, slope, z, (lu, pivots), dz, terms)
            stride = _safe_stride(terms[0], tolerance, caution)
            target = _stepped(start, slope, t, stride, tolerance, terms[0], here, guess, (image, lu, pivots, dz))
            if target <= t:
                break
            t = target
            z[:] = guess
            _normalise(z)
            if t == 1.0:
                for _ in range(3):
                    _newton_step(here, z, image, lu, pivots, dz)
                    _normalise(z)
                outcome[k] = TRACKED
                break
        reached[k] = t
    return outcome, reached


@plain
def _stepped(
    start: Complex,
    slope: Complex,
    t: float,
    stride: float,
    tolerance: float,
    series: Complex,
    here: Complex,
    guess: Complex,
    scratch: Scratch,
) -> float:
    """Where the longest step from t up to a stride ends that is corrected, with the solution in `guess`; t if none."""
    image, lu, pivots, dz = scratch
    while t + stride > t:  # not where it is no number
        target = 1.0 if t + stride >= 1.0 - 1e-12 else t + stride
        if target - t < SMALLEST_STEP:
            break
        _predict(series, target - t, guess)
        _along(start, slope, target, here)
        if _correct(here, guess, tolerance, image, lu, pivots, dz):
            return target
        stride = 0.5 * (target - t)
    return t


def track(start: Complex, end: Complex, z: Complex, tolerance: float, caution: float) -> bool:
    """`track_all` for one solution (n + 1,), in place; whether it got to the end."""
    return bool(track_all(start, end, z.reshape(1, -1), tolerance, caution)[0][0] == TRACKED)


DISTINCT = 1e-9  # one minus the cosine of the angle between two solutions
MAX_LOOPS = 1000


def solve_by_monodromy(
    member: Callable[[np.random.Generator], Complex], point: Complex, free: int, count: int, rng: np.random.Generator
) -> tuple[Complex, Complex]:
    """A random `member` (n, n + 1, n + 1) of a linear family of quadrics, and its solutions (count, n + 1) of length 1.

    `point` (n + 1,) is any solution, with z_0 != 0, of the equations after the first `free`, which allow any
    coefficient of z_0^2. Raises `RuntimeError` where not all `count` solutions turn up.
    """
    start = point / np.linalg.norm(point)
    system = member(rng)
    system[:free, 0, 0] -= np.einsum("iab,a,b->i", system[:free], start, start) / start[0] ** 2
    found = np.zeros((count, len(start)), dtype=np.complex128)
    found[0], known = start, 1
    for _ in range(MAX_LOOPS):
        corners = [system, member(rng), member(rng), system]
        for index in range(known):
            walker = found[index].copy()
            if not all(track(a, b, walker, 1e-6, 0.3) for a, b in pairwise(corners)):
                continue
            refine(system, walker, 5)
            if np.all(np.abs(found[:known].conj() @ walker) < 1.0 - DISTINCT):
                found[known], known = walker, known + 1
                if known == count:
                    return system, found
    raise RuntimeError(f"monodromy found {known} of {count} solutions in {MAX_LOOPS} loops")


@lru_cache(maxsize=32)
def start_system(n: int, seed: int) -> tuple[Complex, Complex]:
    """n quadrics (n, n + 1, n + 1) with generic complex coefficients and their solutions (2^n, n + 1), unit vectors."""
    rng = np.random.default_rng([1985, seed])
    system = np.zeros((n, n + 1, n + 1), dtype=np.complex128)
    for k in range(n):
        system[k, 0, 0], system[k, k + 1, k + 1] = -1.0, 1.0
    signs = np.array([[1, *rest] for rest in product((1, -1), repeat=n)], dtype=np.complex128)
    phases = np.exp(2j * np.pi * rng.random(n))  # the phases that make the straight line generic
    size = (n + 1, n + 1)
    change, _ = np.linalg.qr(rng.normal(size=size) + 1j * rng.normal(size=size))  # and so do coordinates
    turned = np.einsum("i,ijk,aj,bk->iab", phases, system, change.conj(), change.conj())
    return turned / np.sqrt(2.0), signs @ change.T / np.sqrt(n + 1.0)
