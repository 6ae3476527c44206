"""Whatever is offered starts: every shipped robot with every observer, driver and scenario; new folders are tested."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from contact_estimation.drivers.registry import driver_names, make_backend
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.registry import observer_names, open_stream
from contact_estimation.robot import load_arm
from contact_estimation.robot.posture import ready_posture
from contact_estimation.robot.settings import load_robot_settings, robot_file
from contact_estimation.settings import config_files
from contact_estimation.simulation.scenarios.settings import scenario_names
from contact_estimation.simulation.session import open_simulation

ROBOTS = list(config_files("robots"))
#: What a driver needs to be made, and how many joints it is for.
OPTIONS = {"joint_torque": {"torque_meaning": "total"}, "replay": {"recording": "absent.npz"}}
JOINTS = {"rtde": 6, "franka": 7}


#: What runs on the virtual machine is told by tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::contact_estimation.codegen.CodegenWarning")


@pytest.fixture(autouse=True, scope="module")
def virtual_machine():
    """Without a compiler: some hundred generated functions take minutes to compile, and a start needs few samples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", "no-such-compiler")
        yield


@pytest.fixture(scope="module")
def arms(virtual_machine):
    return {robot: load_arm(robot) for robot in ROBOTS}


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("observer", observer_names())
def test_every_observer_starts_on_every_robot(arms, robot, observer, monkeypatch):
    """On the arm's own sensor set, holding still in free space."""
    if observer == "probing":  # its update is C around generated C, which no virtual machine runs
        monkeypatch.delenv("CC")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is derived, and the virtual machine, are told elsewhere
        stream = open_stream(arms[robot], observer)
    q = ready_posture(arms[robot])
    effort = stream.arm.gravity(q)
    effort /= 1.0 if stream.sensors.torque_scale is None else np.array(stream.sensors.torque_scale)
    for k in range(20):
        estimate = stream.push(2_000_000 * (k + 1), q, np.zeros(stream.arm.n), effort)
    assert estimate.valid, estimate.reason
    assert np.isfinite(estimate.force_tcp).all()
    placed = any(isinstance(contact.rest, list) for contact in getattr(stream.observer.settings, "contacts", []))
    assert placed or np.linalg.norm(estimate.force_tcp) < 5.0, "an arm that holds still in free space is touched"


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("driver", driver_names())
def test_every_driver_is_made_for_every_robot(arms, robot, driver):
    arm = arms[robot]
    if driver in JOINTS and JOINTS[driver] != arm.n:
        with pytest.raises(ConfigError, match=f"{JOINTS[driver]} joints; robot '{robot}' has {arm.n}"):
            make_backend(driver, arm)
        return
    backend = make_backend(driver, arm, OPTIONS.get(driver))
    assert backend.joint_names == arm.joint_names
    backend.close()


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("scenario", scenario_names())
def test_every_scenario_runs_on_every_robot(arms, robot, scenario):
    simulation = open_simulation(scenario, arms[robot])
    samples = [simulation.step() for _ in range(50)]
    assert samples[-1].stamp_ns == 100_000_000
    assert np.abs(samples[-1].q - ready_posture(arms[robot])).max() < 0.05, "the arm does not hold its posture"


@pytest.mark.parametrize("robot", [r for r in ROBOTS if robot_file(load_robot_settings(r), "simulation") is None])
def test_the_default_scenario_presses_with_derived_imperfections(arms, robot):
    """The tool touches and pushes with tens of newtons; arms with a simulation.yaml are pressed in test_scenarios."""
    simulation = open_simulation("linear_contact", arms[robot])
    force = np.array([sample.truth["wrench_tcp"][:3] for sample in simulation.run(6.0)])
    assert 15.0 < np.linalg.norm(force, axis=1).max() < 150.0


@pytest.mark.parametrize("robot", ROBOTS)
def test_a_missing_part_is_derived_and_calibrate_is_named(arms, robot):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        open_stream(arms[robot], "contact_imm")
    told = [str(w.message) for w in said if "actuators.yaml" in str(w.message)]
    if robot_file(arms[robot].settings, "actuators") is None:
        assert len(told) == 1 and f"contact-estimation calibrate RECORDING --robot {robot}" in told[0]
    else:
        assert not told
