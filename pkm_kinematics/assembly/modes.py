# SPDX-License-Identifier: Apache-2.0
"""What every all-solutions method of this package returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class AssemblyStatus(IntEnum):
    """What is known about the set of solutions as a whole."""

    COMPLETE = 0  # every real solution is listed, and each is isolated and simple
    SINGULAR = 1  # every real solution is listed, and some are multiple: assembly modes meet there
    POSITIVE_DIMENSIONAL = 2  # the equations allow a self-motion: the list holds isolated solutions and samples of it
    INCOMPLETE = 3  # some solutions may be missing: paths were lost and no repetition recovered them
    INCONSISTENT = 4  # more constraints than freedoms, and nothing satisfies them all
    INVALID_INPUT = 5  # not finite, a negative length, or too few constraints
    SEARCHED = 6  # the listed solutions are real and isolated; they were found by search, and nothing excludes others


@dataclass(frozen=True, eq=False)
class AssemblyModes:
    """All real solutions of one set of closure equations with locked actuators.

    `n_complex` counts the finite complex solutions of the algebraic system with their multiplicities, the real ones
    among them; it is -1 where the method does not count them. `multiplicity` (k,) is 1 for a simple solution and 0
    for a sample of a self-motion. `residuals` (k,) are the largest closure errors [m, or 1 for directions].
    """

    solutions: Array  # (k, ...) as the method documents
    residuals: Array  # (k,)
    multiplicity: NDArray[np.int64]  # (k,)
    n_complex: int
    status: AssemblyStatus

    @property
    def n_real(self) -> int:
        """Number of real solutions listed; multiple ones and samples of a self-motion count once."""
        return len(self.solutions)


def no_modes(shape: tuple[int, ...], status: AssemblyStatus, n_complex: int = 0) -> AssemblyModes:
    """An empty answer for solutions of the given shape."""
    return AssemblyModes(np.zeros((0, *shape)), np.zeros(0), np.zeros(0, dtype=np.int64), n_complex, status)
