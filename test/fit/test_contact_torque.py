"""The fit's contact in generated C: derivatives, one-sidedness, and the papers' primitives as special cases."""

import numpy as np
import pytest

from contact_estimation.contact import ContactSettings
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.robot import load_arm

Q = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
POINT = np.array([0.001, -0.002, 0.0])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def contact(arm):
    """A spring whose point is held: an elastic body that pushes and never pulls."""
    return FitContact(arm, ContactSettings(stiffness=[0.0, 0.0, 2e4]), ("stiffness", "rest", "point", "tangential"))


@pytest.fixture(scope="module")
def data(arm):
    position, rotation = arm.tcp_pose(Q)
    return np.concatenate([position, rotation.ravel(order="F"), arm.tcp_jacobian(Q).ravel(order="F")])[None]


def torque_of(arm, force):
    """Joint torque (n,) of ``force`` (3,) at the contact point."""
    jacobian, rotation = arm.tcp_jacobian(Q), arm.tcp_pose(Q)[1]
    return jacobian[:3].T @ force + jacobian[3:].T @ np.cross(rotation @ POINT, force)


def parameters(arm, stiffness, stretch, share):
    position, rotation = arm.tcp_pose(Q)
    return np.concatenate([stiffness, position + rotation @ POINT + stretch, POINT, [share]])


@pytest.mark.parametrize("depth", [3e-5, 1.3e-4, -1.7e-4], ids=["corner", "closed", "open"])
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_the_generated_derivatives_match_finite_differences(arm, contact, data, depth, share):
    phi = parameters(arm, [1e3, -2e3, 2e4], np.array([2e-4, 1e-4, depth]), share)
    slope = contact.evaluate(phi, data)[1][0]
    steps = np.concatenate([np.repeat([1e-2, 1e-9, 1e-9], 3), [1e-6]])
    numeric = np.column_stack(
        [
            (contact.evaluate(phi + s, data)[0][0] - contact.evaluate(phi - s, data)[0][0]) / (2 * s.max())
            for s in np.diag(steps)
        ]
    )
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-5 * np.abs(numeric).max())


def test_without_a_tangential_part_it_is_the_papers_primitive(arm, contact, data):
    stiffness, stretch = np.array([1e3, -2e3, 2e4]), np.array([0.001, 0.0, 0.003])
    force = stiffness * (stiffness @ stretch) / np.linalg.norm(stiffness)
    torque = contact.evaluate(parameters(arm, stiffness, stretch, 0.0), data)[0][0]
    np.testing.assert_allclose(torque, torque_of(arm, force), rtol=1e-6)


def test_with_equal_stiffnesses_it_holds_the_point_from_all_sides(arm, contact, data):
    stretch = np.array([0.001, -0.0005, 0.003])
    torque = contact.evaluate(parameters(arm, [3e3, 0.0, 2e4], stretch, 1.0), data)[0][0]
    np.testing.assert_allclose(torque, torque_of(arm, np.hypot(3e3, 2e4) * stretch), rtol=1e-6)


def test_an_open_contact_neither_pulls_nor_holds(arm, contact, data):
    torque = contact.evaluate(parameters(arm, [0.0, 0.0, 2e4], np.array([0.001, 0.0, -0.002]), 0.8), data)[0]
    assert np.abs(torque).max() < 1e-6
