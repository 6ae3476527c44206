"""The momentum observer takes the calibrated friction off the torque."""

import dataclasses

import numpy as np
import pytest

from contact_estimation.filters.momentum import FrictionModel, MomentumObserver
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import load_actuators

Q = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])


def slide(observer, arm, friction):
    """Every joint turns at 10 mrad/s for a second against ``friction`` (n,) [Nm]; the residual afterwards."""
    dq = np.full(arm.n, 0.01)
    observer.reset(0.0, Q)
    for k in range(500):
        q = Q + dq * 0.002 * (k + 1)
        observer.step(0.002, q, dq, arm.gravity(q) + arm.coriolis(q, dq) + arm.motor.viscous * dq + friction)
    return observer.estimate().tau_ext


def test_planted_coulomb_friction_vanishes_from_the_residual():
    arm = load_arm("ur16e")
    coulomb = np.array(load_actuators("ur16e").friction.coulomb)
    calibrated = slide(MomentumObserver(arm, load_observer_settings("momentum_calibrated")), arm, coulomb)
    plain = slide(MomentumObserver(arm, load_observer_settings("momentum_manufacturer")), arm, coulomb)
    np.testing.assert_allclose(plain, -coulomb, rtol=0.1, atol=0.2)  # friction looks like a contact
    np.testing.assert_allclose(calibrated, 0.0, atol=0.1)


def test_friction_stays_at_standstill_and_turns_with_the_motion():
    drives = dataclasses.replace(load_actuators("ur16e"), position_filter=1e4)
    track = FrictionModel(drives)
    track.reset(Q)
    coulomb = np.array(drives.friction.coulomb)
    forward = track.torque(0.002, Q + 5e-3, np.zeros(6))
    np.testing.assert_allclose(forward, coulomb, rtol=1e-6)
    np.testing.assert_allclose(track.torque(0.002, Q + 5e-3, np.zeros(6)), forward)
    assert track.torque(0.002, Q, np.zeros(6)) == pytest.approx(-coulomb, rel=1e-6)
