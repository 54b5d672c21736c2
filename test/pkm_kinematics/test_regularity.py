# SPDX-License-Identifier: Apache-2.0
"""The one number that says whether a matrix is singular, and what is solved with it: judged by NumPy's SVD."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_kinematics.kernels.regularity import (
    SINGULAR_BELOW,
    factorise,
    factorise_of_rank,
    is_regular,
    least_norm,
    nearest,
    orientation,
    solve_three,
    turn_back,
)

SHAPES = [(1, 1), (3, 2), (3, 3), (4, 3), (6, 3), (6, 6), (7, 6), (8, 6)]


def factors(matrix):
    """(condition, factorised copy, inverse of the triangle, weights)."""
    m, n = matrix.shape
    A, inverse, weights = matrix.copy(), np.zeros((n, n)), np.zeros(n)
    return factorise(A, m, n, inverse, weights), A, inverse, weights


def index(matrix):
    """The reciprocal condition in the norm of Frobenius, of singular values."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return len(values) / np.sqrt((values**2).sum() * (values**-2.0).sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_condition_of_the_singular_values(shape):
    rng = np.random.default_rng(1)
    m, n = shape
    for spread in (0.0, 1.0, 3.0, 6.0):
        for _ in range(50):
            U, V = np.linalg.qr(rng.normal(size=(m, n)))[0], np.linalg.qr(rng.normal(size=(n, n)))[0]
            A = 10.0 ** rng.uniform(-6, 6) * U @ np.diag(10.0 ** -np.linspace(0.0, spread, n)) @ V
            assert factors(A)[0] == pytest.approx(index(A), rel=1e-9 * 10.0**spread)
            if n > 1:
                ratio = 1.0 / np.linalg.cond(A)
                assert ratio * 0.99 <= factors(A)[0] <= n * ratio * 1.01


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] > 1])
def test_matrices_of_less_rank_are_singular(shape):
    rng = np.random.default_rng(2)
    m, n = shape
    for _ in range(500):
        rank = int(rng.integers(0, n))
        A = 10.0 ** rng.uniform(-3, 3) * rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
        assert not is_regular(factors(A)[0])


def test_three_by_their_determinant_are_as_by_reflections():
    """The same number and solution, or 0 where the determinant is not to be trusted, as it is not at rank 1."""
    rng, decided = np.random.default_rng(8), 0
    for spread in np.linspace(0.0, 8.0, 400):
        U, V = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
        middle = rng.uniform(0.0, spread)
        A = 10.0 ** rng.uniform(-6, 6) * U @ np.diag(10.0 ** -np.array([0.0, middle, spread])) @ V
        b, x = rng.normal(size=3), np.full(3, np.nan)
        condition = solve_three(A, b, x)
        if condition == 0.0:
            assert middle + spread > 2.0
            continue
        decided += 1
        assert condition == pytest.approx(index(A), rel=1e-11)
        # the determinant has lost three digits at most
        np.testing.assert_allclose(x, np.linalg.solve(A.T, b), rtol=0.0, atol=1e-11 * np.abs(x).max())
    assert decided > 50
    for rank in (0, 1, 2):
        for _ in range(200):
            A = rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3))
            assert solve_three(A, np.ones(3), np.zeros(3)) == 0.0


def test_a_column_that_is_nothing_but_rounding_is_none():
    """As where the platform moves along an axis and no drive does: to take columns at unit length would hide it."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(4, 3))
    A[:, 1] *= 1e-16
    assert factors(A)[0] < 1e-14


def test_what_is_not_finite_is_not_regular():
    A = np.ones((3, 3))
    A[0, 1] = np.nan
    assert not is_regular(factors(A)[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_solutions_are_those_of_least_squares(shape):
    rng = np.random.default_rng(4)
    m, n = shape
    for _ in range(200):
        matrix, b, wanted = rng.normal(size=shape), rng.normal(size=n), rng.normal(size=m)
        condition, A, inverse, weights = factors(matrix)
        effort, rates = np.zeros(m), np.zeros(n)
        least_norm(A, m, n, inverse, weights, b, effort)
        np.testing.assert_allclose(effort, np.linalg.lstsq(matrix.T, b, rcond=None)[0], atol=1e-13 / condition**2)
        nearest(A, m, n, inverse, weights, wanted.copy(), rates)
        np.testing.assert_allclose(rates, np.linalg.lstsq(matrix, wanted, rcond=None)[0], atol=1e-13 / condition**2)


def test_efforts_do_the_work_as_long_as_the_matrix_is_regular():
    """Up to the bound: what is solved misses by rounding times the condition, and no more."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        m, n = SHAPES[rng.integers(2, len(SHAPES))]
        U, V = np.linalg.qr(rng.normal(size=(m, n)))[0], np.linalg.qr(rng.normal(size=(n, n)))[0]
        matrix = U @ np.diag(10.0 ** np.linspace(0.0, rng.uniform(-7.5, 0.0), n)) @ V
        condition, A, inverse, weights = factors(matrix)
        if not is_regular(condition):
            continue
        b, effort = rng.normal(size=n), np.zeros(m)
        least_norm(A, m, n, inverse, weights, b, effort)
        assert np.linalg.norm(matrix.T @ effort - b) < 100.0 * np.finfo(float).eps / condition * np.linalg.norm(b)


def test_orientation_is_the_sign_of_the_determinant():
    rng = np.random.default_rng(6)
    for n in range(1, 7):
        for _ in range(50):
            matrix = rng.normal(size=(n, n))
            assert orientation(factors(matrix)[2], n) == np.sign(np.linalg.det(matrix))


@pytest.mark.parametrize(("k", "m", "rank"), [(6, 8, 6), (6, 7, 6), (6, 3, 2), (3, 4, 3), (6, 4, 3)])
def test_rows_of_known_rank(k, m, rank):
    """The rows of J span `rank` dimensions; where they span less, that is seen, whichever rows are spare."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        for left in (rank, rank - 1):
            J = rng.normal(size=(k, left)) @ rng.normal(size=(left, m))
            A, inverse, weights = np.ascontiguousarray(J.T), np.zeros((rank, rank)), np.zeros(rank)
            condition = factorise_of_rank(A, m, k, rank, inverse, weights)
            values = np.linalg.svd(J, compute_uv=False)
            if left < rank:
                assert condition < SINGULAR_BELOW
                continue
            assert condition > 0.03 * values[rank - 1] / values[0]  # of the rows that are taken
            for c in range(rank, m):
                x = np.eye(m)[c]
                turn_back(A, m, rank, weights, x)
                assert np.abs(J @ x).max() < 1e-13 * values[0] / condition
