# SPDX-License-Identifier: Apache-2.0
"""Interval arithmetic against exact fractions, and against Arb's ball arithmetic for what is not rational."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

from pkm_analysis.proof.kernels import intervals as iv

N = 2000
flint.ctx.prec = 200


def _numbers(seed: int) -> np.ndarray:
    """Numbers of many sizes, whole ones and those at which an operation changes among them."""
    rng = np.random.default_rng(seed)
    wild = rng.standard_normal(N) * 10.0 ** rng.uniform(-8, 8, N)
    plain = rng.uniform(-7.0, 7.0, N)
    round_ones = rng.integers(-4, 5, N) * rng.choice([1.0, 0.5, math.pi / 2, math.pi / 4], N)
    return np.concatenate([wild, plain, round_ones])


def _interval(x: float, y: float) -> tuple[float, float]:
    return (x, y) if x <= y else (y, x)


@pytest.mark.parametrize(
    ("function", "exact"),
    [
        (iv.plus, lambda x, y: x + y),
        (iv.minus, lambda x, y: x - y),
        (iv.times, lambda x, y: x * y),
        (iv.divide, lambda x, y: x / y),
    ],
)
def test_sums_and_products_contain_the_exact_ones_and_little_more(function, exact):
    for x, y in zip(_numbers(1), _numbers(2), strict=True):
        if function is iv.divide and y == 0.0:
            continue
        lower, upper = function((x, x), (y, y))
        result = exact(Fraction(x), Fraction(y))
        assert Fraction(lower) <= result <= Fraction(upper)
        assert upper - lower <= 9e-16 * max(abs(lower), abs(upper)) + 3e-300


def _exactly(bounds: tuple[float, float]) -> list[Fraction | float]:
    return [Fraction(bound) if math.isfinite(bound) else bound for bound in bounds]


def test_products_of_intervals_contain_all_products():
    rng, tried = np.random.default_rng(3), 0
    for a, b, c, d in _numbers(4)[:4000].reshape(-1, 4):
        x, y = _interval(a, b), _interval(c, d)
        products, quotients = _exactly(iv.times(x, y)), _exactly(iv.divide(x, y))
        for _ in range(5):
            p, q = (Fraction(min(max(rng.uniform(*z), z[0]), z[1])) for z in (x, y))
            assert products[0] <= p * q <= products[1]
            if q != 0:
                tried += 1
                assert quotients[0] <= p / q <= quotients[1]
    assert tried > 4500  # of 5,000
    assert iv.divide((1.0, 2.0), (-1.0, 1.0)) == iv.EVERYTHING
    assert iv.times((0.0, 0.0), (-math.inf, math.inf)) == (0.0, 0.0)
    assert iv.times((0.0, 1.0), (1.0, math.inf))[1] == math.inf


def test_no_bound_is_ever_no_number():
    ends = [-math.inf, -1e308, -1.0, 0.0, 1e-320, 1.0, 1e308, math.inf]
    pairs = [(a, b) for a in ends for b in ends if a <= b and a < math.inf and b > -math.inf]
    for x in pairs:
        for y in pairs:
            for function in (iv.plus, iv.minus, iv.times, iv.divide):
                lower, upper = function(x, y)
                assert lower <= upper
                assert lower < math.inf
                assert upper > -math.inf
        for function in (iv.square, iv.root, iv.reciprocal, iv.negative):
            lower, upper = function(x)
            assert lower <= upper


def test_functions_contain_those_of_arb():
    for x, y in zip(_numbers(5), _numbers(6), strict=True):
        ball = flint.arb(x)
        c, s = iv.cosine_sine((x, x))
        for bounds, true in ((c, ball.cos()), (s, ball.sin()), (iv.square((x, x)), ball * ball)):
            assert flint.arb(bounds[0]) <= true <= flint.arb(bounds[1])
        if abs(x) < 10.0:
            assert c[1] - c[0] < 1e-14
        lower, upper = iv.root((abs(x), abs(x)))
        assert flint.arb(lower) <= flint.arb(abs(x)).sqrt() <= flint.arb(upper)
        if y != 0.0 or x > 0.0:
            (lower, upper), _ = iv.angle((y, y), (x, x))
            true = flint.arb.atan2(flint.arb(y), ball)
            assert flint.arb(lower) <= true <= flint.arb(upper)
            assert upper - lower < 2e-14 or (y == 0.0 and x < 0.0)


def test_functions_of_intervals_contain_their_values_inside():
    rng = np.random.default_rng(7)
    for a, b, c, d in _numbers(8)[2000:].reshape(-1, 4):
        x, y = _interval(a, b), _interval(c, d)
        cosine, sine = iv.cosine_sine(x)
        found, whole = iv.angle(y, x)
        for _ in range(20):
            p, q = rng.uniform(*x), rng.uniform(*y)
            assert cosine[0] - 1e-15 <= math.cos(p) <= cosine[1] + 1e-15
            assert sine[0] - 1e-15 <= math.sin(p) <= sine[1] + 1e-15
            if p != 0.0 or q != 0.0:
                assert found[0] - 1e-15 <= math.atan2(q, p) <= found[1] + 1e-15
        assert whole == (not (x[0] <= 0.0 and y[0] <= 0.0 <= y[1]))
    assert iv.cosine_sine((1.0, 2.0))[1][1] == 1.0
    assert iv.cosine_sine((3.0, 3.3))[0][0] == -1.0
    assert iv.cosine_sine((2.0, 3.0))[0] != (-1.0, 1.0)
