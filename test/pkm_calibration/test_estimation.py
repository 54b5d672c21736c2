# SPDX-License-Identifier: Apache-2.0
"""The estimator on problems whose truth is known: values, intervals, rank, outliers."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_calibration.estimation import ContradictionError, Estimate, Residuals, estimate
from pkm_description.mechanism import Array

NAMES = ("size", "rate", "offset")
TRUTH = np.array([2.0, 0.7, 0.3])
START = np.array([1.6, 0.5, 0.0])
TIMES = np.linspace(0.0, 5.0, 40)
SCALES = np.array([1.0, 0.5, 1.0])


def decay(measured: Array) -> Residuals:
    """Residuals of size exp(-rate t) + offset."""

    def residuals(values: Array) -> tuple[Array, Array]:
        fall = np.exp(-values[1] * TIMES)
        J = np.stack([fall, -values[0] * TIMES * fall, np.ones_like(TIMES)], axis=1)
        return values[0] * fall + values[2] - measured, J

    return residuals


def noisy(seed: int, sigma: float = 0.01) -> Array:
    exact = TRUTH[0] * np.exp(-TRUTH[1] * TIMES) + TRUTH[2]
    return np.asarray(exact + np.random.default_rng(seed).normal(0.0, sigma, len(TIMES)))


def fitted(measured: Array, sigma: float | None = 0.01) -> Estimate:
    width = None if sigma is None else np.full(len(TIMES), sigma)
    return estimate(decay(measured), START, names=NAMES, scales=SCALES, sigma=width)


def test_exact_data_give_the_truth() -> None:
    found = fitted(noisy(0, 0.0))
    assert found.values == pytest.approx(TRUTH, abs=1e-7)
    assert (found.rank, found.unseen, found.outliers) == (3, (), ())


@pytest.mark.parametrize("sigma", [0.01, None])
def test_intervals_cover(sigma: float | None) -> None:
    runs = [fitted(noisy(seed), sigma).interval95 for seed in range(300)]
    inside = np.mean([(row[:, 0] <= TRUTH) & (row[:, 1] >= TRUTH) for row in runs])
    assert inside == pytest.approx(0.95, abs=0.025)  # 300 runs: three standard deviations, as the three are correlated


def test_intervals_cover_where_the_noise_is_larger_than_was_said() -> None:
    runs = [fitted(noisy(seed), 0.004) for seed in range(300)]
    inside = np.mean([(one.interval95[:, 0] <= TRUTH) & (one.interval95[:, 1] >= TRUTH) for one in runs])
    assert inside == pytest.approx(0.95, abs=0.025)
    assert np.mean([one.noise for one in runs]) == pytest.approx(2.5, abs=0.1)
    assert np.mean([fitted(noisy(seed)).noise > 1.0 for seed in range(300)]) < 0.03  # 1 % by chance


def test_outliers_are_named_and_do_not_count() -> None:
    measured = noisy(2)
    measured[[7, 20, 33]] += (0.5, -0.4, 1.0)
    found = fitted(measured, None)
    assert sorted(found.outliers) == [7, 20, 33]
    assert found.values == pytest.approx(TRUTH, abs=0.05)


def test_data_that_contradict_themselves_are_refused() -> None:
    measured = noisy(3)
    measured[::2] += np.random.default_rng(0).uniform(1.0, 9.0, 20)
    with pytest.raises(ContradictionError, match="inconsistent"):
        fitted(measured)


def test_an_unseen_combination_is_held_and_named() -> None:
    J = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.0, 0.0, 3.0], [1.0, 2.0, 1.0]])
    found = estimate(
        lambda x: (J @ (x - np.array([1.0, 1.0, 2.0])), J),
        np.zeros(3),
        names=("a", "b", "c"),
        scales=np.ones(3),
        sigma=np.full(4, 0.01),
    )
    assert (found.rank, found.unidentified) == (2, ("a", "b"))
    assert found.values == pytest.approx([0.6, 1.2, 2.0])  # least change from the start
    assert found.interval95[0, 0] < 0.6 - 1.0
