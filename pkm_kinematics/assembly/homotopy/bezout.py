# SPDX-License-Identifier: Apache-2.0
"""Generic quadrics with known solutions, from which those of any n quadrics in P^n can be tracked: 2^n by Bezout."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

from pkm_kinematics.assembly.homotopy.quadrics import Complex


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
