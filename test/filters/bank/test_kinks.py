"""Kinks of the force: lines and odds against numpy, planted touches and releases, and what is no touch."""

import dataclasses

import casadi as ca
import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.bank.contact_law import ContactForces
from contact_estimation.filters.bank.kink_context import build_anchor, build_context
from contact_estimation.filters.bank.kink_odds import KinkLayout, build_cell
from contact_estimation.filters.bank.mix import Modes
from contact_estimation.filters.bank.observer import ContactBank
from contact_estimation.filters.kalman import pack_array, unpack_array
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.robot import load_arm

Q = np.array([0.3, -1.2, 1.9, -2.0, -1.4, 0.2])
START = np.array([0.0, -0.3, 0.0, -2.2, 0.0, 1.9, 0.785])
DT, STIFFNESS = 0.002, 2.5e4


def state_near_touch(arm, layout):
    """A state with the TCP a millimetre below both rests, and a covariance."""
    x, (position, _) = layout.mean.copy(), arm.tcp_pose(Q)
    x[1] = layout.basis[0][:, 0] @ position + 1e-3
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((layout.size, layout.size)) * np.sqrt(layout.variance)[:, None]
    return x, mixing @ mixing.T / layout.size + np.diag(1e-3 * layout.variance)


def test_context_is_the_law_of_the_closed_contacts(arm, layout, two_contacts):
    x, covariance = state_near_touch(arm, layout)
    closed = np.array([1.0, 0.0])
    names = ["g", "sideways", "depth", "depth_std", "stiffness", "friction", "law", "law_error", "coulomb", "inertia"]
    found = build_context(arm, layout, two_contacts)(x, pack_array(covariance), Q, closed, *layout.constants)
    found = dict(zip(names, (np.array(v) for v in found)))
    q, theta, basis = ca.SX.sym("q", 6), *layout.constants
    contacts = ContactForces(arm, layout, arm.kinematics(q), ca.SX(x), ca.SX(theta), ca.SX(basis))
    depth = ca.Function("depth", [q], [ca.vertcat(*contacts.depth)])
    step = 1e-6
    slope = np.array([(depth(Q + step * e) - depth(Q - step * e)).full().ravel() / (2 * step) for e in np.eye(6)])
    np.testing.assert_allclose(found["g"], -slope, atol=1e-6)  # moving along g leaves the surface
    np.testing.assert_allclose(found["depth"], depth(Q).full())
    assert found["depth"][0] == pytest.approx(1e-3, abs=1e-9)
    stiffness = np.exp(x[0])
    np.testing.assert_allclose(found["law"], stiffness * np.outer(found["g"][:, 0], found["g"][:, 0]), rtol=1e-9)
    assert found["friction"][0] == pytest.approx(0.1 * stiffness * 1e-3) and found["friction"][1] == 0.0
    both = build_context(arm, layout, two_contacts)(x, pack_array(covariance), Q, [1.0, 1.0], *layout.constants)
    sideways = found["sideways"][:, 2:]
    held = np.exp(layout.theta[1][0]) if 0 not in layout.estimated[1] else np.exp(x[layout.contact[1].start])
    springs = np.outer(found["g"][:, 1], found["g"][:, 1]) + sideways @ sideways.T  # the second contact sticks
    np.testing.assert_allclose(np.array(both[6]) - found["law"], held * springs, rtol=1e-6)
    np.testing.assert_allclose(found["inertia"].ravel(), np.diag(arm.mass(Q)), rtol=1e-9)


def test_the_anchor_is_a_kalman_update_with_no_depth(arm, layout):
    x, covariance = state_near_touch(arm, layout)
    there, chosen, variance = Q + 1e-3, np.array([1.0, 0.0]), 1e-8
    theta, basis = layout.constants
    found = build_anchor(arm, layout)(x, pack_array(covariance), there, chosen, variance, theta, basis)
    symbol = ca.SX.sym("x", layout.size)
    contacts = ContactForces(arm, layout, arm.kinematics(ca.SX(there)), symbol, ca.SX(theta), ca.SX(basis))
    depth = ca.Function("depth", [symbol], [contacts.depth[0], ca.jacobian(contacts.depth[0], symbol)])
    value, row = float(depth(x)[0]), np.array(depth(x)[1]).ravel()
    gain = covariance @ row / (row @ covariance @ row + variance)
    np.testing.assert_allclose(np.array(found[0]).ravel(), x - gain * value, atol=1e-12)
    expected = covariance - np.outer(gain, row @ covariance)
    std = np.sqrt(np.diag(covariance))
    got = unpack_array(np.array(found[1]).ravel(), layout.size)
    np.testing.assert_allclose(got / np.outer(std, std), expected / np.outer(std, std), atol=1e-9)
    assert abs(float(depth(np.array(found[0]).ravel())[0])) < abs(value)


def test_lines_through_cells_are_least_squares(layout):
    kinks = KinkLayout(layout, 500.0)
    cell, rng = build_cell(layout, kinks), np.random.default_rng(1)
    sizes = [cell.numel_in(k) for k in range(cell.n_in())]
    ring, sums, number = rng.standard_normal(sizes[0]), rng.standard_normal(sizes[2]), 4.0
    given = dict(zip([cell.name_in(k) for k in range(cell.n_in())], [np.zeros(n) for n in sizes]))
    given |= {"ring": ring, "sums": sums, "number": number, "duration": 0.008}
    found = {k: np.array(v) for k, v in cell(**given).items()}
    table = np.vstack([sums / number, ring.reshape(-1, kinks.columns)[:-1]])  # newest first
    np.testing.assert_allclose(found["ring_next"].ravel(), table.ravel())
    for k, (last, before) in enumerate(kinks.windows):
        rows = slice(k * kinks.columns, (k + 1) * kinks.columns)
        t = -(np.arange(before) + 0.5) * kinks.per_cell
        slope, level = np.polyfit(t, table[last - 1 : last - 1 + before], 1)
        np.testing.assert_allclose(found["slope"].ravel()[rows], slope, atol=1e-12)
        np.testing.assert_allclose(found["level"].ravel()[rows], level, atol=1e-12)
        np.testing.assert_allclose(found["since"].ravel()[rows], table[: last - 1].sum(axis=0), atol=1e-12)


@pytest.fixture(scope="module")
def fr3():
    return load_arm("fr3")


def stroke(arm, speed: float, depth: float):
    """Positions and velocities of a TCP that goes down, rests, and comes back, at ``speed`` [m/s]."""
    down = np.array([0.0, 0.0, -1.0])
    inverse = np.linalg.pinv(arm.tcp_jacobian(START))
    travel = int(round(2 * depth / speed / DT))
    profile = np.concatenate([np.zeros(400), np.full(travel, -1.0), np.zeros(200), np.full(travel, 1.0), np.zeros(100)])
    height, q, rows = 0.0, START.copy(), []
    for direction in np.convolve(profile, np.ones(20) / 20, mode="same"):
        dq = inverse @ np.concatenate([-down * direction * speed, np.zeros(3)])
        q, height = q + DT * dq, height + DT * direction * speed
        rows.append((q, dq, height))
    return rows


def followed(arm, rows, depth, stiffness=STIFFNESS, noise=0.1, disturb=None, **settings):
    """Modes the bank names along ``rows`` with a surface ``depth`` [m] below the start, and the true force."""
    rng = np.random.default_rng(3)
    bank = ContactBank(arm, dataclasses.replace(load_observer_settings("contact_bank"), **settings))
    bank.reset(0.0, rows[0][0])
    modes, forces, before = [], [], np.zeros(arm.n)
    for k, (q, dq, height) in enumerate(rows):
        force = max(-height - depth, 0.0) * stiffness
        external = arm.tcp_jacobian(q)[:3].T @ np.array([0.0, 0.0, force])
        rigid = arm.mass(q) @ (dq - before) / DT + arm.coriolis(q, dq) + arm.gravity(q) + arm.motor.viscous * dq
        tau = rigid - external + noise * rng.standard_normal(arm.n)
        if disturb is not None:
            tau = tau + disturb(k)
        bank.step(DT, q, dq, tau)
        modes.append(bank.estimate().mode)
        forces.append(force)
        before = dq
    return modes, np.array(forces)


def changes(modes):
    return [(k, modes[k]) for k in range(1, len(modes)) if modes[k] != modes[k - 1]]


def test_touch_and_release_are_decided_within_20_ms(fr3):
    modes, forces = followed(fr3, stroke(fr3, 0.01, 2e-3), 2e-3)
    touch, release = np.flatnonzero(np.diff((forces > 0).astype(int))) + 1
    (closes, closed), (opens, opened) = changes(modes)
    assert (closed, opened) == ("contact_1", "free")
    assert 0 <= closes - touch <= 10 and -5 <= opens - release <= 10  # samples of 2 ms


def test_left_to_the_filters_it_takes_longer(fr3):
    rows = stroke(fr3, 0.01, 2e-3)
    fast, forces = followed(fr3, rows, 2e-3)
    slow, _ = followed(fr3, rows, 2e-3, decide=1.0)
    touch = int(np.argmax(forces > 0))
    assert fast.index("contact_1") < slow.index("contact_1") <= touch + 50


def test_a_spike_on_one_joint_is_no_touch(fr3):
    """As at every stop of a real arm: one joint, 30 Nm for 10 ms, upwards or downwards."""
    for sign in (1.0, -1.0):
        spike = lambda k, sign=sign: sign * 30.0 * np.eye(7)[1] * (500 <= k < 505)  # noqa: E731
        modes, forces = followed(fr3, stroke(fr3, 0.01, 2e-3), 1.0, disturb=spike)
        assert not forces.any() and set(modes) == {"free"}


def test_what_grows_along_a_line_is_no_kink(fr3, monkeypatch):
    """2 Nm per second on every joint: the filters may come to call it a contact, but no kink says so."""
    decided, move = [], Modes.move
    monkeypatch.setattr(Modes, "move", lambda self, *rest: decided.append(rest[1:3]) or move(self, *rest))
    rows = stroke(fr3, 0.01, 2e-3)[:700]
    followed(fr3, rows, 1.0, disturb=lambda k: -2.0 * k * DT * np.ones(7))
    assert (0, 1) not in decided
    decided.clear()
    followed(fr3, rows, 2e-3)
    assert decided == [(0, 1)]  # the same motion with a surface has one


def test_a_second_run_starts_anew(fr3):
    bank = ContactBank(fr3, load_observer_settings("contact_bank"))
    rng, found = np.random.default_rng(0), []
    noise = 0.05 * rng.standard_normal((300, 7))
    for q in (START, START + 0.4, START):
        bank.reset(0.0, q)
        gravity = fr3.gravity(q)
        for row in noise:
            bank.step(DT, q, np.zeros(7), gravity + row)
        found.append((bank.beliefs.copy(), bank.estimate().mode))
    np.testing.assert_allclose(found[2][0], found[0][0], rtol=1e-9)
    assert found[0][1] == found[2][1]


def test_what_decides_is_more_than_a_half():
    with pytest.raises(ConfigError, match="decide"):
        dataclasses.replace(load_observer_settings("contact_bank"), decide=0.3)
