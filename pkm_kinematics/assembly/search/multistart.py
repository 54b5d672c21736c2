# SPDX-License-Identifier: Apache-2.0
"""Assembly modes of an arbitrary closure system by search from many starts.

Each start is a point of a low-discrepancy sequence over the bounds, followed downhill. How often the known solutions
were hit says how much is likely missing: after n successful starts that found k different solutions, the expected
number of solutions is k (n - 1) / (n - k - 2) (Boender and Rinnooy Kan, "Bayesian stopping rules for multistart
global optimization methods", 1987). The search stops when that exceeds k by less than a given number. It can still
miss a solution whose neighbourhood attracts few starts: the list holds true solutions, but is no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet
from pkm_kinematics.assembly.search.closure_system import ClosureSystem

SAME = 1e-6  # difference, in units of the scale, below which two solutions are one
SAME_SINGULAR = 1e-3  # the same where the Jacobian of either is singular: such solutions are found less accurately
SAMPLES = 16  # of a self-motion that are kept
CHECKS = 40  # starts that meet a solution in a round of a cross-check: one that attracts a tenth of them is not missed
ROUNDS = 8
TRIES = 4  # starts for each of these, at most


@dataclass(frozen=True, eq=False)
class SearchedSet(SolutionSet):
    """Solutions (k, n) found by search, never certified: `n_complex` is -1, `multiplicity` 2 means 2 or more.

    `hits` (k,) counts the starts that ended in each, `starts` all of them; `missing` is the expected number of
    solutions not found, infinite where too few starts succeeded to say. Of `checks` further starts that met a solution,
    those of the last round of a `cross_check`, `met` met one known before.
    """

    hits: NDArray[np.int64]
    starts: int
    missing: float
    checks: int = 0
    met: int = 0


def multistart(
    system: ClosureSystem,
    known: Sequence[Array] = (),
    missing: float = 0.1,
    most_starts: int = 2000,
) -> SearchedSet:
    """Solutions of a closure system in n unknowns, from many starts, in the order found.

    `known` points (n,) are listed first, if they are solutions. The search stops when the expected number of solutions
    not found is below `missing`, or after `most_starts`.
    """
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
    """The known solutions, however they were found, and then those that further starts meet.

    Starts come in rounds of CHECKS that meet a solution, until all of a round's were known, or for ROUNDS at most. The
    last round gives `missing`, as in capture and recapture of animals: where k solutions are known, of m that a round
    meets r are among them, and all are about (k + 1) (m + 1) / (r + 1) - 1 (Chapman, "Some properties of the
    hypergeometric distribution with applications to zoological sample censuses", 1951); more where some solutions
    attract fewer starts than others.
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
        """Index of the solution x, a new one if it was not known; None for a point of a self-motion.

        Of an image that is reached in several ways, some of them singular, a regular one is kept.
        """
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
