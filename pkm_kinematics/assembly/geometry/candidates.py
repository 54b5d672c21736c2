# SPDX-License-Identifier: Apache-2.0
"""Solutions of some of the constraints reduced to those of all, and what is then known of the set."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus

SAME = 1e-6  # rad, and of the size: solutions of redundant constraints nearer to each other are one


def consistent(solutions: Array, residuals: Array, tolerance: float, unit: ArrayLike) -> NDArray[np.bool_]:
    """Which candidates of redundant constraints are solutions, each once: mask (k,).

    Candidates near a true solution converge to it when they are polished.

    Args:
        solutions: candidates (k, n).
        residuals: their largest errors (k,), at most `tolerance`.
        unit: of each coordinate (n,) of a candidate: 1 for angles and quaternions, the robot's size for lengths.
    """
    good = residuals < tolerance
    for k in np.flatnonzero(good):
        gaps = np.abs(solutions[:k][good[:k]] - solutions[k]) / np.asarray(unit)
        good[k] = not (gaps.max(axis=1, initial=0.0) < SAME).any()
    return good


def status_of(multiplicity: NDArray[np.int64], component: bool, lost: int, redundant: bool) -> AssemblyStatus:
    """What is known of solutions of given multiplicity (k,): COMPLETE where nothing tells against it.

    `component`: paths ended on a self-motion; `lost`: paths not accounted for; `redundant`: surplus constraints.
    """
    if component:
        return AssemblyStatus.POSITIVE_DIMENSIONAL
    if lost:
        return AssemblyStatus.INCOMPLETE
    if redundant and not len(multiplicity):
        return AssemblyStatus.INCONSISTENT
    return AssemblyStatus.SINGULAR if np.any(multiplicity > 1) else AssemblyStatus.COMPLETE
