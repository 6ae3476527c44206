"""Samples that cannot be are found in generated code and named in words."""

import numpy as np
import pytest

from contact_estimation.filters.sample_limits import SampleLimits
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import load_arm


@pytest.fixture(scope="module")
def limits() -> SampleLimits:
    arm = load_arm("ur16e")
    return SampleLimits(arm, SensorSettings(max_velocity=2.0, max_torque=3.0), np.full(arm.n, 0.5))


def give(limits: SampleLimits, **changes: tuple[int, float]) -> bool:
    """A sample at rest in which one joint's value is another one."""
    for name in ("q", "dq", "effort", "last_q"):
        getattr(limits, name)[:] = 0.1 if name in ("q", "last_q") else 0.0
    for name, (joint, value) in changes.items():
        getattr(limits, name)[joint] = value
    return limits.beyond()


def test_a_good_sample_passes_with_its_torque_scaled(limits):
    assert not give(limits, effort=(2, 40.0)) and not limits.jumped(0.002)
    np.testing.assert_array_equal(limits.torque, [0, 0, 20, 0, 0, 0])


@pytest.mark.parametrize("name, kind", [("q", "position"), ("dq", "velocity"), ("effort", "torque")])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(limits, name, kind, value):
    assert give(limits, **{name: (3, value)})
    counter, reason = limits.describe()
    assert counter == "not_finite" and reason.endswith(f"{kind} of wrist_1_joint")


def test_limits_hold_for_either_sign_and_scaled_torque(limits):
    arm = load_arm("ur16e")
    for sign in (1.0, -1.0):
        assert not give(limits, dq=(1, sign * 1.99 * arm.velocity_limit[1]))
        assert give(limits, dq=(1, sign * 2.01 * arm.velocity_limit[1]))
        assert limits.describe()[0] == "velocity_limit" and "shoulder_lift_joint" in limits.describe()[1]
        assert not give(limits, effort=(5, sign * 5.99 * arm.effort_limit[5]))
        assert give(limits, effort=(5, sign * 6.01 * arm.effort_limit[5]))
        assert limits.describe()[0] == "torque_limit" and "wrist_3_joint" in limits.describe()[1]


def test_a_jump_is_one_for_the_time_it_took(limits):
    way = 0.01 * 2.0 * load_arm("ur16e").velocity_limit[0]  # [rad] in 10 ms
    assert not give(limits, q=(0, 0.1 + way))
    assert limits.jumped(0.0099) and not limits.jumped(0.0101)
    assert limits.describe_jump(0.002)[1].endswith("position of shoulder_pan_joint")
