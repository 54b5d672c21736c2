# SPDX-License-Identifier: Apache-2.0
"""Bounds of matrices over boxes beside many matrices of these boxes."""

from __future__ import annotations

import flint
import numpy as np
import pytest

from pkm_analysis.proof.matrices import Affine, Form, eigenvalue_bounds, least_norm, least_squares, solve

flint.ctx.prec = 200
RNG = np.random.default_rng(11)


def _random_affine(n: int, k: int, r: int, c: int, size: float) -> tuple[Affine, np.ndarray]:
    """Boxes of matrices, and for each many matrices inside."""
    centre, slopes = RNG.standard_normal((n, r, c)), RNG.standard_normal((n, k, r, c))
    wide = size * np.abs(RNG.standard_normal((n, k, r, c)))
    half = size * RNG.uniform(0.0, 1.0, (n, k))
    affine = Affine.of(np.stack([centre, centre], -1), np.stack([slopes - wide, slopes + wide], -1), half)
    signs = RNG.choice([-1.0, 1.0], (500, n, k)) * RNG.choice([1.0, 0.3], (500, n, k))
    tilts = slopes + wide * RNG.choice([-1.0, 1.0], (500, n, k, r, c))
    return affine, centre + np.einsum("snk,nk,snkrc->snrc", signs, half, tilts)


@pytest.mark.parametrize(("k", "r", "c"), [(3, 3, 3), (1, 6, 6), (2, 7, 6), (6, 6, 6), (3, 9, 3)])
def test_singular_values_are_within_their_bounds_and_bounds_are_close(k, r, c):
    affine, samples = _random_affine(20, k, r, c, 1e-3)
    values = np.linalg.svd(samples, compute_uv=False)
    lower, upper = affine.smallest(), affine.largest()
    assert (values[..., -1].min(axis=0) >= lower).all()
    assert (values[..., 0].max(axis=0) <= upper).all()
    assert (upper - values[..., 0].max(axis=0) < 0.02).all()
    regular = values[..., -1].min(axis=0) > 0.2
    assert (values[..., -1].min(axis=0) - lower < 0.05)[regular].all()


def test_bounds_are_of_the_second_order_even_where_singular_values_coincide():
    gaps = []
    for size in (1e-2, 1e-3):
        slopes = np.array([[[[1.0, 0.2, 0.0], [0.2, -1.0, 0.1], [0.0, 0.1, 0.3]]]])
        centre = np.eye(3)[None]
        affine = Affine.of(np.stack([centre, centre], -1), np.stack([slopes, slopes], -1), np.array([[size]]))
        ends = [np.linalg.svd(centre[0] + s * slopes[0, 0], compute_uv=False) for s in (-size, size)]
        gaps.append(min(values[-1] for values in ends) - affine.smallest()[0])
    assert 0.0 <= gaps[0] < 1e-3
    assert 0.0 <= gaps[1] < 1e-5


def test_what_is_not_known_has_no_bounds():
    bounds = np.full((1, 1, 2, 2, 2), [-np.inf, np.inf])
    affine = Affine.of(np.stack([np.eye(2)[None]] * 2, -1), bounds, np.array([[0.1]]))
    assert affine.smallest()[0] == 0.0
    assert affine.largest()[0] == np.inf


def test_eigenvalues_are_bounded_as_exact_arithmetic_has_them():
    for n in (2, 3, 6):
        A = RNG.standard_normal((30, n, n))
        A = A + np.swapaxes(A, -1, -2)
        A[0] = np.eye(n)
        lower, upper = eigenvalue_bounds(A)
        for one, least, most in zip(A, lower, upper, strict=True):
            exact = flint.arb_mat(one.tolist())
            # shifted by the bound, all pivots of the exact factorisation are positive
            for shifted in (exact - flint.arb_mat(np.diag([least] * n).tolist()),):
                minors = [
                    flint.arb_mat([[shifted[i, j] for j in range(m)] for i in range(m)]).det() for m in range(1, n + 1)
                ]
                assert all(minor > 0 for minor in minors)
            values = np.linalg.eigvalsh(one)
            assert least <= values[0]
            assert most >= values[-1]
            assert values[0] - least < 1e-12


def test_solutions_are_within_their_bounds():
    A, b = RNG.standard_normal((40, 4, 4)), RNG.standard_normal((40, 4, 2))
    wide = 1e-4 * np.abs(RNG.standard_normal((40, 4, 4)))
    found = solve(Form(A, wide), Form(b, np.full(b.shape, 1e-4)))
    known = np.isfinite(found.radius).all(axis=(-1, -2))
    assert known.mean() > 0.8
    for _ in range(300):
        one = A + wide * RNG.choice([-1.0, 1.0], A.shape)
        x = np.linalg.solve(one, b + 1e-4 * RNG.choice([-1.0, 1.0], b.shape))
        assert (x >= found.lower)[known].all()
        assert (x <= found.upper)[known].all()
    singular = solve(Form(np.zeros((1, 2, 2)), np.zeros((1, 2, 2))), Form(np.ones((1, 2, 1)), np.zeros((1, 2, 1))))
    assert np.isinf(singular.radius).all()


@pytest.mark.parametrize(("m", "f"), [(3, 3), (4, 2), (7, 6)])
def test_solutions_over_boxes_are_bounded_to_the_second_order(m, f):
    excess = []
    for size in (1e-3, 1e-4):
        K, matrices = _random_affine(30, 2, m, f, size)
        errors, weight = RNG.standard_normal((m, 2)), RNG.standard_normal((f, 1))
        moved = least_squares(K, Affine.constant(errors, K.half))
        held = least_norm(K, Affine.constant(weight, K.half))
        inverses = np.linalg.pinv(matrices)
        x, tau = inverses @ errors, np.swapaxes(inverses, -1, -2) @ weight
        known = np.isfinite(moved.radius).all(axis=(1, 2)) & (np.linalg.cond(K.centre) < 20.0)
        assert known.sum() > 5
        for found, true in ((moved, x), (held, tau)):
            assert (true >= found.lower - 1e-13)[:, known].all()
            assert (true <= found.upper + 1e-13)[:, known].all()
        excess.append((2.0 * moved.radius - np.ptp(x, axis=0))[known].max() / np.ptp(x, axis=0)[known].max())
    assert excess[1] < 1.5
