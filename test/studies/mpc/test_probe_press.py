"""An arm explores a surface in the physics simulation, and the MPC presses with what it found."""

import functools

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.settings import replace
from contact_estimation.studies.mpc.probe_press import ProbePress, load_probe_settings
from contact_estimation.studies.probing.score import PAPER


@functools.cache
def pressed(robot: str, seed: int, probed: bool):
    experiment = ProbePress(replace(load_probe_settings(robot), "test", duration=4.0), seed)
    return experiment.explore() if probed else (None, experiment.touch())


def test_the_mpc_presses_better_with_the_probed_contact_than_with_the_guess():
    found, probed = pressed("ur16e", 4, True)
    _, guessed = pressed("ur16e", 4, False)
    assert found.exploration.reached and found.max_force < 50.0
    assert np.all(found.errors < PAPER)
    # The MPC follows the rest position, which mends most of a wrong guess within the press.
    assert probed.force_rmse() < 1.5 and guessed.force_rmse() > 2.0 * probed.force_rmse()
    assert not probed.reasons and probed.spring.max() < 1.01 * probed.force_limit
    assert probed.slide.max() > 0.035  # it slid along the surface while it pressed


def test_an_arm_without_force_sensor_explores_with_its_joint_torque():
    found, probed = pressed("fr3", 1, True)
    assert found.exploration.reached and np.all(found.errors[:2] < PAPER[:2])
    assert probed.force_rmse() < 3.0


def test_history_narrows_and_ends_with_the_result():
    found, _ = pressed("ur16e", 4, True)
    first, *_, last = found.exploration.history
    assert np.all(last.std < first.std) and last.t == found.exploration.estimate.t


def test_no_ground_truth_reaches_exploration_and_controller(monkeypatch):
    """The same run with the truth of every sample spoilt is the same, bit by bit."""
    found, probed = pressed("ur16e", 4, True)
    experiment = ProbePress(replace(load_probe_settings("ur16e"), "test", duration=0.5), 4)
    from contact_estimation.simulation.arm import SimulatedArm

    monkeypatch.setattr(SimulatedArm, "truth", lambda self: {"rest": np.full(3, 1e9)})
    again, short = experiment.explore()
    np.testing.assert_array_equal(again.exploration.estimate.free, found.exploration.estimate.free)
    np.testing.assert_array_equal(short.force, probed.force[: len(short.force)])


@pytest.mark.parametrize("robot", ["ur16e", "fr3"])
def test_in_the_air_the_probe_follows_and_feels_little(robot):
    """Speeding up and braking included: what is felt then is noise, not the arm's inertia."""
    experiment = ProbePress(replace(load_probe_settings(robot), "test", clearance=0.1), 0)
    _, probe, _ = experiment._begin()
    start, felt = probe.pose, []
    for k in range(250):
        speed = 0.04 * np.sin(np.pi * k / 250)
        probe.move(np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.3 * np.sin(np.pi * k / 250)]), 0.004)
        if (k + 1) % 10 == 0:
            felt.append(probe.measure()[2][:3])
    moved = probe.pose[:3, 3] - start[:3, 3]
    assert moved[0] == pytest.approx(0.04 * 2.0 / np.pi, abs=6e-3) and abs(moved[1:]).max() < 4e-3
    assert np.sqrt(np.mean(np.square(felt))) < (0.25 if robot == "ur16e" else 1.0)


def test_a_surface_out_of_reach_is_reported():
    settings = replace(load_probe_settings("ur16e"), "test", clearance=0.2)
    with pytest.raises(IdentificationError, match="no contact within"):
        ProbePress(settings, 0).explore()


def test_an_unknown_robot_is_reported():
    with pytest.raises(ConfigError, match="probe_press"):
        load_probe_settings("panda")
