"""Change points of the force: lines against numpy, planted touches and releases, and what is no touch."""

import dataclasses

import casadi as ca
import numpy as np
import pytest

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.imm.change_point import WINDOWS, BinLayout, build_bin
from contact_estimation.filters.imm.contact_law import ContactForces
from contact_estimation.filters.imm.linearisation import build_linearisation
from contact_estimation.filters.imm.measurement import build_zero_depth
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.observer import ContactImm
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


def linearised(arm, layout, x, covariance, closed):
    """Results of the linearisation by name, friction coefficients of 0.1 where a contact slides."""
    given = {name: layout.inputs[name] for name in ("theta", "basis")} | {"law_error": 0.2, "friction_std": (0.1, 0.0)}
    given |= {"x": x, "P": pack_array(covariance), "q_then": Q, "closed": closed}
    function = build_linearisation(arm, layout)
    assert set(given) == set(function.name_in())
    return {name: np.array(value) for name, value in function(**given).items()}


def test_linearisation_is_the_law_of_the_closed_contacts(arm, layout):
    x, covariance = state_near_touch(arm, layout)
    found = linearised(arm, layout, x, covariance, (1.0, 0.0))
    q, theta, basis = ca.SX.sym("q", 6), layout.inputs["theta"], layout.inputs["basis"]
    contacts = ContactForces(arm, layout, arm.kinematics(q), ca.SX(x), ca.SX(theta), ca.SX(basis))
    depth = ca.Function("depth", [q], [contacts.depth])
    step = 1e-6
    slope = np.array([(depth(Q + step * e) - depth(Q - step * e)).full().ravel() / (2 * step) for e in np.eye(6)])
    np.testing.assert_allclose(found["normal_jacobian"], -slope, atol=1e-6)  # along it the arm leaves the surface
    np.testing.assert_allclose(found["depth"], depth(Q).full())
    assert found["depth"][0] == pytest.approx(1e-3, abs=1e-9)
    stiffness, along = np.exp(x[0]), found["normal_jacobian"]
    np.testing.assert_allclose(found["contact_slope"], stiffness * np.outer(along[:, 0], along[:, 0]), rtol=1e-9)
    assert found["friction_force"][0] == pytest.approx(0.1 * stiffness * 1e-3) and found["friction_force"][1] == 0.0
    np.testing.assert_allclose(found["inertia"].ravel(), np.diag(arm.mass(Q)), rtol=1e-9)


def test_a_point_that_sticks_is_held_sideways_too(arm, layout):
    x, covariance = state_near_touch(arm, layout)
    one, both = (linearised(arm, layout, x, covariance, closed) for closed in ((1.0, 0.0), (1.0, 1.0)))
    along, sideways = both["normal_jacobian"][:, 1], both["tangent_jacobian"][:, 2:]
    springs = np.outer(along, along) + sideways @ sideways.T
    held = np.exp(x[layout.contacts[1].where.start])
    np.testing.assert_allclose(both["contact_slope"] - one["contact_slope"], held * springs, rtol=1e-6)


def test_the_zero_depth_measurement_is_a_kalman_update(arm, layout):
    x, covariance = state_near_touch(arm, layout)
    there, variance = Q + 1e-3, 1e-8
    theta, basis = layout.inputs["theta"], layout.inputs["basis"]
    given = {"x": x, "P": pack_array(covariance), "q_touch": there, "chosen": (1.0, 0.0), "depth_variance": variance}
    found = build_zero_depth(arm, layout)(**given, theta=theta, basis=basis)
    symbol = ca.SX.sym("x", layout.size)
    contacts = ContactForces(arm, layout, arm.kinematics(ca.SX(there)), symbol, ca.SX(theta), ca.SX(basis))
    depth = ca.Function("depth", [symbol], [contacts.depth[0], ca.jacobian(contacts.depth[0], symbol)])
    value, row = float(depth(x)[0]), np.array(depth(x)[1]).ravel()
    gain = covariance @ row / (row @ covariance @ row + variance)
    mean = np.array(found["x_next"]).ravel()
    np.testing.assert_allclose(mean, x - gain * value, atol=1e-12)
    expected = covariance - np.outer(gain, row @ covariance)
    std = np.sqrt(np.diag(covariance))
    got = unpack_array(np.array(found["P_next"]).ravel(), layout.size)
    np.testing.assert_allclose(got / np.outer(std, std), expected / np.outer(std, std), atol=1e-9)
    assert abs(float(depth(mean)[0])) < abs(value)


def test_lines_through_bins_are_least_squares(layout):
    bins, per_bin = BinLayout(layout), 4.0
    function, rng = build_bin(layout, bins), np.random.default_rng(1)
    given = {function.name_in(k): np.zeros(function.size_in(k)) for k in range(function.n_in())}
    ring, sums = (rng.standard_normal(given[name].shape) for name in ("ring", "sums"))
    given |= {"ring": ring, "sums": sums, "number": per_bin, "per_bin": per_bin, "scatter_share": 0.08}
    found = {k: np.array(v) for k, v in function(**given).items()}
    table = np.vstack([sums.ravel() / per_bin, ring[:-1]])  # newest first
    np.testing.assert_allclose(found["ring_next"], table)
    for k, (last, before) in enumerate(WINDOWS):
        t = -(np.arange(before) + 0.5) * per_bin
        slope, level = np.polyfit(t, table[last - 1 : last - 1 + before], 1)
        np.testing.assert_allclose(found["slope"][:, k], slope, atol=1e-12)
        np.testing.assert_allclose(found["level"][:, k], level, atol=1e-12)
        np.testing.assert_allclose(found["since"][:, k], table[: last - 1].sum(axis=0), atol=1e-12)


@pytest.fixture(scope="module")
def fr3():
    return load_arm("fr3")


def stroke(arm, speed: float, depth: float):
    """Positions and velocities of a TCP that goes down, rests, and comes back, at ``speed`` [m/s]."""
    down = np.array([0.0, 0.0, -1.0])
    inverse = np.linalg.pinv(arm.tcp_jacobian(START))
    travel = round(2 * depth / speed / DT)
    profile = np.concatenate([np.zeros(400), np.full(travel, -1.0), np.zeros(200), np.full(travel, 1.0), np.zeros(100)])
    height, q, rows = 0.0, START.copy(), []
    for direction in np.convolve(profile, np.ones(20) / 20, mode="same"):
        dq = inverse @ np.concatenate([-down * direction * speed, np.zeros(3)])
        q, height = q + DT * dq, height + DT * direction * speed
        rows.append((q, dq, height))
    return rows


def followed(arm, rows, depth, stiffness=STIFFNESS, noise=0.1, disturb=None, **settings):
    """Modes the observer names along ``rows`` with a surface ``depth`` [m] below the start, and the true force."""
    rng = np.random.default_rng(3)
    observer = ContactImm(arm, dataclasses.replace(load_observer_settings("contact_imm"), **settings))
    observer.reset(0.0, rows[0][0])
    modes, forces, before = [], [], np.zeros(arm.n)
    for k, (q, dq, height) in enumerate(rows):
        force = max(-height - depth, 0.0) * stiffness
        external = arm.tcp_jacobian(q)[:3].T @ np.array([0.0, 0.0, force])
        rigid = arm.mass(q) @ (dq - before) / DT + arm.coriolis(q, dq) + arm.gravity(q) + arm.motor.viscous * dq
        tau = rigid - external + noise * rng.standard_normal(arm.n)
        if disturb is not None:
            tau = tau + disturb(k)
        observer.step(DT, q, dq, tau)
        modes.append(observer.estimate().mode)
        forces.append(force)
        before = dq
    return modes, np.array(forces)


def changes(modes):
    return [(k, modes[k]) for k in range(1, len(modes)) if modes[k] != modes[k - 1]]


def test_touch_and_release_are_committed_within_20_ms(fr3):
    modes, forces = followed(fr3, stroke(fr3, 0.01, 2e-3), 2e-3)
    touch, release = np.flatnonzero(np.diff((forces > 0).astype(int))) + 1
    (closes, closed), (opens, opened) = changes(modes)
    assert (closed, opened) == ("contact_1", "free")
    assert 0 <= closes - touch <= 10 and -5 <= opens - release <= 10  # samples of 2 ms


def test_left_to_the_filters_it_takes_longer(fr3):
    rows = stroke(fr3, 0.01, 2e-3)
    fast, forces = followed(fr3, rows, 2e-3)
    slow, _ = followed(fr3, rows, 2e-3, commit_probability=1.0)
    touch = int(np.argmax(forces > 0))
    assert fast.index("contact_1") < slow.index("contact_1") <= touch + 50


def test_a_spike_on_one_joint_is_no_touch(fr3):
    """As at every stop of a real arm: one joint, 30 Nm for 10 ms, upwards or downwards."""
    for sign in (1.0, -1.0):
        spike = lambda k, sign=sign: sign * 30.0 * np.eye(7)[1] * (500 <= k < 505)  # noqa: E731
        modes, forces = followed(fr3, stroke(fr3, 0.01, 2e-3), 1.0, disturb=spike)
        assert not forces.any() and set(modes) == {"free"}


def test_what_grows_along_a_line_is_no_change_point(fr3, monkeypatch):
    """2 Nm per second on every joint: the filters may come to call it a contact, but no change point says so."""
    committed, move = [], ModeChain.move
    monkeypatch.setattr(ModeChain, "move", lambda self, *rest: committed.append(rest[1:3]) or move(self, *rest))
    rows = stroke(fr3, 0.01, 2e-3)[:700]
    followed(fr3, rows, 1.0, disturb=lambda k: -2.0 * k * DT * np.ones(7))
    assert (0, 1) not in committed
    committed.clear()
    followed(fr3, rows, 2e-3)
    assert committed == [(0, 1)]  # the same motion with a surface has one


def test_a_second_run_starts_anew(fr3):
    observer = ContactImm(fr3, load_observer_settings("contact_imm"))
    rng, found = np.random.default_rng(0), []
    noise = 0.05 * rng.standard_normal((300, 7))
    for q in (START, START + 0.4, START):
        observer.reset(0.0, q)
        gravity = fr3.gravity(q)
        for row in noise:
            observer.step(DT, q, np.zeros(7), gravity + row)
        found.append((observer.probabilities.copy(), observer.estimate().mode))
    np.testing.assert_allclose(found[2][0], found[0][0], rtol=1e-9)
    assert found[0][1] == found[2][1]


def test_what_commits_is_more_than_a_half():
    with pytest.raises(ConfigError, match="commit_probability"):
        dataclasses.replace(load_observer_settings("contact_imm"), commit_probability=0.3)
