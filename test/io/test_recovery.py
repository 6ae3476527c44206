"""A bag that was cut off gives what it holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.cli import main
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
        assert lost == 0 and len(open_recording(path)) == len(recording)


def test_a_whole_bag_is_taken_as_it_is(recording, tmp_path):
    bag = write_bag(tmp_path / "bag", recording)
    with whole_bag(bag) as (path, lost):
        assert (path, lost) == (bag, -1)


@pytest.mark.parametrize("keep", [0, 5, 30, 2000])
def test_where_nothing_is_left_convert_says_so(recording, tmp_path, capsys, keep):
    bag = write_bag(tmp_path / "bag", recording)
    file = bag / "bag.mcap"
    file.write_bytes(file.read_bytes()[:keep])
    assert main(["convert", str(bag), str(tmp_path / "saved.npz")]) == 2
    said = capsys.readouterr().err
    assert str(bag) in said and ("nothing to recover" in said or "cannot be read" in said)
