"""The compiled update against a dense EKF in numpy on the same measurement functions."""

import casadi as ca
import numpy as np
import pytest
from scipy.stats import norm

from contact_estimation.codegen import compile_function
from contact_estimation.codegen.native import generate
from contact_estimation.filters.imm.contact_law import ContactForces, contacts_at
from contact_estimation.filters.imm.measurement import build_update
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import pack_array, unpack_array

Q = np.array([0.3, -1.2, 1.9, -2.0, -1.4, 0.2])
#: What the motion of the block adds to the variances of the elastic offsets [rad^2] and of the disturbances [Nm^2].
MOTION_NOISE = np.array([4e-10, 9e-10, 0.01, 0.5, 0.2, 0.1, 0.0, 0.3])

#: [m] Motion along the contacts' normals that shows no stiffness.
WITHIN_NOISE = np.array([2e-4, -1e-4])
#: Share of their rate at which the friction disturbances change.
FRICTION_MOVES = np.array([1.0, 0.0, 0.3, 0.5, 0.1, 0.7])
#: [1/s^0.5] and [s].
LAW_ERROR, DURATION = 0.3, 0.01

#: What of the motion from LAST to Q is not noise of the encoders: where it began.
STEADY_LAST = Q + np.array([5e-4, -3e-3, 1e-3, 1e-3, -1e-3, 0.0])

#: [m] Way along the normals that shows the stiffness, and the share of the depth that shows it in full.
NORMAL_WAY, STIFFNESS_WAY = np.array([2e-5, 1e-3]), 0.1
#: [rad] Rotation of the tool against the normals.
TURN = np.array([5e-4, 2e-4])
#: [1/m^0.5]
DEPTH_WALK = 3.0

SLIP = np.array([0.5, -0.6, 0.3])
#: Where the last block was, how far the tool slid [m], the normals' random walk [rad/m^0.5], and how far the torque
#: shows slope and lever.
LAST = Q + np.array([1e-3, -2e-3, 3e-3, 1e-3, -2e-3, 4e-3])
SLID = np.array([1e-3, -5e-4, 2e-4])
NORMAL_WALK = 0.3
SHOWN = 0.4
HYSTERESIS = 6e-5  # [rad]
NOISE_SHARE = np.array([1.0, 0.5, 1.0, 0.25, 0.4, 1.0, 0.6, 0.3])
POINT_Z = 6  # of the first contact in the state
LOAD = np.array([0.5, -9.0, -4.0, 1.0, 0.2, 0.1])


@pytest.fixture(scope="module")
def update(arm, layout):
    return compile_function(build_update(arm, layout))


def pose(arm, q):
    """Position and rotation (12,) of the TCP, column by column."""
    position, rotation = arm.tcp_pose(q)
    return np.concatenate([position, rotation.ravel(order="F")])


@pytest.fixture(scope="module")
def motion(arm, layout):
    """x -> the state after the arm has moved from LAST to Q, and its Jacobian: by tilt and point over what is steady of
    that motion."""
    x = ca.SX.sym("x", layout.size)
    steady = np.zeros(layout.size, bool)
    steady[2:7] = True  # a1, a2, p of the table
    moved = after_motion(arm, layout, x, LAST)
    slopes = ca.jacobian(moved, x) @ np.diag(~steady)
    slopes += ca.jacobian(after_motion(arm, layout, x, STEADY_LAST), x) @ np.diag(steady)
    return ca.Function("motion", [x], [moved, slopes])


def after_motion(arm, layout, x, start):
    """The state after the arm has moved from ``start`` to Q."""
    moved = ca.SX(x)
    (position, rotation), (before, turned) = arm.tcp_pose(Q), arm.tcp_pose(start)
    for i, contact in enumerate(layout.contacts):
        p = ca.SX(layout.inputs["theta"][contact.theta_where])
        p[contact.estimated] = x[contact.where]
        n0, t1, t2 = (ca.DM(v) for v in layout.basis[i].T)
        n = n0 + p[2] * t1 + p[3] * t2
        n /= ca.norm_2(n)
        way = ca.DM(position - before) + ca.DM(rotation - turned) @ p[4:7]
        moved[contact.where.start + 1] -= ca.dot(n, way)
        if contact.law.feels_slip:
            moved[contact.where.start + 2] -= ca.dot(t1, way)
            moved[contact.where.start + 3] -= ca.dot(t2, way)
    return moved


@pytest.fixture(scope="module")
def channels(arm, layout):
    """(x, s, closed) -> predicted measurements, normal forces and their Jacobians at Q, written once more."""
    x, s, closed = ca.SX.sym("x", layout.size), ca.SX.sym("s", 6), ca.SX.sym("closed", 2)
    theta, basis = layout.inputs["theta"], layout.inputs["basis"]
    kinematics = arm.kinematics(ca.SX(Q))
    at = contacts_at(layout, arm.tcp(kinematics), x, ca.SX(theta), ca.SX(basis), ca.SX(SLIP))
    contacts = ContactForces(arm, kinematics, at)
    torque, force = LOAD + contacts.joint_torque(closed), ca.vertcat(*[c.normal_force for c in contacts.contacts])
    deflection = (torque - arm.gravity(Q))[layout.elastic_joints] / ca.exp(x[layout.parts["joint_stiffness"]]) + x[
        layout.parts["offset"]
    ]
    friction = x[layout.parts["bias"]] + x[layout.parts["coulomb"]] * s + x[layout.parts["disturbance"]]
    predicted = ca.vertcat(deflection, torque - friction)
    # Friction of the contacts shows nothing about where and how firmly they press.
    rubs = ca.SX(6, 1)
    for i, contact in enumerate(contacts.contacts):
        if contact.part.friction:
            lever = arm.kinematics(ca.SX(Q)).point_jacobian(arm.tcp_frame, contact.point)
            rubs += closed[i] * lever.T @ contact.closed.axes[:, 1:] @ contact.closed.force[1:]
    rubbing = ca.jacobian(ca.vertcat(rubs[layout.elastic_joints] / ca.exp(x[layout.parts["joint_stiffness"]]), rubs), x)
    rubbing[:, 7:] = 0  # what is not ln K, d, a1, a2, p
    rubbing[:, 2:] *= 1 - SHOWN
    table = contacts.contacts[0]
    lever = arm.kinematics(ca.SX(Q)).point_jacobian(arm.tcp_frame, table.point)
    presses = closed[0] * lever.T @ table.normal * table.normal_force
    pressing = ca.vertcat(presses[layout.elastic_joints] / ca.exp(x[layout.parts["joint_stiffness"]]), presses)
    slopes = ca.jacobian(predicted, x) - rubbing
    geometry = [2, 3, 6]  # a1, a2, z of p: joint friction would pass as these
    slopes[:, geometry] -= (1 - SHOWN) * ca.jacobian(pressing, x)[:, geometry]
    tangential = table.axes[:, 1:].T @ table.force
    touching = closed[0] * lever.T @ table.force
    along_tool = ca.vertcat(touching[layout.elastic_joints] / ca.exp(x[layout.parts["joint_stiffness"]]), touching)
    outputs = [predicted, slopes, force, ca.jacobian(force, x), contacts.depth]
    outputs += [tangential, ca.jacobian(tangential, x), ca.jacobian(along_tool, x)[:, POINT_Z]]
    outputs.append((torque - LOAD)[layout.elastic_joints] / ca.exp(x[layout.parts["joint_stiffness"]]))
    return ca.Function("channels", [x, s, closed], outputs)


def problem(arm, layout, rng):
    """Arguments of an update, with the TCP half a millimetre below the rest of both contacts."""
    x = layout.mean + 0.2 * np.sqrt(layout.variance) * rng.standard_normal(layout.size)
    x[1] = x[layout.contacts[1].where.start + 1] = 5e-4
    scale = 0.3 * np.sqrt(layout.variance)
    mixing = rng.standard_normal((layout.size, layout.size))
    covariance = scale[:, None] * (mixing @ mixing.T / layout.size + np.eye(layout.size)) * scale
    decay, noise, _ = layout.drift(0.01)
    variance = np.concatenate([np.full(layout.m, 5e-5**2), np.full(6, 1.0)])
    return x, covariance, decay, noise, variance, rng.uniform(-1, 1, 6)


def evaluate(arm, update, layout, **values):
    """Results of the update by name; what is not given are the settings."""
    given = (
        layout.inputs
        | layout.bounds(free=True)
        | {"max_stiffness_step": 0.7, "touch": (1, 0), "pressed_before": (0.5, 0.5), "q_mean": Q}
    )
    given |= {
        "motion_noise": MOTION_NOISE,
        "felt": 0.0,
        "walk": 0.0,
        "motion_share": 1.0,
        "slip_direction": SLIP,
        "load": LOAD,
        "within_noise": WITHIN_NOISE,
        "friction_moves": FRICTION_MOVES,
        "law_variance": LAW_ERROR**2,
        "depth_variance": DEPTH_WALK**2,
        "tcp_pose": pose(arm, Q),
        "tcp_before": pose(arm, LAST),
        "slid": SLID,
        "normal_way": NORMAL_WAY,
        "turn": TURN,
        "steady_pose": pose(arm, Q),
        "steady_before": pose(arm, STEADY_LAST),
        "stiffness_way": STIFFNESS_WAY,
        "hysteresis": HYSTERESIS,
        "noise_share": NOISE_SHARE,
        "unit_stiffness": 1e4,
        "push_held": 1.0,
        "normal_variance": NORMAL_WALK**2,
        "geometry_from_torque": SHOWN,
        "point_from_torque": SHOWN,
        "duration": DURATION,
    } | values
    given |= dict.fromkeys(("push_covariance", "push_share", "push_regression", "relative_variance", "birth_time"), 0.0)
    given |= {"tcp_jacobian": np.ravel(arm.tcp_jacobian(Q)[:3], order="F")}
    given["P"] = pack_array(given["P"])
    assert set(given) == set(update.inputs)
    for name, buffer in update.inputs.items():
        buffer[:] = given[name]
    update()
    return {name: buffer.copy() for name, buffer in update.outputs.items()}


def run(arm, update, layout, x, covariance, decay, noise, y, variance, s, closed, gate, noise_share=NOISE_SHARE):
    given = {"x": x, "P": covariance, "decay": decay, "noise": noise, "y": y, "R": variance, "presliding_mean": s}
    found = evaluate(arm, update, layout, **given, closed=closed, gate=gate, noise_share=noise_share)
    covariance = unpack_array(found["P_next"], layout.size)
    return found["x_next"], covariance, found["log_likelihood"].item(), found["normalised"]


def as_moved(layout, decay, noise):
    """Decay and noise (N,) of friction disturbances that change at a share of their rate."""
    decay, noise, where = decay.copy(), noise.copy(), layout.parts["disturbance"]
    decay[where] = 1.0 - FRICTION_MOVES * (1.0 - decay[where])
    noise[where] *= FRICTION_MOVES
    return decay, noise


def moving(depths, way=NORMAL_WAY):
    """Shares (I,) of an update and of a random walk that a way (I,) [m] at ``depths`` (I,) [m] shows."""
    return np.minimum(way / (STIFFNESS_WAY * np.abs(depths) + 1e-9), 1.0) ** 4


def grown(layout, noise, covariance, depths, deeper):
    """Process noise (N,) of a block: that of its duration and of the ways ``deeper`` (I,) to ``depths`` (I,) [m], as
    far as it may grow, and what its motion adds."""
    noise = noise.copy()
    for contact, way, share in zip(layout.contacts, deeper, moving(depths)):
        k = contact.where.start
        noise[k] = (share * noise[k] + DEPTH_WALK**2 * abs(way)) * max(1 - covariance[k, k] / layout.variance[k], 0)
    motion = np.zeros(layout.size)
    motion[layout.parts["offset"]], motion[layout.parts["disturbance"]] = (
        MOTION_NOISE[: layout.m],
        MOTION_NOISE[layout.m :],
    )
    return noise + motion


def predicted(motion, layout, x, covariance, decay, noise):
    """State and covariance after the block's motion."""
    moved, jacobian = (np.array(v) for v in motion(x))
    decay, noise = as_moved(layout, decay, noise)
    before, last, x = covariance, x, decay * moved.ravel()
    depths = [contact.where.start + 1 for contact in layout.contacts]
    x[depths] += WITHIN_NOISE
    transition, added = jacobian @ np.diag(decay), grown(layout, noise, covariance, x[depths], (x - last)[depths])
    for contact, way in zip(layout.contacts, WITHIN_NOISE):
        k = contact.where.start
        added[k + 1] += LAW_ERROR**2 * DURATION * x[k + 1] ** 2 + way**2 * np.exp(before[k, k])
    covariance, along = transition @ before @ transition.T + np.diag(added), layout.basis[0][:, 1:].T @ SLID
    covariance[2:4, 2:4] += NORMAL_WALK**2 * np.outer(along, along) / np.linalg.norm(along)  # the table's tilt
    return x, covariance


def dense(motion, channels, layout, x, covariance, decay, noise, y, variance, s, closed, gate):
    """One measurement after the other, in the Joseph form.

    Errors of the stiffness leave the force as it is at the depth before the update, and at that after it.
    """
    stiffness = [contact.where.start for contact in layout.contacts]
    x, covariance = predicted(motion, layout, x, covariance, decay, noise)
    depth = np.array(channels(x, s, closed)[4]).ravel()
    known = (np.diag(covariance) / layout.variance)[stiffness]
    taken = np.ones(layout.size)
    taken[stiffness] = np.minimum(np.maximum(moving(depth), known), 1.0)
    points = [[k for k in contact.indices("point") if k is not None] for contact in layout.contacts]
    for i, point in enumerate(points):
        leaning = NORMAL_WAY + TURN * np.sqrt(layout.variance[point].sum())
        taken[point] = max(moving(depth, leaning)[i], SHOWN)
    joints = layout.parts["joint_stiffness"]
    told = y[layout.m :] - np.array(channels(x, s, closed)[0]).ravel()[layout.m :]
    told = np.clip(told, -gate * np.sqrt(variance[layout.m :]), gate * np.sqrt(variance[layout.m :]))
    told = np.array(channels(x, s, closed)[8]).ravel() + (told[layout.elastic_joints] / np.exp(x[joints]))
    bent = np.diag(covariance)[joints] * told**2
    taken[joints] = np.maximum(bent / (bent + HYSTERESIS**2 + 1e-18), max(closed * taken[stiffness]))
    likelihood, normalised = 0.0, []
    for k in range(len(y)):
        expected, jacobian = (np.array(v) for v in channels(x, s, closed)[:2])
        h, innovation = jacobian[k].copy(), y[k] - expected[k, 0]
        force, by, lever = (np.array(v) for v in channels(x, s, closed)[5:8])
        variance_of_force = np.trace(by @ covariance @ by.T)  # a lever shows by the force, not by its noise
        h[POINT_Z] -= SHOWN * lever[k, 0] * variance_of_force / ((force**2).sum() + variance_of_force + 1e-9)
        for at, deep, now in zip(stiffness, depth, np.array(channels(x, s, closed)[4]).ravel()):
            h[at] -= h[at + 1] * (now - deep)
        plain = h @ covariance @ h + variance[k]
        normalised.append(innovation / np.sqrt(plain))
        total = max(plain, innovation**2 / gate**2)
        noise_k = total - h @ covariance @ h
        gain = taken * (covariance @ h) / total
        step, slope = gain * innovation, np.eye(layout.size)
        depths = np.array(channels(x, s, closed)[4]).ravel()
        for i, (at, deep) in enumerate(zip(stiffness, depths)):
            rise = step[at] if step[at] > np.exp(0.7) - 1 else 0.0  # a step of K at the force of the linear one
            now = (deep + rise * depth[i] + step[at + 1]) / (1 + rise)
            slope[at, at] = slope[at + 1, at + 1] = 1 / (1 + rise)
            slope[at + 1, at] = (depth[i] - now) / (1 + rise)
            depth[i], step[at + 1] = now, now - deep
            step[at] = np.log(1 + rise) if rise else np.clip(step[at], -0.7, 0.7)
        x = x + step
        x[layout.bounded] = np.clip(x[layout.bounded], *layout.bounds(free=True).values())
        keep = np.eye(layout.size) - np.outer(gain, h)
        covariance = slope @ (keep @ covariance @ keep.T + noise_k * np.outer(gain, gain)) @ slope.T
        likelihood -= 0.5 * (np.log(NOISE_SHARE[k] * total) + innovation**2 / (NOISE_SHARE[k] * total))
    aligned = np.eye(layout.size)
    for k, before, after in zip(stiffness, depth, np.array(channels(x, s, closed)[4]).ravel()):
        aligned[k + 1, k] = before - after
    covariance = aligned @ covariance @ aligned.T
    force, slope = (np.array(v) for v in channels(x, s, closed)[2:4])
    z = force.ravel() / np.sqrt(np.diag(slope @ covariance @ slope.T))
    likelihood += np.array(closed) @ np.log(norm.cdf(np.maximum(z, -7)) / 0.5)  # they press, after against before
    likelihood += np.array(closed) @ np.log(norm.cdf(np.maximum(z + gate, -7)))  # they do not surely pull
    return x, covariance, likelihood, np.array(normalised)


@pytest.mark.parametrize("outlier", [0.0, 600.0])
def test_update_is_the_dense_one(arm, layout, update, motion, channels, outlier):
    rng = np.random.default_rng(5)
    x, covariance, decay, noise, variance, s = problem(arm, layout, rng)
    closed = (1.0, 1.0)
    y = np.array(channels(x, s, closed)[0]).ravel() + rng.standard_normal(len(variance)) * np.sqrt(variance)
    y[layout.m + 1] += outlier
    arguments = (x, covariance, decay, noise, y, variance, s, closed, 3.0)
    found, expected = run(arm, update, layout, *arguments), dense(motion, channels, layout, *arguments)
    std = np.sqrt(np.diag(expected[1]))
    np.testing.assert_allclose(found[0] / std, expected[0] / std, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1] / np.outer(std, std), expected[1] / np.outer(std, std), atol=1e-9)
    assert found[2] == pytest.approx(expected[2], rel=1e-9)
    np.testing.assert_allclose(found[3], expected[3], rtol=1e-9, atol=1e-12)


def test_with_open_contacts_it_is_the_joint_kalman_filter(arm, layout, update, motion, channels):
    """Friction enters linearly: a sequence of scalars equals one update with all of them, and the likelihood their
    joint one."""
    rng = np.random.default_rng(6)
    x, covariance, decay, noise, variance, s = problem(arm, layout, rng)
    covariance[layout.parts["joint_stiffness"]] = covariance[:, layout.parts["joint_stiffness"]] = (
        0.0  # k is what is not linear
    )
    noise[layout.parts["joint_stiffness"]] = 0.0
    closed = (0.0, 0.0)
    y = np.array(channels(x, s, closed)[0]).ravel() + rng.standard_normal(len(variance)) * np.sqrt(variance)
    found = run(arm, update, layout, x, covariance, decay, noise, y, variance, s, closed, 1e6, 1.0)
    x, covariance = predicted(motion, layout, x, covariance, decay, noise)
    expected, jacobian = (np.array(v) for v in channels(x, s, closed)[:2])
    innovation, spread = y - expected.ravel(), jacobian @ covariance @ jacobian.T + np.diag(variance)
    gain = np.linalg.solve(spread, jacobian @ covariance).T
    rest = slice(layout.parts["bias"].start, layout.size)
    np.testing.assert_allclose(found[0][rest], (x + gain @ innovation)[rest], rtol=1e-9, atol=1e-12)
    joint = (np.eye(layout.size) - gain @ jacobian) @ covariance
    std = np.sqrt(np.diag(layout.variance))[rest, rest].diagonal()
    np.testing.assert_allclose(
        found[1][rest, rest] / np.outer(std, std), joint[rest, rest] / np.outer(std, std), atol=1e-9
    )
    expected = -0.5 * (np.linalg.slogdet(spread)[1] + innovation @ np.linalg.solve(spread, innovation))
    assert found[2] == pytest.approx(expected, rel=1e-9)


def test_open_contacts_return_to_their_prior_where_the_arm_is(arm, layout, update):
    rng = np.random.default_rng(7)
    x, covariance, decay, noise, variance, s = problem(arm, layout, rng)
    found, spread, _, _ = run(
        arm, update, layout, x, covariance, decay, noise, np.zeros(len(variance)), variance, s, (0.0, 0.0), 3.0
    )
    expected, table, wall = layout.mean.copy(), layout.contacts[0].where.start, layout.contacts[1].where.start
    # The table's rest is 'touch', the wall's height is given; sideways a point that sticks is held where it is.
    expected[table + 1] = expected[wall + 2] = expected[wall + 3] = 0.0
    expected[wall + 1] = 0.4 - layout.basis[1][:, 0] @ arm.tcp_pose(Q)[0]
    for contact in layout.contacts:
        where = contact.where
        np.testing.assert_allclose(found[where], expected[where], atol=1e-12)
        assert np.abs(np.delete(spread[where], np.arange(where.start, where.stop), axis=1)).max() == 0
        # The gap is known at touch, wherever the surface and the point are.
        own, spread_of = spread[where, where], np.sqrt(layout.variance[where])
        np.testing.assert_allclose(own, np.diag(spread_of**2), atol=1e-18)


def test_a_contact_that_draws_back_loses_probability_at_once(arm, layout, update, channels):
    """Measurements that fit both ways: depth alone decides, and standing still says nothing."""
    x, covariance, decay, noise, variance, s = problem(arm, layout, np.random.default_rng(9))
    wall = layout.contacts[1].where.start

    def likelihood(gap, before):
        moved = x.copy()
        moved[wall + 1] = -gap
        y = np.array(channels(moved, s, (0.0, 1.0))[0]).ravel()
        given = {"x": moved, "P": covariance * 1e-8, "decay": np.ones_like(decay), "noise": 1e-8 * noise, "y": y}
        given |= {"R": variance, "presliding_mean": s, "motion_noise": 1e-8 * MOTION_NOISE, "closed": (0.0, 1.0)}
        given |= {"within_noise": 0.0, "law_variance": 0.0, "tcp_before": pose(arm, Q), "friction_moves": 1.0}
        found = evaluate(arm, update, layout, **given, gate=3.0, pressed_before=(0.5, before))
        return float(found["log_likelihood"].item()), float(found["pressed"][1])

    pressing, pressed = likelihood(-5e-4, 1.0)
    apart, off = likelihood(5e-4, 1.0)
    assert pressed == pytest.approx(1.0) and off < 1e-4
    # It pressed before and does not now, and it surely pulls: both are at their floor.
    assert pressing - apart == pytest.approx(-2 * np.log(off), rel=1e-3)
    assert likelihood(5e-4, off)[0] == pytest.approx(pressing + np.log(off), rel=1e-4)  # apart before: the pull remains


def test_an_outlier_moves_little_and_the_likelihood_stays_finite(arm, layout, update, channels):
    rng = np.random.default_rng(8)
    x, covariance, decay, noise, variance, s = problem(arm, layout, rng)
    y = np.array(channels(x, s, (1.0, 1.0))[0]).ravel()
    for size in (600.0, 1e6):
        spiked = y.copy()
        spiked[layout.m + 1] += size
        found = run(arm, update, layout, x, covariance, decay, noise, spiked, variance, s, (1.0, 1.0), 3.0)
        assert np.isfinite(found[2]) and abs(found[3][layout.m + 1]) > 3.0
    spiked = run(
        arm,
        update,
        layout,
        x,
        covariance,
        decay,
        noise,
        y + np.eye(len(y))[layout.m + 1] * 1e6,
        variance,
        s,
        (1.0, 1.0),
        3.0,
    )
    variance[layout.m + 1] = 1e12
    without = run(arm, update, layout, x, covariance, decay, noise, y, variance, s, (1.0, 1.0), 3.0)
    assert (np.abs(spiked[0] - without[0]) < 1e-3 * np.sqrt(np.diag(without[1]))).all()  # 1e6 Nm count for nothing


def test_torque_behind_joint_friction_shows_neither_slope_nor_lever(arm, layout, update, channels):
    """Not even a little of it where the tool slides on a slope: in minutes of sliding that adds up."""
    x, _, decay, _, variance, s = problem(arm, layout, np.random.default_rng(10))
    x[2:4], x[7:9] = [0.1, -0.08], [0.3, -0.2]  # tilted, with friction
    covariance, still = np.diag(0.3 * layout.variance), pose(arm, Q)
    y = np.array(channels(x, s, (1.0, 0.0))[0]).ravel() + 2 * np.sqrt(variance)
    given = {
        "x": x,
        "P": covariance,
        "decay": np.ones_like(decay),
        "noise": np.zeros_like(decay),
        "y": y,
        "R": variance,
    }
    given |= {"presliding_mean": s, "closed": (1.0, 0.0), "gate": 3.0, "slid": np.zeros(3), "steady_before": still}
    found = evaluate(arm, update, layout, **given, geometry_from_torque=0.0, point_from_torque=0.0)
    spread, geometry = unpack_array(found["P_next"], layout.size), [2, 3, POINT_Z]
    np.testing.assert_allclose(found["x_next"][geometry], x[geometry], rtol=1e-12)
    np.testing.assert_allclose(np.diag(spread)[geometry], np.diag(covariance)[geometry], rtol=1e-9)
    shown = evaluate(arm, update, layout, **given, geometry_from_torque=1.0)
    assert (np.abs(shown["x_next"] - x)[geometry] > 1e-3 * np.sqrt(np.diag(covariance))[geometry]).all()


def test_joints_hardly_stiffen_while_a_known_contact_holds_its_load(arm, layout, update, channels):
    """Only a contact that loads or unloads tells, beside the friction, the torque that bends them."""
    x, _, decay, _, variance, s = problem(arm, layout, np.random.default_rng(11))
    known, joints = np.diag(0.01 * layout.variance), layout.parts["joint_stiffness"]
    y = np.array(channels(x, s, (1.0, 0.0))[0]).ravel()
    y[: layout.m] += 2e-4
    given = {"x": x, "P": known, "decay": np.ones_like(decay), "noise": np.zeros_like(decay), "y": y, "R": variance}
    given |= {"presliding_mean": s, "closed": (1.0, 0.0), "gate": 3.0, "hysteresis": 1.0}

    def learnt(way):
        found = evaluate(arm, update, layout, **given, normal_way=np.array([way, 0.0]))
        return np.abs(found["x_next"] - x)[joints] / np.sqrt(np.diag(known))[joints]

    assert (learnt(way=1e-4) > 1e-3).all()
    assert (learnt(way=0.0) < 0.05 * learnt(way=1e-4)).all()


@pytest.mark.parametrize(("way", "grows"), [(0.0, False), (2e-6, False), (1e-3, True)])
def test_a_stiffness_does_not_change_while_the_arm_stands(arm, layout, update, way, grows):
    """Nor while a controller trembles: it would be less known every second, and then learn the errors of friction."""
    x, _, decay, noise, variance, s = problem(arm, layout, np.random.default_rng(12))
    known = np.diag(0.01 * layout.variance)
    given = {"x": x, "P": known, "decay": decay, "noise": noise, "y": np.zeros(len(variance)), "R": 1e12 * variance}
    given |= {"presliding_mean": s, "closed": (1.0, 0.0), "gate": 3.0, "depth_variance": 0.0}
    found = evaluate(arm, update, layout, **given, normal_way=np.array([way, 0.0]))
    change = unpack_array(found["P_next"], layout.size)[0, 0] - known[0, 0]
    assert noise[0] > 0.0
    assert change > 0.9 * noise[0] if grows else abs(change) < 0.01 * noise[0]


@pytest.mark.parametrize(
    ("way", "turn", "shown"), [(0.0, 0.0, False), (2e-6, 1e-5, False), (1e-3, 0.0, True), (0.0, 0.05, True)]
)
def test_torque_of_a_press_that_stands_shows_no_contact_point(arm, layout, update, channels, way, turn, shown):
    """The lever of a force that does not change is a bias of the torque."""
    x, _, decay, _, variance, s = problem(arm, layout, np.random.default_rng(13))
    known, point = np.diag(0.3 * layout.variance), [4, 5, POINT_Z]
    y = np.array(channels(x, s, (1.0, 0.0))[0]).ravel() + 2 * np.sqrt(variance)
    given = {"x": x, "P": known, "decay": np.ones_like(decay), "noise": np.zeros_like(decay), "y": y, "R": variance}
    given |= {"presliding_mean": s, "closed": (1.0, 0.0), "gate": 3.0}
    given |= {"geometry_from_torque": 0.0, "point_from_torque": 0.0}
    found = evaluate(arm, update, layout, **given, normal_way=np.array([way, 0.0]), turn=np.array([turn, 0.0]))
    moved = np.abs(found["x_next"] - x)[point] / np.sqrt(np.diag(known))[point]
    learnt = 1 - np.diag(unpack_array(found["P_next"], layout.size))[point] / np.diag(known)[point]
    assert moved.max() > 0.03 and learnt.max() > 1e-3 if shown else moved.max() < 1e-3 and learnt.max() < 1e-4


def test_torque_behind_the_gears_shows_the_point_and_compiles_nothing(arm, two_contacts, actuators, layout):
    behind = StateLayout(two_contacts, actuators, arm.n, link_side=True)
    assert behind.inputs["point_from_torque"].all() and not layout.inputs["point_from_torque"].any()
    assert generate([build_update(arm, behind)]) == generate([build_update(arm, layout)])


def hold(arm, layout, update, told, encoder_noise=1e-5, torque_noise=1.0):
    """Stiffness [N/m] and force [N] after 40 s in which a press of 50 N on 100 kN/m is held.

    Args:
        told: whether the noise of the encoders is told to the filter, or taken for motion.
        encoder_noise: of a block [rad].
        torque_noise: of a block [Nm], of all joints.
    """
    rng, normal = np.random.default_rng(8), layout.basis[0][:, 0]
    x, covariance, force, last = layout.mean.copy(), np.diag(0.01 * layout.variance), 50.0, pose(arm, Q)
    x[0], covariance[0, 0] = np.log(1e5), 0.04
    x[1] = force / 1e5
    decay, noise, _ = layout.drift(0.01)
    variance = np.concatenate([np.full(layout.m, 5e-5**2), np.full(6, torque_noise**2)])
    torque = LOAD + arm.tcp_jacobian(Q)[:3].T @ normal * force
    bent = (torque - arm.gravity(Q))[layout.elastic_joints] / np.exp(x[layout.parts["joint_stiffness"]])
    y = np.concatenate([x[layout.parts["offset"]] + bent, torque])
    for _ in range(4000):
        q = Q + rng.normal(0.0, encoder_noise, 6)
        now = pose(arm, q)
        given = {"x": x, "P": covariance, "decay": decay, "noise": noise, "R": variance, "q_mean": q}
        given |= {"presliding_mean": np.zeros(6), "closed": (1.0, 0.0), "gate": 3.0, "motion_noise": np.zeros(8)}
        given |= {"slip_direction": np.zeros(3), "within_noise": np.array([normal @ (now - last)[:3] * told, 0.0])}
        given |= {"law_variance": 0.02**2, "tcp_pose": now, "tcp_before": last, "slid": np.zeros(3)}
        given |= {"steady_before": pose(arm, Q)}
        found = evaluate(arm, update, layout, **given, y=y + rng.standard_normal(len(y)) * np.sqrt(variance))
        x, covariance, last = found["x_next"], unpack_array(found["P_next"], layout.size), now
    return np.exp(x[0]), np.exp(x[0]) * x[1]


def test_noise_of_a_steady_press_shows_neither_stiffness_nor_force(arm, layout, update):
    """The friction of the contact takes up noise of the torque, and the normal force must not follow it. Encoder noise
    that is taken for motion looks like a soft surface."""
    stiffness, force = hold(arm, layout, update, told=True)
    assert stiffness == pytest.approx(1e5, rel=0.1)
    assert force == pytest.approx(50.0, abs=4.0)
    assert hold(arm, layout, update, told=False)[0] < 5e4


def test_only_a_way_into_a_surface_makes_its_stiffness_less_known(arm, layout, update):
    """A press that is held learns as before."""

    def spread(sinks, walk):
        """Return the standard deviation of ln K after a block in which the arm sinks by ``sinks`` [m]."""
        lever = np.linalg.pinv(arm.tcp_jacobian(Q)[:3]) @ layout.basis[0][:, 0]
        x, covariance = layout.mean.copy(), np.diag(1e-4 * layout.variance)
        decay, noise, _ = layout.drift(0.01)
        told = {"tcp_pose": pose(arm, Q), "tcp_before": pose(arm, Q + lever * sinks), "depth_variance": walk**2}
        told |= {"R": np.full(layout.m + 6, 1e12), "y": np.zeros(layout.m + 6), "presliding_mean": np.zeros(6)}
        told |= {"within_noise": np.zeros(2), "closed": (1.0, 0.0), "gate": 3.0}
        found = evaluate(arm, update, layout, x=x, P=covariance, decay=decay, noise=noise, **told)
        return np.sqrt(unpack_array(found["P_next"], layout.size)[0, 0])

    assert spread(0.0, walk=2.0) == pytest.approx(spread(0.0, walk=0.0), rel=1e-9)
    sunk = np.sqrt(spread(0.01, walk=2.0) ** 2 - spread(0.01, walk=0.0) ** 2)
    assert sunk == pytest.approx(2.0 * np.sqrt(0.01), rel=0.02)


def touch(arm, layout, update, rng):
    """Stiffness [N/m] and force [N] half a second after a touch of 100 kN/m that was expected on 10 kN/m, within a
    factor of ten: 5 N in the first block, 10 N in the second, and then the arm stands."""
    normal, lever = layout.basis[0][:, 0], np.linalg.pinv(arm.tcp_jacobian(Q)[:3]) @ layout.basis[0][:, 0]
    x, spread, last = layout.mean.copy(), layout.variance.copy(), pose(arm, Q)
    x[0], x[1], spread[0], spread[1] = np.log(1e4), 0.0, np.log(10.0) ** 2, 4e-4**2
    spread[2:9] = 1e-12  # point, tilt and friction are known
    spread[layout.parts["bias"].start :] *= 0.01  # as after some time in free space
    covariance, (decay, noise, _) = np.diag(spread), layout.drift(0.01)
    variance = np.concatenate([np.full(layout.m, 5e-5**2), np.full(6, 0.3**2)])
    for k in range(50):
        force = min(5.0 * (k + 1), 10.0)
        q = Q - lever * force / 1e5
        torque = LOAD + arm.tcp_jacobian(q)[:3].T @ normal * force
        bent = (torque - arm.gravity(q))[layout.elastic_joints] / np.exp(layout.mean[layout.parts["joint_stiffness"]])
        y = np.concatenate([bent, torque]) + rng.standard_normal(len(variance)) * np.sqrt(variance)
        given = {"x": x, "P": covariance, "decay": decay, "noise": noise, "R": variance, "q_mean": q, "y": y}
        given |= {"presliding_mean": np.zeros(6), "closed": (1.0, 0.0), "gate": 3.0, "motion_noise": np.zeros(8)}
        given |= {"slip_direction": np.zeros(3), "within_noise": np.zeros(2), "law_variance": 0.02**2}
        given |= {"tcp_pose": pose(arm, q), "tcp_before": last, "slid": np.zeros(3)}
        last = pose(arm, q)
        found = evaluate(arm, update, layout, **given)
        x, covariance = found["x_next"], unpack_array(found["P_next"], layout.size)
    return np.exp(x[0]), np.exp(x[0]) * x[1]


def test_a_hard_surface_is_told_by_its_first_two_blocks(arm, layout, update):
    """Were a large step of ln K cut off, the rest position alone would follow, and the force could be anything."""
    found = [touch(arm, layout, update, np.random.default_rng(seed)) for seed in range(12)]
    stiffness, force = np.array(found).T
    assert np.abs(np.log(stiffness / 1e5)).max() < np.log(3.0)
    assert np.abs(force - 10.0).max() < 3.0
