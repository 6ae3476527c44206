"""Intervals under coloured noise, weights, condition numbers."""

import numpy as np
import pytest
from scipy.signal import lfilter

from contact_estimation.fit.calibration.regression import (
    condition_number,
    fixed_bandwidth_factor,
    huber_weights,
    integrated_time,
    long_run_covariance,
    robust_scale,
)


@pytest.mark.parametrize("colour", [0.0, 0.8, 0.95])
def test_the_integrated_time_of_an_ar1_process(colour):
    noise = lfilter([1.0], [1.0, -colour], np.random.default_rng(0).normal(size=200_000))
    assert integrated_time(noise) == pytest.approx((1 + colour) / (1 - colour), rel=0.15)


def test_a_constant_carries_no_colour():
    assert integrated_time(np.ones(100)) == 1.0


def test_intervals_from_the_residuals_colour_cover_the_truth_and_white_ones_do_not():
    """Slope and offset of a line in AR(1) noise: 200 repetitions of a 95 % interval."""
    rng, colour, count = np.random.default_rng(1), 0.9, 2000
    columns = np.column_stack([np.ones(count), np.sin(np.arange(count) / 60)])
    truth, hits, white_hits = np.array([1.0, -2.0]), [], []
    bread = np.linalg.inv(columns.T @ columns)
    for _ in range(200):
        y = columns @ truth + lfilter([1.0], [1.0, -colour], rng.normal(size=count))
        estimate = bread @ columns.T @ y
        residual = y - columns @ estimate
        lags = int(5 * integrated_time(residual))
        spread = np.sqrt(np.diag(bread @ long_run_covariance([columns * residual[:, None]], lags) @ bread))
        hits.append(np.abs(estimate - truth) < 1.96 * spread)
        white_hits.append(np.abs(estimate - truth) < 1.96 * residual.std() * np.sqrt(np.diag(bread)))
    assert (np.mean(hits, axis=0) > 0.87).all() and (np.mean(hits, axis=0) <= 0.99).all()
    assert (np.mean(white_hits, axis=0) < 0.6).all()


def test_a_wide_window_makes_wide_intervals():
    assert fixed_bandwidth_factor(0, 1000) == pytest.approx(1.0)
    assert fixed_bandwidth_factor(100, 1000) == pytest.approx(2.2606 / 1.96, abs=1e-3)  # b = 0.1
    assert fixed_bandwidth_factor(5000, 1000) == pytest.approx(4.813 / 1.96, abs=1e-3)  # b = 1, and never more


def test_huber_weights_fall_outside_the_threshold_only():
    weights = huber_weights(np.array([[0.5, -1.9], [4.0, -8.0]]), np.array([1.0, 2.0]), 2.0)
    np.testing.assert_allclose(weights, [[1.0, 1.0], [0.5, 0.5]])


def test_the_robust_scale_ignores_outliers():
    x = np.random.default_rng(2).normal(scale=3.0, size=(20_000, 1))
    x[:1000] = 1e6
    assert robust_scale(x)[0] == pytest.approx(3.0, rel=0.1)


def test_condition_numbers():
    assert condition_number(np.eye(5)[:, :3] * [1, 10, 100]) == pytest.approx(1.0)
    assert condition_number(np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0001]])) > 1e4
    assert condition_number(np.zeros((4, 2))) == float("inf")
