"""What every estimate must be, whatever the samples: properties on generated inputs."""

from __future__ import annotations

import dataclasses
import functools
import os

import numpy as np
import pinocchio as pin
import pytest

if os.environ.get("CI") != "true":  # there it must be installed, and these tests must run
    pytest.importorskip("hypothesis", reason="the property-based tests need hypothesis (requirements/core.txt)")

from hypothesis import HealthCheck, given, settings, strategies as st

from contact_estimation.filters.registry import load_observer_settings, make_observer, open_stream
from contact_estimation.filters.stream import SampleStream

#: The arm as its torque sensors see it: with or without rotors and their friction.
ARM = open_stream("ur16e", "momentum", "joint_torque").arm
HOME = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])
PERIOD = 2_000_000
#: Some dozens of cases each: the estimators run several seconds of samples.
FEW = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
seeds = st.integers(0, 2**31)


def motion(seed: int, count: int, force: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slow motion of all joints under a constant force [N] at the TCP, base axes; Newton-Euler by Pinocchio."""
    rng = np.random.default_rng(seed)
    rate, phase = rng.uniform(0.3, 1.2, 6), rng.uniform(0, 6, 6)
    t = 1e-9 * PERIOD * np.arange(count)[:, None]
    q = HOME + rng.uniform(-0.3, 0.3, 6) + 0.1 * (np.sin(rate * t + phase) - np.sin(phase))
    dq, ddq = 0.1 * rate * np.cos(rate * t + phase), -0.1 * rate**2 * np.sin(rate * t + phase)
    tau = [
        ARM.mass(a) @ c
        + ARM.coriolis(a, b)
        + ARM.gravity(a)
        + ARM.motor.viscous * b
        - ARM.tcp_jacobian(a)[:3].T @ force
        for a, b, c in zip(q, dq, ddq)
    ]
    return q, dq, np.array(tau)


@functools.lru_cache
def opened(observer: str) -> SampleStream:
    """A stream of the observer; :meth:`restart` it before use."""
    return open_stream("ur16e", observer, "joint_torque")


def fresh(observer: str) -> SampleStream:
    opened(observer).restart()
    return opened(observer)


@pytest.mark.parametrize("observer", ["ekf", "contact_imm", "momentum_calibrated"])
@given(seed=seeds, force=st.lists(st.floats(-60, 60), min_size=3, max_size=3), noise=st.floats(0, 3))
@FEW
def test_covariance_stays_symmetric_and_positive(observer, seed, force, noise):
    q, dq, tau = motion(seed, 150, np.array(force))
    tau = tau + np.random.default_rng(seed).normal(0, noise, tau.shape)
    stream = fresh(observer)
    for k in range(len(q)):
        estimate = stream.push(1 + k * PERIOD, q[k], dq[k], tau[k])
        for covariance in (estimate.force_covariance, *(contact.covariance for contact in estimate.contacts)):
            if np.isnan(covariance).any():
                assert np.isnan(covariance).all(), "half a covariance"
                continue
            scale = max(float(np.abs(covariance).max()), 1e-300)
            np.testing.assert_allclose(covariance, covariance.T, atol=1e-9 * scale)
            size = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
            assert np.linalg.eigvalsh(covariance / np.outer(size, size)).min() > -1e-6


@given(seed=seeds)
@FEW
def test_free_space_has_no_force(seed):
    q, dq, tau = motion(seed, 400, np.zeros(3))
    stream = fresh("momentum")
    forces = [stream.push(1 + k * PERIOD, q[k], dq[k], tau[k]).force_tcp for k in range(len(q))]
    settled = forces[300:]  # 12 time constants after the motion began at full speed
    assert np.linalg.norm(settled, axis=1).max() < 0.1  # [N]


@given(seed=seeds, force=st.lists(st.floats(-60, 60), min_size=3, max_size=3), turn=st.floats(-1.0, 1.0))
@FEW
def test_an_arm_turned_about_gravity_feels_the_force_turned_with_it(seed, force, turn):
    """Joint 1 is parallel to gravity: turning it turns arm and base force together, and changes no joint torque."""
    q, dq, tau = motion(seed, 150, np.array(force))
    rotation = pin.exp3(np.array([0.0, 0.0, turn]))
    there = q + turn * np.eye(6)[0]
    a, b = (
        [fresh("momentum").push(1, p[0], dq[0], tau[0])]
        + [opened("momentum").push(1 + k * PERIOD, p[k], dq[k], tau[k]) for k in range(1, len(p))]
        for p in (q, there)
    )
    a, b = a[-1], b[-1]
    np.testing.assert_allclose(b.force_base, rotation @ a.force_base, atol=1e-6 * (1 + np.abs(a.force_base).max()))
    np.testing.assert_allclose(b.force_tcp, a.force_tcp, atol=1e-6 * (1 + np.abs(a.force_tcp).max()))


@functools.lru_cache
def two_contacts(reverse: bool) -> SampleStream:
    """An EKF of a table under the tool and a wall beside it, in either order; :meth:`restart` it before use."""
    shipped = load_observer_settings("ekf")
    table = dataclasses.replace(shipped.contacts[0], name="table")
    wall = dataclasses.replace(table, name="wall", stiffness=[1.0e4, 0.0, 0.0])
    contacts = [wall, table] if reverse else [table, wall]
    stream = opened("ekf")
    ekf = make_observer(stream.arm, dataclasses.replace(shipped, contacts=contacts), sensors=stream.sensors)
    return SampleStream(ekf, stream.arm, stream.sensors)


@given(seed=seeds, force=st.lists(st.floats(-60, 60), min_size=3, max_size=3))
@FEW
def test_the_order_of_the_contacts_does_not_matter(seed, force):
    q, dq, tau = motion(seed, 150, np.array(force))
    found = []
    for stream in map(two_contacts, (False, True)):
        stream.restart()
        found.append([stream.push(1 + k * PERIOD, q[k], dq[k], tau[k]) for k in range(len(q))][-1])
    a, b = found
    scale = 1 + np.abs(a.force_base).max()
    np.testing.assert_allclose(b.force_base, a.force_base, atol=1e-6 * scale)
    np.testing.assert_allclose(b.force_covariance, a.force_covariance, atol=1e-6 * np.abs(a.force_covariance).max())
    assert (a.valid, a.reason) == (b.valid, b.reason)
    there = {contact.name: contact for contact in b.contacts}
    for contact in a.contacts:
        np.testing.assert_allclose(there[contact.name].stiffness, contact.stiffness, rtol=1e-6, atol=1e-3)  # [N/m]
