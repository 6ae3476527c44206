"""The generated EKF: equal to a textbook one, finds planted parameters, refuses what it cannot work with."""

import dataclasses

import numpy as np
import pytest
from presses import press
from textbook_ekf import TextbookEkf

from contact_estimation.contact import ContactSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.kalman import pack_array
from contact_estimation.filters.process_noise import state_intensity, torque_intensity
from contact_estimation.filters.settings import EkfSettings, MeasurementNoise, ProcessNoise
from contact_estimation.robot import Arm, load_arm
from contact_estimation.settings import replace

DT = 0.002
#: What the simulation really has: no unknown torque but its noise, an encoder of 15 urad.
NOISE = ProcessNoise(position=1e-12, velocity=1e-6, unknown_torque=0.3, unknown_torque_time=DT, stiffness=1e4)


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def samples(arm):
    return press(arm)


def settings_of(estimate=("stiffness",), measure="position", noise=NOISE, **contact) -> EkfSettings:
    contact = {"stiffness": [0.0, 0.0, 1e4], "estimate": list(estimate), "rest_std": 1e-3, "point_std": 1e-2} | contact
    return EkfSettings(
        contacts=[ContactSettings(**contact)],
        measure=measure,
        process_noise=noise,
        initial_position_std=1e-4,
        initial_velocity_std=1e-2,
        measurement_noise=MeasurementNoise(position=2.25e-10, torque=0.09),
    )


def run(arm, settings, samples):
    ekf = Ekf(arm, settings)
    ekf.reset(samples[0].stamp_ns * 1e-9, samples[0].q)
    estimates = []
    for sample in samples[1:]:
        ekf.step(DT, sample.q, sample.dq, sample.tau)
        estimates.append(ekf.estimate())
    return ekf, estimates


#: Every number of parameters, and every process noise; each pair of the two shows nothing more and is compiled anew.
@pytest.mark.parametrize(
    "estimate, noise",
    [
        ((), NOISE),
        (("stiffness",), dataclasses.replace(NOISE, unknown_torque=0.0, velocity=1.0)),
        (("stiffness", "rest", "point"), NOISE),
    ],
    ids=["0-torque", "3-velocity", "9-torque"],
)
@pytest.mark.parametrize("measure", ["position", "position_torque"])
def test_equals_a_textbook_filter_with_dense_matrices(arm, samples, measure, estimate, noise):
    """Mean, covariance and normalised innovation, in standard deviations, over a third of a second into the block."""
    settings = settings_of(estimate, measure, noise)
    ekf = Ekf(arm, settings)
    assert ekf.backend == "c"
    oracle = TextbookEkf(
        arm,
        ekf.contacts,
        state_intensity(arm, ekf.contacts, noise),
        torque_intensity(arm, noise),
        2.25e-10,
        0.09 if measure == "position_torque" else None,
    )
    ekf.reset(0.0, samples[0].q)
    oracle.start(ekf.state, ekf.covariance, ekf.contacts.initial(samples[0].q)[0])
    for sample in samples[1:160]:
        ekf.step(DT, sample.q, sample.dq, sample.tau)
        oracle.step(DT, sample.q, sample.tau)
        assert ekf.estimate().nis == pytest.approx(oracle.nis, rel=1e-6)
    np.testing.assert_allclose(ekf.state, oracle.x, rtol=1e-9, atol=1e-9)
    std = np.sqrt(np.diag(oracle.p))
    np.testing.assert_allclose(ekf.covariance / np.outer(std, std), oracle.p / np.outer(std, std), rtol=0, atol=1e-6)


@pytest.mark.parametrize("robot, start", [("ur16e", None), ("fr3", [0.0, -0.4, 0.0, -2.2, 0.0, 1.8, 0.8])])
@pytest.mark.parametrize("measure", ["position", "position_torque"])
def test_planted_stiffness_is_recovered(robot, start, measure):
    """25 kN/m from a start of 10: within 3 %, and the force within its own three standard deviations or 1 N."""
    arm = load_arm(robot)
    samples = press(arm, **({} if start is None else {"start": start}))
    _, estimates = run(arm, settings_of(measure=measure), samples)
    loaded = [(e, s) for e, s in zip(estimates[500:], samples[501:]) if np.linalg.norm(s.force_tcp) > 20]
    assert len(loaded) > 500
    assert np.median([e.stiffness for e, _ in loaded]) == pytest.approx(25e3, rel=0.03)
    errors = np.array([np.abs(e.force_tcp - s.force_tcp) for e, s in loaded])
    limits = np.array([3 * np.sqrt(np.diag(e.force_covariance)) + 1.0 for e, _ in loaded])
    assert (errors < limits).mean() > 0.95
    assert all(e.contacts[0].stiffness[2] > 0 for e, _ in loaded)  # of K and -K the one on the side of the start


def test_planted_rest_is_recovered(arm, samples):
    """The rest is 1 mm above what the filter starts with, the stiffness known."""
    truth = samples[0].rest
    settings = settings_of(("rest",), rest=(truth - [0, 0, 1e-3]).tolist(), stiffness=[0.0, 0.0, 25e3])
    _, estimates = run(arm, settings, samples)
    assert estimates[-1].contacts[0].rest[2] == pytest.approx(truth[2], abs=5e-5)
    covariance = estimates[-1].contacts[0].covariance
    assert 0 < covariance[5, 5] < 1e-8 and not covariance[:3].any() and not covariance[6:].any()


def test_an_estimate_tells_the_covariance_of_the_stiffness_whose_sign_it_tells(arm, samples):
    ekf, _ = run(arm, settings_of(("stiffness", "rest", "point")), samples[:160])
    contact, n = ekf.estimate().contacts[0], arm.n
    sign = np.ones(len(ekf.state))
    sign[2 * n : 2 * n + 3] = -1.0
    ekf.state[:] *= sign
    ekf._state["P"][:] = pack_array(sign[:, None] * ekf.covariance * sign)
    other = ekf.estimate().contacts[0]
    assert np.abs(contact.covariance[:3, 3:]).max() > 0.0
    np.testing.assert_allclose(other.stiffness, contact.stiffness, rtol=1e-12)
    np.testing.assert_allclose(other.covariance, contact.covariance, rtol=1e-12)


def test_normalised_innovation_tells_a_right_model_from_a_wrong_one(arm, samples):
    """Its mean is the number of measurements where noise and parameters are the simulation's, and far more where they
    are not."""
    right = settings_of((), stiffness=[0.0, 0.0, 25e3])
    wrong = settings_of((), stiffness=[0.0, 0.0, 5e3])
    means = [np.mean([e.nis for e in run(arm, s, samples)[1][200:]]) for s in (right, wrong)]
    assert means[0] == pytest.approx(arm.n, rel=0.25)
    assert means[1] > 1.5 * means[0]


def test_reset_forgets_everything(arm, samples):
    settings = settings_of()
    ekf, first = run(arm, settings, samples[:200])
    ekf.reset(samples[0].stamp_ns * 1e-9, samples[0].q)
    for sample in samples[1:200]:
        ekf.step(DT, sample.q, sample.dq, sample.tau)
    again = ekf.estimate()
    np.testing.assert_array_equal(again.force_tcp, first[-1].force_tcp)
    np.testing.assert_array_equal(again.force_covariance, first[-1].force_covariance)
    assert again.t == first[-1].t


def test_a_share_of_absent_effort_limits_is_refused(arm):
    class Unlimited(Arm):
        def __init__(self):
            super().__init__(arm.settings)
            self.effort_limit = np.zeros(self.n)

    settings = replace(settings_of(), process_noise={"position": 0.0, "velocity": 0.0, "unknown_torque_share": 0.02})
    with pytest.raises(ConfigError, match=r"share of the effort limits.*'ur16e'.*add them to the URDF"):
        Ekf(Unlimited(), settings)
