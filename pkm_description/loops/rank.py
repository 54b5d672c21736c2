# SPDX-License-Identifier: Apache-2.0
"""Rank and null space of dimensionless Jacobians, by singular values."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array

# Singular values below this part of the largest count as zero. Closed configurations are exact to 1e-12; a generic
# one, 0.05 away from home, is at least about 1e-4 away from a singularity at home.
RANK = 1e-7


def null_space(matrix: Array) -> Array:
    """Orthonormal basis (n, k) of the null space of a matrix (m, n) with entries of order one."""
    if matrix.shape[0] == 0:
        return np.eye(matrix.shape[1])
    _, values, rows = np.linalg.svd(matrix)
    held = int((values > RANK * max(1.0, float(values.max(initial=0.0)))).sum())
    return np.asarray(rows[held:].T)


def rank(matrix: Array) -> int:
    """Rank of a matrix (m, n) with entries of order one."""
    if matrix.size == 0:
        return 0
    return int((np.linalg.svd(matrix, compute_uv=False) > RANK).sum())
