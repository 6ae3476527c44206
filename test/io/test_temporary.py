"""A full disk of temporary files is told as that, and not as a damaged recording."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from full_disk import full_disk
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.exceptions import RecordingError
from contact_estimation.io.archive import Archive
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.open import open_recording
from contact_estimation.io.recovery import whole_bag
from contact_estimation.io.row_file import RowFile
from contact_estimation.io.temporary import has_no_room
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    """The same recording as a whole bag of each storage."""
    folder, recording = tmp_path_factory.mktemp("bags"), press_recording(load_arm("ur16e"), seconds=8.0)
    return {storage: write_bag(folder / storage, recording, storage) for storage in ("mcap", "sqlite3")}


@pytest.fixture
def words(tmp_path, monkeypatch):
    """What every error says; the temporary files are in a folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return f"a temporary file cannot be written in {tmp_path} (File too large); make room there, or set TMPDIR to"


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_sound_bag_is_not_called_damaged(bags, words, storage, tmp_path, capsys):
    with full_disk(10_000):
        assert main(["convert", str(bags[storage]), str(tmp_path / "out.npz")]) == 2
    said = capsys.readouterr().err
    assert words in said and "damaged" not in said and not list(tmp_path.iterdir())
    assert len(open_recording(bags[storage])) == 4000


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_recovery_that_does_not_fit_is_not_called_damage(bags, words, storage, tmp_path):
    """Cut off: without ``metadata.yaml``; of an MCAP file the end lacks, too."""
    (file,) = (path for path in bags[storage].iterdir() if path.name != "metadata.yaml")
    copy = Path(shutil.copy(file, tmp_path / "cut"))
    if storage == "mcap":
        copy.write_bytes(copy.read_bytes()[:-100])
    (tmp_path / "bag").mkdir()
    copy = copy.rename(tmp_path / "bag" / file.name)
    with full_disk(10_000), pytest.raises(RecordingError) as told, whole_bag(tmp_path / "bag"):
        pass
    assert words in str(told.value) and list(tmp_path.iterdir()) == [tmp_path / "bag"]
    with whole_bag(tmp_path / "bag") as (path, _):
        assert len(open_recording(path)) > 1000


def test_columns_of_an_export_that_do_not_fit_are_told(words):
    rows, archive = press_recording(load_arm("ur16e"), seconds=1.0).q, Archive()
    with full_disk(1000), pytest.raises(RecordingError) as told:
        for _ in range(10):
            archive.add({"q": rows})
    assert words in str(told.value)


def test_rows_that_are_written_late_are_told_when_they_are_read(words):
    rows = RowFile()
    with full_disk(100):
        rows.append(press_recording(load_arm("ur16e"), seconds=0.1).q[:, 0])
        with pytest.raises(RecordingError) as told:
            rows[:]
    assert words in str(told.value)


def test_where_no_folder_takes_temporary_files_the_reason_lists_them(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/none"])
    with pytest.raises(RecordingError, match=r"written \(No usable temporary directory.*/proc/none.*set TMPDIR"):
        RowFile()


def test_only_a_write_without_room_counts_as_no_room():
    assert all(has_no_room(OSError(code, "words")) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
    assert not any(map(has_no_room, (OSError(errno.EIO, "words"), ValueError("words"), sqlite3.DatabaseError("words"))))
