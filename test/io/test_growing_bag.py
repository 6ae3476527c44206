"""A bag that grows keeps what was flushed, also where the disk is full."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from full_disk import full_disk
from rosbags.typesys import Stores, get_typestore

from contact_estimation.cli import main
from contact_estimation.exceptions import RecordingError
from contact_estimation.io.growing_bag import GrowingBag
from contact_estimation.io.open import open_recording
from contact_estimation.io.topics import JOINT_STATE, JOINT_STATES_TOPIC

STORE = get_typestore(Stores.ROS2_JAZZY)
NAMES = ["a", "b"]


def message(k: int) -> bytes:
    """Joint states with the number of the message in every field."""
    header, time = STORE.types["std_msgs/msg/Header"], STORE.types["builtin_interfaces/msg/Time"]
    numbers = np.full(2, float(k))
    return STORE.serialize_cdr(STORE.types[JOINT_STATE](header(time(1, k), ""), NAMES, *[numbers] * 3), JOINT_STATE)


def write(bag: GrowingBag, numbers: range) -> None:
    for k in numbers:
        bag.write(JOINT_STATES_TOPIC, JOINT_STATE, k + 1, bytes(message(k)))


def saved(path, tmp_path, capsys) -> list[float]:
    """The numbers that ``convert`` finds in a bag without its end."""
    assert main(["convert", str(path), str(tmp_path / "saved.npz")]) == 0
    assert "was cut off" in capsys.readouterr().out
    return open_recording(tmp_path / "saved.npz", NAMES).q[:, 0].tolist()


def test_a_bag_that_was_closed_is_whole(tmp_path):
    bag = GrowingBag(tmp_path / "bag", STORE)
    assert bag.seconds_left() == float("inf")
    write(bag, range(100))
    bag.flush()
    assert bag.flushed == 100 and 0.0 < bag.seconds_left() < float("inf")
    write(bag, range(100, 200))
    bag.close()
    assert not bag.problem and bag.flushed == 200
    assert open_recording(tmp_path / "bag", NAMES).q[:, 0].tolist() == list(range(200))


@pytest.mark.parametrize("more", [10, 1_000, 20_000])
def test_a_disk_that_fills_up_costs_what_was_not_flushed(tmp_path, capsys, more):
    """Also where there is room again later, and where one chunk after another is written without a flush."""
    bag = GrowingBag(tmp_path / "bag", STORE)
    write(bag, range(500))
    bag.flush()
    with full_disk(bag.size + 800):
        write(bag, range(500, 500 + more))
        bag.flush()
    assert (
        f"({os.strerror(errno.EFBIG)}): recording has ended. 500 messages are saved" in bag.problem
        and "convert" in bag.problem
    )
    assert bag.seconds_left() == 0.0
    write(bag, range(9_000, 9_500))
    bag.flush()
    bag.close()
    assert not (tmp_path / "bag" / "metadata.yaml").exists()
    assert saved(tmp_path / "bag", tmp_path, capsys) == list(range(500))


@pytest.mark.parametrize("room", [0, 300])
def test_an_index_that_does_not_fit_costs_no_message(tmp_path, capsys, room):
    bag = GrowingBag(tmp_path / "bag", STORE)
    write(bag, range(500))
    bag.flush()
    with full_disk(bag.size + room):
        bag.close()
    assert "500 messages are saved; 'contact-estimation convert" in bag.problem
    assert saved(tmp_path / "bag", tmp_path, capsys) == list(range(500))


def test_a_bag_that_cannot_begin_leaves_nothing(tmp_path):
    with full_disk(0), pytest.raises(RecordingError, match=r"bag cannot be made \(.*name a folder"):
        GrowingBag(tmp_path / "bag", STORE)
    assert not (tmp_path / "bag").exists()
    GrowingBag(tmp_path / "bag", STORE).close()
    with pytest.raises(RecordingError, match="exists already"):
        GrowingBag(tmp_path / "bag", STORE)
