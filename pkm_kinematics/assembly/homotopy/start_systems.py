# SPDX-License-Identifier: Apache-2.0
"""Quadrics with generic coefficients whose solutions are known, where homotopies start.

Of any n quadrics in P^n there are 2^n solutions, by Bezout's theorem. A smaller family has a generic member of its own,
all of whose solutions are found from one by monodromy.

Such a member and its solutions are the start of every homotopy in the family. Moving its coefficients around a closed
loop permutes its solutions, and for a generic member every solution can be reached from every other one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise, product

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


@lru_cache(maxsize=32)
def start_system(n: int, seed: int) -> tuple[Complex, Complex]:
    """n quadrics (n, n + 1, n + 1) with generic complex coefficients and their solutions (2^n, n + 1), unit vectors."""
    rng = np.random.default_rng([1985, seed])
    system = np.zeros((n, n + 1, n + 1), dtype=np.complex128)
    for k in range(n):
        system[k, 0, 0], system[k, k + 1, k + 1] = -1.0, 1.0
    signs = np.array([[1, *rest] for rest in product((1, -1), repeat=n)], dtype=np.complex128)
    phases = np.exp(2j * np.pi * rng.random(n))  # the phases that make the straight line generic
    size = (n + 1, n + 1)
    change, _ = np.linalg.qr(rng.normal(size=size) + 1j * rng.normal(size=size))  # and so do coordinates
    turned = np.einsum("i,ijk,aj,bk->iab", phases, system, change.conj(), change.conj())
    return turned / np.sqrt(2.0), signs @ change.T / np.sqrt(n + 1.0)
