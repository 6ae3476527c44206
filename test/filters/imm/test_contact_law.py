"""The contact law against its formula in numpy, and its derivatives against finite differences."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.filters.imm.contact_law import ContactForces, contacts_at

Q = np.array([0.3, -1.2, 1.9, -2.0, -1.4, 0.2])
#: Where the state holds the depths.
LAST = Q + np.array([1e-3, -2e-3, 3e-3, 1e-3, -2e-3, 4e-3])
SLIP = np.array([0.5, -0.6, 0.3])


@pytest.fixture(scope="module")
def law(arm, layout):
    """(x, q, closed) -> joint torque, its Jacobian in x, forces, base wrench."""
    x, q, closed = ca.SX.sym("x", layout.size), ca.SX.sym("q", 6), ca.SX.sym("closed", 2)
    theta, basis = layout.inputs["theta"], layout.inputs["basis"]
    position, rotation = arm.tcp_pose(LAST)
    last, kinematics = (ca.SX(rotation), ca.SX(position)), arm.kinematics(q)
    at = contacts_at(layout, arm.tcp(kinematics), x, ca.SX(theta), ca.SX(basis), ca.SX(SLIP), last)
    contacts = ContactForces(arm, kinematics, at)
    torque = contacts.joint_torque(closed)
    return ca.Function(
        "law",
        [x, q, closed],
        [
            torque,
            ca.jacobian(torque, x),
            ca.horzcat(*[c.force for c in contacts.contacts]),
            ca.vertcat(*contacts.wrench_base(closed)),
        ],
    )


@pytest.fixture(scope="module")
def state(arm, layout):
    """A state with every entry away from zero, pressed half a millimetre."""
    x = layout.mean + 0.3 * np.sqrt(layout.variance) * np.random.default_rng(3).standard_normal(layout.size)
    x[1], x[layout.contacts[1].where.start + 1] = 5e-4, 3e-4
    return x


def by_hand(arm, layout, x, q):
    """Forces (3,) and points (3,) of both contacts, from the formula in the module's docstring."""
    (position, rotation), (before, turned) = arm.tcp_pose(q), arm.tcp_pose(LAST)
    forces, points = [], []
    for i, contact in enumerate(layout.contacts):
        p = layout.inputs["theta"][contact.theta_where].copy()
        p[contact.estimated] = x[contact.where]
        n0, t1, t2 = layout.basis[i].T
        n = n0 + p[2] * t1 + p[3] * t2
        n /= np.linalg.norm(n)
        t1, t2 = t1 - n * (n @ t1), t2 - n * (n @ t2)
        point = position + rotation @ p[4:7]
        way = point - before - turned @ p[4:7]
        pressed = np.exp(p[0]) * (p[1] - n @ way)
        if contact.law.feels_slip:
            forces.append(n * pressed + np.exp(p[0]) * (t1 * (p[7] - t1 @ way) + t2 * (p[8] - t2 @ way)))
        else:
            slip = p[9] * max(1 - 2 * (n @ SLIP) ** 2, 0) * SLIP
            forces.append(pressed * (n + t1 * (p[7] - t1 @ slip) + t2 * (p[8] - t2 @ slip)))
        points.append(point)
    return forces, points


@pytest.mark.parametrize("closed", [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_torque_and_wrench_are_the_formula(arm, layout, law, state, closed):
    torque, _, forces, wrench = (np.array(v) for v in law(state, Q, closed))
    position, _ = arm.tcp_pose(Q)
    jacobian = arm.tcp_jacobian(Q)
    expected, total = np.zeros(6), np.zeros(6)
    for on, force, point in zip(closed, *by_hand(arm, layout, state, Q)):
        lever = point - position
        total += on * np.concatenate([force, np.cross(lever, force)])
    expected = jacobian.T @ total
    np.testing.assert_allclose(torque.ravel(), expected, atol=1e-9)
    np.testing.assert_allclose(wrench.ravel(), total, atol=1e-9)
    np.testing.assert_allclose(forces.T, by_hand(arm, layout, state, Q)[0], atol=1e-9)


def test_jacobian_is_the_finite_difference(layout, law, state):
    exact = np.array(law(state, Q, (1, 1))[1])
    steps = 1e-6 * np.maximum(np.sqrt(layout.variance), 1e-4)
    for k, h in enumerate(steps):
        up, down = state.copy(), state.copy()
        up[k] += h
        down[k] -= h
        slope = np.array(law(up, Q, (1, 1))[0] - law(down, Q, (1, 1))[0]).ravel() / (up[k] - down[k])
        np.testing.assert_allclose(exact[:, k], slope, rtol=1e-5, atol=1e-4 * max(np.abs(exact[:, k]).max(), 1e-6))


def test_published_contacts_never_pull(arm, layout, state):
    x, q = ca.SX.sym("x", layout.size), ca.SX.sym("q", 6)
    theta, basis = layout.inputs["theta"], layout.inputs["basis"]
    forces = [
        contacts_at(layout, arm.tcp(arm.kinematics(q)), x, ca.SX(theta), ca.SX(basis), unilateral=unilateral)[
            0
        ].normal_force
        for unilateral in (False, True)
    ]
    force = ca.Function("normal_force", [x, q], forces)
    for gap, sign in ((2e-3, -1), (-2e-3, 1)):
        x = state.copy()
        x[1] = -gap
        linear, published = (float(v) for v in force(x, Q))
        assert linear == pytest.approx(-np.exp(state[0]) * gap) and np.sign(linear) == sign
        assert published == max(linear, 0.0)
