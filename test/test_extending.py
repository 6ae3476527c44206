"""docs/extending.md works as written: its files are written, its commands given, in the order of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from fit.calibration.planted import free_motion

from contact_estimation import plugins
from contact_estimation.cli import main
from contact_estimation.filters.registry import load_observer_settings, observer_names, open_stream
from contact_estimation.io.npz import write_npz
from contact_estimation.robot import load_arm

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "extending.md").read_text()
BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```', re.M | re.S)
#: Links of an arm like nobody's: length along z [m], mass [kg], axis of the joint before it, effort limit [Nm].
LINKS = [
    (0.20, 9.0, "0 0 1", 180),
    (0.45, 11.0, "0 1 0", 180),
    (0.40, 6.0, "0 1 0", 120),
    (0.12, 2.0, "0 1 0", 40),
    (0.10, 1.8, "0 0 1", 40),
    (0.08, 0.9, "0 1 0", 40),
]


def urdf() -> str:
    """Description of the arm: a chain of boxes."""
    parts, height, parent = ['<robot name="lab_arm"><link name="base"/>'], 0.0, "base"
    for k, (length, mass, axis, effort) in enumerate(LINKS, 1):
        wide, thin = mass * (length**2 + 0.01) / 12, mass * 0.02 / 12
        parts.append(
            f'<joint name="joint_{k}" type="revolute"><parent link="{parent}"/><child link="link_{k}"/>'
            f'<origin xyz="0 0 {height}"/><axis xyz="{axis}"/>'
            f'<limit lower="-3.1" upper="3.1" velocity="3" effort="{effort}"/></joint>'
            f'<link name="link_{k}"><inertial><origin xyz="0 0 {length / 2}"/><mass value="{mass}"/>'
            f'<inertia ixx="{wide}" iyy="{wide}" izz="{thin}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        height, parent = length, f"link_{k}"
    parts.append(
        f'<joint name="flange" type="fixed"><parent link="{parent}"/><child link="tool"/>'
        f'<origin xyz="0 0 {height}"/></joint><link name="tool"/></robot>'
    )
    return "".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the page's reader has: the files of the page, a URDF, and recordings of free motion."""
    folder = tmp_path_factory.mktemp("extending")
    for block in BLOCK.finditer(PAGE):
        if block["title"]:
            (folder / block["title"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / block["title"]).write_text(block["text"])
    (folder / "my_robots" / "lab_arm" / "lab_arm.urdf").write_text(urdf())
    arm = load_arm(str(folder / "my_robots" / "lab_arm"))
    for seed in (1, 2):
        write_npz(folder / f"free_{seed}.npz", free_motion(arm, seconds=20, seed=seed))
    return folder


def node(words: list[str], folder: Path) -> str:
    """Output of ``ros2 run contact_estimation NODE ...`` until it ends, or has said that it runs."""
    from contact_estimation.ros.processes import executable, free_domain, graph_environment

    process = subprocess.Popen(
        [str(executable(words[3])), *words[4:]],
        cwd=folder,
        env=graph_environment(free_domain()),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, patience = "", threading.Timer(300.0, process.kill)
    patience.start()
    for line in process.stdout:
        said += line
        if "backend" in line:  # an estimator runs until it is stopped
            process.terminate()
    patience.cancel()
    assert process.wait(300) == 0, said
    return said


@pytest.mark.filterwarnings("ignore:robot 'lab_arm' has no actuators")
def test_the_page_works_as_written(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    given = []
    for block in BLOCK.finditer(PAGE):
        if block["title"]:
            continue
        if block["language"] == "python":
            capsys.readouterr()
            exec(compile(block["text"], "docs/extending.md", "exec"), {"__name__": "page"})
            force = np.array(re.findall(r"-?\d+\.\d*", capsys.readouterr().out), float)
            assert force.shape == (3,) and np.abs(force).max() < 0.1, "the still arm feels a force"
            continue
        for line in block["text"].strip().splitlines():
            words = shlex.split(line)
            given.append(words[1])
            if words[1] == "simulate":
                words += ["--seconds", "6"]  # the press, without what the scenario does behind it
            if words[0] == "contact-estimation":
                assert main(words[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
            else:
                said = node(words, folder)
                assert ("StaticObserver on lab_arm" if words[3] == "estimator" else "250 samples delivered") in said
    assert given.count("replay") == 4 and {"simulate", "calibrate", "run"} <= set(given)
    estimate = np.load(folder / "estimate.npz")
    assert np.nanmax(np.abs(estimate["force"])) > 10.0
    assert (folder / "my_robots" / "lab_arm" / "actuators.yaml").is_file()


@pytest.mark.filterwarnings("ignore:robot 'light' has no actuators")
def test_the_urdf_of_a_real_arm_without_rotors_is_simulated_and_estimated(tmp_path, monkeypatch, capsys):
    """The FR3's last link has 1e-4 kg m^2; its friction must not shake it."""
    monkeypatch.chdir(tmp_path)
    settings = load_arm("fr3").settings
    names = ", ".join(settings.joints)
    (tmp_path / "robot.yaml").write_text(
        f"name: light\nurdf: fr3.urdf\nbase_frame: {settings.base_frame}\ntcp_frame: {settings.tcp_frame}\n"
        f"joints: [{names}]\n"
    )
    for words in ("simulate linear_contact --seconds 6 --out press.npz", "replay press.npz --export estimate.npz"):
        assert main([*words.split(), "--robot", "."]) == 0, capsys.readouterr().err
    estimate = np.load("estimate.npz")
    assert estimate["valid"].all() and np.nanmax(np.abs(estimate["force"])) > 10.0


def test_the_calibrated_folder_is_told_apart_from_the_bare_one(folder, recwarn):
    """After the page has calibrated the arm, nothing is derived any more."""
    if not (folder / "my_robots" / "lab_arm" / "actuators.yaml").is_file():
        pytest.skip("the page did not run")
    open_stream(str(folder / "my_robots" / "lab_arm"), "contact_imm")
    assert not [w for w in recwarn if "actuators.yaml" in str(w.message)]


def test_entry_points_of_an_installed_package_are_seen(folder, monkeypatch):
    """Installed as pip does it: the modules and the metadata stand on the path."""
    text = (folder / "pyproject.toml").read_text()
    groups = re.findall(r'entry-points\."([\w.]+)"\]', text)
    assert groups == [plugins.OBSERVERS, plugins.DRIVERS, plugins.LAWS]
    points = text.replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    metadata = folder / "lab_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lab_package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(folder))
    assert "static" in observer_names() and plugins.offered(plugins.DRIVERS)[-1] == "still"
    assert load_observer_settings("static").time == 0.1
    assert plugins.load(plugins.DRIVERS, "still").__name__ == "StillArm"
    with pytest.raises(plugins.ConfigError, match=r"no driver 'stil' .nearest: 'still'.. Known: .*franka, still"):
        plugins.load(plugins.DRIVERS, "stil")


@pytest.mark.parametrize(
    "name, message",
    [
        ("absent_module:Observer", "'absent_module' cannot be imported .ModuleNotFoundError.*python -c 'import"),
        ("absent.py:Observer", "no such file"),
        ("my_observer.py:Static", "has no 'Static'; it has .*StaticObserver"),
        ("statix", "no observer 'statix'"),
    ],
)
def test_what_cannot_be_loaded_is_named(folder, monkeypatch, name, message):
    monkeypatch.chdir(folder)
    with pytest.raises(plugins.ConfigError, match=message):
        plugins.load(plugins.OBSERVERS, name)


def test_a_class_without_annotated_settings_is_refused(folder, monkeypatch):
    (folder / "bare.py").write_text("class Bare:\n    def __init__(self, arm, settings):\n        pass\n")
    monkeypatch.chdir(folder)
    with pytest.raises(plugins.ConfigError, match=r"must take .arm, settings.*docs/extending.md"):
        load_observer_settings("bare.py:Bare")
