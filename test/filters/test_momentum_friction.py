"""The momentum observer takes the calibrated friction off the torque."""

import numpy as np

from contact_estimation.filters.momentum import MomentumObserver
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.robot import load_arm
from contact_estimation.robot.actuators import load_actuators
from contact_estimation.robot.friction_model import FrictionModel
from contact_estimation.settings import find_config

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


def test_friction_stays_at_standstill_and_turns_with_the_motion(tmp_path):
    arm, zero = load_arm("ur16e"), np.zeros(6)
    text = find_config("actuators", "ur16e").read_text().replace("position_filter: 8.0", "position_filter: 1.0e+4")
    (tmp_path / "quick.yaml").write_text(text)
    model = FrictionModel(arm, str(tmp_path / "quick.yaml"))
    model.reset(Q)
    coulomb = np.array(model.actuators.friction.coulomb)
    for _ in range(2):  # at once, and while it stands there
        forward = model.take(0.002, Q + 5e-3, zero, zero)
        np.testing.assert_allclose(forward, -coulomb, rtol=1e-6)
    np.testing.assert_allclose(model.take(0.002, Q, zero, zero), coulomb, rtol=1e-6)


def test_uncompensated_friction_is_uncertainty():
    arm = load_arm("ur16e")
    calibrated, none = FrictionModel(arm, "robot"), FrictionModel(arm, None)
    friction = none.actuators.friction
    np.testing.assert_allclose(none.variance() - calibrated.variance(), np.square(friction.coulomb), atol=1e-12)
