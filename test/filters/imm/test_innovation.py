"""Outliers and mean squares, however many blocks have been counted together."""

import numpy as np
import pytest

from contact_estimation.filters.imm.innovation import InnovationStatistics, VarianceFactors


@pytest.mark.parametrize("blocks", [1, 63, 64, 65, 1000])
def test_counts_are_those_of_all_blocks(blocks):
    rng = np.random.default_rng(blocks)
    normalised = rng.normal(size=(blocks, 2)) * [1.0, 30.0**0.5]
    ratios = normalised**2
    statistics = InnovationStatistics(["fits", "does not"], 3.0)
    statistics.add(np.array([10.0, 10.0]))
    statistics.reset()
    for row in normalised:
        statistics.add(row)
    expected = (ratios > 9.0).sum(axis=0)
    statistics.facts()  # asking counts nothing twice
    for name, count, mean in zip(["fits", "does not"], expected, np.minimum(ratios, 9.0).mean(axis=0)):
        text = statistics.facts()[name]
        assert text.startswith(f"{count} of {blocks} blocks beyond 3 standard deviations, mean square {mean:.2f}")


def test_who_asks_for_facts_does_not_delay_the_next_means():
    """Diagnostics ask several times a second; the test of the innovations waits for 64 blocks."""
    statistics, asked = InnovationStatistics(["a"], 3.0), InnovationStatistics(["a"], 3.0)
    for block in range(200):
        asked.facts()
        assert asked.add(np.ones(1)) == statistics.add(np.ones(1)) == (block % 64 == 63)
    assert asked.running == statistics.running > 0.5


def test_facts_say_what_it_means():
    statistics = InnovationStatistics(["quiet", "spikes", "wrong", "coloured"], 3.0)
    for k in range(100):
        statistics.add(np.sqrt([1.0, 50.0 if k < 3 else 1.0, 20.0, 5.0]))
    quiet, spikes, wrong, coloured = statistics.facts().values()
    assert quiet.endswith("mean square 1.00") and spikes.endswith("rejected, as at stops and shocks")
    assert "not as configured" in wrong and "its colour" in coloured


def test_the_running_mean_starts_at_zero_and_follows_what_is_now():
    statistics, values = InnovationStatistics(["channel"], 3.0, window=200), [1.0] * 1280 + [5.0] * 1280
    running = [float(statistics.running[0]) for value in values if statistics.add(np.sqrt([value]))]
    assert running[0] < 0.5 and running[19] == pytest.approx(1.0, abs=0.01)
    assert running[-1] == pytest.approx(5.0, abs=0.02)


def factors_of(innovations):
    """Variance factors (N, channels) after every block of 10 ms."""
    found = VarianceFactors(innovations.shape[1], 3.0, 1.0)
    return np.array([(found.add(row, 0.01), found.factors.copy())[1] for row in innovations])


def test_variance_factors_are_the_share_of_the_noise_that_there_is():
    share = np.array([0.04, 0.25, 1.0])
    white = np.random.default_rng(0).normal(size=(4000, 3)) * np.sqrt(share)
    found = factors_of(white)
    np.testing.assert_allclose(found[0], 1.0, atol=0.5)  # one block proves nothing
    expected = (1 + 20 * share[:2]) / 21  # the settings count as much as one of 20 blocks
    np.testing.assert_allclose(found[100:, :2].mean(axis=0), expected, rtol=0.1)
    assert (found <= 1.0).all() and found[100:, 2].mean() > 0.75


@pytest.mark.parametrize("gain", [0.06, 0.2])
@pytest.mark.parametrize("walk", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("noise", [0.2, 1.0])
def test_variance_factors_are_those_of_a_local_level_filter(gain, walk, noise):
    """Planted: a level that walks and is measured. The filter expects noise of one, and a walk that makes its gain.

    Its error has noise and lag, each less than expected by its own factor.
    """
    rng, level, told, innovations, errors = np.random.default_rng(1), 0.0, 0.0, [], []
    for walked, disturbed in rng.normal(size=(8000, 2)):
        level += walk * gain / np.sqrt(1 - gain) * walked
        innovation = level + noise * disturbed - told
        told += gain * innovation
        innovations.append(innovation * np.sqrt(1 - gain))
        errors.append(told - level)
    actual = np.mean(np.square(errors[200:])) / gain  # the filter expects gain times one
    found = factors_of(np.array(innovations)[:, None])[200:].mean()
    assert 0.4 * actual < found < 2.0 * actual + 0.06


def test_variance_factors_start_anew():
    found = VarianceFactors(2, 3.0, 0.25)
    for _ in range(100):
        found.add(np.zeros(2), 0.01)
    buffers = found.factors, found.evidence
    assert buffers[0].max() < 0.06 and buffers[1].max() == 0.25
    found.reset()
    assert found.factors is buffers[0] and found.evidence is buffers[1]
    assert (buffers[0] == 1.0).all() and (buffers[1] == 1.0).all()


def test_evidence_keeps_the_noise_of_the_last_motion_and_follows_more_of_it_at_once():
    rng, evidence = np.random.default_rng(2), {}
    for least in (0.25, 1.0):
        found, told = VarianceFactors(1, 3.0, least), []
        for noise in [0.8] * 300 + [0.1] * 200 + [0.1] * 2000 + [1.0] * 20:
            found.add(noise * rng.normal(size=1), 0.01)
            told.append(float(found.evidence[0]))
        evidence[least] = np.array(told)
    assert (evidence[1.0] == 1.0).all()  # the settings' noise decides
    moving, resting, rested, again = np.split(evidence[0.25], [300, 500, 2500])
    assert moving[100:].min() > 0.4 and resting.min() > 0.35  # rest for two seconds proves little
    assert rested[-1] == 0.25 and again[-1] > 0.4
