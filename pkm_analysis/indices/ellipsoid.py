# SPDX-License-Identifier: Apache-2.0
"""The largest ellipsoid inside a polytope that is symmetric about the origin.

Of the ellipsoids v^T M^-1 v <= 1 with a^T M a <= 1 for every face a . v = 1, the one of largest determinant: a convex
programme, which Clarabel solves with log det M as a matrix inequality and exponential cones (Boyd and Vandenberghe,
Convex Optimization, section 8.4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # submodules load on first use

from pkm_analysis.analysis_errors import AnalysisError
from pkm_description.mechanism import Array

TOLERANCE = 1e-9


def largest_ellipsoid(rows: Array) -> tuple[Array, Array]:
    """Semi-axes of the largest ellipsoid inside |rows @ v| <= 1: lengths (f,), longest first; directions as columns.

    Args:
        rows: (m, f) normals of pairs of faces.

    Raises:
        AnalysisError: the polytope is unbounded, Clarabel is not installed, or found no solution.
    """
    try:
        import clarabel
    except ImportError as error:
        raise AnalysisError(
            "largest ellipsoid", "it needs the convex solver Clarabel, which is missing", "pip install clarabel"
        ) from error
    rows = np.asarray(rows, dtype=float)
    f = rows.shape[1]
    if not np.isfinite(rows).all() or np.linalg.matrix_rank(rows) < f:
        raise AnalysisError("largest ellipsoid", "the polytope is not bounded", "leave the singular pose")
    # In coordinates in which the faces are spread evenly, the programme is well conditioned.
    values, V = np.linalg.eigh(rows.T @ rows)
    spread = V / np.sqrt(values)
    a = rows @ spread
    A, b, index = _programme(a)
    cones = [clarabel.NonnegativeConeT(len(a)), clarabel.PSDTriangleConeT(2 * f)]
    cones += [clarabel.ExponentialConeT() for _ in range(f)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    width = A.shape[1]
    q = np.concatenate([np.zeros(width - f), -np.ones(f)])
    solved = clarabel.DefaultSolver(scipy.sparse.csc_matrix((width, width)), q, A, b, cones, settings).solve()
    if "Solved" not in str(solved.status):
        raise AnalysisError(
            "largest ellipsoid", f"the solver says {solved.status}", "look at the pose: is it singular?"
        )
    M = np.zeros((f, f))
    for (r, c), k in index.items():
        M[r, c] = M[c, r] = solved.x[k]
    M = spread @ M @ spread.T
    M /= np.einsum("ij,jk,ik->i", rows, M, rows).max()  # inside to the last digit
    squared, directions = np.linalg.eigh(M)
    return np.sqrt(np.maximum(squared[::-1], 0.0)), directions[:, ::-1]


def _programme(a: Array) -> tuple[Any, Array, dict[tuple[int, int], int]]:
    """Constraints A x + s = b of the convex programme for faces a (m, f), and the positions of M's entries in x."""
    f = a.shape[1]
    n = f * (f + 1) // 2
    # variables: the triangle of M, the lower triangle of Z, and t; maximise the sum of t
    index = {pair: k for k, pair in enumerate((r, c) for c in range(f) for r in range(c + 1))}
    lower = {pair: n + k for k, pair in enumerate((r, c) for c in range(f) for r in range(c, f))}
    width = 2 * n + f
    faces = np.zeros((len(a), width))
    for (r, c), k in index.items():
        faces[:, k] = a[:, r] * a[:, c] * (1.0 if r == c else 2.0)
    # [[M, Z], [Z^T, diag Z]] is positive semidefinite
    matrix = np.zeros((2 * f * (2 * f + 1) // 2, width))
    at = 0
    for c in range(2 * f):
        for r in range(c + 1):
            scale = -1.0 if r == c else -np.sqrt(2.0)
            if c < f:
                matrix[at, index[r, c]] = scale
            elif r < f and (r, c - f) in lower:
                matrix[at, lower[r, c - f]] = scale
            elif r == c:
                matrix[at, lower[r - f, r - f]] = scale
            at += 1
    # exp(t) <= the diagonal of Z
    roots, offsets = np.zeros((3 * f, width)), np.zeros(3 * f)
    for k in range(f):
        roots[3 * k, 2 * n + k] = -1.0
        offsets[3 * k + 1] = 1.0
        roots[3 * k + 2, lower[k, k]] = -1.0
    b = np.concatenate([np.ones(len(a)), np.zeros(len(matrix)), offsets])
    return scipy.sparse.csc_matrix(np.vstack([faces, matrix, roots])), b, index
