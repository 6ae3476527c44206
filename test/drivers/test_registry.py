"""One word selects a backend, and all of them answer to the same protocol."""

import dataclasses
import sys
import time
import types

import numpy as np
import pytest

from contact_estimation.drivers import franka
from contact_estimation.drivers.backend import Backend, EquilibriumPose
from contact_estimation.drivers.registry import driver_names, make_backend
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import load_arm
from contact_estimation.ros.node_settings import RobotDriverParameters

ROBOT = {"franka": "fr3", "joint_torque": "fr3"}
OPTIONS = {"joint_torque": {"torque_meaning": "total"}}


@pytest.mark.parametrize("kind", [*driver_names(), "sim"])
def test_every_word_makes_a_backend(kind):
    arm = load_arm(ROBOT.get(kind, "ur16e"))
    backend = make_backend(kind, arm, options=OPTIONS.get(kind))
    assert isinstance(backend, Backend)
    assert backend.joint_names == arm.joint_names
    if not backend.commandable:
        with pytest.raises(DriverError):
            backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    backend.close()
    backend.close()


def test_unknown_word_names_the_nearest():
    with pytest.raises(ConfigError, match="rtde"):
        make_backend("rtd", load_arm("ur16e"))


def test_sim_reads_commands_and_ends():
    arm = load_arm("fr3")
    backend = make_backend("sim", arm, scenario="plane", duration=0.2)
    with pytest.raises(DriverError, match="not connected"):
        backend.read()
    backend.connect()
    first = backend.read()
    assert first.stamp_ns == 2_000_000 and set(first.truth) == {
        "wrench_tcp",
        "tau_ext",
        "stiffness",
        "rest",
        "contact_point",
    }
    position, rotation = arm.tcp_pose(first.q)
    backend.command(EquilibriumPose(position + [0.0, 0.0, 0.02], rotation))
    samples = [first]
    while (sample := backend.read()) is not None:
        samples.append(sample)
    assert len(samples) == 100
    assert arm.tcp_pose(samples[-1].q)[0][2] > position[2] + 0.003
    with pytest.raises(DriverError, match="finite"):
        backend.command(EquilibriumPose(np.full(3, np.nan), rotation))


def test_franka_without_its_package_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pylibfranka", None)  # whether it is installed or not
    with pytest.raises(DriverError, match="pip install pylibfranka"):
        make_backend("franka", load_arm("fr3"), host="127.0.0.1").connect()


class FakeFranka:
    """``pylibfranka.Robot``: its time [s] counts from its start; once unplugged no object of it answers any more."""

    time, unplugged, made = 1234.5, False, 0

    def __init__(self, host: str) -> None:
        type(self).made += 1
        self._dead = False

    def read_once(self) -> types.SimpleNamespace:
        self._dead = self._dead or self.unplugged
        if self._dead:
            raise RuntimeError("UDP receive: Timeout")
        type(self).time += 0.001
        taken = types.SimpleNamespace(to_sec=lambda at=self.time: at)
        return types.SimpleNamespace(q=[0.1] * 7, dq=[0.0] * 7, tau_J=[1.0] * 7, time=taken)


@pytest.fixture
def fake_franka(monkeypatch):
    class Robot(FakeFranka):
        pass

    monkeypatch.setitem(sys.modules, "pylibfranka", types.SimpleNamespace(Robot=Robot))
    monkeypatch.setattr(franka, "_PAUSE", 0.01)
    return Robot


def test_franka_stamps_are_of_this_computers_clock(fake_franka):
    backend = make_backend("franka", load_arm("fr3"))
    backend.connect()
    stamps = [backend.read().stamp_ns for _ in range(3)]
    assert stamps[-1] == pytest.approx(time.time_ns(), abs=5e8)
    assert np.diff(stamps) == pytest.approx([1e6, 1e6], abs=1e5)


def test_franka_connects_again_after_a_lost_connection(fake_franka):
    backend = make_backend("franka", load_arm("fr3"))
    backend.connect()
    assert backend.read() is not None and backend.problem == ""
    fake_franka.unplugged = True
    for _ in range(2):
        with pytest.raises(DriverError, match="UDP receive"):
            backend.read()
        assert "broke" in backend.problem
    fake_franka.unplugged, fake_franka.time = False, 3.0  # it was started again
    assert backend.read().stamp_ns == pytest.approx(time.time_ns(), abs=5e8)
    assert fake_franka.made == 3 and backend.problem == ""
    backend.close()
    assert backend.problem == "not connected"
    with pytest.raises(DriverError, match="not connected"):
        backend.read()


def test_wrong_arm_is_refused():
    with pytest.raises(ConfigError, match="6 joints"):
        make_backend("rtde", load_arm("fr3"))
    with pytest.raises(ConfigError, match="7 joints"):
        make_backend("franka", load_arm("ur16e"))


def test_the_drivers_parameters_reach_the_backend():
    """Above all the stiffness: limited by one and followed with another, the force would not be the limited one."""
    s = RobotDriverParameters(
        driver="rtde", impedance_stiffness=[700.0, 700.0, 900.0], admittance_damping=2000.0, control=True
    )
    rtde = make_backend("rtde", load_arm("ur16e"), s.backend_options(), shared=s.shared()).settings
    assert rtde.impedance_stiffness == [700.0, 700.0, 900.0] and rtde.admittance_damping == 2000.0 and rtde.control
    for driver in ("simulated", "sim", "replay", "joint_torque", "franka"):
        assert make_backend(driver, load_arm("fr3"), shared=s.shared()).joint_names
    backend = make_backend("simulated", load_arm("fr3"), shared=s.shared())
    backend.connect()
    backend.command(EquilibriumPose(*backend.simulation.equilibrium))
    assert backend.simulation.controller.stiffness.tolist() == [700.0, 700.0, 900.0]


def test_options_are_a_mapping_that_the_driver_knows():
    s = RobotDriverParameters(driver="rtde", options="{max_jump: 0.2}")
    assert make_backend("rtde", load_arm("ur16e"), s.backend_options(), shared=s.shared()).settings.max_jump == 0.2
    with pytest.raises(ConfigError, match="driver rtde: unknown key 'max_jumps'; the nearest known key is 'max_jump'"):
        make_backend("rtde", load_arm("ur16e"), {"max_jumps": 0.2})
    for options, message in (("- 1", "must be a YAML mapping"), ("{a: ", "not valid YAML")):
        with pytest.raises(ConfigError, match=message):
            dataclasses.replace(s, options=options).backend_options()


def test_a_simulation_made_ahead_takes_no_commands():
    backend = make_backend("simulated", load_arm("ur16e"), duration=0.02, ahead=True)
    backend.connect()
    assert not backend.commandable and backend.simulation.time == pytest.approx(0.02)
    assert len(list(iter(backend.read, None))) == 10
    with pytest.raises(DriverError, match="simulated ahead"):
        backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))
