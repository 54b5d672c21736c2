# SPDX-License-Identifier: Apache-2.0
"""More assembly modes of an arbitrary closure system, by releasing one equation at a time and following the motion.

Without one of its equations, say that one actuator has its value, the robot moves along a curve through each assembly
mode. Wherever along that curve the equation holds again, there is another assembly mode. The curves are followed in
both directions until they close, from every solution and for every equation that may be released, until nothing new
turns up. This finds modes that attract no random start; modes on curves through none of the known ones stay unknown,
so the result is a search, not a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pkm_kinematics.assembly.result import Array
from pkm_kinematics.assembly.search.closure_system import RANK, ClosureSystem
from pkm_kinematics.assembly.search.multistart import Collection, SearchedSet, multistart

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
        releases: rows of the residual that may be dropped, one at a time; the others must leave exactly one degree of
            degree of freedom, as they do where the row says that an actuator has its value.
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
    """A short `multistart`, then `continue_modes` from what it found; arguments as there.

    Many starts cost more than following the curves, so the starts stop as soon as one solution is expected missing.
    """
    return continue_modes(system, multistart(system, known, missing=1.0, most_starts=400), releases, periods, budget)
