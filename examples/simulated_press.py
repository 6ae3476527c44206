"""The recording that the other examples work on: a UR16e presses on a block of 25 kN/m. Yours comes from a robot.

The arm holds its posture with stiff joint control and follows a vertical reference: approach, press twice, retreat. The
block is unilateral: it pushes only while it is touched. Encoder and torque noise are added to the samples. For actuator
friction, elasticity and other surfaces use the scenarios of the physics engine (simulate_scenario.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation import Arm, Recording
from contact_estimation.codegen import compile_function
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.settings import key, non_negative, positive

START = [0.9, -1.0, 2.2, -2.8, -1.5, 0.5]  # [rad], the tool points down
STIFFNESS = 25e3  # [N/m]


@dataclass(frozen=True, kw_only=True)
class PressSettings:
    """A press, as in paper 1, section 5.3."""

    rate: float = key(500.0, doc="rate of the samples", unit="Hz", check=positive)
    substeps: int = key(8, doc="integration steps per sample: finer than the estimator's", check=positive)
    start: list[float] = key(doc="joint positions at the start, clear of the block", unit="rad")
    clearance: float = key(0.002, doc="height of the TCP over the block at the start", unit="m", check=non_negative)
    depth: float = key(0.004, doc="distance of the reference below the block's surface", unit="m", check=positive)
    period: float = key(5.0, doc="duration of one press and retreat", unit="s", check=positive)
    stiffness: float = key(25e3, doc="stiffness of the block", unit="N/m", check=positive)
    damping: float = key(50.0, doc="damping of the block", unit="Ns/m", check=non_negative)
    joint_stiffness: float = key(1e4, doc="stiffness of the joint position control", unit="Nm/rad", check=positive)
    joint_damping: float = key(1.5e2, doc="damping of the joint position control", unit="Nms/rad", check=positive)
    position_noise: float = key(1.5e-5, doc="encoder noise, standard deviation", unit="rad", check=non_negative)
    torque_noise: float = key(0.3, doc="torque noise, standard deviation", unit="Nm", check=non_negative)


@dataclass(frozen=True)
class PressSample:
    """One sample with its truth.

    Attributes:
        stamp_ns: when it was taken [ns].
        q: measured joint positions (n,) [rad].
        dq: measured joint velocities (n,) [rad/s].
        tau: measured joint torque (n,) [Nm].
        force_tcp: true force of the block on the robot (3,) [N].
        stiffness: true stiffness vector (3,) [N/m], base axes.
        rest: true rest position (3,) [m], base frame.
        contact_point: true contact point (3,) [m], base frame.
        in_contact: whether the block is touched.
    """

    stamp_ns: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    force_tcp: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    contact_point: np.ndarray
    in_contact: bool


class PressSimulation:
    """Simulated arm pressing on a block below its TCP; call :meth:`step` once per sample.

    Args:
        arm: the robot. settings: the press. seed: of the sensor noise.
    """

    def __init__(self, arm: Arm, settings: PressSettings, seed: int = 0) -> None:
        self.arm, self.settings = arm, settings
        self._random = np.random.default_rng(seed)
        self._step = compile_function(_build(arm))
        self._q = np.array(settings.start, float)
        self._dq = np.zeros(arm.n)
        position, rotation = arm.tcp_pose(self._q)
        self._start, self._rotation = position, rotation
        self._height = position[2] - settings.clearance
        self._reference = self._q.copy()
        self._count = 0

    @property
    def period(self) -> float:
        """Sampling period [s]."""
        return 1.0 / self.settings.rate

    def step(self) -> PressSample:
        """Advance by one sample period and return what the robot would publish, with the truth."""
        s, arm = self.settings, self.arm
        h = self.period / s.substeps
        t = self._count * self.period
        travel = 0.5 * (s.clearance + s.depth) * (1 - np.cos(2 * np.pi * t / s.period))
        self._reference = arm.solve_pose(self._start - [0, 0, travel], self._rotation, self._reference, 1e-7, 20)
        run = self._step
        run.inputs["h"][0], run.inputs["height"][0] = h, self._height
        run.inputs["block"][:] = s.stiffness, s.damping
        for _ in range(s.substeps):
            tau = arm.gravity(self._q) + s.joint_stiffness * (self._reference - self._q) - s.joint_damping * self._dq
            run.inputs["q"][:], run.inputs["dq"][:], run.inputs["tau"][:] = self._q, self._dq, tau
            run()
            self._q, self._dq = run.outputs["q_next"].copy(), run.outputs["dq_next"].copy()
        force = np.array([0.0, 0.0, run.outputs["force"][0]])
        position, rotation = arm.tcp_pose(self._q)
        self._count += 1
        noise = self._random.standard_normal((2, arm.n))
        rest = np.array([position[0], position[1], self._height])
        return PressSample(
            round(self._count * 1e9 / s.rate),
            self._q + s.position_noise * noise[0],
            self._dq.copy(),
            tau + s.torque_noise * noise[1],
            rotation.T @ force,
            np.array([0.0, 0.0, s.stiffness]),
            rest,
            position,
            bool(force[2] > 0),
        )


def _build(arm: Arm) -> ca.Function:
    """Semi-implicit step of the arm against a block whose surface is at ``height``; spring and damper never pull."""
    n = arm.n
    q, dq, tau = ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("tau", n)
    h, height, block = ca.SX.sym("h"), ca.SX.sym("height"), ca.SX.sym("block", 2)
    kin = arm.kinematics(q)
    position = arm.tcp(kin)[1]
    jacobian = kin.jacobian(arm.tcp_frame)[:3, :]
    depth, speed = height - position[2], -(jacobian[2, :] @ dq)
    force = ca.if_else(depth > 0, ca.fmax(block[0] * depth + block[1] * speed, 0), 0)
    viscous = ca.SX(arm.motor.viscous)
    factor = LDL(arm.mass_matrix(kin) + h * ca.diag(viscous))
    delta = factor.solve(tau + jacobian[2, :].T * force - arm.inverse_dynamics(kin, dq, ca.SX.zeros(n)) - viscous * dq)
    dq_next = dq + h * delta
    return ca.Function(
        "press_step",
        [q, dq, tau, h, height, block],
        [q + h * dq_next, dq_next, force],
        ["q", "dq", "tau", "h", "height", "block"],
        ["q_next", "dq_next", "force"],
    )


def press(arm: Arm, seconds: float = 5.0) -> Recording:
    """Press for ``seconds`` [s], 500 Hz; the truth is in the recording."""
    simulation = PressSimulation(arm, PressSettings(start=START, stiffness=STIFFNESS), seed=1)
    samples = [simulation.step() for _ in range(round(500 * seconds))]
    columns = {name: np.array([getattr(s, name) for s in samples]) for name in ("q", "dq", "tau", "force_tcp")}
    wrench = np.pad(columns["force_tcp"], ((0, 0), (0, 3)))  # (N, 6), no torque
    truth = {name: np.array([getattr(s, name) for s in samples]) for name in ("stiffness", "rest", "contact_point")}
    return Recording(
        np.array([s.stamp_ns for s in samples]) + 1_000_000_000,
        arm.joint_names,
        columns["q"],
        columns["dq"],
        columns["tau"],
        "simulated press",
        truth={"wrench_tcp": wrench, **truth},
        sensors="joint_torque",
    )
