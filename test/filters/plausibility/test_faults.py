"""Faults of the signals in mid run, in a world that shares no code with the monitor: what is wrong is not valid.

``benchmark/fault_matrix.py`` has them from the first sample on, too, for more robots, observers and seeds.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from fault_matrix import FAULTS, MID_RUN, RATE, SILENT, clean_recording, faulty, judge, published

ROBOT, OBSERVER, SEED = "fr3", "momentum_calibrated", 0


@pytest.fixture(scope="module")
def clean():
    """A recording without a fault, and the force (N, 3) [N] that is estimated then."""
    recording = clean_recording(ROBOT, SEED)
    force, valid, _ = published(ROBOT, OBSERVER, recording)
    assert valid.all()
    return recording, force


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_mid_run_is_told(clean, fault):
    """Almost all samples are invalid or near the truth, as a row of the benchmark passes."""
    recording, force = clean
    begin = round(np.mean(MID_RUN) * RATE)
    found = judge(ROBOT, OBSERVER, faulty(recording, ROBOT, fault, begin, SEED), begin, force)
    assert found["good"] >= 0.95, found
    assert found["silent"] <= SILENT, found
