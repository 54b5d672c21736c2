# SPDX-License-Identifier: Apache-2.0
"""Answers: of the mathematics a set of solutions, of a method for a robot a set of poses; how candidates become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class AssemblyStatus(IntEnum):
    """What is known about the set of solutions as a whole."""

    COMPLETE = 0  # every real solution is listed, and each is isolated and simple
    SINGULAR = 1  # every real solution is listed, and some are multiple: assembly modes meet there
    POSITIVE_DIMENSIONAL = 2  # the equations allow a self-motion: the list holds isolated solutions and samples of it
    INCOMPLETE = 3  # some solutions may be missing: paths were lost and no repetition recovered them
    INCONSISTENT = 4  # more constraints than degrees of freedom, and nothing satisfies them all
    INVALID_INPUT = 5  # not finite, a negative length, or too few constraints
    SEARCHED = 6  # the listed solutions are real and isolated; they were found by search, and nothing excludes others


_COMPLETE = (AssemblyStatus.COMPLETE, AssemblyStatus.SINGULAR)
_CAUTION = {
    AssemblyStatus.POSITIVE_DIMENSIONAL: "the platform can move with locked actuators (self-motion): the robot is "
    "singular there, and poses of multiplicity 0 are samples of that motion",
    AssemblyStatus.INCOMPLETE: "paths to solutions were lost: modes may be missing",
    AssemblyStatus.INCONSISTENT: "the lengths set by the actuators are contradictory",
    AssemblyStatus.SEARCHED: "found by search, which does not exclude further modes",
}
_UNFINISHED = "the method did not finish: modes may be missing"


@dataclass(frozen=True, eq=False)
class SolutionSet:
    """All real solutions (k, ...) of one set of closure equations with locked actuators.

    Attributes:
        residuals: (k,) largest closure errors [m, or 1 for directions].
        multiplicity: (k,) 1 for a simple solution, 0 for a sample of a self-motion.
        n_complex: finite complex solutions of the algebraic system with their multiplicities, the real ones among
            them; -1 where they are not counted.
    """

    solutions: Array
    residuals: Array
    multiplicity: NDArray[np.int64]
    n_complex: int
    status: AssemblyStatus

    @property
    def n_real(self) -> int:
        """Number of real solutions listed; multiple ones and samples of a self-motion count once."""
        return len(self.solutions)


def no_solutions(shape: tuple[int, ...], status: AssemblyStatus, n_complex: int = 0) -> SolutionSet:
    """An empty set of solutions of the given shape."""
    return SolutionSet(np.zeros((0, *shape)), np.zeros(0), np.zeros(0, dtype=np.int64), n_complex, status)


@dataclass(frozen=True, eq=False)
class AssemblyPoses:
    """All platform poses (k, 7) that a method found for one set of actuator positions, and how far to trust the list.

    `certified` where every real solution is listed, else `caution` says in words why not; joints (k, n_joints) [rad or
    m] where the method finds them with the poses; `multiplicity` and `n_complex` as in `SolutionSet`.
    """

    poses: Array
    multiplicity: NDArray[np.int64]
    n_complex: int
    certified: bool
    caution: str = ""
    joints: Array | None = None


def caution_of(status: AssemblyStatus) -> str:
    """Why not every real solution is listed, in words; empty where it is."""
    return "" if status in _COMPLETE else _CAUTION.get(status, _UNFINISHED)


def poses_from(found: SolutionSet, poses: Array) -> AssemblyPoses:
    """The answer of a method with solutions for `poses` (k, 7), in the same order."""
    certified = found.status in _COMPLETE
    return AssemblyPoses(poses, found.multiplicity, found.n_complex, certified, caution_of(found.status))


def complex_normal(rng: np.random.Generator, *shape: int) -> NDArray[np.complex128]:
    """Random complex numbers."""
    return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))


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
    """A point after Gauss-Newton steps on a closure's errors (k,) and slope (k, n), while they help; the largest error.

    `weight` (n,) is that of each unknown, for the least step among many; `move` gives a point moved by a step (n,).
    """
    error, slope = closure(x)
    for _ in range(steps):
        trial = move(x, -weight * np.linalg.lstsq(slope * weight, error, rcond=rcond)[0])
        new_error, new_slope = closure(trial)
        if not np.linalg.norm(new_error) < np.linalg.norm(error):
            break
        x, error, slope = trial, new_error, new_slope
    return x, float(np.max(np.abs(error), initial=0.0))


def walked_away(
    closure: Callable[[Array], tuple[Array, Array]], x: Array, rank_below: float, far: float, weight: Any = 1.0
) -> Array | None:
    """Where a step from a solution along the null space of its slope leads after ten steps back; None if regular.

    From an isolated solution it is back there, or nowhere. Singular values below a share `rank_below` count as zero.
    """
    _, sizes, right = np.linalg.svd(closure(x)[1] * weight)
    rank = int(np.sum(sizes > rank_below * sizes[0]))
    if rank == len(x):
        return None
    walker = x + far * weight * right[-1]
    for _ in range(10):
        error, slope = closure(walker)
        left, sizes, right = np.linalg.svd(slope * weight, full_matrices=False)
        walker = walker - weight * (right[:rank].T @ ((left[:, :rank].T @ error) / sizes[:rank]))
    return walker


def consistent(solutions: Array, residuals: Array, tolerance: float, unit: ArrayLike) -> NDArray[np.bool_]:
    """Which candidates (k, n) of redundant constraints are solutions, each once: mask (k,).

    Those near a true solution converge to it when they are polished. `residuals` (k,) may be at most `tolerance`;
    `unit` (n,) is 1 for angles and quaternions, the robot's size for lengths.
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
