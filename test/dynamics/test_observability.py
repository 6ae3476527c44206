"""What a posture or motion shows of a contact's parameters (paper 2, eq. 23-25)."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.dynamics import CoupledStep
from contact_estimation.dynamics.observability import ParameterInformation, observe_posture
from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.robot import load_arm

Q = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
ALL = ["stiffness", "rest", "point"]
NOISE = 1.0


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def contact(**changes):
    return ContactSettings(
        **({"stiffness": [0.0, 0.0, 2e4], "estimate": ALL, "rest_std": 1e-3, "point_std": 0.01} | changes)
    )


def test_the_slope_is_the_derivative_of_the_acceleration(arm):
    contacts = ParallelContacts(arm, [contact(point=[0.02, 0.0, 0.05])])
    phi = contacts.initial(Q)[0]
    phi[3:6] += [0.001, -0.002, 0.003]
    xi, tau, h = np.concatenate([Q, 0.1 * np.ones(6), phi]), arm.gravity(Q) + 5.0, 0.002
    slope = ParameterInformation(arm, contacts, NOISE).update(h, xi, phi, tau)
    step = CoupledStep(arm, contacts)
    delta = ca.Function("delta", [step.xi, step.phi, step.tau, step.h], [step.delta])
    e = 1e-6
    numeric = np.column_stack(
        [
            (delta(xi + s, phi, tau, h) - delta(xi - s, phi, tau, h)).full().ravel() / (2 * e)
            for s in e * np.eye(len(xi))[12:]
        ]
    )
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-4 * np.abs(numeric).max() * 1e-2)


def test_standing_shows_one_force_and_the_moments_it_can_make(arm):
    """A single posture gives at most 6 numbers for 9 parameters, and never the rest along the tangents."""
    seen = observe_posture(arm, ParallelContacts(arm, [contact()]), Q, NOISE)
    values = np.array([d.singular_value for d in seen.directions])
    assert len(values) == 9 and (np.diff(values) <= 1e-9).all()
    assert np.sum(values > 1e-6 * values[0]) <= 6
    tangents = {name for d in seen.unseen for name, share in d.names if abs(share) > 0.5}
    assert {"contact_1 rest along tangent 1", "contact_1 rest along tangent 2"} <= tangents


def test_without_any_motion_there_is_no_report(arm):
    contacts = ParallelContacts(arm, [contact()])
    with pytest.raises(IdentificationError, match=r"no motion was added.*update"):
        ParameterInformation(arm, contacts, NOISE).report(contacts.initial(Q)[1])


def test_the_tangents_are_those_of_the_contact_law(arm):
    """Those of the configured normal, also once the estimate of the normal has left it."""
    contacts = ParallelContacts(arm, [contact(stiffness=[3e3, 1e3, 2e4], estimate=["stiffness"])])
    phi = contacts.initial(Q)[0]
    phi[:3] = [0.1, 0.4, 2.0]
    information = ParameterInformation(arm, contacts, NOISE)
    information.update(1.0, np.concatenate([Q, np.zeros(6), phi[:3]]), phi, arm.gravity(Q))
    kinematics, symbol = arm.kinematics(ca.SX(Q)), ca.SX.sym("phi", contacts.size)
    (law,) = contacts.closed(kinematics, symbol)
    np.testing.assert_allclose(
        information._axes()[0], ca.Function("axes", [symbol], [law.axes])(phi).full().T, atol=1e-6
    )


def test_without_load_the_direction_of_the_stiffness_is_not_seen(arm):
    unloaded = observe_posture(arm, ParallelContacts(arm, [contact(estimate=["stiffness"])]), Q, NOISE, depth=0.0)
    loaded = observe_posture(arm, ParallelContacts(arm, [contact(estimate=["stiffness"])]), Q, NOISE, depth=2e-3)
    assert len(unloaded.unseen) == 3
    assert any(d.seen for d in loaded.directions)


def rotating(arm, contacts, angle, steps=40):
    """Information while the TCP turns about its contact point by ``angle`` [rad], the contact pressed in by 2 mm."""
    phi, std = contacts.initial(Q)
    phi[5::9] += 0.002
    information = ParameterInformation(arm, contacts, NOISE)
    position, rotation = arm.tcp_pose(Q)
    tip = np.asarray(contacts.contacts[0].point)
    q = Q.copy()
    for a in np.linspace(-angle, angle, steps):
        turn = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
        q = arm.solve_pose(position + rotation @ tip - turn @ rotation @ tip, turn @ rotation, q)
        information.update(1.0 / steps, np.concatenate([q, np.zeros(6), phi[contacts.estimated]]), phi, arm.gravity(q))
    return information.report(std)


def test_turning_about_the_point_shows_what_pressing_does_not(arm):
    """Paper 1, section 5.4: the point along the normal needs rotation, because pressing gives its sum with the rest
    only."""
    contacts = ParallelContacts(arm, [contact(estimate=["rest", "point"], point=[0.0, 0.0, 0.15])])
    still, turned = rotating(arm, contacts, 0.0), rotating(arm, contacts, 0.3)
    smallest = sorted(turned.std[3:] / still.std[3:])
    assert len(turned.unseen) < len(still.unseen) and smallest[0] < 0.5
    assert (turned.std <= still.std * (1 + 1e-9)).all()


def test_two_rests_are_told_apart_along_different_normals_and_not_along_the_same(arm):
    """Eq. 25: J_1^T n_1 and J_2^T n_2 must be independent."""

    def seen(second):
        pair = [contact(name="a", estimate=["rest"]), contact(name="b", estimate=["rest"], stiffness=second)]
        return observe_posture(arm, ParallelContacts(arm, pair), Q, NOISE)

    different, same = seen([2e4, 0.0, 0.0]), seen([0.0, 0.0, 2e4])
    assert not any("normal" in str(d) for d in different.unseen)
    assert len(same.unseen) == len(different.unseen) + 1 and any("normal" in str(d) for d in same.unseen)
    z = [same.parameters.index(f"{name} rest z [m]") for name in "ab"]
    of_normals = same.information[np.ix_(z, z)]
    assert abs([1, -1] @ of_normals @ [1, -1]) < 1e-9 * ([1, 1] @ of_normals @ [1, 1])


def test_units_are_si_and_names_say_so(arm):
    contacts = ParallelContacts(arm, [contact(estimate=["stiffness"], stiffness_std=1e4)])
    seen = observe_posture(arm, contacts, Q, NOISE, depth=2e-3)
    assert seen.parameters[2] == "contact_1 stiffness z [N/m]"
    phi = contacts.initial(Q)[0]
    phi[5] += 2e-3
    recorded = ParameterInformation(arm, contacts, NOISE)
    for _ in range(500):
        recorded.update(0.002, np.concatenate([Q, np.zeros(6), phi[:3]]), phi, arm.gravity(Q))
    assert recorded.seconds == pytest.approx(1.0)
    np.testing.assert_allclose(seen.information, recorded.report(np.ones(3)).information, rtol=1e-9)
    expected = np.sqrt(np.diag(np.linalg.inv(np.eye(3) / 1e8 + seen.information)))
    np.testing.assert_allclose(seen.std, expected, rtol=1e-9)


def test_standing_for_a_second_shows_what_the_acceleration_of_short_steps_does(arm):
    """d delta / d K = (M + h B)^-1 J^T d F / d K, over the intensity of the acceleration's noise."""
    contacts = ParallelContacts(arm, [contact(estimate=["stiffness"])])
    seen = observe_posture(arm, contacts, Q, NOISE, depth=2e-3)
    phi = contacts.initial(Q)[0]
    phi[5] += 2e-3
    q, symbol = ca.SX.sym("q", 6), ca.SX.sym("phi", 9)
    torque = contacts.joint_torque(arm.kinematics(q), symbol)
    slope = ca.Function("f", [q, symbol], [ca.densify(ca.jacobian(torque, symbol))])(Q, phi).full()[:, :3] / 1e4
    acceleration = np.linalg.solve(arm.mass(Q), slope)
    np.testing.assert_allclose(
        seen.information, acceleration.T @ acceleration / NOISE, rtol=0.05, atol=1e-3 * np.abs(seen.information).max()
    )


def test_torque_noise_counts_as_the_acceleration_it_makes(arm):
    """d tau_e / d p over the torque's intensity: the mass matrix drops out."""
    contacts = ParallelContacts(arm, [contact(estimate=["stiffness"])])
    intensity = np.array([2.0, 3.0, 1.0, 0.5, 0.3, 0.2])
    phi = contacts.initial(Q)[0]
    phi[5] += 2e-3
    information = ParameterInformation(arm, contacts, 0.0, intensity)
    information.update(1.0, np.concatenate([Q, np.zeros(6), phi[:3]]), phi, arm.gravity(Q))
    q, symbol = ca.SX.sym("q", 6), ca.SX.sym("phi", 9)
    torque = contacts.joint_torque(arm.kinematics(q), symbol)
    slope = ca.Function("f", [q, symbol], [ca.densify(ca.jacobian(torque, symbol))])(Q, phi).full()[:, :3]
    found = information.report(np.ones(3)).information * 1e8
    np.testing.assert_allclose(
        found, slope.T @ (slope / intensity[:, None]), rtol=1e-8, atol=1e-8 * np.abs(found).max()
    )


def test_information_fades_with_memory(arm):
    contacts = ParallelContacts(arm, [contact(estimate=["stiffness"])])
    phi, std = contacts.initial(Q)
    phi[5] += 2e-3
    xi = np.concatenate([Q, np.zeros(6), phi[:3]])
    forever, short = ParameterInformation(arm, contacts, NOISE), ParameterInformation(arm, contacts, NOISE, memory=0.5)
    for information in (forever, short):
        for _ in range(4000):
            information.update(0.002, xi, phi, arm.gravity(Q))
    ratio = short.report(std).information / forever.report(std).information
    np.testing.assert_allclose(ratio[2, 2], 0.5 / 8.0, rtol=0.01)  # saturates at memory / duration


def test_bad_questions_are_refused(arm):
    with pytest.raises(ConfigError, match="observability of what"):
        ParameterInformation(arm, ParallelContacts(arm, [contact(estimate=[])]), NOISE)
    with pytest.raises(ConfigError, match=r"without noise every motion shows everything.*unknown_torque"):
        ParameterInformation(arm, ParallelContacts(arm, [contact()]), 0.0)
    with pytest.raises(ConfigError, match=r"initial uncertainty of zero: contact_1 rest x .m."):
        observe_posture(arm, ParallelContacts(arm, [contact(rest_std=0.0)]), Q, NOISE)
