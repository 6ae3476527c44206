"""Wrenches between frames."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import wrench as w


@pytest.fixture
def placement():
    return pin.SE3(pin.exp3(np.array([0.3, -0.8, 1.1])), np.array([0.2, -0.4, 0.7]))


def test_transform_equals_pinocchio(placement):
    wrenches = np.random.default_rng(0).normal(size=(5, 6))
    expected = [placement.act(pin.Force(row)).vector for row in wrenches]
    np.testing.assert_allclose(w.transform(placement.rotation, placement.translation, wrenches), expected, atol=1e-14)


def test_a_pure_force_has_the_torque_of_its_lever():
    # 10 N up at a point 0.5 m along x, seen from there: about -y (right hand) with 5 Nm when seen from the origin.
    seen = w.shift([-0.5, 0.0, 0.0], [0, 0, 10.0, 0, 0, 0])
    np.testing.assert_allclose(seen, [0, 0, 10.0, 0, -5.0, 0])


def test_the_power_is_the_same_in_every_frame(placement):
    rng = np.random.default_rng(1)
    wrench, twist = rng.normal(size=6), pin.Motion(rng.normal(size=6))
    moved = w.transform(placement.rotation, placement.translation, wrench)
    assert moved @ placement.act(twist).vector == pytest.approx(wrench @ twist.vector)


def test_there_and_back(placement):
    wrench = np.random.default_rng(2).normal(size=(2, 3, 6))
    inverse = placement.inverse()
    there = w.transform(placement.rotation, placement.translation, wrench)
    np.testing.assert_allclose(w.transform(inverse.rotation, inverse.translation, there), wrench, atol=1e-14)
    np.testing.assert_allclose(w.shift([1, 2, 3], w.shift([-1, -2, -3], wrench)), wrench, atol=1e-14)


def test_turning_alone_keeps_the_reference_point(placement):
    turned = w.rotate(placement.rotation, [1.0, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(turned[:3], placement.rotation @ [1, 2, 3])
    np.testing.assert_allclose(turned[3:], placement.rotation @ [4, 5, 6])


def test_a_force_alone_is_no_wrench():
    with pytest.raises(ConfigError, match=r"shape \(3,\), expected \('...', 6\)"):
        w.shift([0, 0, 1], [1.0, 2.0, 3.0])
