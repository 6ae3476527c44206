"""Damaged files end a verb with a named error: a few of the command lines of benchmark/hostile_files.py."""

import resource
import signal

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm


@pytest.fixture
def files(tmp_path):
    """What a user may name by mistake, by a word."""
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_bytes(b"PK\x03\x04 but no archive")
    np.savez(
        tmp_path / "words.npz", q=np.full((5, 6), "x"), dq=np.zeros((5, 6)), tau=np.zeros((5, 6)), t=np.arange(5.0)
    )
    (tmp_path / "folder.npz").mkdir()
    return [*tmp_path.iterdir(), tmp_path / ("x" * 300), tmp_path / "absent.npz"]


@pytest.mark.parametrize(
    "words",
    [
        "replay {} --robot ur16e",
        "convert {} out.npz",
        "calibrate {} --robot ur16e",
        "identify batch {} --model ur16e_press",
        "identify probing --recording {}",
        "identify planar --tosses {}",
    ],
)
def test_a_damaged_recording_is_a_named_error(files, words, capsys):
    for file in files:
        assert main(words.format(file).split()) == 2
        said = capsys.readouterr().err
        assert said.startswith("contact-estimation") and str(file)[-40:] in said


def test_a_full_disk_is_a_named_error(tmp_path, capsys):
    file = write_npz(tmp_path / "press.npz", press_recording(load_arm("ur16e"), seconds=0.1))
    words = ["view", str(file), "--robot", "ur16e", "--observer", "momentum", "--out", "/dev/full"]
    assert main(words) == 2
    assert "No space left" in capsys.readouterr().err


def test_a_bag_that_does_not_fit_the_disk_is_a_named_error(tmp_path, capsys):
    file = write_npz(tmp_path / "press.npz", press_recording(load_arm("ur16e"), seconds=0.5))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        assert main(["convert", str(file), str(tmp_path / "bag"), "--storage", "sqlite3"]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "cannot be written" in capsys.readouterr().err
