# SPDX-License-Identifier: Apache-2.0
"""Assembly modes of an arbitrary closure system by search from many starts: honest about what it cannot know.

Each start is a point of a low-discrepancy sequence over the bounds, followed downhill. How often the known solutions
were hit says how much is likely missing: after n successful starts that found k different solutions, the expected
number of solutions is k (n - 1) / (n - k - 2) (Boender and Rinnooy Kan, "Bayesian stopping rules for multistart
global optimization methods", 1987). The search stops when that exceeds k by less than a given number. A solution
whose neighbourhood attracts few starts can still be missed: the result is a list of true solutions, not a
certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus, SolutionSet
from pkm_kinematics.assembly.search.closure_system import ClosureSystem

SAME = 1e-6  # difference, in units of the scale, below which two solutions are one
SAME_SINGULAR = 1e-3  # the same where the Jacobian is singular: such solutions are found less accurately
SAMPLES = 16  # of a self-motion that are kept


@dataclass(frozen=True, eq=False)
class SearchedSet(SolutionSet):
    """Solutions (k, n) found by search, never certified: `n_complex` is -1, `multiplicity` 2 means 2 or more.

    `hits` (k,) counts the starts that ended in each, `starts` all of them; `missing` is the expected number of
    solutions not found, infinite where too few starts succeeded to say.
    """

    hits: NDArray[np.int64]
    starts: int
    missing: float


def multistart(
    system: ClosureSystem,
    known: Sequence[Array] = (),
    missing: float = 0.1,
    most_starts: int = 2000,
    seed: int = 0,
) -> SearchedSet:
    """Solutions of a closure system, from many starts.

    Args:
        system: in n unknowns.
        known: points (n,) that are listed first, if they are solutions.
        missing: the search stops when the expected number of solutions not found is below this.
        most_starts: or after so many starts.
        seed: of the sequence of starts; the same one gives the same result.

    Returns:
        What was found, in the order in which it was.
    """
    found = Collection(system)
    for x in known:
        polished = system.polished(np.asarray(x, dtype=np.float64))
        if system.closed(polished):
            found.add(system.wrapped(polished), hit=False)
    starts, successes, expected = 0, 0, np.inf
    for start in halton(len(system.lower), most_starts, seed):
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


class Collection:
    """Distinct solutions, each with the number of times it was found, and samples of self-motions."""

    def __init__(self, system: ClosureSystem) -> None:
        self.system = system
        self.solutions: list[Array] = []
        self.hits: list[int] = []
        self.singular: list[bool] = []
        self.samples: list[Array] = []

    def add(self, x: Array, hit: bool = True) -> int | None:
        """Index of the solution x, a new one if it was not known; None for a point of a self-motion."""
        singular = self.system.nullity(x) > 0
        for index, other in enumerate(self.solutions):
            if self.system.difference(x, other) < (SAME_SINGULAR if singular and self.singular[index] else SAME):
                self.hits[index] += hit
                return index
        if singular and not self.system.is_isolated(x):
            self.samples.append(x)
            return None
        self.solutions.append(x)
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


def halton(dimension: int, count: int, seed: int) -> Array:
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
    shift = np.random.default_rng([1960, seed]).random(dimension)
    return (points + shift) % 1.0
