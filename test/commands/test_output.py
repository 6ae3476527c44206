"""What verbs write: never onto the recording that they read, and never a file in the place of a folder."""

import shutil

import pytest
from recordings import press_recording

from contact_estimation.cli import main
from contact_estimation.commands.output import check_output_file
from contact_estimation.exceptions import ConfigError
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write_npz(tmp_path_factory.mktemp("out") / "press.npz", press_recording(load_arm("ur16e"), seconds=0.2))


@pytest.mark.parametrize(
    "words",
    [
        "replay FILE --robot ur16e --observer momentum --export FILE",
        "compare FILE --robot ur16e --observers momentum --out FILE",
        "view FILE --robot ur16e --observer momentum --out FILE",
        "fit FILE --robot ur16e --out FILE",
        "identify batch FILE --model ur16e_press --output FILE",
    ],
)
def test_a_recording_is_never_replaced(words, made, tmp_path, capsys):
    file = tmp_path / "press.npz"
    shutil.copy(made, file)
    before = file.read_bytes()
    assert main(words.replace("FILE", str(file)).split()) == 2
    assert f"{file} would replace the recording {file}; name another file" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_an_export_whose_name_is_extended_is_checked_as_written(made, tmp_path, capsys):
    file = tmp_path / "press_ekf.npz"
    shutil.copy(made, file)
    words = [str(file), "--robot", "ur16e", "--observer", "ekf", "--observer", "momentum"]
    assert main(["replay", *words, "--export", str(tmp_path / "press.npz")]) == 2
    assert "would replace the recording" in capsys.readouterr().err


def test_folders_links_and_files_of_a_bag_are_refused(tmp_path):
    bag = tmp_path / "bag"
    bag.mkdir()
    (bag / "bag_0.mcap").write_bytes(b"data")
    (tmp_path / "link.npz").symlink_to(bag / "bag_0.mcap")
    check_output_file(bag / "estimates.npz", [bag])
    check_output_file(None, [bag])
    with pytest.raises(ConfigError, match="is a folder; name a file"):
        check_output_file(bag, [bag])
    for path in (bag / "bag_0.mcap", tmp_path / "link.npz"):
        with pytest.raises(ConfigError, match="would replace the recording"):
            check_output_file(path, [bag])


@pytest.mark.parametrize(
    "words",
    [
        "replay FILE --robot ur16e --observer momentum --export OUT.csv",
        "identify batch FILE --model ur16e_press --output OUT.csv",
    ],
)
def test_a_format_that_is_not_written_is_refused(words, made, tmp_path, capsys):
    out = str(tmp_path / "estimates")
    assert main(words.replace("FILE", str(made)).replace("OUT", out).split()) == 2
    assert f"{out}.csv would be written as .npz; name it {out}.npz" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told_once(made, tmp_path, capsys):
    (tmp_path / "file").touch()
    words = f"view {made} --robot ur16e --observer momentum --out {tmp_path}/file/page.html"
    assert main(words.split()) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"contact-estimation view: {tmp_path}/file") and error.endswith("or make room")


@pytest.mark.parametrize(
    "words",
    [
        "replay FILE --observer momentum --export /proc/none/estimates.npz",
        "compare FILE --observers momentum --out /proc/none/report.html",
        "view FILE --observer momentum --out /proc/none/page.html",
        "fit FILE --out /proc/none/fitted.yaml",
        "tune FILE --config ekf --evaluations 1 --no-validation --out /proc/none/tuned.yaml",
        "tune FILE --config ekf --evaluations 1 --no-validation --out /proc/none",
        "calibrate FILE --no-validation --out /proc/none",
        "simulate linear_contact --seconds 3 --out /proc/none/press.npz",
    ],
)
def test_a_place_that_takes_no_file_is_told_before_the_work(words, made, capsys):
    """Not after an hour of tuning, whose result would be lost."""
    assert main([*words.replace("FILE", str(made)).split(), "--robot", "ur16e"]) == 2
    error = capsys.readouterr().err
    assert "/proc/none" in error and "cannot be written (No such file or directory)" in error and "%" not in error


def test_the_port_of_a_page_is_checked(made, capsys):
    assert main(["view", str(made), "--robot", "ur16e", "--port", "99999", "--no-browser"]) == 2
    assert "--port must be at least 0 and at most 65535, found 99999" in capsys.readouterr().err
