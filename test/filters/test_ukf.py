"""The UKF on the EKF's step: both agree where the dynamics are linear over the uncertainty, and part as its square."""

import dataclasses

import numpy as np
import pytest
from presses import press

from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.momentum import MomentumObserver
from contact_estimation.filters.registry import load_observer_settings, open_stream
from contact_estimation.filters.settings import MomentumSettings, UkfSettings
from contact_estimation.filters.ukf import Ukf
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping

DT = 0.002


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def samples(arm):
    return press(arm, 1000)


def both(arm, measure="position", **changes):
    """An EKF and a UKF of the shipped configuration with the same settings."""
    ekf = replace(load_observer_settings("ekf"), measure=measure, **changes)
    mapping = to_mapping(ekf) | {"observer": "ukf"}
    return Ekf(arm, ekf), Ukf(arm, replace(load_observer_settings("ukf"), **mapping))


def test_shipped_configurations_have_the_same_model_and_noise():
    ekf, ukf = (to_mapping(load_observer_settings(name)) for name in ("ekf", "ukf"))
    assert {k: v for k, v in ukf.items() if k in ekf and k != "observer"} == {
        k: v for k, v in ekf.items() if k != "observer"
    }
    assert isinstance(load_observer_settings("ukf"), UkfSettings)


def test_without_contact_uncertainty_both_are_the_same_filter(arm, samples):
    """A known contact and a slow motion: mean, covariance and normalised innovation agree to a millionth of a standard
    deviation."""
    contact = dataclasses.asdict(load_observer_settings("ekf").contacts[0]) | {"estimate": []}
    ekf, ukf = both(arm, contacts=[contact])
    for observer in (ekf, ukf):
        observer.reset(0.0, samples[0].q)
    for sample in samples[1:300]:
        ekf.step(DT, sample.q, sample.dq, sample.tau)
        ukf.step(DT, sample.q, sample.dq, sample.tau)
    std = np.sqrt(np.diag(ukf.covariance))
    assert (np.abs(ekf.state - ukf.state) / std).max() < 1e-3
    np.testing.assert_allclose(ekf.covariance / np.outer(std, std), ukf.covariance / np.outer(std, std), atol=1e-3)
    assert ekf.estimate().nis == pytest.approx(ukf.estimate().nis, rel=1e-2)


def test_the_difference_of_one_step_grows_with_the_variance(arm, samples):
    """Second-order terms: with ten times the uncertainty of stiffness and state, means part a hundred times as far."""
    parted = []
    for scale in (0.03, 0.3):
        contact = dataclasses.asdict(load_observer_settings("ekf").contacts[0]) | {
            "estimate": ["stiffness", "rest"],
            "stiffness": [2e3, -1e3, 2e4],
            "stiffness_std": 3e3 * scale,
            "rest_std": 1e-3 * scale,
            "rest": (samples[0].rest + [0.0, 0.0, 2e-3]).tolist(),
        }
        ekf, ukf = both(arm, contacts=[contact], initial_position_std=1e-4 * scale, initial_velocity_std=1e-2 * scale)
        for observer in (ekf, ukf):
            observer.reset(0.0, samples[0].q)
            observer.step(DT, samples[0].q, samples[0].dq, samples[0].tau)
        parted.append(np.linalg.norm(ekf.state[6:12] - ukf.state[6:12]))
    assert 0 < parted[0] < 1e-5 and parted[1] / parted[0] == pytest.approx(100, rel=0.3)


@pytest.mark.parametrize("measure", ["position", "position_torque"])
def test_ekf_and_ukf_agree_on_a_press(arm, samples, measure):
    """While the stiffness is unknown to half its value, both tell within their own standard deviation; once it is known
    to 2 %, they are the same to a thousandth."""
    ekf, ukf = both(arm, measure)
    for observer in (ekf, ukf):
        observer.reset(0.0, samples[0].q)
    known = 0
    for k, sample in enumerate(samples[1:]):
        for observer in (ekf, ukf):
            observer.step(DT, sample.q, sample.dq, sample.tau)
        if k % 50 == 0:
            a, b = ekf.estimate(), ukf.estimate()
            force_std, std = np.sqrt(np.diag(a.force_covariance)).max(), np.sqrt(a.contacts[0].covariance[2, 2])
            assert np.abs(a.force_tcp - b.force_tcp).max() < 0.5 * force_std
            assert abs(a.stiffness - b.stiffness) < std
            if std < 0.02 * a.stiffness:
                known += 1
                assert a.stiffness == pytest.approx(b.stiffness, rel=1e-3)
                np.testing.assert_allclose(a.force_tcp, b.force_tcp, atol=0.05)
    assert bool(known > 5) == (measure == "position_torque")


def test_all_observers_agree_on_the_force_of_a_frictionless_press(arm, samples):
    """Near the lowest point, where the motion is slow, a contact model and none at all see the same push; the torque
    noise the filters expect is the simulation's, because there is nothing to agree on where they are told of friction
    that is not there."""
    noise = {"position": 1e-12, "velocity": 1e-6, "unknown_torque": 0.3, "unknown_torque_time": DT, "stiffness": 1e4}
    observers = [*both(arm, process_noise=noise), MomentumObserver(arm, MomentumSettings(gain=20.0))]
    for observer in observers:
        observer.reset(0.0, samples[0].q)
        for sample in samples[1:]:
            observer.step(DT, sample.q, sample.dq, sample.tau)
    forces = np.array([observer.estimate().force_tcp for observer in observers])
    truth = samples[-1].force_tcp
    assert np.linalg.norm(truth) > 40
    np.testing.assert_allclose(forces, np.tile(truth, (3, 1)), atol=0.06 * np.linalg.norm(truth))


def test_a_diverged_filter_is_marked_not_published(arm, samples):
    stream = open_stream(arm, "ukf", "joint_torque")
    stream.push(0, samples[0].q, samples[0].dq, samples[0].tau)
    stream.observer.covariance = -np.eye(len(stream.observer.state))
    estimate = stream.push(2_000_000, samples[0].q, samples[0].dq, samples[0].tau)
    assert not estimate.valid and "diverged" in estimate.reason
    later = stream.push(4_000_000, samples[0].q, samples[0].dq, samples[0].tau)
    assert not later.valid
    stream.restart()
    assert stream.push(6_000_000, samples[0].q, samples[0].dq, samples[0].tau).valid
