# SPDX-License-Identifier: Apache-2.0
"""Candidates: polished, reduced to solutions of all constraints, and what is then known of the set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_kinematics.assembly.result import Array, AssemblyStatus

X = TypeVar("X")
SAME = 1e-6  # rad, and of the size: solutions of redundant constraints nearer to each other are one


def polished(
    closure: Callable[[X], tuple[Array, Array]],
    x: X,
    steps: int = 6,
    weight: Any = 1.0,
    move: Callable[[X, Array], X] = np.add,  # type: ignore[assignment]
    rcond: float = 1e-9,
) -> tuple[X, float]:
    """A point after Gauss-Newton steps on the errors and slope of a closure, as long as they help; the largest error.

    Args:
        closure: gives errors (k,) and their slope (k, n).
        weight: of each unknown (n,), for the least step among many.
        move: a point moved by a step (n,).
    """
    error, slope = closure(x)
    for _ in range(steps):
        trial = move(x, -weight * np.linalg.lstsq(slope * weight, error, rcond=rcond)[0])
        new_error, new_slope = closure(trial)
        if not np.linalg.norm(new_error) < np.linalg.norm(error):
            break
        x, error, slope = trial, new_error, new_slope
    return x, float(np.max(np.abs(error), initial=0.0))


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
