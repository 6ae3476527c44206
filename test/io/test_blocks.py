"""A recording that is read block by block is the recording; its memory does not grow with its length."""

import tracemalloc

import numpy as np
import pytest
from recordings import assert_equal, press_recording

from contact_estimation.io.bag import BagFile
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import NpzFile, write_npz
from contact_estimation.io.recording import Recording
from contact_estimation.io.stamped_rows import StampedRows
from contact_estimation.io.survey import survey
from contact_estimation.robot import load_arm
from contact_estimation.viz.reference import reference_of

NAMES = ("stamps_ns", "q", "dq", "tau", "wrench_tcp")


@pytest.fixture(scope="module")
def recording():
    return press_recording(load_arm("ur16e"))


def joined(blocks):
    """Put blocks together."""
    parts = list(blocks)
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in NAMES}
    truth = {name: np.concatenate([part.truth[name] for part in parts]) for name in parts[0].truth}
    return Recording(
        **arrays,
        joint_names=parts[0].joint_names,
        source="",
        truth=truth,
        sensors=parts[0].sensors,
        robot=parts[0].robot,
    )


@pytest.mark.parametrize("kind", ["archive", "column-major archive", "compressed archive", "bag", "memory"])
def test_the_blocks_are_the_recording(recording, tmp_path, kind):
    if kind == "bag":
        samples = BagFile(write_bag(tmp_path / "bag", recording))
    elif kind == "memory":
        samples = recording
    else:
        path = write_npz(tmp_path / "a.npz", recording)
        arrays = dict(np.load(path, allow_pickle=False))
        arrays["q"] = np.asfortranarray(arrays["q"])
        if kind != "archive":
            (np.savez if kind.startswith("column") else np.savez_compressed)(path, **arrays)
        samples = NpzFile(path)
    assert len(samples) == len(recording)
    assert_equal(joined(samples.blocks(93)), recording)
    assert_equal(samples.read(), recording)
    assert survey(samples) == survey(recording)


def test_problems_are_found_across_blocks():
    stamps = 2_000_000 * np.arange(9000)
    stamps[4096:] -= 2_000_000  # the first sample of the second block repeats the last of the first one
    stamps[5000:] += 90_000_000
    q = np.zeros((9000, 1))
    q[8999] = np.nan
    found = survey(Recording(stamps, ("a",), q, np.zeros_like(q), np.zeros_like(q), "long"), 0.05)
    assert [problem.split(" (")[0] for problem in found.problems] == [
        "1 samples hold NaN or infinite q",
        "1 stamps repeat the one before",
        "1 gaps are longer than 0.05 s",
    ]
    assert "sample 4096" in found.problems[1] and "sample 5000" in found.problems[2]
    assert found.duration == pytest.approx(1e-9 * (stamps[-1] - stamps[0]))


def test_rows_at_other_stamps_are_interpolated_wherever_they_lie():
    rng = np.random.default_rng(0)
    there = np.sort(rng.choice(10**9, 5000, replace=False))
    values = rng.normal(size=(5000, 2))
    wanted = rng.integers(-(10**7), 10**9, 300)
    for order in (np.arange(5000), rng.permutation(5000)):
        rows = StampedRows(2)
        for part in np.array_split(order, 7):
            rows.append(there[part], values[part])
        expected = [np.interp(wanted * 1e-9, there * 1e-9, c, left=np.nan, right=np.nan) for c in values.T]
        np.testing.assert_allclose(rows.at(wanted, 0), np.transpose(expected), atol=1e-6)
        np.testing.assert_array_equal(rows.at(there[order[100:200]], 100), values[order[100:200]])


def test_a_topic_that_paused_is_not_known_in_its_pause():
    there = StampedRows(1)
    stamps = np.concatenate([np.arange(0, 50), np.arange(100, 150)]) * 10_000_000  # a pause of 0.51 s
    there.append(stamps, np.arange(100.0)[:, None])
    found = there.at(np.array([0, 490, 495, 700, 995, 1000, 1005, 1490, 1495]) * 1_000_000, 0)[:, 0]
    np.testing.assert_allclose(found, [0.0, 49.0, np.nan, np.nan, np.nan, 50.0, 50.5, 99.0, np.nan])


def test_memory_does_not_grow_with_the_recording(tmp_path):
    """Ten blocks take what two take, to survey, score and write them again; all samples of ten take four megabytes."""
    peaks = []
    for count in (8_000, 41_000):
        joints, force = np.zeros((count, 1)), np.zeros((count, 6))
        force[:, 2] = 50.0 * np.sin(1e-3 * np.arange(count))
        truth = {"wrench_tcp": force}
        path = write_npz(
            tmp_path / f"{count}.npz", Recording(2_000_000 * np.arange(count), ("a",), *[joints] * 3, "", truth=truth)
        )
        tracemalloc.start()
        samples = NpzFile(path)
        assert not survey(samples).problems and reference_of(samples).label == "truth"
        write_npz(tmp_path / "again.npz", samples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 0.5e6
