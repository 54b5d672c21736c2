# SPDX-License-Identifier: Apache-2.0
"""Solutions of any closure system F(x) = 0 given by functions, by search: true ones, and no certificate.

From many starts: each is a point of a low-discrepancy sequence over the bounds, followed downhill. How often the known
solutions were hit says how much is likely missing: after n successful starts that found k different solutions, the
expected number of solutions is k (n - 1) / (n - k - 2) (Boender and Rinnooy Kan, "Bayesian stopping rules for
multistart global optimization methods", 1987). The search stops when that exceeds k by less than a given number. It can
still miss a solution whose neighbourhood attracts few starts.

By releasing one equation at a time: without it, say that one actuator has its value, the robot moves along a curve
through each assembly mode. Wherever along that curve the equation holds again, there is another one. The curves are
followed in both directions until they close, from every solution and for every equation that may be released, until
nothing new turns up. This finds modes that attract no random start; modes on curves through no known one stay unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet, polished, walked_away

RANK = 1e-7  # relative singular value of the scaled Jacobian that counts as zero
EXCURSION = 1e-2  # how far to walk from a singular solution, in units of the scale, to see whether it is isolated


@dataclass(frozen=True, eq=False)
class ClosureSystem:
    """m equations in n unknowns; m may exceed n where the equations are redundant or the robot overconstrained.

    `lower` and `upper` (n,) bound where a search starts, not where it may end. `period` (n,) is 2 pi for an angle that
    may be counted around the circle, else infinite; `scale` (n,) says by how much each unknown moves the robot
    noticeably: 1 for angles, the robot's size for lengths. `image` maps x to what tells solutions apart where that is
    less than all of x, `genuine` tells those that the mechanism allows from those with an axis turned over.
    """

    residual: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    lower: Array
    upper: Array
    period: Array
    scale: Array
    tolerance: float = 1e-10  # largest residual of a solution, in the units of `residual`
    image: Callable[[Array], Array] | None = None
    genuine: Callable[[Array], bool] | None = None

    def wrapped(self, x: Array) -> Array:
        """x with every angle within half a period of the middle of its bounds."""
        return x - self._turns(x - 0.5 * (self.lower + self.upper))

    def _turns(self, gap: Array) -> Array:
        finite = np.isfinite(self.period)
        period = np.where(finite, self.period, 1.0)
        return np.where(finite, period * np.round(gap / period), 0.0)

    def distance(self, first: Array, second: Array) -> float:
        """Largest difference of two points in units of the scale, angles compared on the circle."""
        gap = first - second
        gap = gap - self._turns(gap)
        return float(np.max(np.abs(gap) / self.scale))

    def difference(self, first: Array, second: Array) -> float:
        """How far apart two solutions are: their images if there are any, else the points themselves."""
        if self.image is None:
            return self.distance(first, second)
        return float(np.max(np.abs(self.image(first) - self.image(second))))

    def closed(self, x: Array) -> bool:
        """Whether x solves the system."""
        if not np.max(np.abs(self.residual(x))) < self.tolerance:
            return False
        return self.genuine is None or self.genuine(x)

    def solved(self, start: Array, iterations: int = 100) -> Array | None:
        """Solution that Levenberg-Marquardt reaches from a start, polished by Newton steps; None where it does not."""
        x, damping = start.copy(), 1e-3
        value = self.residual(x)
        norm = float(np.linalg.norm(value))
        slope = self.jacobian(x) * self.scale
        for _ in range(iterations):
            normal = slope.T @ slope
            normal.flat[:: len(x) + 1] += damping * max(float(np.max(np.diag(normal))), 1e-300)
            trial = x - self.scale * np.linalg.solve(normal, slope.T @ value)
            trial_value = self.residual(trial)
            trial_norm = float(np.linalg.norm(trial_value))
            if trial_norm < norm:
                x, value, norm = trial, trial_value, trial_norm
                slope = self.jacobian(x) * self.scale
                damping = max(0.1 * damping, 1e-15)
            elif damping > 1e6 or norm < 1e-2 * self.tolerance:
                break
            else:
                damping *= 10.0
        x = self.polished(x)
        return self.wrapped(x) if self.closed(x) else None

    def equations(self, x: Array) -> tuple[Array, Array]:
        """Residual (m,) and Jacobian (m, n)."""
        return self.residual(x), self.jacobian(x)

    def polished(self, x: Array, steps: int = 10) -> Array:
        """x after minimum-norm Newton steps, as long as they reduce the residual."""
        return polished(self.equations, x, steps, self.scale, rcond=RANK)[0]

    def nullity(self, x: Array) -> int:
        """Number of degrees of freedom that the linearised system leaves at x."""
        sizes = np.linalg.svd(self.jacobian(x) * self.scale, compute_uv=False)
        return len(x) - int(np.sum(sizes > RANK * sizes[0]))

    def is_isolated(self, x: Array) -> bool:
        """Whether an attempt to walk away from a solution along the null space of its Jacobian fails."""
        walker = walked_away(self.equations, x, RANK, EXCURSION, self.scale)
        if walker is None:
            return True
        return not (self.closed(walker) and self.distance(walker, x) > 0.1 * EXCURSION)


SAME = 1e-6  # difference, in units of the scale, below which two solutions are one
SAME_SINGULAR = 1e-3  # the same where the Jacobian of either is singular: such solutions are found less accurately
SAMPLES = 16  # of a self-motion that are kept
CHECKS = 40  # starts that meet a solution in a round of a cross-check: one that attracts a tenth of them is not missed
ROUNDS = 8
TRIES = 4  # starts for each of these, at most


@dataclass(frozen=True, eq=False)
class SearchedSet(SolutionSet):
    """Solutions (k, n) found by search, never certified: `n_complex` is -1, `multiplicity` 2 means 2 or more.

    `hits` (k,) counts the starts that ended in each; `missing` is the expected number of solutions not found. Of
    `checks` starts that met a solution in the last round of a `cross_check`, `met` met one known before.
    """

    hits: NDArray[np.int64]
    starts: int
    missing: float
    checks: int = 0
    met: int = 0


def multistart(
    system: ClosureSystem, known: Sequence[Array] = (), missing: float = 0.1, most_starts: int = 2000
) -> SearchedSet:
    """Solutions from at most `most_starts`, the `known` points first, until less than `missing` more are expected."""
    found = Collection(system)
    for x in known:
        polished = system.polished(np.asarray(x, dtype=np.float64))
        if system.closed(polished):
            found.add(system.wrapped(polished), hit=False)
    starts, successes, expected = 0, 0, np.inf
    for start in halton(len(system.lower), most_starts):
        starts += 1
        solution = system.solved(system.lower + start * (system.upper - system.lower))
        if solution is not None:
            successes += 1
            found.add(solution)
            if len(found.samples) >= SAMPLES:
                break
        k = len(found.solutions)
        if successes > k + 2:
            expected = k * (successes - 1) / (successes - k - 2) - k
            if k and expected < missing:
                break
    return found.report(starts, float(expected))


def cross_check(system: ClosureSystem, known: SearchedSet) -> SearchedSet:
    """The known solutions, and then those that rounds of CHECKS further starts meet, until all of a round's were known.

    The last round gives `missing`, as in capture and recapture of animals: where k solutions are known, of m that a
    round meets r are among them, and all are about (k + 1) (m + 1) / (r + 1) - 1 (Chapman, "Some properties of the
    hypergeometric distribution with applications to zoological sample censuses", 1951).
    """
    found = Collection(system)
    simple = np.flatnonzero(known.multiplicity)
    for k in simple:
        found.add(known.solutions[k], hit=False)
    found.hits = [int(hits) for hits in known.hits[simple]]
    found.samples = list(known.solutions[known.multiplicity == 0])
    random, starts, missing, checks, met = np.random.default_rng([1951, 0]), known.starts, known.missing, 0, 0
    for _ in range(ROUNDS if found.solutions and not found.samples else 0):
        before, seen, checks, met = len(found.solutions), set(), 0, 0
        for _ in range(TRIES * CHECKS):
            starts += 1
            solution = system.solved(random.uniform(system.lower, system.upper))
            index = None if solution is None else found.add(solution)
            if index is not None:
                checks, met = checks + 1, met + (index < before)
                seen.add(index)
            if checks == CHECKS:
                break
        again = sum(index < before for index in seen)
        missing = max(0.0, (before + 1) * (len(seen) + 1) / (again + 1) - 1.0 - len(found.solutions))
        if len(found.solutions) == before or found.samples:
            break
    return replace(found.report(starts, float(missing)), checks=checks, met=met)


class Collection:
    """Distinct solutions, each with the number of times it was found, and samples of self-motions."""

    def __init__(self, system: ClosureSystem) -> None:
        self.system = system
        self.solutions: list[Array] = []
        self.hits: list[int] = []
        self.singular: list[bool] = []
        self.samples: list[Array] = []
        self._images: list[Array] = []  # of the solutions, where the system has any

    def _difference(self, x: Array, image: Array | None, index: int) -> float:
        """`ClosureSystem.difference` of x from a known solution, whose image is at hand."""
        if image is None:
            return self.system.distance(x, self.solutions[index])
        return float(np.max(np.abs(image - self._images[index])))

    def add(self, x: Array, hit: bool = True) -> int | None:
        """Index of the solution x, new or known, a regular one of an image kept; None for a point of a self-motion."""
        singular = self.system.nullity(x) > 0
        image = None if self.system.image is None else self.system.image(x)
        for index in range(len(self.solutions)):
            same = SAME_SINGULAR if singular or self.singular[index] else SAME
            if self._difference(x, image, index) < same:
                self.hits[index] += hit
                if self.singular[index] and not singular:
                    self.solutions[index], self.singular[index] = x, False
                    if image is not None:
                        self._images[index] = image
                return index
        if singular and not self.system.is_isolated(x):
            self.samples.append(x)
            return None
        self.solutions.append(x)
        self._images += [] if image is None else [image]
        self.hits.append(int(hit))
        self.singular.append(singular)
        return len(self.solutions) - 1

    def report(self, starts: int, missing: float) -> SearchedSet:
        """What was found so far."""
        points = self.solutions + self.samples[:SAMPLES]
        rest = len(points) - len(self.solutions)
        return SearchedSet(
            solutions=np.array(points).reshape(-1, len(self.system.lower)),
            residuals=np.array([np.max(np.abs(self.system.residual(x))) for x in points]),
            multiplicity=np.array([2 if singular else 1 for singular in self.singular] + [0] * rest, dtype=np.int64),
            n_complex=-1,
            status=AssemblyStatus.POSITIVE_DIMENSIONAL if rest else AssemblyStatus.SEARCHED,
            hits=np.array(self.hits + [1] * rest, dtype=np.int64),
            starts=starts,
            missing=missing,
        )


def halton(dimension: int, count: int) -> Array:
    """Low-discrepancy points (count, dimension) of the unit cube: Halton's sequence, shifted at random."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < dimension:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    points = np.zeros((count, dimension))
    for column, prime in enumerate(primes):
        index, fraction = np.arange(1, count + 1), 1.0
        while index.any():
            fraction /= prime
            points[:, column] += fraction * (index % prime)
            index //= prime
    shift = np.random.default_rng([1960, 0]).random(dimension)
    return (points + shift) % 1.0


FIRST_STEP, LONGEST_STEP, SHORTEST_STEP = 1e-2, 0.1, 1e-6  # along the curve, in units of the scale
SHARPEST_TURN = 0.95  # cosine between the tangents of successive points
CORRECTIONS = 4


def continue_modes(
    system: ClosureSystem,
    known: SearchedSet,
    releases: Sequence[int],
    periods: Sequence[float] = (),
    budget: int = 50000,
) -> SearchedSet:
    """The known solutions, and then every other to which curves through them lead.

    Args:
        releases: rows of the residual that may be dropped, one at a time, which leaves exactly one degree of freedom.
        periods: of these rows: 2 pi for a difference of two angles, infinite (the default) otherwise.
        budget: of points on the curves.
    """
    found = Collection(system)
    for solution, multiplicity in zip(known.solutions, known.multiplicity, strict=True):
        if multiplicity:
            found.add(solution, hit=False)
    for index in range(len(found.hits)):
        found.hits[index] = int(known.hits[index])
    found.samples += list(known.solutions[known.multiplicity == 0])
    row_periods = list(periods) or [np.inf] * len(releases)
    done: set[tuple[int, int]] = set()
    while budget > 0:
        open_pairs = [(k, row) for k in range(len(found.solutions)) for row in releases if (k, row) not in done]
        if not open_pairs:
            break
        index, row = open_pairs[0]
        done.add((index, row))
        crossings, points = _curve(system, found.solutions[index], row, row_periods[list(releases).index(row)], budget)
        budget -= points
        for crossing in crossings:
            solution = system.polished(crossing)
            if system.closed(solution):
                other = found.add(system.wrapped(solution))
                if other is not None:
                    done.add((other, row))  # the same curve
    return found.report(known.starts, known.missing)


def _curve(system: ClosureSystem, start: Array, row: int, period: float, budget: int) -> tuple[list[Array], int]:
    """Points near which the released equation holds again along the whole curve through a solution, and its length."""
    tangent = _tangent(system, start, row, None)
    if tangent is None:
        return [], 1
    crossings, points, closed = _trace(system, start, tangent, row, period, budget)
    if not closed:
        more, further, _ = _trace(system, start, -tangent, row, period, budget - points)
        crossings, points = crossings + more, points + further
    return crossings, points


def _tangent(system: ClosureSystem, x: Array, row: int, before: Array | None) -> Array | None:
    """Unit tangent (scaled) of the curve at x, on the side of the one before; None where the curve is not regular."""
    slope = np.delete(system.jacobian(x) * system.scale, row, axis=0)
    _, sizes, right = np.linalg.svd(slope)
    if int(np.sum(sizes > RANK * sizes[0])) != len(x) - 1:
        return None
    tangent = right[-1]
    return -tangent if before is not None and tangent @ before < 0.0 else tangent


def _onto_curve(system: ClosureSystem, x: Array, row: int) -> Array | None:
    """Nearest point of the curve, by minimum-norm Newton steps on all equations but one."""
    for _ in range(CORRECTIONS):
        value = np.delete(system.residual(x), row)
        if np.max(np.abs(value)) < system.tolerance:
            return x
        slope = np.delete(system.jacobian(x) * system.scale, row, axis=0)
        x = x - system.scale * np.linalg.lstsq(slope, value, rcond=RANK)[0]
    return x if np.max(np.abs(np.delete(system.residual(x), row))) < system.tolerance else None


def _trace(
    system: ClosureSystem, start: Array, tangent: Array, row: int, period: float, budget: int
) -> tuple[list[Array], int, bool]:
    """Follow the curve to one side: the crossings met, the number of points, and whether it came back to its start."""
    crossings: list[Array] = []
    x, step, first = start, FIRST_STEP, tangent
    value = 0.0  # of the released equation, at the start
    departed = False
    for point in range(budget):
        if step < SHORTEST_STEP:
            return crossings, point, False
        after = _onto_curve(system, x + step * system.scale * tangent, row)
        turned = _tangent(system, after, row, tangent) if after is not None else None
        if after is None or turned is None or turned @ tangent < SHARPEST_TURN:
            step *= 0.5
            continue
        new_value = float(system.residual(after)[row])
        levels = {0.0}
        if np.isfinite(period):
            new_value -= period * float(np.round((new_value - value) / period))
            levels = {period * float(np.round(value / period)), period * float(np.round(new_value / period))}
        for level in levels:
            before, behind = value - level, new_value - level
            if departed and before * behind <= 0.0 and before != behind:
                crossings.append(x + before / (before - behind) * (after - x))
        if not departed and abs(new_value) < system.tolerance:
            return crossings, point, False  # the equation holds all along: it was redundant
        if departed and system.distance(after, start) < 1.5 * step and turned @ first > 0.9:
            return crossings, point, True
        departed = departed or system.distance(after, start) > 2.0 * step
        x, tangent, value = after, turned, new_value
        step = min(1.5 * step, LONGEST_STEP)
    return crossings, budget, False


def search_modes(
    system: ClosureSystem,
    releases: Sequence[int],
    periods: Sequence[float] = (),
    known: Sequence[Array] = (),
    budget: int = 50000,
) -> SearchedSet:
    """A `multistart`, short as starts cost more than following curves, then `continue_modes` from what it found."""
    return continue_modes(system, multistart(system, known, missing=1.0, most_starts=400), releases, periods, budget)
