# SPDX-License-Identifier: Apache-2.0
"""Certified set of all isolated solutions of n quadrics in P^n, and samples of their self-motions.

Tracks every path (`quadrics`), repeats with shorter steps what two paths share or what got stuck, examines singular
endpoints by Cauchy's integral around them (Morgan, Sommese, Wampler, 1991), and says what each solution is:

* *simple*: Newton-Kantorovich holds in the affine patch tangent at the computed point, so that one solution exists
  within a known radius and no other within a larger one. The Jacobian of a quadratic system has a constant
  derivative, so the theorem's Lipschitz constant is exact; residuals are evaluated in extended precision and carry a
  bound for rounding.
* *real*: the complex conjugate of a simple solution of a real system lies within its ball of uniqueness.
* *multiple*: isolated, but with a singular Jacobian, or several within the angle MERGE of each other; multiplicity is
  the number of paths that end there.
* *on a component*: not isolated: one can walk away from it along solutions, or paths from another start end elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.quadrics import TRACKED, Complex, refine, track, track_all
from pkm_kinematics.assembly.result import Array, complex_normal

TOLERANCE, CAUTION = 1e-4, 0.5  # of the first run
CAREFUL_TOLERANCE, CAREFUL_CAUTION = 1e-7, 0.2  # of repetitions
RADII = tuple(10.0**-k for k in range(2, 11))  # of the endgame's circles about the end of the path
ALMOST = 1.0 - 1e-6  # fraction of a path after which Newton's method on the target may finish it
VERTICES = 8  # of the polygon that stands for such a circle
MAX_WINDING = 12
ENDPOINT_RESIDUAL = 1e-10  # of unit vectors in quadrics of unit norm
ROUGH_RESIDUAL = 1e-6  # enough to tell that an endpoint is excluded
ARRIVED = 1.0 - 1e-9  # fraction of a path after which its end is known well enough to tell that it is excluded
CLUSTER = 1e-5  # angle below which singular endpoints count as one [rad]: they are known to the square root of rounding
MERGE = 1e-6  # angle below which solutions count as one multiple one, even if proven distinct for the rounded input
RANK = 1e-6  # relative singular value that counts as zero at a singular endpoint
REPRODUCED = 1e-3  # angle within which a second run must find a multiple solution again [rad]
EXCURSION = 5e-2  # how far to walk from a singular endpoint to see whether it is isolated
RETURN_STEPS, RETURN_RANK = 100, 1e-10  # Gauss-Newton steps that follow, and their relative cutoff of singular values

StartSystem = Callable[[int], tuple[Complex, Complex]]
Predicate = Callable[[Complex, bool], bool]
Form = Callable[[Complex], Any]  # a quadratic form that vanishes where a solution is no answer, as at infinity
NOWHERE = (1e-7, 1e-13)  # its size below which a unit vector is no answer: multiple, simple
ATTEMPTS = 3  # from start systems of their own, while paths are lost


@dataclass(frozen=True, eq=False)
class Roots:
    """Solutions as unit vectors (k, n + 1); per solution whether simple, real and on a component, and its multiplicity.

    `excluded` counts paths to points that the caller excludes (infinity), with multiplicity, and `lost` those not
    accounted for after all repetitions: 0 means that the set is complete.
    """

    points: Complex
    simple: NDArray[np.bool_]
    real: NDArray[np.bool_]
    on_component: NDArray[np.bool_]
    multiplicity: NDArray[np.int64]
    excluded: int
    lost: int


def _distance(z: Complex, others: Complex) -> NDArray[np.float64]:
    """Tangent of the angle between unit z and others (k, n + 1): the distance in which `kantorovich` has its radii."""
    inner = others @ z.conj()
    return np.linalg.norm(others - inner[:, None] * z, axis=1) / np.maximum(np.abs(inner), 1e-300)


def _values(system: Complex, points: Complex) -> Complex:
    """z^T M_i z (k, n) for unit points (k, n + 1), evaluated in extended precision where the platform has it."""
    z = points.astype(np.clongdouble)
    image = (z @ system.astype(np.clongdouble).reshape(-1, z.shape[1]).T).reshape(len(z), len(system), z.shape[1])
    return np.sum(image * z[:, None], axis=2).astype(np.complex128)


def kantorovich(system: Complex, points: Complex) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Radii (k,) of balls about unit vectors (k, n + 1): a solution is in the first, no other in the second; or NaN."""
    count, size = points.shape
    image = points @ system.reshape(-1, size).T  # symmetric matrices
    image = image.reshape(count, len(system), size)
    jacobian = np.empty((count, size, size), dtype=np.complex128)
    jacobian[:, :-1] = 2.0 * image
    jacobian[:, -1] = points.conj()
    value = np.zeros((count, size), dtype=np.complex128)
    value[:, :-1] = _values(system, points)
    smallest = np.linalg.svd(jacobian, compute_uv=False)[:, -1]
    exist, unique = np.full(count, np.nan), np.full(count, np.nan)
    good = smallest > 1e-14
    if not good.any():
        return exist, unique
    inverse_norm = 1.0 / smallest[good]
    step = np.linalg.norm(np.linalg.solve(jacobian[good], value[good][..., None])[..., 0], axis=1)
    rounding = 4.0 * size * float(np.finfo(np.longdouble).eps) * np.sqrt(np.sum(np.abs(system) ** 2))
    step += inverse_norm * rounding
    lipschitz = 2.0 * inverse_norm * np.sqrt(np.sum(np.linalg.norm(system, ord=2, axis=(1, 2)) ** 2))
    h = lipschitz * step
    root = np.sqrt(np.where(h <= 0.5, 1.0 - 2.0 * h, np.nan))
    exist[good], unique[good] = 2.0 * step / (1.0 + root), (1.0 + root) / lipschitz
    return exist, unique


def _endpoint(start: Complex, system: Complex, point: Complex) -> tuple[Complex | None, float, Complex]:
    """Limit of a path whose end is singular, by Cauchy's integral over shrinking circles about t = 1; its residual.

    Also the points (m, n + 1) on the smallest circle that was closed: where the residual is large, they surround other
    solutions as well, too close to be separated by t.
    """
    slope = system - start
    z, here = point.copy(), start
    best, best_residual = None, np.inf
    circle = np.zeros((0, len(point)), dtype=np.complex128)
    for radius in RADII:
        corner = start + (1.0 - radius) * slope
        if not track(here, corner, z, 1e-6, 0.3):
            break
        here = corner
        angles = 2.0 * np.pi * np.arange(1, VERTICES + 1) / VERTICES
        corners = [start + (1.0 - radius * np.exp(1j * angle)) * slope for angle in angles]
        corners[-1] = here  # exactly
        samples = _closed_circle([here, *corners], z)
        if samples is None:
            continue
        circle = samples
        mean = np.mean(samples / (samples @ z.conj())[:, None], axis=0)
        limit = mean / np.linalg.norm(mean)
        residual = float(np.max(np.abs(_values(system, limit[None]))))
        if residual < best_residual:
            best, best_residual = limit, residual
        elif best_residual < ENDPOINT_RESIDUAL:
            break
        if residual < 1e-14:
            break
    return best, best_residual, circle


def _closed_circle(corners: list[Complex], z: Complex) -> Complex | None:
    """Points of a path along a closed polygon in coefficient space, repeated until back at z; None if never closed."""
    walker, samples = z.copy(), []
    for _ in range(MAX_WINDING):
        for before, after in pairwise(corners):
            if not track(before, after, walker, 1e-6, 0.3):
                return None
            samples.append(walker.copy())
        if _distance(z, walker[None])[0] < 1e-8:
            return np.array(samples)
    return None


def _separate(system: Complex, circle: Complex, known: Complex, paths: int) -> list[tuple[Complex, int]] | None:
    """Resolve a bundle of `paths` that circles about t = 1 cannot separate, by Newton's method from points of one.
    Simple solutions, at most one multiple one, with their multiplicities; None where the count does not come out.
    """
    simple: list[Complex] = []
    multiple: list[Complex] = []
    for z in circle.copy():
        refine(system, z, 80)
        if not np.max(np.abs(_values(system, z[None]))) < 1e-14:
            continue
        _, unique = kantorovich(system, z[None])
        others = multiple if np.isnan(unique[0]) else simple
        margin = CLUSTER if np.isnan(unique[0]) else unique[0]
        if not others or _distance(z, np.array(others)).min() > margin:
            others.append(z)
    simple = [z for z in simple if not len(known) or _distance(z, known).min() > 1e-9]
    rest = paths - len(simple)
    if (multiple and (len(multiple) > 1 or rest < 2)) or (not multiple and rest != 0):
        return None
    return [(z, 1) for z in simple] + [(z, rest) for z in multiple]


def is_isolated(system: Complex, point: Complex) -> bool:
    """Whether a solution with singular Jacobian is isolated: an attempt to walk away along its null space fails."""
    z = point / np.linalg.norm(point)
    rng = np.random.default_rng(7)

    def jacobian(x: Complex) -> Complex:
        return np.vstack([2.0 * system @ x, z.conj()[None]])

    _, sizes, right = np.linalg.svd(jacobian(z))
    rank = int(np.sum(sizes > RANK * sizes[0]))
    if rank == len(sizes):
        return True
    weights = complex_normal(rng, len(sizes) - rank)
    direction = weights @ right[rank:].conj()
    walker = z + EXCURSION * direction / np.linalg.norm(direction)
    for _ in range(RETURN_STEPS):
        value = np.append(np.einsum("iab,a,b->i", system, walker, walker), z.conj() @ walker - 1.0)
        step = np.linalg.lstsq(jacobian(walker), value, rcond=RETURN_RANK)[0]
        walker = walker - step
        if not np.linalg.norm(step) > 1e-15:
            break
    value = np.einsum("iab,a,b->i", system, walker, walker)
    moved = np.linalg.norm(walker - z)
    return not (np.max(np.abs(value)) < 1e-12 and 0.1 * EXCURSION < moved < 10.0 * EXCURSION)


def nowhere(finite: Form) -> Predicate:
    """Says which solutions, simple or not, are no answers."""
    return lambda z, simple: bool(abs(finite(z)) < NOWHERE[simple])


def all_roots(system: NDArray[np.float64], start_system: StartSystem, finite: Form) -> Roots:
    """All isolated solutions of n real quadrics (n, n + 1, n + 1), symmetric, of norms near 1, in P^n.

    `start_system` gives, for a number, a generic system of the same family and all its solutions (k, n + 1). `finite`
    vanishes at unit vectors (n + 1,) that are no answer, though they solve the system.
    """
    target, excluded = np.ascontiguousarray(system, dtype=np.complex128), nowhere(finite)
    best: Roots | None = None
    for attempt in range(ATTEMPTS):
        start, solutions = start_system(attempt)
        roots = _attempt(start, solutions, target, excluded)
        if best is None or roots.lost < best.lost:
            best = roots
        if best.lost == 0:
            break
    assert best is not None
    doubtful = np.flatnonzero(~best.simple & ~best.on_component)
    if len(doubtful):  # paths from another start end at the same isolated solutions, but elsewhere on a component
        again = _attempt(*start_system(ATTEMPTS), target, excluded)
        for k in doubtful:
            gaps = _distance(best.points[k], again.points)
            best.on_component[k] = not np.min(gaps, initial=np.inf) < REPRODUCED
    return best


class _Ends(NamedTuple):
    """Where paths ended: by tracking, then by Newton's method on the target; the second radii of `kantorovich`."""

    tracked: Complex  # (k, n + 1)
    reached: NDArray[np.float64]  # (k,) fraction of the path
    points: Complex  # (k, n + 1)
    unique: NDArray[np.float64]  # (k,) NaN where a path got stuck or its end is not simple


def _ends(start: Complex, solutions: Complex, target: Complex, tolerance: float, caution: float) -> _Ends:
    tracked = solutions.copy()
    outcome, reached = track_all(start, target, tracked, tolerance, caution)
    points = tracked.copy()
    for k in np.flatnonzero((outcome != TRACKED) & (reached > ALMOST)):
        refine(target, points[k], 20)  # near a multiple solution the last stretch is too short for a step
    _, unique = kantorovich(target, points)
    unique[(outcome != TRACKED) & (reached <= ALMOST)] = np.nan
    return _Ends(tracked, reached, points, unique)


class _Found:
    """Solutions found in one run, and what became of the other paths."""

    def __init__(self, target: Complex, excluded: Predicate) -> None:
        self._target, self._excluded = target, excluded
        self.points: list[Complex] = []
        self.multiplicity: list[int] = []
        self.simple: list[bool] = []
        self.outside = 0  # paths to points that the caller excludes
        self.lost = 0

    def add(self, z: Complex, paths: int, simple: bool) -> None:
        """A solution at which `paths` end, unless it is excluded."""
        if self._excluded(z, simple):
            self.outside += paths
            return
        self.points.append(z)
        self.multiplicity.append(paths)
        self.simple.append(simple)

    def roots(self) -> Roots:
        points = np.array(self.points, dtype=np.complex128).reshape(-1, self._target.shape[1])
        simple = np.array(self.simple, dtype=bool)
        exist, unique = kantorovich(self._target, points)
        conjugate = np.array([_distance(z, z.conj()[None])[0] for z in points], dtype=np.float64)
        real = conjugate < np.where(simple, unique - exist, 10.0 * CLUSTER)
        nowhere = np.zeros(len(points), dtype=bool)
        return Roots(points, simple, real, nowhere, np.array(self.multiplicity), self.outside, self.lost)


def _attempt(start: Complex, solutions: Complex, target: Complex, excluded: Predicate) -> Roots:
    ends = _ends(start, solutions, target, TOLERANCE, CAUTION)
    simple = np.isfinite(ends.unique)
    suspects = np.flatnonzero(~simple | _coincides(ends.points, simple, ends.unique))
    if len(suspects):
        again = _ends(start, solutions[suspects], target, CAREFUL_TOLERANCE, CAREFUL_CAUTION)
        for first, second in zip(ends, again, strict=True):
            first[suspects] = second
        simple = np.isfinite(ends.unique)
    found = _Found(target, excluded)
    kept = _distinct(ends, simple)
    found.lost += int(simple.sum()) - len(kept)
    for k in kept:
        found.add(ends.points[k], 1, True)
    arrived = ends.reached > ARRIVED
    left = np.array([not s and a and excluded(z, True) for s, a, z in zip(simple, arrived, ends.tracked, strict=True)])
    found.outside += int(np.sum(left))
    _add_singular(found, start, solutions[~simple & ~left], target, excluded)
    roots = _merge_close(found.roots())
    for k in np.flatnonzero(~roots.simple):
        roots.on_component[k] = not is_isolated(target, roots.points[k])
    return roots


def _distinct(ends: _Ends, simple: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Numbers of the simple ends, each once: two paths cannot share one, unless one of them jumped."""
    kept = np.flatnonzero(simple)
    if not _coincides(ends.points, simple, ends.unique).any():
        return kept
    points, unique = ends.points, ends.unique
    return np.array([k for n, k in enumerate(kept) if not np.any(_distance(points[k], points[kept[:n]]) < unique[k])])


def _add_singular(found: _Found, start: Complex, solutions: Complex, target: Complex, excluded: Predicate) -> None:
    """Add the ends of the paths from `solutions` (k, n + 1) of `start`, which are singular."""
    known = np.array(found.points).reshape(-1, target.shape[1])
    clusters: list[list[Complex]] = []
    bundles: list[list[Complex]] = []  # points on circles that hold more than one solution
    for solution in solutions:
        limit, residual, circle = _endpoint(start, target, solution)
        if limit is not None and residual <= ENDPOINT_RESIDUAL:
            if excluded(limit, False):
                found.outside += 1
            else:
                _gather(clusters, limit, limit, CLUSTER)
        elif limit is not None and residual < ROUGH_RESIDUAL and excluded(limit, False):
            found.outside += 1
        elif len(circle):
            _gather(bundles, circle, circle[0], 10.0 * _distance(circle[0], circle).max())
        else:
            found.lost += 1
    for cluster in clusters:
        found.add(cluster[0], len(cluster), False)
    for bundle in bundles:
        parts = _separate(target, np.vstack(bundle), known, len(bundle))
        if parts is None:
            found.lost += len(bundle)
        for z, count in parts or []:
            found.add(z, count, count == 1)


def _merge_close(roots: Roots) -> Roots:
    """Count as one multiple solution what rounding of the input alone can separate, into a real or complex pair."""
    points, simple = roots.points.copy(), roots.simple.copy()
    real, multiplicity = roots.real.copy(), roots.multiplicity.copy()
    keep = np.ones(len(points), dtype=bool)
    inner = np.abs(points @ points.conj().T) if len(points) else np.zeros((0, 0))
    close = np.argwhere(np.triu(inner > 1.0 - MERGE, 1))  # a sieve: 1 - cos is about the square of the angle
    for k, other in close:
        if keep[k] and keep[other] and _distance(points[k], points[other : other + 1])[0] < MERGE:
            weights = multiplicity[k], multiplicity[other]
            aligned = points[other] * np.exp(1j * np.angle(points[other].conj() @ points[k]))
            mean = weights[0] * points[k] + weights[1] * aligned
            points[k] = mean / np.linalg.norm(mean)
            simple[k], multiplicity[k], keep[other] = False, sum(weights), False
            real[k] = _distance(points[k], points[k].conj()[None])[0] < MERGE
    return Roots(
        points[keep], simple[keep], real[keep], roots.on_component[keep], multiplicity[keep], roots.excluded, roots.lost
    )


def _gather(groups: list[list[Complex]], member: Complex, where: Complex, within: float) -> None:
    """Put `member` into the group that has a point of its own near `where`, or into a new one."""
    for group in groups:
        if _distance(where, np.vstack(group)).min() < within:
            group.append(member)
            return
    groups.append([member])


def _coincides(points: Complex, simple: NDArray[np.bool_], unique: NDArray[np.float64]) -> NDArray[np.bool_]:
    result = np.zeros(len(points), dtype=bool)
    kept = np.flatnonzero(simple)
    inner = np.abs(points[kept] @ points[kept].conj().T)
    gap = np.sqrt(np.maximum(0.0, 1.0 - inner**2)) / np.maximum(inner, 1e-300)
    np.fill_diagonal(gap, np.inf)
    result[kept] = np.any(gap < np.maximum(unique[kept][:, None], 1e-7), axis=1)
    return result


STARTS = 24
ITERATIONS = 100
SOLVED = 1e-12  # residual of unit vectors in quadrics of unit norm


def real_roots(
    system: Array, start_system: StartSystem, finite: Form
) -> tuple[list[Complex], NDArray[np.int64], Roots]:
    """Isolated real solutions, then samples of self-motions; their multiplicities (k,), 0 of samples; and all roots."""
    roots = all_roots(system, start_system, finite)
    listed = roots.real & ~roots.on_component
    points, multiplicity = list(roots.points[listed]), roots.multiplicity[listed]
    if roots.on_component.any():
        samples = real_samples(system, nowhere(finite))
        points += [z.astype(np.complex128) for z in samples]
        multiplicity = np.append(multiplicity, np.zeros(len(samples), dtype=np.int64))
    return points, multiplicity, roots


def real_part(z: Complex) -> Array:
    """Real unit representative of a point of P^n that is its own conjugate."""
    z = z * np.exp(-0.5j * np.angle(z @ z))
    return np.asarray(z.real / np.linalg.norm(z.real))


def square_system(quadrics: Array, square: Array, n: int, last: Array) -> Array:
    """n combinations of k >= n quadrics (k, s, s), and `last`, of norm 1; the part `square` (k,) in the first alone."""
    count = len(quadrics)
    basis = np.linalg.qr(np.column_stack([square, np.eye(count)]))[0].T if square.any() else np.eye(count)
    mixed = np.einsum("ij,jab->iab", basis, quadrics)
    if count > n:
        mixing = np.linalg.qr(np.random.default_rng(1876).normal(size=(count - 1, count - 1)))[0]
        turned = np.einsum("ij,jab->iab", mixing, mixed[1:])
        # the sum of all says nothing in a pose where the limbs' forces balance: it needs a part of the others
        mixed = np.concatenate([mixed[:1] + turned[n - 1 :].sum(axis=0), turned[: n - 1]])
    system = np.concatenate([mixed, last[None]])
    norms = np.linalg.norm(system, axis=(1, 2))
    return np.asarray(system / np.where(norms > 1e-13, norms, 1.0)[:, None, None])


def real_samples(system: Array, excluded: Predicate) -> list[Array]:
    """Real solutions (unit vectors) with singular Jacobian of n quadrics (n, n + 1, n + 1), from random starts.

    A homotopy over the complex numbers meets a self-motion in complex points. An empty list proves nothing.
    """
    rng = np.random.default_rng(1897)
    samples = []
    for _ in range(STARTS):
        z = _minimised(system, rng.normal(size=(system.shape[1],)))
        point = z.astype(np.complex128)
        solved = np.max(np.abs(np.einsum("iab,a,b->i", system, z, z))) < SOLVED
        if solved and not excluded(point, False) and _singular(system, z):
            samples.append(z)
    return samples


def _singular(system: Array, z: Array) -> bool:
    """Whether the linearised system leaves a degree of freedom at z, as it does everywhere on a self-motion."""
    sizes = np.linalg.svd(np.vstack([2.0 * system @ z, z]), compute_uv=False)
    return bool(sizes[-1] < RANK * sizes[0])


def _minimised(system: Array, start: Array) -> Array:
    # point after Levenberg-Marquardt on the unit sphere
    size = len(start)
    z, damping = start / np.linalg.norm(start), 1e-2
    value = np.einsum("iab,a,b->i", system, z, z)
    for _ in range(ITERATIONS):
        slope = np.vstack([2.0 * system @ z, z, np.sqrt(damping) * np.eye(size)])
        trial = z - np.linalg.lstsq(slope, np.append(value, np.zeros(size + 1)), rcond=None)[0]
        trial /= np.linalg.norm(trial)
        trial_value = np.einsum("iab,a,b->i", system, trial, trial)
        if np.linalg.norm(trial_value) < np.linalg.norm(value):
            z, value, damping = trial, trial_value, max(0.1 * damping, 1e-14)
        elif damping > 1e4 or np.linalg.norm(value) < 1e-14:
            break
        else:
            damping *= 10.0
    return z
