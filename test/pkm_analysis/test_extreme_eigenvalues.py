# SPDX-License-Identifier: Apache-2.0
"""Extreme singular values of small matrices, clusters and singular matrices included, beside LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis.kernels.pose_quantities import extreme_singular_values


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("extra", [0, 2])
def test_as_lapack(n: int, extra: int) -> None:
    rng = np.random.default_rng(n)
    for kind in range(60):
        K = rng.normal(size=(n + extra, n)) * 10.0 ** rng.uniform(-3, 3)
        U, values, Vt = np.linalg.svd(K, full_matrices=False)
        if kind % 3 == 1:  # clusters
            values[:] = values[0] * (1.0 + 1e-6 * rng.normal(size=n))
        if kind % 3 == 2:  # far apart, and singular
            values = values[0] * 10.0 ** -np.linspace(0.0, 9.0, n)
            values[-1] = 0.0 if kind % 2 and n > 1 else values[-1]
        K = U * values @ Vt
        smallest, largest = extreme_singular_values(np.ascontiguousarray(K), n + extra, n, np.zeros((4, 8, 8)))
        assert largest == pytest.approx(values.max(), rel=1e-5)
        assert smallest == pytest.approx(values.min(), rel=1e-5, abs=1e-5 * values.max())
