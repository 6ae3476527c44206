"""What counts as a recording below a folder, and what a pattern finds."""

import pytest

from contact_estimation.evaluation.find import find_recordings
from contact_estimation.exceptions import RecordingError


def test_bags_are_folders_and_everything_is_found_once(folder):
    (folder / "notes.txt").write_text("no recording")
    found = find_recordings([str(folder), str(folder / "*.npz")])
    assert [path.relative_to(folder).as_posix() for path in found] == ["a.npz", "c.npz", "day/b"]


def test_a_bag_without_its_metadata_is_one_recording(folder):
    (folder / "day" / "b" / "metadata.yaml").unlink()
    assert find_recordings([str(folder / "day")]) == [folder / "day" / "b"]


def test_a_place_without_recordings_is_named(folder):
    with pytest.raises(RecordingError, match=r"none\*: no recording there"):
        find_recordings([str(folder), str(folder / "none*")])
