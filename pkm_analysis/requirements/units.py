# SPDX-License-Identifier: Apache-2.0
"""Conversion of units that people write to SI units."""

from __future__ import annotations

import math

from pkm_analysis.analysis_errors import AnalysisError

_SCALES = {  # unit: what it is of the SI unit
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "um": 1e-6},
    "rad": {"rad": 1.0, "deg": math.pi / 180.0, "mrad": 1e-3},
    "N": {"N": 1.0, "kN": 1e3, "mN": 1e-3},
    "N m": {"N m": 1.0, "Nm": 1.0, "kN m": 1e3, "kNm": 1e3, "mN m": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": math.pi / 180.0, "rpm": math.pi / 30.0},
    "Hz": {"Hz": 1.0, "kHz": 1e3},
    "1": {"1": 1.0, "": 1.0, "%": 0.01},
}


def in_si(number: float, unit: str, wanted: str, about: str) -> float:
    """A number with the unit that somebody wrote, in SI units; `AnalysisError` for a missing or wrong one.

    `wanted` is the SI unit of the quantity, "1" where it has none; `about` the source text, for the message.
    """
    scales = _SCALES.get(wanted, {wanted: 1.0})
    if unit in scales:
        return number * scales[unit]
    if not unit:
        raise AnalysisError(about, f"{number:g} has no unit", f"write '{number:g} {wanted}'")
    known = ", ".join(name for name in scales if name)
    raise AnalysisError(about, f"{unit!r} is no unit of it", f"give it in {known}")
