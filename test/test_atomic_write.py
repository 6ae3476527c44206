"""A file of results is written completely, or the earlier one stays."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk
from recordings import press_recording

from contact_estimation.atomic_write import atomic_write, atomic_write_text
from contact_estimation.cli import main
from contact_estimation.exceptions import ConfigError
from contact_estimation.io.npz import write_npz
from contact_estimation.io.open import open_recording
from contact_estimation.robot import load_arm
from contact_estimation.robot.profile import write_profile
from contact_estimation.robot.settings import load_robot_settings
from contact_estimation.settings import replace


@pytest.mark.parametrize("length", [2_000, 2_000_000], ids=["fails when it is flushed", "fails in the block"])
def test_a_full_disk_keeps_the_earlier_file(tmp_path, length):
    path = tmp_path / "result"
    path.write_text("earlier")
    with full_disk(1000), pytest.raises(OSError, match=f"File too large.*{path}"):
        atomic_write_text(path, "x" * length)
    assert path.read_text() == "earlier" and os.listdir(tmp_path) == ["result"]


def test_an_error_or_an_interrupt_keeps_the_earlier_file(tmp_path):
    path = tmp_path / "result"
    path.write_text("earlier")
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), atomic_write(path) as file:
            file.write(b"half")
            raise error
    assert path.read_text() == "earlier" and os.listdir(tmp_path) == ["result"]


def test_a_reader_sees_the_earlier_file_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "result"
    path.write_text("earlier")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "earlier"
    assert path.read_text() == "new"


def test_a_new_file_has_the_mode_of_the_umask_and_its_folder_is_made(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_write_text(tmp_path / "folder" / "result", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder" / "result").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "result"
    path.write_text("earlier")
    path.chmod(mode)
    atomic_write_text(path, "new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files of others")
def test_a_file_of_another_user_stays_theirs(tmp_path):
    path = tmp_path / "result"
    path.write_text("earlier")
    os.chown(path, 1234, 2345)
    atomic_write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@contextlib.contextmanager
def ordinary_user():
    """Root may write every file: run as somebody who may not."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def test_a_write_protected_file_is_refused():
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is in a folder that only its user may enter
        os.chmod(folder, 0o777)
        path = Path(folder, "result")
        path.write_text("earlier")
        path.chmod(0o444)
        with ordinary_user():
            atomic_write_text(Path(folder, "other"), "of a folder that may be written")
            with pytest.raises(PermissionError):
                atomic_write_text(path, "new")
        assert path.read_text() == "earlier"


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "second").symlink_to("folder/file")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    for text in ("of a dangling link", "of a file"):
        atomic_write_text(tmp_path / "first", text)
        assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
        assert (tmp_path / "folder" / "file").read_text() == text
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(OSError, match="circle"):
        atomic_write_text(tmp_path / "circle", "new")


def test_a_full_device_is_told_by_name():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        atomic_write_text("/dev/full", "new")


def test_a_name_that_cannot_be_made_is_told_by_name(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / ("x" * 300), tmp_path / "file" / "result", tmp_path):
        with pytest.raises(OSError, match=str(tmp_path)):
            atomic_write_text(path, "new")


def test_the_longest_name_that_a_folder_takes_is_written(tmp_path):
    atomic_write_text(tmp_path / ("x" * 255), "new")
    assert (tmp_path / ("x" * 255)).read_text() == "new"


def test_a_pipe_is_written_directly(tmp_path):
    path, heard = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: heard.append(path.read_text()))
    reader.start()
    atomic_write_text(path, "new")
    reader.join()
    assert heard == ["new"] and stat.S_ISFIFO(path.stat().st_mode)


def test_an_open_stream_is_written_directly(tmp_path):
    """A file in the place of the one that the shell has opened would not get what is printed."""
    program = (
        "from contact_estimation.atomic_write import atomic_write_text\n"
        "atomic_write_text('/dev/stdout', 'page, '); print('and what is printed', flush=True)"
    )
    with (tmp_path / "out").open("ab") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "page, and what is printed\n"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return write_npz(tmp_path_factory.mktemp("files") / "press.npz", press_recording(load_arm("ur16e"), seconds=0.5))


@pytest.mark.parametrize(
    "words",
    [
        "replay FILE --robot ur16e --observer momentum --export OUT.npz",
        "view FILE --robot ur16e --observer momentum --out OUT.npz",
        "compare FILE --robot ur16e --observers momentum --out OUT.npz",
        "identify planar --example wheel --figure OUT.png",
    ],
    ids=["archive", "page", "report", "figure"],
)
def test_a_verb_that_fails_keeps_the_earlier_result(words, recording, tmp_path, capsys):
    """The limit is half of the result: more than the temporary files have."""
    words = words.replace("FILE", str(recording)).replace("OUT", str(tmp_path / "out")).split()
    assert main(words) == 0
    (result,) = tmp_path.iterdir()
    before = result.read_bytes()
    with full_disk(len(before) // 2):
        assert main(words) == 2
    assert "File too large" in capsys.readouterr().err
    assert result.read_bytes() == before and list(tmp_path.iterdir()) == [result]


def test_an_archive_that_fails_leaves_none(tmp_path):
    samples = press_recording(load_arm("ur16e"), seconds=0.5)
    whole = write_npz(tmp_path / "press.npz", samples)
    with full_disk(whole.stat().st_size // 2), pytest.raises(OSError, match="too large"):
        write_npz(tmp_path / "second.npz", samples)
    assert list(tmp_path.iterdir()) == [whole]
    np.testing.assert_array_equal(open_recording(whole).q, samples.q)


def test_a_profile_that_fails_still_loads_as_before_or_not_at_all(tmp_path):
    settings = load_robot_settings("ur16e")
    with full_disk(500), pytest.raises(ConfigError, match=r"new cannot be written \(File too large\)"):
        write_profile(settings, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    folder = write_profile(settings, tmp_path / "mine")
    own = load_robot_settings(str(folder))
    with full_disk(500), pytest.raises(ConfigError, match="mine cannot be written"):
        write_profile(replace(own, "test", tool_mass=1.5), folder)
    assert load_robot_settings(str(folder)) == own


@pytest.mark.parametrize("length", [10, 100_000], ids=["robot.yaml does not fit", "actuators.yaml does not fit"])
def test_a_profile_that_fails_is_no_mixture(tmp_path, length):
    folder = write_profile(load_robot_settings("ur16e"), tmp_path / "mine")
    own, before = load_robot_settings(str(folder)), {file: file.read_bytes() for file in folder.rglob("*.yaml")}
    limit = 500 if length < 500 else 90_000
    with full_disk(limit), pytest.raises(ConfigError, match="mine cannot be written"):
        write_profile(replace(own, "test", tool_mass=1.5), folder, {"actuators.yaml": "#" * length})
    assert {file: file.read_bytes() for file in folder.rglob("*.yaml")} == before
    assert not list(folder.rglob("*.part"))


def test_robot_yaml_is_the_last_file_of_a_profile(tmp_path):
    """A folder without it does not load: not as the robot of half of its files either."""
    text = "x" * 100_000
    (tmp_path / "mine").mkdir()
    with full_disk(90_000), pytest.raises(ConfigError, match="mine cannot be written"):
        write_profile(load_robot_settings("ur16e"), tmp_path / "mine", {"actuators.yaml": text})
    assert any((tmp_path / "mine").iterdir()) and not (tmp_path / "mine" / "robot.yaml").exists()
    with pytest.raises(ConfigError):
        load_robot_settings(str(tmp_path / "mine"))
