"""The impedance law, against paper 2 (eq. 26) and against what the closed loop does."""

import numpy as np
import pytest

from contact_estimation.control.impedance import CartesianImpedance, ImpedanceSettings, clip_equilibrium, clip_norm
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping

Q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def test_no_command_no_motion(arm):
    controller = CartesianImpedance(arm, ImpedanceSettings())
    x0, rotation0 = controller.reset(Q)
    assert np.allclose(controller.torque(Q, np.zeros(7), x0, rotation0), arm.gravity(Q), atol=1e-9)


def test_force_is_the_papers(arm):
    settings = from_mapping(ImpedanceSettings, {"max_force": 1e3}, "test")
    controller = CartesianImpedance(arm, settings)
    x0, rotation0 = controller.reset(Q)
    offset, dq = np.array([0.01, -0.02, 0.005]), np.zeros(7)
    torque = controller.torque(Q, dq, x0 + offset, rotation0) - arm.gravity(Q)
    assert np.allclose(torque, arm.tcp_jacobian(Q)[:3].T @ (controller.stiffness * offset), atol=1e-9)


def test_damping_takes_energy_out(arm):
    controller = CartesianImpedance(arm, ImpedanceSettings())
    x0, rotation0 = controller.reset(Q)
    rng = np.random.default_rng(1)
    for _ in range(20):
        dq = rng.normal(size=7) * 0.3
        passive = controller.torque(Q, dq, x0, rotation0) - arm.gravity(Q) - arm.coriolis(Q, dq)
        assert passive @ dq < 0


def test_force_limit(arm):
    controller = CartesianImpedance(arm, ImpedanceSettings())
    x0, _ = controller.reset(Q)
    assert np.linalg.norm(controller.spring_force(x0, x0 + 1.0)) == pytest.approx(30.0)


def test_the_spring_holds_its_limit_at_both_ends_of_the_way():
    """An equilibrium within the limit stays; another one comes up to the limit at the worse end."""
    rng, stiffness, kept = np.random.default_rng(2), np.array([700.0, 700.0, 900.0]), 0
    for _ in range(200):
        ends, x0 = rng.normal(scale=0.01, size=(2, 3)), rng.normal(scale=0.02, size=3)
        clipped = clip_equilibrium(x0, *ends, stiffness, 20.0)
        before, after = (max(np.linalg.norm(stiffness * (x - end)) for end in ends) for x in (x0, clipped))
        reachable = np.linalg.norm(stiffness * (ends[1] - ends[0])) < 40.0
        kept += before <= 20.0
        assert after == pytest.approx(min(before, 20.0)) if reachable else after < before
    assert 10 < kept < 190
    same = clip_equilibrium(x0, ends[0], ends[0], stiffness, 20.0)
    assert np.allclose(same, ends[0] + clip_norm(stiffness * (x0 - ends[0]), 20.0) / stiffness)


def test_wrong_shape_is_refused(arm):
    controller = CartesianImpedance(arm, ImpedanceSettings())
    controller.reset(Q)
    with pytest.raises(ConfigError, match="equilibrium"):
        controller.torque(Q, np.zeros(7), np.zeros(2), np.eye(3))
