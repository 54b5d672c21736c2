# SPDX-License-Identifier: Apache-2.0
"""Points of a border between points inside and points outside, by bisection."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array

Codes = Callable[[Array], NDArray[np.int32]]
INSIDE = 0


def bisect(codes: Codes, inside: Array, outside: Array, tolerance: float) -> tuple[Array, NDArray[np.int32]]:
    """Border points (n, d), within `tolerance` along lines from inside to outside; and the codes (n,) just outside."""
    inside, outside = inside.copy(), outside.copy()
    stops = codes(outside)
    longest = float(np.linalg.norm(outside - inside, axis=1).max(initial=0.0))
    for _ in range(max(0, ceil(log2(longest / tolerance))) if longest > 0.0 else 0):
        middle = 0.5 * (inside + outside)
        found = codes(middle)
        within = found == INSIDE
        inside[within] = middle[within]
        outside[~within] = middle[~within]
        stops[~within] = found[~within]
    return 0.5 * (inside + outside), stops
