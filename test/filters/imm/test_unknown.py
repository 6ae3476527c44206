"""A contact nobody told of: torque covariance, wrench, place among the modes, and pushes from another world."""

import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
import yaml
from scipy.interpolate import CubicSpline

from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.push_course import PushCourse, PushTracker
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.imm.unknown import (
    PushEnd,
    held_share,
    push_covariance,
    push_regression,
    push_response,
    tcp_wrench,
)
from contact_estimation.filters.kalman import pack_array, unpack_array
from contact_estimation.filters.registry import open_stream
from contact_estimation.robot import load_arm
from contact_estimation.settings import find_config, load_yaml

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
from contact_worlds import make_case
from rigid_body_recording import RATE, START, Push, RigidBodyArm, World, pushes, random_motion, record, surface, window

VARIANCE = np.square([16.0] * 3 + [3.2] * 3)


def test_push_covariance_is_that_of_random_wrenches_at_the_tool_and_at_the_links(arm):
    q = np.array([0.3, -1.2, 1.9, -2.0, -1.4, 0.2])
    kinematics = arm.kinematics(ca.SX(q))
    found = np.array(ca.DM(ca.evalf(push_covariance(arm, kinematics, ca.SX(VARIANCE), ca.SX(0.3)))))
    model, data = arm.model, arm.model.createData()
    jacobian = arm.tcp_jacobian(q)
    expected = jacobian.T @ np.diag(VARIANCE) @ jacobian
    pin.computeJointJacobians(model, data, q)
    for k in range(1, arm.n):
        place = data.oMi[k + 1].translation
        link = pin.getJointJacobian(model, data, k, pin.LOCAL_WORLD_ALIGNED)  # of link k - 1, at its own origin
        link[:3] -= pin.skew(place - data.oMi[k].translation) @ link[3:]
        expected += 0.3 * link.T @ np.diag(VARIANCE) @ link
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_contact_holds_an_arm_that_moves_slowly():
    share = [float(ca.evalf(held_share(ca.SX([way, 0.0, 0.0]), ca.SX(1e-3)))) for way in (0.0, 1e-4, 1e-3, 1e-2)]
    np.testing.assert_allclose(share, [1.0, 1.0, 0.5, 1e-4], rtol=2e-4)


@pytest.mark.parametrize("force", [[3.0, -4.0, 12.0], [0.0, 0.0, 0.0]], ids=["a push", "none"])
def test_motion_changes_a_push_by_its_two_stiffnesses(arm, force):
    q, way, stiffness = np.array([0.3, -1.2, 1.9, -2.0, -1.4, 0.2]), np.array([1e-5, -2e-5, 2e-5]), [2e4, 5e3]
    jacobian, direction = arm.tcp_jacobian(q)[:3], np.array(force) / max(np.linalg.norm(force), 1.0)
    found = push_response(ca.SX(jacobian), ca.SX(force), ca.SX(stiffness), ca.SX(way))
    matrix = 5e3 * np.eye(3) + 1.5e4 * np.outer(direction, direction)
    np.testing.assert_allclose(np.array(ca.DM(ca.evalf(found))).ravel(), -jacobian.T @ matrix @ way, rtol=1e-9)


def test_the_force_of_a_push_is_regressed_on_its_torque():
    rng = np.random.default_rng(5)
    jacobian = rng.normal(size=(6, 7))
    covariance = jacobian.T @ np.diag(VARIANCE) @ jacobian + np.diag(rng.uniform(1.0, 2.0, 7))
    found = ca.evalf(push_regression(ca.SX(jacobian), ca.SX(covariance), ca.SX(VARIANCE)))
    expected = (np.diag(VARIANCE) @ jacobian)[:3] @ np.linalg.inv(covariance)
    np.testing.assert_allclose(np.array(ca.DM(found)), expected, rtol=1e-4)  # a share of 1e-8 regularises it


@pytest.mark.parametrize("stiffness", [3e3, 1e4, 3e4])
def test_a_wall_that_nobody_told_of_shows_its_stiffness(stiffness):
    """A Hunt-Crossley wall beside the tool of an FR3, pressed with some 20 N, then swayed along its normal."""
    arm, t = RigidBodyArm("fr3"), np.arange(7 * RATE) / RATE
    depth = 20.0 / stiffness
    way = (0.005 + depth) * window(t, 1.5, 6.5, 1.0) + 0.3 * depth * np.sin(3.0 * t) * window(t, 3.0, 5.5, 0.5)
    q, pose, path = np.array(START["fr3"]), arm.pose(np.array(START["fr3"])), []
    for step in way[::20]:
        q = arm.reach(pose.translation + step * np.array([0.0, 1.0, 0.0]), pose.rotation, q)
        path.append(q)
    theta = CubicSpline(t[::20], np.array(path))(t)
    wall = surface(arm, pose.translation + [0.0, 0.005, 0.0], np.array([0.0, -1.0, 0.0]), stiffness)
    recording = record(arm, theta, wall, World())
    stream = open_stream("fr3", "contact_imm", None)
    samples = recording.samples()
    told = [stream.push(*sample).contacts[-1] for sample in samples]
    held = np.flatnonzero((t > 4.0) & (t < 5.0))
    planted = np.linalg.norm(recording.force[held].std(axis=0)) / way[held].std()  # it stiffens with depth
    vector = np.array([told[k].stiffness for k in held])
    assert np.linalg.norm(vector, axis=1).mean() == pytest.approx(planted, rel=0.25)
    assert (vector[:, 1] < -0.95 * np.linalg.norm(vector, axis=1)).all()  # it is that along the wall's normal
    std = np.sqrt([np.trace(told[k].covariance[:3, :3]) for k in held])
    assert (np.abs(np.linalg.norm(vector, axis=1) - planted) < 3 * std + 0.1 * planted).all()


def test_a_push_that_reverses_has_probably_ended():
    chain = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1)
    unknown, free = chain.unknown > 0, ~chain.combinations.any(axis=1) & (chain.unknown == 0)
    leaves = [
        chain.transition(1e-4, push=PushCourse(reverses=reverses))[chain.felt > 0][:, chain.free].sum(axis=1)
        for reverses in (False, True)
    ]
    assert unknown.sum() == free.sum() == 2
    np.testing.assert_allclose(leaves, 1e-4 * np.array([[2.0] * 3, [20.0] * 3]), rtol=1e-2)
    np.testing.assert_allclose(chain.transition(0.05, push=PushCourse(True, True)).sum(axis=1), 1.0)


def test_no_contact_closes_in_the_place_of_a_push_that_ends():
    chain = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1)
    steady, ending = (chain.transition(0.01, push=PushCourse(ends=ends)) for ends in (False, True))
    closed, felt = chain.closed.any(axis=1), chain.felt > 0
    assert steady[felt][:, closed].min() > 0 and (ending[felt][:, closed] == 0).all()
    np.testing.assert_allclose(ending[~felt], steady[~felt])
    np.testing.assert_allclose(ending.sum(axis=1), 1.0)


@pytest.mark.parametrize("along, ends, reverses", [(1.0, False, False), (0.2, True, False), (-0.2, True, True)])
def test_the_course_of_a_push_is_told_against_its_mean(along, ends, reverses):
    mean = np.array([3.0, -4.0, 12.0])
    assert PushCourse.of(along * mean, mean) == (ends, reverses)
    assert PushCourse.of(np.zeros(3), np.zeros(3)) == (False, False)


def test_the_wrench_at_the_tool_is_the_one_that_pushed():
    rng = np.random.default_rng(3)
    jacobian, wrench = rng.normal(size=(6, 7)), rng.normal(0, [20.0] * 3 + [2.0] * 3)
    torque, covariance = jacobian.T @ wrench, 1e-6 * np.eye(7)
    found, spread = tcp_wrench(ca.SX(jacobian), ca.SX(torque), ca.SX(covariance), ca.SX(100 * VARIANCE))
    np.testing.assert_allclose(np.array(ca.DM(ca.evalf(found))).ravel(), wrench, rtol=1e-5)
    expected = np.linalg.inv(np.diag(0.01 / VARIANCE) + jacobian @ np.linalg.inv(covariance) @ jacobian.T)
    np.testing.assert_allclose(np.array(ca.DM(ca.evalf(spread))), expected, rtol=1e-3, atol=1e-10)


def test_the_wrench_stays_finite_where_the_jacobian_is_singular():
    jacobian = np.zeros((6, 6))
    jacobian[:5, :5] = np.eye(5)
    jacobian[4, 5] = 1e-9
    found, spread = tcp_wrench(ca.SX(jacobian), ca.SX(np.ones(6)), ca.SX(0.01 * np.eye(6)), ca.SX(VARIANCE))
    assert np.abs(np.array(ca.DM(ca.evalf(found)))).max() < 1.1
    assert np.array(ca.DM(ca.evalf(spread)))[5, 5] == pytest.approx(VARIANCE[5])


def test_rates_of_the_unknown_contact_are_the_settings():
    chain = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1, steady_rate=0.5)
    assert chain.names == ["free", "contact_1", "unknown"]
    from_free = [[-2.7, 1.0, 0.2, 0.5, 1.0], [1.0, 1.0, 0.2, 0.5, -2.7]]  # friction that changes, and steady friction
    from_touch = [[1.5, -3.51, 0.01, 0.5, 1.5], [1.0, 1.0, -6.0, 3.0, 1.0], [1.0, 1.0, 3.0, -6.0, 1.0]]
    rates = [from_free[0], *from_touch, from_free[1]]
    np.testing.assert_allclose(chain.rates, rates)
    np.testing.assert_allclose(chain.transition(0.05).sum(axis=1), 1.0)


def test_a_steady_push_starts_from_a_changing_one():
    chain = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1)
    matrix = chain.transition(0.01)
    known, steady = chain.felt == 0, -2
    assert (matrix[known, steady] == 0).all() and matrix[~known, steady].min() > 0
    assert chain.walk[steady] == 0.03 and chain.walk[~known].max() == 1.0
    np.testing.assert_array_equal(chain.of_combinations(np.full(len(chain.owner), 1.0)), [2.0, 1.0, 3.0])


def test_free_space_and_a_push_have_filters_of_steady_friction():
    chain = ModeChain(ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])]), 1)
    assert chain.steady_friction.tolist() == [False, False, True, True, True, True]
    assert chain.free.tolist() == [True, False, False, False, False, True]


def test_there_is_no_unknown_contact_where_the_arm_is_never_free():
    settings = ImmSettings(contacts=[ImmContact(normal=[0, 0, 1])], modes=[["contact_1"]])
    assert not settings.has_unknown and ModeChain(settings, 1).names == ["contact_1"]


def run(recording, robot, sensors, observer="contact_imm"):
    """Forces, torques and modes of an observer."""
    stream = open_stream(robot, observer, sensors)
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    return (np.array(v) for v in zip(*[(e.force_tcp, e.tau_ext, e.mode) for e in found]))


def test_the_external_torque_of_the_mode_is_told_with_its_covariance():
    arm, t = RigidBodyArm("fr3"), np.arange(3 * RATE) / RATE
    plan = [Push(1.5, 4.0, np.array([0.0, 20.0, 10.0]))]
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, plan, t), World())
    stream = open_stream("fr3", "contact_imm", None)
    before = stream.observer.external_torque.probability
    for sample in zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau):
        stream.push_fast(*sample)
    found = stream.observer.external_torque
    assert before < 0.5 and found.probability > 0.99
    error = found.torque - recording.torque[-1]
    assert np.linalg.norm(error) < 0.15 * np.linalg.norm(recording.torque[-1])
    assert error @ np.linalg.solve(found.covariance, error) < 24.3  # chi-square of 7, 99.9 %


def test_a_push_is_less_certain_after_a_reversal_that_its_friction_did_not_follow():
    arm, t = RigidBodyArm("ur16e"), np.arange(4 * RATE) / RATE
    plan = [Push(1.2, 5.0, np.array([0.0, 30.0, 50.0]))]
    path = 1e-3 * (window(t, 0.2, 5.0, 0.4) - window(t, 2.6, 5.0, 0.6))  # [rad] there, and back under the push
    recording = record(arm, np.array(START["ur16e"]) + path[:, None], pushes(arm, plan, t), World())
    stream, variance = open_stream("ur16e", "contact_imm", "ur16e_driver"), {}
    for k, sample in enumerate(zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau)):
        stream.push_fast(*sample)
        if k in (2 * RATE, 5 * RATE // 2, len(t) - 1):
            variance[k / RATE] = np.diag(stream.observer.external_torque.covariance)
    still, moved = (variance[at] / variance[2.0] for at in (2.5, (len(t) - 1) / RATE))
    assert (still < 1.2).all() and (moved[[0, 3, 4, 5]] > 1.5).all()
    assert (moved[[1, 2]] < moved[3]).all()  # the deflection of shoulder and elbow measures the push as well


@pytest.mark.parametrize("force", [[8.0, -12.0, -30.0], [8.5, 0.0, 8.5]], ids=["a pull", "45 degrees off"])
def test_a_push_that_does_not_fit_a_known_contact_is_none(force):
    arm, t = RigidBodyArm("fr3"), np.arange(4 * RATE) / RATE
    plan = [Push(1.5, 3.5, np.array(force))]
    theta = random_motion("fr3", t, np.random.default_rng(8), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, plan, t), World())
    found, _, mode = run(recording, "fr3", None)
    held = (t > 1.9) & (t < 3.1)
    assert (mode[held] == "unknown").all() and np.linalg.norm(found - recording.force, axis=1)[
        held
    ].mean() < 0.1 * np.linalg.norm(force)


@pytest.mark.parametrize("robot, sensors, limit", [("fr3", None, 0.05), ("ur16e", "ur16e_driver", 0.12)])
def test_pushes_from_the_side_are_seen_and_end(robot, sensors, limit):
    arm, t = RigidBodyArm(robot), np.arange(8 * RATE) / RATE
    size = 25.0 if robot == "fr3" else 60.0
    plan = [Push(2.0, 3.5, size * np.array([0.0, 0.6, 0.8])), Push(5.0, 6.5, size * np.array([0.0, -0.8, -0.6]))]
    theta = random_motion(robot, t, np.random.default_rng(4), 0.1, 1.0)
    recording = record(arm, theta, pushes(arm, plan, t), World(coulomb=0.7, presliding=2.0))
    force, torque, mode = run(recording, robot, sensors)
    for push in plan:
        held = (t > push.start + 0.5) & (t < push.end - 0.3)
        assert np.linalg.norm(force - recording.force, axis=1)[held].mean() < limit * size
        assert np.linalg.norm(torque - recording.torque, axis=1)[held].mean() < limit * size
        assert (mode[held] != "free").all()
    after = ((t > 3.6) & (t < 5.0)) | (t > 6.6)
    assert (mode[after] == "free").all() and np.linalg.norm(force[after], axis=1).max() < 3.0


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_the_error_of_a_push_is_not_larger_than_its_covariance_says(noise):
    """Twelve pushes: e^T P^-1 e stays below the upper end of the 95 % band of chi-square, also on a noisy arm."""
    inside, t, rng = [], np.arange(6 * RATE) / RATE, np.random.default_rng(7)
    for seed in range(6):
        arm, size = RigidBodyArm("fr3"), rng.normal(size=(2, 3))
        size *= 25.0 / np.linalg.norm(size, axis=1)[:, None]
        plan = [Push(2.0, 3.2, size[0]), Push(4.2, 5.6, size[1])]
        theta = random_motion("fr3", t, rng, 0.0, 1.0)
        recording = record(arm, theta, pushes(arm, plan, t), World(seed=seed, noise=noise))
        stream = open_stream("fr3", "contact_imm", None)
        for k, sample in enumerate(zip(recording.stamps.tolist(), recording.q, recording.dq, recording.tau)):
            stream.push_fast(*sample)
            if k % 25 == 0 and any(p.start + 0.5 < t[k] < p.end - 0.3 for p in plan):
                found = stream.estimate()
                error = found.force_tcp - recording.force[k]
                inside.append(error @ np.linalg.solve(found.force_covariance, error) < 9.35)
    assert np.mean(inside) > 0.9


@pytest.mark.parametrize("left, ends", [(1.0, True), (6.0, False)])
def test_a_push_ends_where_its_torque_may_be_zero(left, ends):
    """Friction that changed during the push is an error of the torque and of the friction disturbance alike, and what
    the push left of a deflection one of its offset."""
    size, disturbance, offset, external, rng = 9, slice(1, 4), slice(4, 6), slice(6, 9), np.random.default_rng(3)
    root, drift, both = rng.normal(size=(size, size)), rng.uniform(1.0, 2.0, 3), np.zeros((size, 3))
    both[disturbance] = both[external] = np.eye(3)
    known, x = root @ root.T, rng.normal(size=size)
    slack = np.array([0.5, 0.8])  # of the offsets, and by the regression on them of the torque
    loose = known[:, offset] @ np.linalg.inv(known[offset, offset]) * slack
    covariance = known + both * drift @ both.T + loose @ loose.T
    x[external] = left * np.linalg.cholesky(covariance[external, external])[:, 0]  # as many standard deviations
    given, p = x.copy(), pack_array(known)
    assert PushEnd(size, external, disturbance, offset, 0.05).apply(x, p, drift, slack) is ends
    if not ends:
        np.testing.assert_array_equal(x, given)
        np.testing.assert_array_equal(p, pack_array(known))
        return
    information = np.linalg.inv(covariance)  # the conditional distribution is a part of the information form
    kept, told = slice(0, 6), information[:6, 6:] @ given[external]
    np.testing.assert_allclose(x[kept], given[kept] + np.linalg.solve(information[kept, kept], told), atol=1e-9)
    np.testing.assert_allclose(unpack_array(p, size)[kept, kept], np.linalg.inv(information[kept, kept]), atol=1e-9)
    np.testing.assert_allclose(x[external], 0.0, atol=1e-12)


@pytest.mark.parametrize("rank", [0, 2, 3])
def test_a_push_ends_whatever_the_rank_of_its_covariance(rank):
    rng, external = np.random.default_rng(4), slice(4, 8)
    end, steady = PushEnd(8, external, slice(0, 4), slice(0), 0.05), (np.zeros(4), np.zeros(0))
    root = np.zeros((8, 10))
    root[:4] = rng.normal(size=(4, 10))
    root[external, :rank] = rng.normal(size=(4, rank))  # torque that only ``rank`` sources cause
    covariance, sources = root @ root.T, np.zeros(10)
    sources[:rank] = 0.5
    x = root @ sources  # a state that its covariance allows
    p = pack_array(covariance)
    assert end.apply(x, p, *steady)
    np.testing.assert_allclose(x, 0.0, atol=1e-12)  # what moved the torque moved the rest
    left = root[:4, rank:] @ root[:4, rank:].T  # the sources of the torque are known, the others are not
    np.testing.assert_allclose(unpack_array(p, 8)[:4, :4], left, atol=1e-12)
    if rank:
        assert not end.apply(20 * root @ sources, pack_array(covariance), *steady)


def test_a_push_at_the_tool_alone_is_seen_and_ends_on_seven_joints(tmp_path):
    config = load_yaml(find_config("observers", "contact_imm", load_arm("fr3").settings.folder))
    config["unknown"]["link_share"] = 0.0  # the covariance of its torque has rank 6
    (path := tmp_path / "observer.yaml").write_text(yaml.safe_dump(config))
    arm, t = RigidBodyArm("fr3"), np.arange(5 * RATE) / RATE
    plan = [Push(1.5, 3.0, np.array([15.0, -10.0, 15.0]))]
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, plan, t), World())
    force, _, mode = run(recording, "fr3", None, str(path))
    held = (t > 1.9) & (t < 2.7)
    assert np.linalg.norm(force - recording.force, axis=1)[held].max() < 0.8
    assert (mode[held] != "free").all() and (mode[t > 3.1] == "free").all()


def test_a_push_lets_go_although_friction_took_a_part_of_it():
    stream, arm = open_stream("ur16e", "contact_imm"), load_arm("ur16e")
    observer, q, rng = stream.observer, np.array(START["ur16e"]), np.random.default_rng(0)
    push = arm.tcp_jacobian(q)[:3].T @ np.array([60.0, 0.0, 0.0])

    def hold(seconds, external):
        for _ in range(round(seconds * RATE)):
            noise = rng.normal(0.0, 0.3, arm.n)
            observer.step(1 / RATE, q, np.zeros(arm.n), arm.gravity(q) - external + noise)
        return observer.estimate()

    observer.reset(0.0, q)
    assert hold(1.0, np.zeros(arm.n)).mode == "free"
    assert hold(0.5, push).mode == "unknown"
    step, parts = observer.filters, observer.layout.parts
    taken = np.array([10.0, 14.0, 6.0, 3.0, 1.0, 0.5])  # [Nm]
    step.x[:, parts["bias"]] += taken
    step.x[observer.chain.felt > 0, parts["external"]] += taken  # the difference of both is what is measured
    assert hold(0.1, np.zeros(arm.n)).mode == "free"


def test_nothing_is_felt_where_nothing_pushes():
    arm, t = RigidBodyArm("fr3"), np.arange(8 * RATE) / RATE
    theta = random_motion("fr3", t, np.random.default_rng(6), 0.3, 2.0)
    force, _, mode = run(record(arm, theta, pushes(arm, [], t), World(coulomb=2.0)), "fr3", None)
    assert (mode[RATE:] == "free").all() and np.abs(force[RATE:]).max() < 1.0


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("speed", [1.0, 3.0])
def test_nothing_is_felt_where_an_arm_sets_off_after_a_long_rest(seed, speed):
    """The evidence has become sharp in the rest; friction of up to twice the expected size begins to change then."""
    arm, t = RigidBodyArm("fr3"), np.arange(16 * RATE) / RATE
    rng = np.random.default_rng(seed)
    theta = random_motion("fr3", t, rng, 0.0, 1.0)
    phase, still = rng.uniform(0, 2 * np.pi, theta.shape[1]), window(t, 12.0, 20.0, 0.3)[:, None]
    theta = theta + 0.2 * still * (np.sin(speed * (t - 12.0)[:, None] + phase) - np.sin(phase))
    recording = record(arm, theta, pushes(arm, [], t), World(seed=seed, coulomb=2.0, noise=0.7))
    force, _, mode = run(recording, "fr3", None)
    assert (mode[RATE:] == "free").all() and np.abs(force[RATE:]).max() < 1.5


def test_a_push_at_a_quiet_arm_is_named_sooner_than_by_the_noise_of_its_settings(tmp_path):
    arm, t, named = RigidBodyArm("fr3"), np.arange(4 * RATE) / RATE, {}
    theta = random_motion("fr3", t, np.random.default_rng(4), 0.0, 1.0)
    recording = record(arm, theta, pushes(arm, [Push(3.0, 5.0, np.array([12.0, -9.0, 0.0]))], t), World())
    actuators, observer = tmp_path / "actuators.yaml", tmp_path / "observer.yaml"
    for share in (0.25, 1.0):
        values = load_yaml(find_config("actuators", "fr3")) | {"least_noise_share": share}
        actuators.write_text(yaml.safe_dump(values))
        shipped = load_yaml(find_config("observers", "contact_imm", load_arm("fr3").settings.folder))
        observer.write_text(yaml.safe_dump(shipped | {"actuators": str(actuators)}))
        _, _, mode = run(recording, "fr3", None, str(observer))
        assert (mode[RATE : 3 * RATE] == "free").all()
        named[share] = np.argmax(mode[3 * RATE :] != "free") / RATE
    assert 0 < named[0.25] < 0.7 * named[1.0] < 0.1


@pytest.mark.parametrize("load", [[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]])
def test_a_push_at_a_resting_link_next_to_the_base_is_seen_as_long_as_it_lasts(load):
    """It loads two joints of an FR3 with 1 Nm: the friction of an arm at rest does not change by that."""
    arm, t, offset = RigidBodyArm("fr3"), np.arange(6 * RATE) / RATE, np.array([0.0, -0.06, -0.1])
    theta = random_motion("fr3", t, np.random.default_rng(0), 0.0, 1.0)
    arm.pose(theta[0])
    force = np.linalg.pinv(arm.jacobian(theta[0], 1, offset)[:, :2].T) @ load
    plan = [Push(2.0, 4.0, force, link=1, offset=offset)]
    recording = record(arm, theta, pushes(arm, plan, t), World())
    _, torque, mode = run(recording, "fr3", None)
    held = (t > 2.6) & (t < 3.7)
    assert (mode[held] == "unknown").all() and np.abs(torque - recording.torque)[held].max() < 0.4
    free = ((t > 1.0) & (t < 2.0)) | (t > 4.2)
    assert (mode[free] == "free").all()


@pytest.mark.parametrize("pushed", [True, False])
def test_rest_decides_a_start_in_free_space_only(pushed):
    observer, arm, q = open_stream("ur16e", "contact_imm").observer, load_arm("ur16e"), np.array(START["ur16e"])
    chain, told, rng = observer.chain, [], np.random.default_rng(1)
    transition = chain.transition
    chain.transition = lambda dt, deciding, push: (told.append(deciding), transition(dt, deciding, push))[1]
    push = pushed * arm.tcp_jacobian(q)[:3].T @ np.array([60.0, 0.0, 0.0])

    def go(seconds, speed):
        for _ in range(round(seconds * RATE)):
            q[:] += speed / RATE
            noise = rng.normal(0.0, 0.3, arm.n)
            observer.step(1 / RATE, q, np.full(arm.n, speed), arm.gravity(q) - push + noise)
        return told[-1]  # births ask for the transitions every tenth of a second

    observer.reset(0.0, q)
    assert go(0.1, 0.0)
    assert go(0.9, 0.0) is pushed
    assert not go(0.5, 0.01)


@pytest.mark.parametrize("seed", [11, 22])
def test_hysteresis_of_gears_is_neither_their_stiffness_nor_a_force_that_stays(seed):
    """A tool presses twice against a ceiling; the gears' deflection has a loop of 60 to 130 urad to either side."""
    recording = make_case("ur16e", "ceiling", seed).recording
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    error = np.linalg.norm([e.force_tcp for e in found] - recording.force, axis=1)
    assert np.sqrt((error[recording.touched] ** 2).mean()) < 7.0
    after = recording.touched.copy()
    for end in np.flatnonzero(np.diff(recording.touched.astype(int)) < 0):
        after[end : end + round(0.5 * RATE)] = True
    assert {e.mode for e, busy in zip(found[RATE:], after[RATE:]) if not busy} == {"free"}


@pytest.mark.parametrize(
    ("row", "seed"), [("link push, moving", 51), ("tool push, moving", 54), ("tool push, moving", 78)]
)
def test_what_friction_keeps_of_a_push_does_not_stay_a_contact(row, seed):
    """Friction of a moving UR16e changes during a push. Free space has to show over some blocks that it fits better."""
    case = make_case("ur16e", row, seed)
    recording = case.recording
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    samples = recording.samples()
    free = np.array([stream.push(*sample).mode == "free" for sample in samples])
    for start, end in np.flatnonzero(np.diff(recording.touched.astype(int))).reshape(-1, 2):
        held = slice(start + round(case.rise * RATE) + RATE // 5, end - round(case.rise * RATE))
        assert free[held].mean() < 0.02
        later = slice(end + round(0.15 * RATE), end + round(0.6 * RATE))
        assert free[later].mean() > 0.98


@pytest.mark.parametrize("seconds", [0.1, 0.2])
def test_the_covariance_of_a_short_touch_holds_its_lag(seconds):
    """The force changes by up to 10 N in a block; nothing but its own correction shows that."""
    arm, rng = RigidBodyArm("fr3"), np.random.default_rng(3)
    t = np.arange(10 * RATE) / RATE
    sides = [side / np.linalg.norm(side) for side in rng.normal(size=(8, 3))]
    plan = [Push(1.5 + k, 1.5 + k + seconds, 40.0 * side, rise=0.4 * seconds) for k, side in enumerate(sides)]
    recording = record(arm, random_motion("fr3", t, rng, 0.0, 1.0), pushes(arm, plan, t), World())
    stream = open_stream("fr3", "contact_imm", None)
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    touched = np.flatnonzero((np.linalg.norm(recording.force, axis=1) > 2) & [e.mode != "free" for e in found])
    error = np.array([found[k].force_tcp - recording.force[k] for k in touched])
    std = np.array([np.sqrt(np.diag(found[k].force_covariance)) for k in touched])
    assert len(touched) > 0.5 * len(plan) * seconds * RATE
    assert np.mean(np.abs(error) < 2 * std) > 0.8


def test_a_force_against_its_recent_mean_is_not_held_by_motion():
    signals = {"push_regression": np.eye(3).ravel()}
    tracker, push = PushTracker(signals), np.array([0.0, 0.0, 10.0])
    tracker.set_interval(0.01)
    for _ in range(50):
        tracker.follow(push)
    assert tracker.course == (False, False) and tracker.held[0] == 1.0
    tracker.follow(-push)
    assert tracker.course == (True, True) and tracker.held[0] == 0.0
    tracker.reset()
    assert tracker.course == (False, False) and tracker.held[0] == 1.0
