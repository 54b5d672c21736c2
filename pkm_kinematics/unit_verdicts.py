# SPDX-License-Identifier: Apache-2.0
"""Verdicts on numbers that look like degrees, or like millimetres, and which number of the file to correct."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pkm_description.urdf.unit_slips import LARGE, Slip, Suspect, Written
from pkm_kinematics.verdicts import Verdict
from pkm_runtime.describable import listed

Blame = Callable[[Slip], Sequence[Written]]
NAMED = 3  # elements; of more alike, their number is enough


def of_units(found: Sequence[Suspect], mass: float, blame: Blame = lambda slip: ()) -> Iterator[Verdict]:
    """A warning per number of the file that looks like another unit's, or else per kind of place and value.

    `found` is from `suspects`, `mass` in kg; `blame` answers which numbers explain those of a kind, or of its factor.
    """
    known = {slip: blame(slip) for slip in (Slip.DEGREES, Slip.MILLIMETRES) if _of(found, slip)}
    for slip, written in known.items():
        alike = _of(found, slip)
        worst = max(alike, key=lambda one: abs(one.value))
        for one in written:
            meaning = f"because of it, {worst.about} is {_what(worst, mass)}{_others(alike, worst)}"
            yield Verdict("warning", one.place, one.value, meaning, _correction(one.value, slip))
    for alike in _groups([one for one in found if not known.get(_kind(one.slip))]):
        worst = max(alike, key=lambda one: abs(one.value))
        meaning = f"{_what(worst, mass)}{_others(alike, worst)}"
        yield Verdict("warning", worst.about, worst.value, meaning, _remedy(worst))


def of_cosines(found: Sequence[Written]) -> Iterator[Verdict]:
    """Warnings of numbers, from `taken_as_radians`, that look like degrees and go into cosines and sines only."""
    for one in found:
        meaning = "the file uses it as radians in cosines and sines, but it looks like degrees"
        yield Verdict("warning", one.place, one.value, meaning, _correction(one.value, Slip.DEGREES))


def of_misfits(blame: Blame) -> Iterator[Verdict]:
    """Warnings of numbers that prevent an expansion, such as the root of a negative number; `blame` finds them."""
    in_units: dict[Written, list[Slip]] = {}
    for slip in (Slip.MILLIMETRES, Slip.DEGREES):
        for one in blame(slip):
            in_units.setdefault(one, []).append(slip)
    for one, slips in in_units.items():
        units = " or ".join("degrees" if slip is Slip.DEGREES else "mm" for slip in slips)
        meaning = f"the numbers are inconsistent; they are consistent if this is in {units}"
        yield Verdict(
            "warning", one.place, one.value, meaning, "; ".join(_correction(one.value, slip) for slip in slips)
        )


def _correction(value: float, slip: Slip) -> str:
    """What to write instead of a number of the file."""
    if slip is Slip.DEGREES:
        return f"write angles in rad: {value:g} degrees are {value * slip.factor:.6g}, or write ${{radians({value:g})}}"
    return f"write lengths in m: {value:g} mm are {value * slip.factor:g}"


def _kind(slip: Slip) -> Slip:
    return Slip.DEGREES if slip is Slip.DEGREES else Slip.MILLIMETRES


def _of(found: Sequence[Suspect], kind: Slip) -> list[Suspect]:
    return [one for one in found if _kind(one.slip) is kind]


def _groups(found: Sequence[Suspect]) -> list[list[Suspect]]:
    """Suspects of one kind and size together: limits of six arms, lengths of all rods; of a range, its larger end."""
    groups: dict[tuple[object, ...], list[Suspect]] = {}
    largest: dict[str, float] = {}
    for one in found:
        largest[one.about] = max(largest.get(one.about, 0.0), abs(one.value))
    for one in found:
        if not one.attribute or abs(one.value) == largest[one.about]:
            kind = re.sub(r'"[^"]*"', "", one.about), round(abs(one.value), 9)
            groups.setdefault((one.slip, None if one.slip is Slip.MILLIMETRES else kind), []).append(one)
    return list(groups.values())


def _what(one: Suspect, mass: float) -> str:
    if one.slip is Slip.DEGREES:
        return f"{one.value:g} rad, more than a full turn: the unit looks like degrees"
    if one.slip is Slip.SLIDE:
        return f"a translation of {abs(one.value):g} m: the unit looks like millimetres"
    size = f"more than {LARGE:g} m" if one.value > LARGE else "a hundred times the others"
    return f"{one.value:g} m, {size}, in a robot of {mass:.4g} kg: the unit looks like mm"


def _others(alike: Sequence[Suspect], worst: Suspect) -> str:
    names = list(dict.fromkeys(one.about for one in alike if one.about != worst.about))
    if not names:
        return ""
    return f" (and {len(names)} more alike)" if len(names) > NAMED else f" (alike: {listed(names)})"


def _remedy(one: Suspect) -> str:
    if one.slip is Slip.DEGREES:
        return (
            f"write angles in rad: {one.value:.6g} degrees are {np.radians(one.value):.6g}; "
            f"or write ${{{one.value:.6g} * pi / 180}}; if it comes from an expression, correct the angles of the "
            "expression"
        )
    more = "; inertias in kg m^2 (1 kg mm^2 is 1e-6)" if one.slip is Slip.MILLIMETRES else ""
    return f"write lengths in m: {abs(one.value):g} mm are {abs(one.value) / 1000.0:g}{more}"
