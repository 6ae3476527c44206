"""Short recordings of presses, of a robot that they tell."""

import dataclasses

import pytest
from recordings import press_recording

from contact_estimation.io.bag_writer import write_bag
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm


@pytest.fixture(scope="session")
def press():
    return dataclasses.replace(press_recording(load_arm("ur16e"), seconds=1.0), sensors="ur16e_driver", robot="ur16e")


@pytest.fixture
def folder(press, tmp_path):
    """An archive, a bag in a folder below, and an archive that is cut off."""
    write_npz(tmp_path / "all" / "a.npz", press)
    (tmp_path / "all" / "day").mkdir()
    write_bag(tmp_path / "all" / "day" / "b", press)
    content = (tmp_path / "all" / "a.npz").read_bytes()
    (tmp_path / "all" / "c.npz").write_bytes(content[: len(content) // 2])
    return tmp_path / "all"
