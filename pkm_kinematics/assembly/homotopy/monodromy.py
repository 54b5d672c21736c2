# SPDX-License-Identifier: Apache-2.0
"""All solutions of a generic member of a linear family of quadrics, found from one solution by monodromy.

Such a member and its solutions are the start of every homotopy in the family. Moving its coefficients around a closed
loop permutes its solutions, and for a generic member every solution can be reached from every other one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from pkm_kinematics.assembly.homotopy.quadrics import Complex, refine, track

DISTINCT = 1e-9  # one minus the cosine of the angle between two solutions
MAX_LOOPS = 1000


def solve_by_monodromy(
    member: Callable[[np.random.Generator], Complex], point: Complex, free: int, count: int, rng: np.random.Generator
) -> tuple[Complex, Complex]:
    """A member (n, n + 1, n + 1) of a linear family of quadrics, and its solutions (count, n + 1), unit vectors.

    Args:
        member: gives a random member of the family.
        point: (n + 1,) any solution, with z_0 != 0, of the equations after the first `free`.
        free: number of equations that allow any coefficient of z_0^2.

    Raises:
        RuntimeError: not all `count` solutions turn up.
    """
    start = point / np.linalg.norm(point)
    system = member(rng)
    system[:free, 0, 0] -= np.einsum("iab,a,b->i", system[:free], start, start) / start[0] ** 2
    found = np.zeros((count, len(start)), dtype=np.complex128)
    found[0], known = start, 1
    for _ in range(MAX_LOOPS):
        corners = [system, member(rng), member(rng), system]
        for index in range(known):
            walker = found[index].copy()
            if not all(track(a, b, walker, 1e-6, 0.3) for a, b in pairwise(corners)):
                continue
            refine(system, walker, 5)
            if np.all(np.abs(found[:known].conj() @ walker) < 1.0 - DISTINCT):
                found[known], known = walker, known + 1
                if known == count:
                    return system, found
    raise RuntimeError(f"monodromy found {known} of {count} solutions in {MAX_LOOPS} loops")
