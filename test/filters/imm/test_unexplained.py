"""The joint torque that no filter explains."""

import numpy as np
import pytest

from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.robot import load_arm

JOINT, SPIKE = 1, 6.0  # [Nm] of motor torque, for a block of samples


@pytest.fixture(scope="module")
def estimates():
    """A still arm; the torque of a joint is wrong for a single block after half a second."""
    arm = load_arm("fr3")
    stream, q = open_stream(arm, "contact_imm"), np.array(arm.settings.ready)
    rate = load_sensor_settings(arm.settings.sensors, arm.settings.folder).rate
    found, tau, block = [], arm.gravity(q), round(0.01 * rate)
    for k in range(60 * block):
        spike = SPIKE * (np.arange(arm.n) == JOINT) * (50 * block <= k < 51 * block)
        found.append(stream.push(round(k * 1e9 / rate) + 1, q, 0 * q, tau + spike))
    return found[block - 1 :: block]


def test_torque_that_fits_the_model_leaves_nothing(estimates):
    assert np.abs([e.unexplained for e in estimates[10:50]]).max() < 0.05


def test_a_spike_of_one_joint_is_unexplained_there(estimates):
    worst = max((e.unexplained for e in estimates), key=lambda left: np.abs(left).max())
    assert worst[JOINT] == pytest.approx(-SPIKE, rel=0.3)  # as if the environment held the joint
    assert np.abs(np.delete(worst, JOINT)).max() < 0.5


def test_an_observer_that_calls_all_of_it_external_tells_nothing():
    arm = load_arm("fr3")
    q = np.array(arm.settings.ready)
    assert len(open_stream(arm, "momentum").push(1, q, 0 * q, arm.gravity(q)).unexplained) == 0
