"""A disturbance Kalman filter: momentum, and the external joint torque as a random walk.

Hu and Xiong (Contact force estimation for robot manipulator using semiparametric model and disturbance Kalman filter,
2018), with the robot's calibrated friction for their learnt model. State x = [p; tau_e] with the generalised momentum
p = M(q) dq, which is measured:

    p+ = p + h (tau + C^T dq - G - B dq + tau_e),    tau_e+ = tau_e + w,    y = M(q) dq.

The covariance of w is that of a random push on the arm per second
(:func:`~contact_estimation.filters.imm.unknown.push_covariance`), plus that of the joints' friction disturbances. There
is no free-space mode: the whole external torque counts as contact, including unmodelled friction.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_built, named_function, symbols
from contact_estimation.dynamics import symmetric
from contact_estimation.dynamics.momentum import momentum_terms
from contact_estimation.filters.imm.unknown import push_covariance, tcp_wrench
from contact_estimation.filters.kalman import pack, pack_array, packed_size, scalar_update, unpack
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.settings import DisturbanceSettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction_model import FrictionModel


def build_step(arm: Arm) -> ca.Function:
    """Return the function of one sample.

    Inputs: x (2n,), P (packed); q, dq, tau (n,); h [s]; torque_intensity (n,) [Nm^2 s] of the torque's noise;
    friction_intensity (n,) [Nm^2/s]; push_variance (6,) per second; link_share; velocity_noise [rad/s].
    Outputs: x_next, P_next, nis.

    Args:
        arm: the robot.
    """
    n = arm.n
    vectors = dict.fromkeys(("q", "dq", "tau", "torque_intensity", "friction_intensity"), n)
    scalars = dict.fromkeys(("h", "link_share", "velocity_noise"), 1)
    s = symbols(x=2 * n, P=packed_size(2 * n), **vectors, **scalars, push_variance=6)
    kinematics = arm.kinematics(s.q)
    momentum, drift, _ = momentum_terms(arm, kinematics, s.dq)
    x = ca.vertcat(s.x[:n] + s.h * (s.tau + drift + s.x[n:]), s.x[n:])
    push = push_covariance(arm, kinematics, s.push_variance, s.link_share)
    transition = ca.SX.eye(2 * n)
    transition[:n, n:] = s.h * ca.SX.eye(n)
    noise = ca.diagcat(ca.diag(s.torque_intensity), push + ca.diag(s.friction_intensity))
    covariance = symmetric(transition @ unpack(s.P, 2 * n) @ transition.T + s.h * noise)
    variance = (ca.diag(arm.mass_matrix(kinematics)) * s.velocity_noise) ** 2
    nis = ca.SX(0)
    for i in range(n):
        row = ca.SX(1, 2 * n)
        row[0, i] = 1
        innovation = momentum[i] - x[i]
        x, covariance, expected = scalar_update(x, covariance, row, innovation, variance[i])
        nis += innovation**2 / expected
    return named_function("disturbance_step", s, {"x_next": x, "P_next": pack(covariance), "nis": nis})


def build_output(arm: Arm) -> ca.Function:
    """Return the function of an estimate.

    Inputs: q (n,), x (2n,), P (packed); friction_variance (n,) [Nm^2]: how far friction is off; wrench_variance (6,)
    [N^2, Nm^2]: prior. Outputs: force_base (3,); force_tcp, torque_tcp (3,), force_covariance (3, 3) in TCP axes.

    Args:
        arm: the robot.
    """
    n = arm.n
    s = symbols(q=n, x=2 * n, P=packed_size(2 * n), friction_variance=n, wrench_variance=6)
    kinematics = arm.kinematics(s.q)
    rotation, _ = arm.tcp(kinematics)
    covariance = unpack(s.P, 2 * n)[n:, n:] + ca.diag(s.friction_variance)
    wrench, spread = tcp_wrench(kinematics.jacobian(arm.tcp_frame), s.x[n:], covariance, s.wrench_variance)
    outputs = {"force_base": wrench[:3], "force_tcp": rotation.T @ wrench[:3], "torque_tcp": rotation.T @ wrench[3:]}
    return named_function(
        "disturbance_output", s, outputs | {"force_covariance": rotation.T @ spread[:3, :3] @ rotation}
    )


class DisturbanceFilter:
    """Kalman filter over [M dq; tau_e].

    Args:
        arm: the robot.
        settings: of the filter.
        name: name in reports.
    """

    def __init__(self, arm: Arm, settings: DisturbanceSettings, name: str = "disturbance") -> None:
        self.name, self.arm, self.settings = name, arm, settings
        self._friction = FrictionModel(arm, settings.actuators)
        self._step, self._output = compile_built(build_step, arm), compile_built(build_output, arm)
        self.backend = self._step.backend
        self._state = DoubleBuffer.of(self._step)
        self._advance = bind_recursion(self._step, [self._state])
        actuators, inputs = self._friction.actuators, self._step.inputs
        inputs["torque_intensity"][:] = np.square(actuators.torque_noise) * settings.noise_time
        change = 2 * np.square(actuators.disturbance_std) / actuators.disturbance_time  # of a Gauss-Markov process
        inputs["friction_intensity"][:] = change + np.square(actuators.bias_random_walk)
        inputs["push_variance"][:] = np.square([settings.force_random_walk] * 3 + [settings.torque_random_walk] * 3)
        inputs["link_share"][0], inputs["velocity_noise"][0] = settings.link_share, actuators.velocity_noise
        self._output.inputs["wrench_variance"][:] = np.square([settings.force_std] * 3 + [settings.torque_std] * 3)
        self.reset(0.0, np.zeros(arm.n))

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` (n,) [rad], with no external torque.

        Args:
            t: [s].
            q: (n,) [rad].
        """
        self._friction.reset(q)
        n, self._t = self.arm.n, t
        self._state["x"][:] = 0.0
        self._state["P"][:] = pack_array(np.diag([*np.full(n, 1e-12), *self._friction.variance()]))
        self._step.inputs["q"][:], self._step.inputs["dq"][:] = q, 0.0
        self._step.outputs["nis"][0] = 0.0

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample; arguments as of :meth:`~contact_estimation.filters.observer.Observer.step`."""
        inputs = self._step.inputs
        inputs["q"][:], inputs["dq"][:], inputs["h"][0] = q, dq, dt
        inputs["tau"][:] = self._friction.take(dt, q, dq, tau)
        self._advance()
        self._t += dt

    def estimate(self) -> Estimate:
        """Return the estimate after the last sample."""
        n, run, x = self.arm.n, self._output, self._state["x"]
        run.inputs["q"][:], run.inputs["x"][:], run.inputs["P"][:] = self._step.inputs["q"], x, self._state["P"]
        run.inputs["friction_variance"][:] = self._friction.variance()
        run()
        out = run.outputs
        return Estimate(
            t=self._t,
            q=self._step.inputs["q"].copy(),
            dq=self._step.inputs["dq"].copy(),
            tau_ext=x[n:].copy(),
            force_base=out["force_base"].copy(),
            force_tcp=out["force_tcp"].copy(),
            torque_tcp=out["torque_tcp"].copy(),
            force_covariance=out["force_covariance"].reshape(3, 3).copy(),
            nis=float(self._step.outputs["nis"][0]),
            nis_dof=n,
            mode="unknown",
        )
