"""Recordings of free motion with planted friction, armature, scale and payload."""

import numpy as np
import pinocchio as pin
from scipy.signal import lfilter

from contact_estimation.io.recording import Recording
from contact_estimation.robot.friction import FrictionSettings, friction_torque, presliding_states

#: UR16e-like truth, different for every joint.
TRUTH = FrictionSettings(
    viscous=[20.0, 18.0, 10.0, 4.0, 2.5, 3.0],
    viscous_std=[0.0] * 6,
    coulomb=[14.0, 8.0, 5.0, 2.0, 3.0, 2.5],
    coulomb_std=[0.0] * 6,
    presliding=[3e-4, 1e-3, 5e-4, 2e-4, 4e-4, 2e-3],
    presliding_std=[0.0] * 6,
    asymmetry=[0.5, 0.0, -0.4, 0.2, 0.0, 0.1],
    asymmetry_std=[0.0] * 6,
    bias=[0.5, -1.0, 0.8, 0.2, -0.1, 0.1],
    bias_std=[0.0] * 6,
    torque_scale=[1.0, 0.95, 1.05, 1.0, 1.0, 1.0],
    torque_scale_std=[0.0] * 6,
)
ARMATURE = np.array([3.0, 1.6, 1.4, 0.45, 0.5, 0.46])
PAYLOAD = (2.0, np.array([0.02, -0.03, 0.08]))


def excitation(arm, seconds, seed, rate=200.0, speed=1.0):
    """Fourier series around the UR's bent elbow: q, dq, ddq (N, n) at ``rate``, its frequencies times ``speed``."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1 / rate)
    q, dq, ddq = (np.zeros((len(t), arm.n)) for _ in range(3))
    for k in range(1, 8):
        w, a, b = 2 * np.pi * k * 0.07 * speed, *rng.normal(scale=0.45 / k**0.7, size=(2, arm.n))
        q += np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b)
        dq += w * (np.outer(np.cos(w * t), a) - np.outer(np.sin(w * t), b))
        ddq -= w**2 * (np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b))
    return t, q + np.array([0.3, -1.2, 1.4, -1.0, -1.2, 0.4])[: arm.n], dq, ddq


def free_motion(arm, seconds=30.0, seed=0, colour=0.98, noise=0.02, payload=True, contact=None, speed=1.0):
    """A recording with the planted truth and torque noise of an AR(1) process (``noise`` of the effort limit's
    hundredth per sample).

    ``contact``: (start [s], end [s], force (3,) [N, base axes, on the robot]) of a push at the TCP.
    """
    t, q, dq, ddq = excitation(arm, seconds, seed, speed=speed)
    data, model = arm.model.createData(), arm.model
    if payload:
        model = model.copy()
        mass, com = PAYLOAD
        frame = model.frames[model.getFrameId(arm.tcp_frame)]
        model.inertias[arm.n] = model.inertias[arm.n] + frame.placement.act(pin.Inertia(mass, com, np.zeros((3, 3))))
        data = model.createData()
    rigid = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq)])
    tau = rigid + ARMATURE * ddq + friction_torque(TRUTH, dq, presliding_states(q, np.array(TRUTH.presliding)))
    if contact is not None:
        rows = (t >= contact[0]) & (t < contact[1])
        tau[rows] -= np.array([arm.tcp_jacobian(row)[:3].T @ np.asarray(contact[2]) for row in q[rows]])
    rng = np.random.default_rng(seed + 100)
    white = rng.normal(size=tau.shape) * noise * arm.effort_limit / 100
    tau = tau / np.array(TRUTH.torque_scale) + lfilter([1.0], [1.0, -colour], white, axis=0)
    return Recording(
        np.round(t * 1e9).astype(np.int64),
        arm.joint_names,
        q + 1e-5 * rng.normal(size=q.shape),
        dq,
        tau,
        f"planted {seed}",
    )
