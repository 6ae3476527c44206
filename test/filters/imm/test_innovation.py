"""Outliers and mean squares, however many blocks have been counted together."""

import numpy as np
import pytest

from contact_estimation.filters.imm.innovation import InnovationStatistics


@pytest.mark.parametrize("blocks", [1, 63, 64, 65, 1000])
def test_counts_are_those_of_all_blocks(blocks):
    rng = np.random.default_rng(blocks)
    normalised = rng.normal(size=(blocks, 2)) * [1.0, 30.0**0.5]
    ratios = normalised**2
    statistics = InnovationStatistics(["fits", "does not"], 3.0)
    statistics.add(np.array([10.0, 10.0]))
    statistics.clear()
    for row in normalised:
        statistics.add(row)
    expected = (ratios > 9.0).sum(axis=0)
    np.testing.assert_array_equal(statistics.outliers, expected)
    for name, count, mean in zip(["fits", "does not"], expected, np.minimum(ratios, 9.0).mean(axis=0)):
        text = statistics.facts()[name]
        assert text.startswith(f"{count} of {blocks} blocks beyond 3 standard deviations, mean square {mean:.2f}")
    np.testing.assert_array_equal(statistics.outliers, expected)  # asking counts nothing twice


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
