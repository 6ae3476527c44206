"""An arm explores a surface in the physics simulation, and the MPC presses with what it found."""

import functools

import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.experiments.probe_arm import ImpedanceProbe, TorqueSensing, WrenchSensing
from contact_estimation.experiments.probe_press import ProbePress, load_probe_settings
from contact_estimation.identify.probing.score import PAPER
from contact_estimation.settings import replace


@functools.lru_cache(maxsize=None)
def pressed(robot: str, seed: int, probed: bool):
    return ProbePress(replace(load_probe_settings(robot), "test", duration=4.0), seed).run(probed)


@pytest.mark.parametrize("seed", [1, 4])
def test_the_mpc_presses_better_with_the_probed_contact_than_with_the_guess(seed):
    found, probed = pressed("ur16e", seed, True)
    _, guessed = pressed("ur16e", seed, False)
    assert found.exploration.reached and found.max_force < 50.0
    assert np.all(found.errors < [PAPER.tip, PAPER.orientation, PAPER.stiffness, PAPER.friction])
    assert probed.force_rmse() < 1.5 and guessed.force_rmse() > 5.0 * probed.force_rmse()
    assert not probed.reasons and probed.spring.max() < 1.01 * probed.force_limit
    assert probed.slide.max() > 0.035  # it slid along the surface while it pressed


def test_an_arm_without_force_sensor_explores_with_its_joint_torque():
    found, probed = pressed("fr3", 1, True)
    assert found.exploration.reached and found.errors[0] < PAPER.tip and found.errors[1] < PAPER.orientation
    assert probed.force_rmse() < 3.0


def test_history_narrows_and_ends_with_the_result():
    found, _ = pressed("ur16e", 1, True)
    first, *_, last = found.exploration.history
    assert np.all(last.std < first.std) and last.t == found.exploration.estimate.t


def test_no_ground_truth_reaches_exploration_and_controller(monkeypatch):
    """The same run with the truth of every sample spoilt is the same, bit by bit."""
    found, probed = pressed("ur16e", 4, True)
    experiment = ProbePress(replace(load_probe_settings("ur16e"), "test", duration=0.5), 4)
    from contact_estimation.simulation.arm import SimulatedArm

    monkeypatch.setattr(SimulatedArm, "truth", lambda self: {"rest": np.full(3, 1e9)})
    again, short = experiment.run(True)
    np.testing.assert_array_equal(again.exploration.estimate.free, found.exploration.estimate.free)
    np.testing.assert_array_equal(short.force, probed.force[: len(short.force)])


def probe_in_the_air(robot: str, sensing):
    experiment = ProbePress(replace(load_probe_settings(robot), "test", clearance=0.1), 0)
    return ImpedanceProbe(experiment._simulation(), sensing(experiment), 0.5)


@pytest.mark.parametrize(
    "robot, sensing",
    [("ur16e", lambda e: WrenchSensing()), ("fr3", lambda e: TorqueSensing(e.arm, e.settings.torque_std))],
)
def test_in_the_air_the_probe_follows_and_feels_little(robot, sensing):
    """Speeding up and braking included: what is felt then is noise, not the arm's inertia."""
    probe = probe_in_the_air(robot, sensing)
    start, felt = probe.pose, []
    for k in range(250):
        speed = 0.04 * np.sin(np.pi * k / 250)
        probe.move(np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.3 * np.sin(np.pi * k / 250)]), 0.004)
        if (k + 1) % 10 == 0:
            felt.append(probe.measure(None, None, None)[2][:3])
    moved = probe.pose[:3, 3] - start[:3, 3]
    assert moved[0] == pytest.approx(0.04 * 2.0 / np.pi, abs=6e-3) and abs(moved[1:]).max() < 4e-3
    assert np.sqrt(np.mean(np.square(felt))) < (0.25 if robot == "ur16e" else 1.0)


def test_a_surface_out_of_reach_is_reported():
    settings = replace(load_probe_settings("ur16e"), "test", clearance=0.2)
    with pytest.raises(IdentificationError, match="no contact within"):
        ProbePress(settings, 0).run(True)


def test_an_unknown_robot_is_reported():
    with pytest.raises(ConfigError, match="probe_press"):
        load_probe_settings("panda")
