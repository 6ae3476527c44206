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


@pytest.mark.parametrize("write", [write_bag, write_npz], ids=["bag", "npz"])
@pytest.mark.parametrize(("given", "found"), [(object(), "of type object"), ("elbow", "'elbow'")])
def test_something_else_than_joint_names_is_refused(tmp_path, write, given, found):
    path = write(tmp_path / ("r" if write is write_bag else "r.npz"), small_recording())
    with pytest.raises(RecordingError, match=f"joint_names is {found}, expected the names .*: give arm.joint_names"):
        open_recording(path, given)


def test_a_table_is_told_how_it_becomes_a_recording(tmp_path):
    (tmp_path / "log.csv").write_text("t,q1\n0.0,1.0\n")
    with pytest.raises(RecordingError, match=r"numpy.savez\('rec.npz', t=..., q=..., dq=..., tau=...\)"):
        open_recording(tmp_path / "log.csv")


@pytest.mark.parametrize("write", [write_bag, write_npz], ids=["bag", "npz"])
def test_the_tool_is_stored(tmp_path, write):
    recording = small_recording(tool="gripper")
    path = write(tmp_path / ("r" if write is write_bag else "r.npz"), recording)
    assert open_recording(path).tool == "gripper"
