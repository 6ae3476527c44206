"""What an observer of given contacts misses, on motions by Pinocchio and pushes that its contacts do not explain."""

import dataclasses

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.filters.consistency import ConsistencyMonitor, ContactTorque, GivenContacts, consistency_of
from contact_estimation.filters.registry import load_observer_settings, make_observer, open_stream
from contact_estimation.filters.settings import ConsistencySettings, SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.robot.friction_model import FrictionModel

RATE = 500
T = np.arange(4 * RATE) / RATE


def torques(arm, q, force):
    """Joint torque (N, n) [Nm] of a motion q (N, n) [rad] under ``force`` (N, 3) [N, base axes] at the TCP.

    It is Pinocchio's inverse dynamics, without friction.
    """
    dq = np.gradient(q, 1 / RATE, axis=0)
    ddq = np.gradient(dq, 1 / RATE, axis=0)
    model, data = arm.model, arm.model.createData()
    frame = model.getFrameId(arm.tcp_frame)
    base = model.frames[model.getFrameId(arm.base_frame)].placement.rotation
    tau = np.empty_like(q)
    for k in range(len(q)):
        jacobian = pin.computeFrameJacobian(model, data, q[k], frame, pin.LOCAL_WORLD_ALIGNED)[:3]
        tau[k] = pin.rnea(model, data, q[k], dq[k], ddq[k]) - jacobian.T @ (base @ force[k])
    return q, dq, tau


def recording(arm, push, moving=0.1):
    """Return q, dq, tau (N, n): a swing, and a force ``push`` (3,) [N, base axes] at the TCP from 2 to 3 s, at rest."""
    share = np.where(T < 1.5, np.sin(np.pi * T / 1.5) ** 2, 0.0)[:, None]
    q = arm.settings.ready + moving * share * np.linspace(1, 2, arm.n)
    return torques(arm, q, np.where((T >= 2) & (T < 3), 1.0, 0.0)[:, None] * push)


def press(arm, stiffness=15e3, depth=3e-3):
    """Return q, dq, tau (N, n): the tool presses ``depth`` [m] into a surface under it, and comes back."""
    model, data, ready = arm.model, arm.model.createData(), np.array(arm.settings.ready)
    frame = model.getFrameId(arm.tcp_frame)
    rows = pin.computeFrameJacobian(model, data, ready, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
    way = depth * np.sin(np.pi * T / T[-1]) ** 2  # [m]
    q = ready + np.outer(way, np.linalg.pinv(rows) @ [0.0, 0.0, -1.0])
    return torques(arm, q, np.outer(stiffness * way, [0.0, 0.0, 1.0]))


def stream_of(robot="fr3", observer="ekf", **changes):
    """A stream of the robot without rotor inertia, of which the recording has none; ``changes`` of consistency."""
    arm, sensors = load_arm(robot).measured_at("link"), SensorSettings(torque_side="link")
    settings = load_observer_settings(observer)
    settings = dataclasses.replace(settings, consistency=dataclasses.replace(settings.consistency, **changes))
    return SampleStream(make_observer(arm, settings, sensors=sensors), arm, sensors)


def run(stream, signals, begin=0.0, end=np.inf):
    rows = np.flatnonzero((begin <= T) & (end > T))
    return [stream.push(round(1e9 * T[k]) + 1, *(x[k] for x in signals)) for k in rows]


PUSHES = [(25.0, 0.0, 0.0), (0.0, -25.0, 0.0), (15.0, 15.0, 10.0)]


@pytest.mark.parametrize("push", PUSHES)
def test_a_push_that_the_contact_does_not_explain_is_refused(push):
    stream = stream_of()
    rows = run(stream, recording(stream.arm, push))
    pressed = [e for e, t in zip(rows, T) if 2.2 <= t < 3]
    missed = np.array([np.linalg.norm(e.force_base - push) for e in pressed])
    assert missed.min() > 15.0, "the EKF of one spring sees it after all: this test shows nothing"
    assert not any(e.valid for e in pressed)
    assert "contacts do not explain" in pressed[-1].reason
    free = [e.valid for e, t in zip(rows, T) if t < 2 or t > 3.3]
    assert all(free), "refused without a push"


def test_the_missed_force_is_told():
    stream, push = stream_of(), np.array(PUSHES[2])
    estimate = run(stream, recording(stream.arm, push), end=2.9)[-1]
    assert np.linalg.norm(estimate.force_base + stream.consistency.force - push) < 2.0


def test_a_press_on_the_given_contact_is_no_push():
    stream = stream_of()
    rows = run(stream, press(stream.arm))
    assert max(e.force_base[2] for e in rows) > 30.0
    assert all(e.valid for e in rows)


def test_a_start_in_motion_is_no_push():
    """The momentum of the first sample is where the residual begins."""
    stream = stream_of()
    signals = recording(stream.arm, PUSHES[0], moving=0.3)
    assert np.abs(signals[1][T >= 0.4][0]).max() > 0.5
    for t in T[(T >= 0.4) & (T < 0.6)]:
        run(stream, signals, begin=t, end=t + 0.5 / RATE)
        assert np.linalg.norm(stream.consistency.force) < 8.0


def test_friction_hides_a_push():
    """The same push on joints whose friction may be as large is no evidence, and zero asks for none."""
    signals = recording(load_arm("ur16e").measured_at("link"), (10.0, 0.0, 0.0))
    assert all(e.valid for e in run(stream_of("ur16e", largest_std=None), signals))
    signals = recording(load_arm("fr3").measured_at("link"), PUSHES[0])
    assert all(e.valid for e in run(stream_of(significance=0.0), signals))
    assert stream_of(significance=0.0, largest_std=None).consistency is None, "what refuses nothing costs nothing"


def test_only_observers_of_given_contacts_are_judged():
    assert isinstance(stream_of().observer, GivenContacts)
    assert isinstance(stream_of(observer="ukf").consistency, ConsistencyMonitor)
    for name in ("momentum_calibrated", "disturbance", "contact_imm"):
        assert open_stream("fr3", name).consistency is None
    assert consistency_of(object(), load_arm("fr3")) is None


def test_the_variance_of_the_contact_torque_is_the_covariances():
    """Against draws of the state: the torque's spread under the filter's own covariance."""
    stream = stream_of()
    run(stream, recording(stream.arm, PUSHES[0]), end=2.5)
    ekf = stream.observer
    told = type(ekf.contact_torque())(*(a.copy() for a in ekf.contact_torque()))
    np.testing.assert_allclose(told.torque, ekf.estimate().tau_ext, atol=1e-12)
    np.testing.assert_allclose(told.force_variance, np.diag(ekf.estimate().force_covariance), rtol=1e-9, atol=1e-12)
    mean, root = ekf.state.copy(), np.linalg.cholesky(ekf.covariance + 1e-18 * np.eye(len(ekf.state)))
    rng, step, drawn = np.random.default_rng(0), 1e-3, []  # so small that the torque is linear
    for _ in range(4000):
        ekf.state[:] = mean + step * root @ rng.standard_normal(len(mean))
        drawn.append(ekf.contact_torque().torque.copy())
    ekf.state[:] = mean
    np.testing.assert_allclose(np.var(drawn, axis=0) / step**2, told.variance, rtol=0.15, atol=1e-6)


class Uncertain:
    """An observer without contact whose force has the standard deviation ``std`` [N]."""

    settling = 0.2

    def __init__(self, arm):
        self.consistency = ConsistencySettings(largest_std=50.0)
        self.friction, self.n, self.std = FrictionModel(arm, None), arm.n, 0.0

    def contact_torque(self):
        return ContactTorque(np.zeros(self.n), np.ones(self.n), np.full(3, self.std**2))


@pytest.mark.parametrize(("std", "duration", "refused"), [(45.0, 2.0, False), (150.0, 0.01, False), (80.0, 0.4, True)])
def test_a_force_that_is_uncertain_for_long_is_refused(std, duration, refused):
    """A touch makes it uncertain for some samples: the variance is averaged over the settling time."""
    arm = load_arm("fr3").measured_at("link")
    observer, q, still = Uncertain(arm), np.array(arm.settings.ready), np.zeros(arm.n)
    monitor, gravity = ConsistencyMonitor(observer, arm), pin.rnea(arm.model, arm.model.createData(), q, still, still)
    reasons = []
    for t in T:
        observer.std = std if 1 <= t < 1 + duration else 10.0
        observer.friction.take(1 / RATE, q, still, gravity)
        monitor.step(1 / RATE, q, still)
        reasons.append(monitor.reason)
    assert any("more than largest_std 50 N" in r for r in reasons) is refused
    assert not reasons[-1] or duration > 1


def test_a_restart_forgets():
    stream = stream_of()
    run(stream, recording(stream.arm, PUSHES[0]), end=2.5)
    assert stream.consistency.reason
    stream.consistency.reset()
    assert not stream.consistency.reason and not stream.estimate().reason
