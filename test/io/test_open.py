"""Recordings are opened by their content."""

import pytest
from recordings import assert_equal, small_recording

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording


def test_content_counts_not_the_name(tmp_path):
    recording = small_recording()
    assert_equal(open_recording(write_npz(tmp_path / "archive.bag", recording)), recording)
    bag = write_bag(tmp_path / "bag", recording)
    assert_equal(open_recording(bag), recording)
    assert_equal(open_recording(bag / "bag.mcap"), recording)
    (bag / "bag.mcap").rename(tmp_path / "bag.npz")
    with pytest.raises(RecordingError, match=r"is a .mcap file by its content; rename it"):
        open_recording(tmp_path / "bag.npz")


def test_what_is_no_recording(tmp_path):
    with pytest.raises(RecordingError, match=r"no such file"):
        open_recording(tmp_path / "absent.mcap")
    (tmp_path / "empty.mcap").touch()
    with pytest.raises(RecordingError, match=r"0 bytes"):
        open_recording(tmp_path / "empty.mcap")
    (tmp_path / "text.npz").write_text("t,q,dq\n")
    with pytest.raises(RecordingError, match=r"is no recording: expected a rosbag2 folder"):
        open_recording(tmp_path / "text.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RecordingError, match=r"no metadata.yaml"):
        open_recording(tmp_path / "folder")


def test_options_of_the_other_kind_are_refused(tmp_path):
    recording = small_recording()
    with pytest.raises(RecordingError, match=r"has no topics"):
        open_recording(write_npz(tmp_path / "r.npz", recording), wrench="/ft")
    with pytest.raises(RecordingError, match=r"has stamps"):
        open_recording(write_bag(tmp_path / "bag", recording), rate=500.0)
