# SPDX-License-Identifier: Apache-2.0
"""The arc tangent of y / x in the right quadrant, within 4 ulp, in operations that are the same for all arguments.

The C library's serves one pair at a time; this one is recorded, and then serves a whole vector register.
"""

from __future__ import annotations

from functools import cache
from math import pi, sqrt

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from pkm_runtime.codegen.tape import Number, extreme, select_larger

_DEGREE = 13  # in t^2: the series of Chebyshev falls by a factor of 25 from term to term
_FOLD = sqrt(2.0) - 1.0  # tan(pi / 8): beyond, pi / 4 is taken off
_LEAST = 1e-300  # in place of a zero denominator


@cache
def _coefficients() -> tuple[float, ...]:
    """Coefficients of t^0, t^2, ... in atan(t) / t - 1 over t^2, for |t| up to `_FOLD`."""

    def rest(square: np.ndarray) -> np.ndarray:
        terms = [(-1.0) ** (k + 1) / (2 * k + 3) * square**k for k in range(40)]
        return np.sum(terms[::-1], axis=0)

    fit = Chebyshev.interpolate(rest, _DEGREE, domain=(0.0, _FOLD**2))
    return tuple(map(float, fit.convert(kind=Polynomial).coef))


def arc_tangent(y: Number, x: Number) -> Number:
    """Angle [rad] of the point (x, y), -pi to pi, without a decision on the tape; 0 for (-0.0, 0.0) and (0.0, -0.0)."""
    ax, ay = abs(x), abs(y)
    low, high = extreme("min", ax, ay), extreme("max", ax, ay)
    t = low / extreme("max", high, _LEAST)
    folded = (t - 1.0) / (t + 1.0)
    offset = select_larger(t, _FOLD, 0.25 * pi, 0.0)
    t = select_larger(t, _FOLD, folded, t)
    square = t * t
    *others, value = _coefficients()
    for coefficient in reversed(others):
        value = value * square + coefficient
    angle = (t * square) * value + t + offset
    angle = select_larger(ay, ax, 0.5 * pi - angle, angle)
    angle = select_larger(0.0, x, pi - angle, angle)
    return select_larger(0.0, y, -angle, angle)
