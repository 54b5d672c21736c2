# SPDX-License-Identifier: Apache-2.0
"""The estimator on problems whose truth is known: values, intervals, rank, outliers."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_calibration.estimation import Array, EstimationError, Residuals, estimate, held_out_rms

NAMES = ("size", "rate", "offset")
TRUTH = np.array([2.0, 0.7, 0.3])
START = np.array([1.6, 0.5, 0.0])
TIMES = np.linspace(0.0, 5.0, 40)
SCALES = (1.0, 0.5, 1.0)


def decay(measured: Array, times: Array = TIMES) -> Residuals:
    """Residuals of size exp(-rate t) + offset."""

    def residuals(values: Array) -> tuple[Array, Array]:
        fall = np.exp(-values[1] * times)
        J = np.stack([fall, -values[0] * times * fall, np.ones_like(times)], axis=1)
        return values[0] * fall + values[2] - measured, J

    return residuals


def exact(times: Array = TIMES) -> Array:
    return np.asarray(TRUTH[0] * np.exp(-TRUTH[1] * times) + TRUTH[2])


def noisy(seed: int, sigma: float = 0.01) -> Array:
    return exact() + np.random.default_rng(seed).normal(0.0, sigma, len(TIMES))


def test_exact_data_give_the_truth() -> None:
    found = estimate(decay(exact()), START, NAMES, SCALES, 0.01)
    assert found.values == pytest.approx(TRUTH, abs=1e-9)
    assert (found.rank, found.held, found.unseen, found.outliers, found.converged) == (3, (), (), (), True)
    assert found.rms_after < 1e-10 < found.rms_before


@pytest.mark.parametrize("deviations", [0.01, None])
def test_intervals_cover(deviations: float | None) -> None:
    runs = [estimate(decay(noisy(seed)), START, NAMES, SCALES, deviations) for seed in range(300)]
    inside = np.mean([np.abs(one.values - TRUTH) <= one.half_widths() for one in runs])
    assert inside == pytest.approx(0.95, abs=0.025)  # 300 runs: three standard deviations, as the three are correlated


def test_covariance_is_that_of_linear_regression() -> None:
    A = np.stack([np.ones_like(TIMES), TIMES], axis=1)
    found = estimate(lambda x: (A @ x - noisy(1), A), [0.0, 0.0], ("a", "b"), (1.0, 1.0), 0.01, reject=False)
    assert found.covariance == pytest.approx(1e-4 * np.linalg.inv(A.T @ A), rel=1e-9)
    assert found.values == pytest.approx(np.linalg.lstsq(A, noisy(1), rcond=None)[0], rel=1e-7)


def test_outliers_are_named_and_do_not_count() -> None:
    measured = noisy(2)
    measured[[7, 20, 33]] += (0.5, -0.4, 1.0)
    found = estimate(decay(measured), START, NAMES, SCALES, None)
    assert sorted(found.outliers) == [7, 20, 33]
    assert np.all(np.abs(found.values - TRUTH) < 1.5 * found.half_widths())
    assert found.residuals[33] == pytest.approx(-1.0, abs=0.05)
    assert estimate(decay(measured), START, NAMES, SCALES, None, reject=False).outliers == ()


def test_clean_data_have_no_outlier() -> None:
    named = sum(bool(estimate(decay(noisy(seed)), START, NAMES, SCALES, None).outliers) for seed in range(200))
    assert named <= 8  # one in a hundred by `FALSE_ALARM`


def test_rows_of_one_measurement_go_together() -> None:
    measured, groups = noisy(3), np.arange(len(TIMES)) // 2
    measured[10] += 1.0
    assert estimate(decay(measured), START, NAMES, SCALES, 0.01, groups=groups).outliers == (5,)


def two_for_one(values: Array) -> tuple[Array, Array]:
    """Data that see a + 2 b, and c."""
    J = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.0, 0.0, 3.0], [1.0, 2.0, 1.0]])
    return J @ (values - np.array([1.0, 1.0, 2.0])), J


def test_an_unseen_combination_is_held_and_named() -> None:
    found = estimate(two_for_one, np.zeros(3), ("a", "b", "c"), np.ones(3), 0.01)
    assert found.rank == 2
    (unseen,) = found.unseen
    assert unseen.words in ("1 a - 0.5 b", "-1 a + 0.5 b")
    assert unseen.names == ("a", "b")
    assert found.values == pytest.approx([0.6, 1.2, 2.0])  # least change from the start
    assert found.half_widths()[0] > 1.0 > found.half_widths(held=False)[0]
    assert found.half_widths()[2] < 0.02


def test_parameters_give_way_before_combinations_do() -> None:
    found = estimate(two_for_one, np.zeros(3), ("a", "b", "c"), np.ones(3), 0.01, give_way=[("b",)])
    assert (found.held, found.unseen, found.rank) == (("b",), (), 2)
    assert found.values == pytest.approx([3.0, 0.0, 2.0])
    assert found.half_widths() == pytest.approx([2 * 1.96, 1.96, 0.0], abs=0.02)  # b may be off by 1


def test_a_direction_seen_worse_than_it_was_known_is_held() -> None:
    J = np.array([[1.0, 0.0], [1.0, 1e-3]])
    found = estimate(lambda x: (J @ x - 1.0, J), np.zeros(2), ("a", "b"), np.ones(2), 0.1)
    assert found.rank == 1
    assert found.unseen[0].names == ("b",)


def test_each_kind_has_its_own_noise() -> None:
    kinds = np.arange(len(TIMES)) % 2
    ratios = []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0.0, np.where(kinds, 0.1, 0.01))
        found = estimate(decay(exact() + noise), START, NAMES, SCALES, 0.03, known=False, kinds=kinds)
        ratios.append(found.deviations[:2])
    assert np.median(ratios, axis=0) == pytest.approx([0.01, 0.1], rel=0.15)


def test_measurements_kept_aside_are_predicted_to_their_noise() -> None:
    residuals, groups = decay(noisy(4)), np.arange(len(TIMES))
    rms = held_out_rms(lambda rows: estimate(residuals, START, NAMES, SCALES, None, rows=rows), groups)
    assert 0.007 < rms < 0.014


def test_nothing_measured_is_refused() -> None:
    with pytest.raises(EstimationError, match="no measurement"):
        estimate(decay(np.array([]), np.array([])), START, NAMES, SCALES, None)
    with pytest.raises(EstimationError, match="none of the parameters"):
        estimate(lambda x: (np.ones(3), np.zeros((3, 1))), [0.0], ("a",), [1.0], 1.0)
