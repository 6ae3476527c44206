"""Observers by name: what exists loads for every arm, what does not is told what does."""

import subprocess
import sys

import numpy as np
import pytest

from contact_estimation import plugins
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.observer import Observer
from contact_estimation.filters.registry import load_observer_settings, make_observer, open_stream, robot_for
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.robot import load_arm
from contact_estimation.settings import load_yaml, share_file

#: Shipped configuration -> kind. Rooms above the filters may add kinds; their own tests run those.
SHIPPED = {path.stem: load_yaml(path)["observer"] for path in sorted(share_file("config", "observers").glob("*.yaml"))}


def test_every_kind_has_a_shipped_configuration():
    assert set(plugins.SHIPPED[plugins.OBSERVERS]) == set(SHIPPED.values())


def test_the_default_observer_starts_without_scipy():
    code = "import sys; from contact_estimation import open_stream; open_stream('fr3', 'contact_imm'); "
    code += "print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", "importing SciPy takes a fifth of a start"


@pytest.mark.parametrize("name", [name for name, kind in SHIPPED.items() if kind in ("ekf", "ukf", "momentum")])
def test_every_shipped_observer_runs(name):
    stream = open_stream("ur16e", name)
    assert isinstance(stream.observer, Observer) and stream.observer.name == name and stream.observer.backend == "c"
    q = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])
    effort = stream.arm.gravity(q) / (
        1 if stream.sensors.torque_scale is None else np.array(stream.sensors.torque_scale)
    )
    for k in range(20):
        estimate = stream.push(2_000_000 * k, q, np.zeros(6), effort)
        assert estimate.valid and np.isfinite(estimate.force_tcp).all(), estimate.reason
    assert estimate.t == pytest.approx(0.038)


def test_the_generic_filters_fit_an_arm_of_seven_joints():
    for name in ("ekf", "ukf", "momentum"):
        stream = open_stream("fr3", name, "joint_torque")
        q = 0.5 * (stream.arm.lower + stream.arm.upper)
        for k in range(3):
            assert stream.push(2_000_000 * k, q, np.zeros(7), stream.arm.gravity(q)).valid


def test_the_sensor_set_says_whether_the_rotors_are_seen():
    arm = load_arm("fr3")
    assert load_sensor_settings(arm.settings.sensors).torque_side == "link"
    rotors = {
        (name, side): make_observer(
            arm, load_observer_settings(name), sensors=SensorSettings(torque_side=side)
        ).arm.motor.armature.any()
        for name in ("momentum", "ekf")
        for side in ("motor", "link")
    }
    assert rotors == {
        ("momentum", "motor"): True,
        ("momentum", "link"): False,
        ("ekf", "motor"): True,
        ("ekf", "link"): True,
    }


def test_unknown_name_lists_what_is_shipped():
    with pytest.raises(
        ConfigError,
        match=r"no observer 'paper_onlin' .nearest: 'paper_online'.*momentum, .*paper_offline, paper_online",
    ):
        load_observer_settings("paper_onlin")


@pytest.mark.parametrize(
    "text, message",
    [
        ("observer: ekff\n", "key 'observer' is 'ekff'.*nearest: 'ekf'"),
        ("gain: 2.0\n", "key 'observer' is None; expected one of [a-z_, ]+, or module:Class"),
        ("observer: 3\n", "key 'observer' is 3; expected one of"),
        ("observer: ekf\ncontacts: [{law: foo, stiffness: [0, 0, 1], rest: start}]\n", r"contacts\[0\]: there is no"),
        ("observer: momentum\ngian: 2.0\n", "unknown key 'gian'; the nearest known key is 'gain'"),
        ("observer: momentum\ngain: -1\n", "'gain' must be greater than 0"),
        ("observer: [\n", "not valid YAML"),
    ],
)
def test_errors_in_a_file(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        load_observer_settings(str(path))
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_observer_settings(str(tmp_path / "absent.yaml"))
    with pytest.raises(ConfigError) as error:
        load_observer_settings(str(tmp_path / "absent.yaml"))
    assert "Other names" not in str(error.value)  # those are of use to a misspelt name only


def test_models_exchange_the_description_of_a_named_robot():
    settings = load_observer_settings("momentum")
    ur16e, fr3 = load_arm("ur16e"), load_arm("fr3")
    assert robot_for(ur16e, settings).name == "ur16e_paper" and robot_for(fr3, settings) is fr3


def test_signals_are_judged_by_the_robot_that_is_measured():
    """Not by the description that an observer of the papers has instead."""
    stream = open_stream("ur16e", "momentum", "ur16e_driver")
    assert stream.arm.name == "ur16e_paper" and stream.monitor.arm.name == "ur16e"


def test_a_tool_beside_an_arm_is_refused():
    with pytest.raises(
        ConfigError, match=r"tool 'gripper'; an arm has its tool already: give load_arm\('ur16e', 'gripp"
    ):
        open_stream(load_arm("ur16e"), tool="gripper")


def test_names_instead_of_things_name_their_loader():
    arm, settings = load_arm("ur16e"), load_observer_settings("ekf")
    with pytest.raises(ConfigError, match=r"settings is the name 'ekf'; give load_observer_settings\('ekf'\)"):
        make_observer(arm, "ekf")
    with pytest.raises(ConfigError, match=r"arm is the name 'ur16e'; give load_arm\('ur16e'\)"):
        make_observer("ur16e", settings)
    with pytest.raises(ConfigError, match=r"sensors is the name 'joint_torque'; give load_sensor_settings"):
        make_observer(arm, settings, sensors="joint_torque")
