"""Recordings for tests: a small one with random numbers everywhere, and a UR16e that presses with known force."""

import numpy as np

from contact_estimation.io.recording import Recording

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")


def small_recording(count: int = 300, start_ns: int = 1_700_000_000_123_456_789, seed: int = 0, **changes) -> Recording:
    """500 Hz, three joints, wrench with zero offset, all truths, all numbers random."""
    rng = np.random.default_rng(seed)
    n = len(JOINTS)
    values = {
        "stamps_ns": start_ns + 2_000_000 * np.arange(count),
        "joint_names": JOINTS,
        "q": rng.normal(size=(count, n)),
        "dq": rng.normal(size=(count, n)),
        "tau": rng.normal(size=(count, n)),
        "source": "small recording",
        "wrench_tcp": rng.normal(size=(count, 6)),
        "wrench_zero": rng.normal(size=6),
        "truth": {
            "wrench_tcp": rng.normal(size=(count, 6)),
            "stiffness": rng.normal(size=(count, 3)),
            "rest": rng.normal(size=(count, 3)),
            "contact_point": rng.normal(size=(count, 3)),
            "tau_ext": rng.normal(size=(count, n)),
        },
        "sensors": "joint_torque",
        "robot": "ur16e",
    }
    return Recording(**(values | changes))


def assert_equal(a: Recording, b: Recording) -> None:
    """Every array of the two recordings is the same to the last bit."""
    assert a.joint_names == b.joint_names and (a.sensors, a.robot, a.tool) == (b.sensors, b.robot, b.tool)
    for name in ("stamps_ns", "q", "dq", "tau", "wrench_tcp", "wrench_zero"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.truth.keys() == b.truth.keys()
    for name, value in a.truth.items():
        np.testing.assert_array_equal(value, b.truth[name], err_msg=name)


def press_recording(
    arm, seconds: float = 2.0, stiffness: float = 20_000.0, start_ns: int = 0, clearance: float = 0.0, force_at=None
) -> Recording:
    """The UR16e starts ``clearance`` above a surface, presses straight down 3 mm and lets go, twice; inverse dynamics
    gives the torque. ``force_at(depth)``: force of the surface, default a spring's."""
    t = np.arange(int(seconds * 500)) / 500
    travel = (0.0015 + 0.5 * clearance) * (1 - np.cos(4 * np.pi * t / seconds))
    depth = travel - clearance
    start = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])
    down = np.linalg.pinv(arm.tcp_jacobian(start)) @ [0, 0, -1, 0, 0, 0]
    q = start + np.outer(travel, down)
    dq = np.gradient(q, t, axis=0)
    ddq = np.gradient(dq, t, axis=0)
    position, rotation = arm.tcp_poses(q)
    force = np.zeros((len(t), 3))
    force[:, 2] = stiffness * depth if force_at is None else force_at(depth)
    tau = np.empty_like(q)
    tau_ext = np.empty_like(q)
    for k, row in enumerate(q):
        tau_ext[k] = arm.tcp_jacobian(row)[:3].T @ force[k]
        tau[k] = (
            arm.mass(row) @ ddq[k]
            + arm.coriolis(row, dq[k])
            + arm.gravity(row)
            + arm.motor.viscous * dq[k]
            - tau_ext[k]
        )
    wrench = np.concatenate([np.einsum("nij,ni->nj", rotation, force), np.zeros((len(t), 3))], axis=1)
    constant = np.ones((len(t), 1))
    truth = {
        "wrench_tcp": wrench,
        "stiffness": constant * [0, 0, stiffness],
        "contact_point": position,
        "rest": position + np.outer(depth, [0, 0, 1]),
        "tau_ext": tau_ext,
    }
    stamps = start_ns + np.arange(len(t)) * 2_000_000
    return Recording(stamps, arm.joint_names, q, dq, tau, "press", wrench, truth=truth)
