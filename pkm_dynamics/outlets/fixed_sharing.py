# SPDX-License-Identifier: Apache-2.0
"""Drives that only pull, or only push, share a load by a fixed rule, in operations that are the same for every load.

Efforts of least norm within bounds, as `pkm_dynamics.kernels.sharing` finds them by iteration, with one or two efforts
to spare. In these, bounds leave an interval or a polygon. Its point nearest to zero is zero, or lies on a side: of each
side's line the nearest point between the others is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from pkm_description.mechanism import Array
from pkm_runtime.codegen.tape import Number, Term, call, extreme, key, select_larger, tape_of

MOST = 2  # efforts to spare
FAR = 1e30  # N or N m
ROUNDED = 1e-11  # of the largest effort: what rounding may leave outside


class Side(NamedTuple):
    """A bound of a drive: `normal` times the efforts to spare (r,) is `least` or more."""

    drive: int
    normal: tuple[Number, ...]
    least: Number


def shared(effort: Sequence[Number], null: Array, lower: Array, upper: Array) -> list[Number]:
    """Efforts (m,) of least norm within bounds (m,), from those of least norm without.

    That there are any is a condition on the tape, whether it holds where it is recorded or not. `null` (m, r) is an
    orthonormal basis of efforts that do no work, r at most MOST.
    """
    sides = []
    for k, (now, row, low, high) in enumerate(zip(effort, null, lower, upper, strict=True)):
        if isfinite(low):
            sides.append(Side(k, tuple(row), low - now))
        if isfinite(high):
            sides.append(Side(k, tuple(-x for x in row), now - high))
    size = extreme("max", *map(abs, effort))
    if null.shape[1] == 1:
        low, high = _ends([(side.normal[0], side.least) for side in sides])
        spare = [_between(low, high)]
    else:
        spare = _in_plane(sides, size)
    found = [now + sum(x * z for x, z in zip(row, spare, strict=True)) for now, row in zip(effort, null, strict=True)]
    tape = tape_of(*found)
    assert tape is not None
    for one, low, high in zip(found, lower, upper, strict=True):
        room = 10.0 * ROUNDED * (abs(one) + size)
        tape.conditions["<=", key(extreme("max", low - one, one - high)), key(room)] = True  # it may not hold here
    return [extreme("min", extreme("max", one, low), high) for one, low, high in zip(found, lower, upper, strict=True)]


def _ends(bounds: Sequence[tuple[Number, Number]]) -> tuple[Number, Number]:
    """The least and the largest number of which each slope makes its least or more."""
    low, high = -FAR, FAR
    for slope, least in bounds:
        if isinstance(slope, Term) or slope != 0.0:
            end = least / slope
            low = extreme("max", low, select_larger(slope, 0.0, end, -FAR))
            high = extreme("min", high, select_larger(0.0, slope, end, FAR))
    return low, high


def _between(low: Number, high: Number) -> Number:
    """The number nearest to zero."""
    return extreme("min", extreme("max", 0.0, low), high)


def _in_plane(sides: Sequence[Side], size: Number) -> list[Number]:
    """The point nearest to zero."""
    best = select_larger(extreme("max", *(side.least for side in sides)), 0.0, FAR, 0.0)
    x, y = 0.0, 0.0
    for side in sides:
        a, b = side.normal
        square = a * a + b * b
        length = call("sqrt", square)
        foot, along = (side.least * a / square, side.least * b / square), (-b / length, a / length)
        others = [one for one in sides if one.drive != side.drive]
        low, high = _ends([(_dot(one.normal, along), one.least - _dot(one.normal, foot)) for one in others])
        t = _between(low, high)
        far = select_larger(low - high, ROUNDED * size, FAR, side.least * side.least / square + t * t)
        x, y = (select_larger(best, far, p + t * d, old) for p, d, old in zip(foot, along, (x, y), strict=True))
        best = extreme("min", best, far)
    return [x, y]


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    return a[0] * b[0] + a[1] * b[1]
