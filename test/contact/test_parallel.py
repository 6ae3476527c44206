"""Contacts in parallel: packing, scaling, joint torque, wrench."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import load_arm

Q = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


@pytest.fixture(scope="module")
def contacts(arm):
    return ParallelContacts(
        arm,
        [
            ContactSettings(
                name="floor",
                stiffness=[0.0, 0.0, 2e4],
                rest="start",
                point=[0.02, 0.0, 0.1],
                estimate=["stiffness", "point"],
                stiffness_std=3e3,
                point_std=0.01,
            ),
            ContactSettings(
                name="wall",
                stiffness=[5e3, 1e3, 0.0],
                rest=[0.3, 0.4, 0.5],
                point=[0.0, 0.05, 0.0],
                estimate=["rest"],
                rest_std=0.002,
            ),
        ],
    )


def test_the_start_packs_all_parameters_in_internal_units(arm, contacts):
    phi, std = contacts.initial(Q)
    position, rotation = arm.tcp_pose(Q)
    np.testing.assert_allclose(phi[:3], [0, 0, 2.0])  # 1e4 N/m
    np.testing.assert_allclose(phi[3:6], position + rotation @ [0.02, 0, 0.1])  # 'start': no force at the first sample
    np.testing.assert_allclose(phi[9:], [0.5, 0.1, 0, 0.3, 0.4, 0.5, 0, 0.05, 0])
    np.testing.assert_array_equal(contacts.estimated, [0, 1, 2, 6, 7, 8, 12, 13, 14])
    np.testing.assert_allclose(std, [0.3] * 3 + [0.01] * 3 + [0.002] * 3)


def test_si_comes_back_with_the_covariance_of_the_estimated_part(contacts):
    phi, std = contacts.initial(Q)
    values, covariance = zip(*contacts.in_si(phi, np.diag(std**2)))
    np.testing.assert_allclose(values[0][:3], [0, 0, 2e4])
    np.testing.assert_allclose(values[1][3:6], [0.3, 0.4, 0.5])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance[0])), [3e3] * 3 + [0] * 3 + [0.01] * 3)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance[1])), [0] * 3 + [0.002] * 3 + [0] * 3)


def evaluate(arm, contacts, expression_of):
    q, phi = ca.SX.sym("q", arm.n), ca.SX.sym("phi", contacts.size)
    return ca.Function("f", [q, phi], [ca.densify(e) for e in expression_of(arm.kinematics(q), phi)])


def numbers(function, *args):
    return [v.full().squeeze() for v in function.call([ca.DM(a) for a in args])]


@pytest.fixture(scope="module")
def pressed(contacts):
    """Parameters with both contacts under load."""
    phi, _ = contacts.initial(Q)
    phi[3:6] += [0.001, -0.002, 0.004]
    return phi


def test_forces_and_joint_torque_are_those_of_two_springs(arm, contacts, pressed):
    function = evaluate(
        arm,
        contacts,
        lambda kin, phi: [
            contacts.joint_torque(kin, phi),
            *contacts.forces(kin, phi),
            *contacts.points(kin, phi),
            *contacts.wrench_base(kin, phi),
        ],
    )
    torque, floor, wall, x_floor, x_wall, force, moment = numbers(function, Q, pressed)
    position, rotation = arm.tcp_pose(Q)
    jacobian = arm.tcp_jacobian(Q)
    expected = np.zeros(6)
    for name, stiffness, rest, point, got, at in (
        ("floor", [0, 0, 2e4], pressed[3:6], [0.02, 0, 0.1], floor, x_floor),
        ("wall", [5e3, 1e3, 0], [0.3, 0.4, 0.5], [0, 0.05, 0], wall, x_wall),
    ):
        stiffness, x = np.array(stiffness), position + rotation @ np.array(point)
        normal = stiffness / np.linalg.norm(stiffness)
        np.testing.assert_allclose(at, x, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(got, normal * (stiffness @ (rest - x)), rtol=1e-9, atol=1e-9, err_msg=name)
        expected += np.concatenate([got, np.cross(x - position, got)])
    assert floor[2] == pytest.approx(80.0)
    np.testing.assert_allclose(np.concatenate([force, moment]), expected, atol=1e-9)
    np.testing.assert_allclose(torque, jacobian.T @ expected, atol=1e-9)


def test_the_joint_torque_derivatives_match_finite_differences(arm, contacts, pressed):
    q, phi = ca.SX.sym("q", arm.n), ca.SX.sym("phi", contacts.size)
    torque = contacts.joint_torque(arm.kinematics(q), phi)
    function = ca.Function(
        "f", [q, phi], [ca.densify(e) for e in (torque, ca.jacobian(torque, q), ca.jacobian(torque, phi))]
    )
    _, by_q, by_phi = numbers(function, Q, pressed)
    h = 1e-6
    by_q_numeric = np.column_stack(
        [
            (numbers(function, Q + s, pressed)[0] - numbers(function, Q - s, pressed)[0]) / (2 * h)
            for s in h * np.eye(arm.n)
        ]
    )
    by_phi_numeric = np.column_stack(
        [
            (numbers(function, Q, pressed + s)[0] - numbers(function, Q, pressed - s)[0]) / (2 * h)
            for s in h * np.eye(contacts.size)
        ]
    )
    np.testing.assert_allclose(by_q, by_q_numeric, rtol=1e-6, atol=1e-3)  # entries up to 1e4 Nm/rad
    np.testing.assert_allclose(by_phi, by_phi_numeric, rtol=1e-6, atol=1e-3)


def test_estimated_parameters_replace_their_entries_and_no_other(contacts):
    phi, p = ca.SX.sym("phi", contacts.size), ca.SX.sym("p", contacts.n_estimated)
    merged = ca.Function("m", [phi, p], [contacts.merge(phi, p)])(np.arange(18.0), 100 + np.arange(9.0)).full().ravel()
    np.testing.assert_array_equal(merged, [100, 101, 102, 3, 4, 5, 103, 104, 105, 9, 10, 11, 106, 107, 108, 15, 16, 17])


def test_no_contact_is_no_torque(arm):
    none = ParallelContacts(arm, [])
    assert none.size == none.n_estimated == 0 and none.initial(Q)[0].size == 0
    torque, force, moment = numbers(
        evaluate(arm, none, lambda kin, phi: [none.joint_torque(kin, phi), *none.wrench_base(kin, phi)]), Q, np.zeros(0)
    )
    assert not torque.any() and not force.any() and not moment.any()


def test_two_contacts_of_one_name_are_refused(arm):
    with pytest.raises(ConfigError, match="different names"):
        ParallelContacts(arm, [ContactSettings(stiffness=[0, 0, 1.0]), ContactSettings(stiffness=[0, 0, 1.0])])
