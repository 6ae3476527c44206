"""A current where a torque is configured, and the other way round, is told by its magnitude; a contact is not."""

import numpy as np
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.torque_unit import TorqueUnitCheck
from contact_estimation.robot import load_arm

Q = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])
FRICTION = np.array([1.0, -8.0, 5.0, 2.0, 0.5, -0.5])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def problem(arm, effort, q=Q, **sensors):
    """What the check says of one constant effort; ``effort`` may be a function of gravity and drive gain."""
    check = TorqueUnitCheck(arm, SensorSettings(**sensors))
    for _ in range(5):
        check.add(q, effort)
    return check.problem()


def test_a_right_configuration_passes_with_friction_and_contact(arm):
    push = arm.tcp_jacobian(Q)[:3].T @ [0, 0, 100.0]
    for extra in (0 * FRICTION, FRICTION, -FRICTION, FRICTION - push):
        total = arm.gravity(Q) + extra
        assert problem(arm, total) == ""
        assert problem(arm, total / arm.motor.drive_gain, torque_unit="A") == ""
        assert problem(arm, extra, torque_meaning="gravity_compensated") == ""


def test_a_current_where_a_torque_is_configured(arm):
    text = problem(arm, (arm.gravity(Q) + FRICTION) / arm.motor.drive_gain)
    assert "configured as torque [Nm], total" in text and "read as current [A], total" in text and "torque_unit" in text


def test_a_torque_where_a_current_is_configured(arm):
    text = problem(arm, arm.gravity(Q) + FRICTION, torque_unit="A")
    assert "configured as current [A], total" in text and "read as torque [Nm], total" in text


def test_gravity_missing_or_doubled(arm):
    assert "read as torque [Nm], gravity_compensated" in problem(arm, 0.1 * FRICTION)
    assert "read as torque [Nm], total" in problem(arm, arm.gravity(Q) + 0.1 * FRICTION,
                                                   torque_meaning="gravity_compensated")


def test_where_gravity_is_not_felt_nothing_is_claimed(arm):
    upright = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
    assert np.linalg.norm(arm.gravity(upright)) < 20
    assert problem(arm, np.zeros(6), q=upright, torque_unit="A") == ""


def test_the_stream_marks_everything_until_it_restarts(arm):
    stream = open_stream(arm, "momentum", "joint_torque")
    current = arm.gravity(Q) / arm.motor.drive_gain
    last = [stream.push(2_000_000 * k, Q, np.zeros(6), current) for k in range(300)][-1]
    assert not last.valid and "current [A]" in last.reason and stream.counters["torque_unit"] > 50
    stream.restart()
    after = [stream.push(10**9 + 2_000_000 * k, Q, np.zeros(6), arm.gravity(Q)) for k in range(300)]
    assert all(estimate.valid for estimate in after)
