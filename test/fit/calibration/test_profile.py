"""What a profile says of noise and friction, planted by a random generator of its own."""

import numpy as np
import pytest
from scipy.signal import lfilter

from contact_estimation.fit.calibration.profile import Residual, _disturbance, _friction_error, white_noise


def test_white_noise_is_found_on_a_motion_with_spikes():
    rng, t = np.random.default_rng(0), np.arange(5000) / 100.0
    signal = np.column_stack([np.sin(t), 3 * np.cos(0.7 * t)]) + np.array([0.02, 0.3]) * rng.standard_normal((5000, 2))
    signal[::250] += 5.0
    np.testing.assert_allclose(white_noise(signal), [0.02, 0.3], rtol=0.1)


def test_a_gauss_markov_disturbance_is_told_from_white_noise():
    rng, period, time, std = np.random.default_rng(1), 0.01, 1.5, np.array([2.0, 0.5])
    keep = np.exp(-period / time)
    drive = std * np.sqrt(1 - keep**2) * rng.standard_normal((60_000, 2))
    torque = lfilter([1.0], [1.0, -keep], drive, axis=0) + rng.standard_normal((60_000, 2))
    found, lasts = _disturbance([Residual(torque, np.zeros_like(torque), period)])
    np.testing.assert_allclose(found, std, rtol=0.15)
    assert lasts == pytest.approx(time, rel=0.35)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_what_a_reversal_leaves_is_found(share):
    """The friction level is drawn anew, in proportion, over the way of the presliding state."""
    rng, coulomb, count = np.random.default_rng(2), np.array([10.0, 4.0]), 40_000
    way = np.where(rng.uniform(size=(count, 2)) < 0.02, rng.uniform(0.5, 2.0, (count, 2)), 0.0)
    jumps = share * coulomb * np.sqrt(way) * rng.standard_normal((count, 2))
    torque = lfilter([1.0], [1.0, -0.99], jumps, axis=0) + 0.3 * rng.standard_normal((count, 2))
    found = _friction_error([Residual(torque, np.cumsum(way, axis=0), 0.01)], coulomb)
    assert found == pytest.approx(share, rel=0.15, abs=0.03)
