"""A bag that was cut off gives what it holds."""

from __future__ import annotations

import json
import shutil
import sqlite3

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.exceptions import RecordingError
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.io.recovery import whole_bag
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def recording():
    return press_recording(load_arm("ur16e"), seconds=8.0)


@pytest.mark.parametrize("share", [0.6, 0.8, 0.999])
@pytest.mark.parametrize("metadata", [True, False])
def test_convert_reads_a_cut_off_bag_to_its_last_chunk(recording, tmp_path, capsys, share, metadata):
    bag = write_bag(tmp_path / "bag", recording)
    file = bag / "bag.mcap"
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])
    if not metadata:
        (bag / "metadata.yaml").unlink()
    assert main(["convert", str(bag), str(tmp_path / "saved.npz"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "was cut off" in told["problems"][0]
    saved = open_recording(tmp_path / "saved.npz")
    count = len(saved)
    assert 0.2 * share < count / len(recording) <= 1.0
    np.testing.assert_array_equal(saved.stamps_ns, recording.stamps_ns[:count])
    np.testing.assert_array_equal(saved.tau, recording.tau[:count])


def test_without_its_metadata_nothing_is_lost(recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording)
    (bag / "metadata.yaml").unlink()
    with whole_bag(bag) as (path, lost):
        assert "0 bytes" in lost and len(open_recording(path)) == len(recording)


def test_a_whole_bag_is_taken_as_it_is(recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording)
    with whole_bag(bag) as (path, lost):
        assert (path, lost) == (bag, "")


@pytest.mark.parametrize("keep", [0, 5, 30, 2000])
def test_where_nothing_is_left_convert_says_so(recording, tmp_path, capsys, keep):
    bag = write_bag(tmp_path / "bag", recording)
    file = bag / "bag.mcap"
    file.write_bytes(file.read_bytes()[:keep])
    assert main(["convert", str(bag), str(tmp_path / "saved.npz")]) == 2
    said = capsys.readouterr().err
    assert str(bag) in said and ("nothing to recover" in said or "cannot be read" in said)


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_killed_sqlite3_recorder_leaves_what_it_committed(recording, tmp_path, capsys, journal):
    """It writes no metadata.yaml; with a write-ahead log the end of the recording is in that log alone."""
    bag = write_bag(tmp_path / "whole", recording, "sqlite3")
    cut, file = tmp_path / "cut", bag / "whole.db3"
    cut.mkdir()
    database = sqlite3.connect(file)
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute("DELETE FROM messages WHERE id > (SELECT max(id) FROM messages) / 2")
    database.commit()
    database.execute("DELETE FROM messages")  # not committed
    for part in bag.glob("whole.db3*"):
        shutil.copy(part, cut / part.name)  # as it is on disk while the recorder runs
    database.close()
    (cut / "whole.db3-shm").unlink(missing_ok=True)
    ending = "wal" if journal == "WAL" else "journal"
    with pytest.raises(RecordingError, match=rf"whole.db3-{ending} beside it holds a part.*contact-estimation convert"):
        open_recording(cut)
    assert main(["convert", str(cut), str(tmp_path / "saved.npz"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "had not committed to the database is lost" in told["problems"][0]
    count = len(open_recording(tmp_path / "saved.npz"))
    assert count == pytest.approx(len(recording) / 2, rel=0.01)


def test_parts_of_a_bag_without_metadata_are_told_apart(recording, tmp_path, capsys):
    bag = write_bag(tmp_path / "bag", recording)
    (bag / "metadata.yaml").unlink()
    shutil.copy(bag / "bag.mcap", bag / "bag_1.mcap")
    assert main(["convert", str(bag), str(tmp_path / "saved.npz")]) == 2
    assert "bag.mcap, bag_1.mcap; convert each of them by its own name" in capsys.readouterr().err
    assert main(["convert", str(bag / "bag_1.mcap"), str(tmp_path / "saved.npz")]) == 0


def test_a_sqlite3_bag_without_its_metadata_is_whole(recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording, "sqlite3")
    (bag / "metadata.yaml").unlink()
    with pytest.raises(RecordingError, match=r"no metadata.yaml.*contact-estimation convert"):
        open_recording(bag)
    with whole_bag(bag) as (path, lost):
        assert "was cut off" in lost and len(open_recording(path)) == len(recording)
