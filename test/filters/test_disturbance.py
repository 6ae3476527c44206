"""The disturbance Kalman filter, on motions by Pinocchio's inverse dynamics and pushes drawn at random."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import load_arm

DT, N = 0.002, 1500
LINK = SensorSettings(torque_side="link")


def world(arm, seed, pushed=True):
    """q, dq, tau (N, n) and the force (N, 3): a slow motion, a push of 30 N in a random direction from 1 to 2 s."""
    rng, t = np.random.default_rng(seed), DT * np.arange(N)
    middle, size, rate = arm.settings.ready, 0.15, rng.uniform(0.5, 2.0, arm.n)
    q = middle + size * np.sin(np.outer(t, rate))
    dq, ddq = size * rate * np.cos(np.outer(t, rate)), -size * rate**2 * np.sin(np.outer(t, rate))
    direction = rng.standard_normal(3)
    force = 30.0 * direction / np.linalg.norm(direction) * ((t >= 1.0) & (t < 2.0))[:, None] * pushed
    model, data = arm.model, arm.model.createData()
    frame = model.getFrameId(arm.tcp_frame)
    base = model.frames[model.getFrameId(arm.base_frame)].placement.rotation
    tau = np.empty_like(q)
    for k, row in enumerate(q):
        jacobian = pin.computeFrameJacobian(model, data, row, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
        tau[k] = pin.rnea(model, data, row, dq[k], ddq[k]) - jacobian.T @ (base @ force[k])
    return q, dq, tau + 0.05 * rng.standard_normal(tau.shape), force


def run(arm, signals, **changes):
    settings = dataclasses.replace(load_observer_settings("disturbance"), **changes)
    observer = make_observer(arm, settings, sensors=LINK)
    observer.reset(0.0, signals[0][0])
    rows = []
    for q, dq, tau in zip(*signals[:3]):
        observer.step(DT, q, dq, tau)
        rows.append(observer.estimate())
    return rows


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


@pytest.fixture(scope="module", params=[0, 1, 2])
def pushed(arm, request):
    signals = world(arm, request.param)
    return signals[3], run(arm, signals)


def test_a_push_in_any_direction_is_recovered_in_motion(pushed):
    force, rows = pushed
    found = np.array([e.force_base for e in rows])
    error = np.linalg.norm(found - force, axis=1)
    assert error[700:1000].max() < 4.0 and np.sqrt(np.mean(error[700:1000] ** 2)) < 2.5
    assert error[1200:].max() < 4.0, "what is left half a second after the push"


def test_its_covariance_holds_the_error(arm, pushed):
    force, rows = pushed
    _, rotations = arm.tcp_poses(np.array([e.q for e in rows]))
    outside, squares = 0, []
    for k in range(600, N, 10):
        e = rows[k]
        error = e.force_tcp - rotations[k].T @ force[k]
        spread = np.linalg.eigvalsh(e.force_covariance)
        assert spread.min() > 0 and spread.max() < 100.0**2
        outside += np.sum(error**2) > 9 * spread.sum()
        squares.append(error @ np.linalg.solve(e.force_covariance, error) / 3)
    assert outside == 0
    assert 0.03 < np.mean(squares) < 1.0  # this world has no friction, which most of the covariance is for


def test_it_is_compiled_and_consistent_in_free_motion(arm):
    rows = run(arm, world(arm, 5, pushed=False))
    force = np.array([e.force_base for e in rows[200:]])
    spread = np.sqrt(np.array([np.diag(e.force_covariance) for e in rows[200:]]))
    assert (np.abs(force) < 2 * spread).mean() > 0.95
    assert np.linalg.norm(force, axis=1).max() < 4.0


def test_a_slow_random_walk_follows_later(arm):
    """20 ms after the onset of a push; friction disturbances that may change keep it from being blind."""
    signals = world(arm, 0)
    errors = []
    for changes in ({}, {"force_random_walk": 0.3, "torque_random_walk": 0.03}):
        rows = run(arm, tuple(x[:511] for x in signals), **changes)
        errors.append(np.linalg.norm(rows[510].force_base - signals[3][510]))
    assert errors[1] > 1.5 * errors[0]


def test_a_singular_posture_gives_no_force_along_it(arm):
    """A stretched arm: along it no joint has a lever, so that friction makes no force there."""
    ur = load_arm("ur16e")
    observer = make_observer(ur, load_observer_settings("disturbance"))
    q = np.array([0.3, -1.0, 0.0, -0.4, 1e-7, 0.0])
    observer.reset(0.0, q)
    for _ in range(500):
        observer.step(DT, q, np.zeros(6), ur.gravity(q) + np.array([5.0, 8.0, 4.0, 2.0, 0.5, 0.3]))
    e = observer.estimate()
    spread, axes = np.linalg.eigh(e.force_covariance)
    assert np.sqrt(spread[-1]) > 15.0 and spread[-1] > 4 * spread[0]
    assert (np.abs(axes.T @ e.force_tcp) < 3 * np.sqrt(spread)).all()
