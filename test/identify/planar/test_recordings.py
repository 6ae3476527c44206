"""Archives of a planar recording: what is read, and that nothing but a clear error comes of anything else."""

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.identify.planar.impacts import load_impacts
from contact_estimation.identify.planar.recordings import load_drop, parse_shape
from contact_estimation.identify.planar.shapes import Ellipse
from contact_estimation.identify.planar.tosses import load_tosses
from contact_estimation.io.npz import read_arrays

T = 0.004 * np.arange(40)
Q = np.column_stack([T, 1.0 - T, 3.0 * T])
POSE = np.tile([1.0, 0, 0, 0, 0, 0, 1], (40, 1))
ROWS = np.random.default_rng(0).standard_normal((40, 6))
READERS = {
    "drop": (load_drop, {"t": T, "q": Q}),
    "impacts": (load_impacts, {"pre": ROWS, "post": ROWS, "n": ROWS[:, :3], "d": ROWS[:, 3:]}),
    "tosses": (load_tosses, {"data": POSE, "start": np.array([0]), "length": np.array([40])}),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_archives_end_in_a_recording_error(tmp_path, name):
    read, arrays = READERS[name]
    path = tmp_path / "whole.npz"
    np.savez(path, **arrays)
    read(path)
    content = path.read_bytes()
    for length in (0, 3, 30, len(content) // 2, len(content) - 5):
        cut = tmp_path / f"cut{length}.npz"
        cut.write_bytes(content[:length])
        with pytest.raises(RecordingError, match="cannot be read as an"):
            read(cut)
    np.save(tmp_path / "single.npy", T)
    with pytest.raises(RecordingError, match="cannot be read as an"):
        read(tmp_path / "single.npy")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "wrong",
    [
        np.array(3.0),
        np.zeros(0),
        np.array([["x", "y"]]),
        np.array([{}], dtype=object),
        np.zeros((2, 2, 2)),
        np.full((40, 6), np.nan),
        np.full(40, np.inf),
        np.zeros((3, 40)),
        np.full(1, -1e300),
    ],
)
def test_no_array_of_another_kind_gets_through(tmp_path, name, wrong):
    read, arrays = READERS[name]
    for key in arrays:
        np.savez(tmp_path / "wrong.npz", **{**arrays, key: wrong})
        with pytest.raises(RecordingError):
            read(tmp_path / "wrong.npz")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ">f8"])
def test_any_kind_of_number_is_read(tmp_path, dtype):
    np.savez(tmp_path / "a.npz", x=np.arange(5).astype(dtype), y=np.array(["left", "alone"]))
    np.testing.assert_array_equal(read_arrays(tmp_path / "a.npz", ("x",), ("z",))["x"], np.arange(5.0))
    with pytest.raises(RecordingError, match="lacks z; expected z, found x, y"):
        read_arrays(tmp_path / "a.npz", ("z",))


def test_impacts_that_are_not_finite_or_flagged_are_left_out(tmp_path):
    arrays = {key: value.copy() for key, value in READERS["impacts"][1].items()}
    arrays["post"][3, 1] = np.nan
    flags = np.zeros(40)
    flags[5] = 1.0
    np.savez(tmp_path / "a.npz", flags=flags, **arrays)
    impacts, left_out = load_impacts(tmp_path / "a.npz")
    assert len(impacts) == 38 and left_out == 2


def test_drops_of_any_rate_with_wrapped_angles(tmp_path):
    for h in (1e-3, 1.0 / 148.0, 0.02):
        t = 7.0 + h * np.arange(50)
        theta = 5.0 * (t - 7.0) / (50 * h)
        wrapped = (theta + np.pi) % (2.0 * np.pi) - np.pi
        np.savez(tmp_path / "a.npz", t=t, q=np.column_stack([t, t, wrapped]))
        _, q, v, left_out = load_drop(tmp_path / "a.npz")
        assert v is None and left_out == 0
        np.testing.assert_allclose(np.diff(q[:, 2]), 0.1, rtol=1e-6)
        np.testing.assert_allclose(load_drop(tmp_path / "a.npz", clockwise=True)[1], q * [1, 1, -1])


def test_samples_that_are_missing_are_left_out(tmp_path):
    q = Q.copy()
    q[5:8, 1] = np.nan
    np.savez(tmp_path / "a.npz", t=T, q=q)
    t, q, _, left_out = load_drop(tmp_path / "a.npz")
    assert left_out == 3 and len(t) == 37 and np.isfinite(q).all()


def test_drops_whose_time_does_not_advance(tmp_path):
    for change, message in (
        ({"t": -T}, "increase"),
        ({"t": 0.0 * T}, "increase"),
        ({"t": T[:2], "q": Q[:2]}, "N > 2"),
        ({"v": Q[:, :2]}, "expected"),
        ({"q": np.full_like(Q, np.nan)}, "finite"),
    ):
        np.savez(tmp_path / "a.npz", **{"t": T, "q": Q, **change})
        with pytest.raises(RecordingError, match=message):
            load_drop(tmp_path / "a.npz")


def test_shapes():
    assert parse_shape("ellipse:2,1") == Ellipse(2.0, 1.0) and parse_shape("square:0.07").n_contacts == 4
    for text in ("circle:1", "square", "square:", "square:1,2", "square:-1", "ellipse:1", "wheel:2,1", "square:nan"):
        with pytest.raises(ConfigError):
            parse_shape(text)
