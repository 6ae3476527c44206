"""Damaged and hostile files end in an error that names them, never in a traceback or a wait."""

from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def recording():
    return press_recording(load_arm("ur16e"), seconds=0.5)


ARRAYS = {
    "structured q": {"q": np.zeros(250, dtype=[("a", float), ("b", int)])},
    "structured columns": {"q": np.zeros((250, 6), dtype=[("a", float)])},
    "words for tau": {"tau": np.full((250, 6), "x")},
    "complex dq": {"dq": np.zeros((250, 6), complex)},
    "dates for t": {"t": np.zeros(250, "datetime64[s]")},
    "t of another length": {"t": np.zeros(3)},
    "t far too large": {"t": np.full(250, 1e300)},
    "stamps as floats beyond range": {"stamps_ns": np.full(250, 1e300)},
    "stamps not finite": {"stamps_ns": np.full(250, np.nan)},
    "stamps of two columns": {"stamps_ns": np.zeros((250, 2), int)},
    "joint names of one word": {"joint_names": np.array("wrist")},
    "joint names nested": {"joint_names": np.array([["a", "b"]] * 6)},
    "joint names as numbers": {"joint_names": np.arange(6)},
    "zero offset of another shape": {"f_tcp_zero_offset": np.zeros(5)},
    "zero offset of words": {"f_tcp_zero_offset": np.array(["a", "b", "c"])},
    "force in one row": {"f_tcp": np.zeros(250)},
    "force of words": {"f_tcp": np.full((250, 3), "x")},
    "torque of another length": {"torque_tcp": np.zeros((3, 3))},
    "sensors as a table": {"sensors": np.zeros((2, 2))},
    "truth of words": {"truth_wrench_tcp": np.full((250, 3), "x")},
    "nothing in q": {"q": np.zeros((0, 6))},
    "q with an axis too many": {"q": np.zeros((250, 6, 1))},
}


@pytest.mark.parametrize("change", list(ARRAYS.values()), ids=list(ARRAYS))
def test_archives_with_arrays_of_another_kind_are_refused_by_name(recording, tmp_path, change):
    path = write_npz(tmp_path / "a.npz", recording)
    with np.load(path, allow_pickle=False) as archive:
        data = {name: archive[name] for name in archive.files}
    if "t" in change:
        del data["stamps_ns"]
    np.savez(path, **(data | change))
    with pytest.raises(RecordingError, match=r"a\.npz"):
        open_recording(path)


def archive(path, change) -> None:
    """Rewrite the zip member by member; ``change`` takes name and content, and gives what is written."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(*change(name, content))


def huge(name, content):
    return name, (
        content.replace(b"(250, 6)", b"(9" + b"9" * 11 + b", 6)")[: len(content)] if name == "q.npy" else content
    )


@pytest.mark.parametrize(
    "change",
    [
        huge,
        lambda name, content: (name, content[: len(content) // 2]),
        lambda name, content: (name, b"\x80\x04N."),
        lambda name, content: (name, b""),
    ],
    ids=["declared huge", "members cut", "pickles", "empty members"],
)
def test_archives_of_bad_members_are_refused(recording, tmp_path, change):
    path = write_npz(tmp_path / "a.npz", recording)
    archive(path, change)
    with pytest.raises(RecordingError, match=r"a\.npz"):
        open_recording(path)


def test_an_archive_that_unpacks_to_more_than_the_memory_is_refused(recording, tmp_path, monkeypatch):
    path = write_npz(tmp_path / "a.npz", recording)
    monkeypatch.setattr("contact_estimation.io.npz.os.sysconf", lambda name: 100)
    with pytest.raises(RecordingError, match=r"unpacks to .* GB"):
        open_recording(path)


@pytest.mark.parametrize("kind", ["npz", "mcap", "sqlite3"])
def test_flipped_and_lost_bytes_give_a_recording_or_a_named_error(recording, tmp_path, kind):
    rng = np.random.default_rng(0)
    if kind == "npz":
        path = file = write_npz(tmp_path / "a.npz", recording)
    else:
        path = write_bag(tmp_path / "bag", recording, kind)
        (file,) = [p for p in path.iterdir() if p.suffix != ".yaml"]
    whole, refused = file.read_bytes(), 0
    for k in range(60):
        content = bytearray(whole)
        if k % 3 == 0:
            del content[rng.integers(len(content)) :]
        else:
            for place in rng.integers(len(content), size=1 if k % 3 == 1 else 40):
                content[place] ^= int(rng.integers(1, 256))
        file.write_bytes(content)
        try:
            open_recording(path)
        except RecordingError as error:
            refused += 1
            assert path.name in str(error)
    assert refused >= 20


def test_pipes_are_refused_at_once(recording, tmp_path):
    os.mkfifo(tmp_path / "a.npz")
    with pytest.raises(RecordingError, match="no ordinary file"):
        open_recording(tmp_path / "a.npz")
    bag = write_bag(tmp_path / "bag", recording)
    (bag / "bag.mcap").unlink()
    os.mkfifo(bag / "bag.mcap")
    with pytest.raises(RecordingError, match="no ordinary file"):
        open_recording(bag)
