"""The momentum observer: a planted external torque is recovered, with the bandwidth asked for; the printed form is not
that."""

import numpy as np
import pytest
from recordings import press_recording

from contact_estimation.filters.momentum import MomentumObserver
from contact_estimation.filters.settings import MomentumSettings
from contact_estimation.robot import load_arm

DT = 0.002
TRUTH = np.array([3.0, -20.0, 8.0, 2.0, -1.0, 0.5])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def moving(arm, tau_e, seconds=1.0):
    """(q, dq, tau) of a fast motion of all joints under a constant external torque, by inverse dynamics."""
    t = DT * np.arange(int(seconds / DT))
    home, amplitude, rate = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3]), 0.3, np.array([2.0, 1.5, 2.5, 3.0, 3.5, 4.0])
    q = home + amplitude * (1 - np.cos(np.outer(t, rate)))
    dq = amplitude * rate * np.sin(np.outer(t, rate))
    ddq = amplitude * rate**2 * np.cos(np.outer(t, rate))
    tau = [
        arm.mass(a) @ c + arm.coriolis(a, b) + arm.gravity(a) + arm.motor.viscous * b - tau_e
        for a, b, c in zip(q, dq, ddq)
    ]
    return q, dq, np.array(tau)


def residuals(arm, signals, **settings):
    observer = MomentumObserver(arm, MomentumSettings(**settings))
    q, dq, tau = signals
    observer.reset(0.0, q[0])
    rows = []
    for k in range(1, len(q)):
        observer.step(DT, q[k], dq[k], tau[k])
        rows.append(observer.estimate().tau_ext)
    return np.array(rows)


@pytest.mark.parametrize("gain", [20.0, 100.0])
def test_constant_torque_is_recovered_in_motion(arm, gain):
    found = residuals(arm, moving(arm, TRUTH), gain=gain)
    np.testing.assert_allclose(found[-1], TRUTH, atol=0.15)
    reached = np.argmax(found[:, 1] / TRUTH[1] > 1 - np.exp(-1)) * DT
    assert reached == pytest.approx(1 / gain, abs=2.5 * DT)


def test_nothing_is_seen_where_nothing_pushes(arm):
    assert np.abs(residuals(arm, moving(arm, np.zeros(6)), gain=20.0)).max() < 0.3


def test_a_reset_forgets_the_residual(arm):
    observer, (q, dq, tau) = MomentumObserver(arm, MomentumSettings(gain=20.0)), moving(arm, TRUTH)
    runs = []
    for _ in range(2):
        observer.reset(0.0, q[0])
        for k in range(1, 100):
            observer.step(DT, q[k], dq[k], tau[k])
        runs.append(observer.estimate().tau_ext)
    np.testing.assert_array_equal(*runs)


def test_every_gain_is_stable(arm):
    """The residual is implicit in itself: a gain far beyond the sample rate follows in one step instead of
    exploding."""
    found = residuals(arm, moving(arm, TRUTH, 0.2), gain=1e4)
    np.testing.assert_allclose(found[-20:].mean(axis=0), TRUTH, atol=0.5)


def test_the_printed_form_measures_the_momentum_itself(arm):
    """Eq. 26 as printed adds M dq instead of its increment: in motion it is off by hundreds of Nm, so it stays a
    comparison."""
    signals = moving(arm, TRUTH)
    printed = residuals(arm, signals, form="printed", gain=20.0)
    textbook = residuals(arm, signals, gain=20.0)
    assert np.abs(printed - TRUTH).max() > 10 * np.abs(textbook[-100:] - TRUTH).max()
    momentum = np.array([arm.mass(q) @ dq for q, dq in zip(signals[0][1:], signals[1][1:])])
    assert np.corrcoef(printed[:, 1], momentum[:, 1])[0, 1] > 0.99


@pytest.fixture(scope="module")
def pressed(arm):
    recording = press_recording(arm, seconds=2.0, stiffness=20e3)
    observer = MomentumObserver(arm, MomentumSettings(gain=100.0))
    full = MomentumObserver(arm, MomentumSettings(gain=100.0, wrench="full"))
    rows = []
    for o in (observer, full):
        o.reset(0.0, recording.q[0])
        for q, dq, tau in zip(recording.q[1:], recording.dq[1:], recording.tau[1:]):
            o.step(DT, q, dq, tau)
            rows.append(o.estimate())
    return recording, rows[: len(rows) // 2], rows[len(rows) // 2 :]


def test_tcp_force_and_first_difference_stiffness_of_a_press(pressed):
    recording, estimates, full = pressed
    for rows in (estimates, full):
        force = np.array([e.force_tcp for e in rows])
        lag = 5  # 1/K_O
        np.testing.assert_allclose(force[50:], recording.wrench_tcp[51 - lag : -lag, :3], atol=2.5)
    moving_rows = [e for k, e in enumerate(estimates) if 60 < k < 200]  # halfway down the first press
    assert np.median([e.contacts[0].stiffness[2] for e in moving_rows]) == pytest.approx(20e3, rel=0.15)


def test_wrench_force_has_no_torque_and_full_has_little(pressed):
    _, force_only, full = pressed
    assert not np.array([e.torque_tcp for e in force_only]).any()
    assert 0 < np.abs(np.array([e.torque_tcp for e in full])).max() < 1.0
