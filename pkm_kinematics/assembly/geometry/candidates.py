# SPDX-License-Identifier: Apache-2.0
"""From the solutions of some of the constraints to those of all, and what is then known of the set."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus

SAME = 1e-6  # rad, and of the size: solutions of redundant constraints nearer to each other are one


def consistent(solutions: Array, residuals: Array, tolerance: float, unit: ArrayLike) -> NDArray[np.bool_]:
    """Which candidates of redundant constraints are solutions, each once.

    Candidates near a true solution are drawn to it when they are polished.

    Args:
        solutions: candidates (k, n).
        residuals: their largest errors (k,).
        tolerance: that these may have.
        unit: of each coordinate (n,) of a candidate: 1 for angles and quaternions, the robot's size for lengths.

    Returns:
        True where a candidate is one (k,).
    """
    good = residuals < tolerance
    for k in np.flatnonzero(good):
        gaps = np.abs(solutions[:k][good[:k]] - solutions[k]) / np.asarray(unit)
        good[k] = not (gaps.max(axis=1, initial=0.0) < SAME).any()
    return good


def status_of(multiplicity: NDArray[np.int64], component: bool, lost: int, redundant: bool) -> AssemblyStatus:
    """What is known of a set of solutions.

    Args:
        multiplicity: (k,) of the solutions.
        component: whether paths ended on a self-motion.
        lost: number of paths that were not accounted for.
        redundant: whether there were more constraints than freedoms.

    Returns:
        The status, COMPLETE where nothing tells against it.
    """
    if component:
        return AssemblyStatus.POSITIVE_DIMENSIONAL
    if lost:
        return AssemblyStatus.INCOMPLETE
    if redundant and not len(multiplicity):
        return AssemblyStatus.INCONSISTENT
    return AssemblyStatus.SINGULAR if np.any(multiplicity > 1) else AssemblyStatus.COMPLETE
