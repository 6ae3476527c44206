"""The extended Kalman filter of papers 1 and 2 (eq. 13-22) in generated C.

A step predicts with the torque of the last sample. It then updates with the positions (and torques) of this one. This
is the papers' order: mu+ = L q+ + (I - L C) f(mu, tau).
"""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_built
from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.coupled_filter import CoupledFilter
from contact_estimation.filters.kalman import pack, pack_array, packed_size, scalar_update, unpack, unpack_array
from contact_estimation.filters.observer import Innovation
from contact_estimation.filters.process_noise import state_intensity, torque_intensity
from contact_estimation.filters.settings import EkfSettings
from contact_estimation.robot import Arm


def build_step(arm: Arm, contacts: ParallelContacts, with_torque: bool, torque_noise: bool = False) -> ca.Function:
    """Return one EKF step as a dense casadi.Function.

    Inputs: xi (N,), P (packed), phi, tau (last sample), h, q_m, noise_q (n,), intensity (N,) [per second], with torque
    noise torque_intensity (n,) [Nm^2 s], and with torque measured tau_m (this sample), noise_tau (n,). Outputs: xi, P;
    innovation, variance (n or 2n,): of the scalar updates in sequence; nis.

    Args:
        arm: the robot.
        contacts: its contacts.
        with_torque: whether torque is measured, too.
        torque_noise: whether unknown torque is process noise.
    """
    step = CoupledStep(arm, contacts)
    n, size = arm.n, step.xi.numel()
    packed, intensity = ca.SX.sym("P", packed_size(size)), ca.SX.sym("intensity", size)
    q_m, noise_q = ca.SX.sym("q_m", n), ca.SX.sym("noise_q", n)
    inputs = [step.xi, packed, step.phi, step.tau, step.h, q_m, noise_q, intensity]
    names = ["xi", "P", "phi", "tau", "h", "q_m", "noise_q", "intensity"]
    x, covariance = step.next, step.propagate(unpack(packed, size)) + step.h * ca.diag(intensity)
    if torque_noise:
        torque_noise_intensity = ca.SX.sym("torque_intensity", n)
        covariance[n : 2 * n, n : 2 * n] += step.velocity_noise(torque_noise_intensity)
        inputs.append(torque_noise_intensity)
        names.append("torque_intensity")
    innovations, variances = [], []
    for i in range(n):
        row = ca.SX(1, size)
        row[0, i] = 1
        innovations.append(q_m[i] - x[i])
        x, covariance, variance = scalar_update(x, covariance, row, innovations[-1], noise_q[i])
        variances.append(variance)
    if with_torque:
        tau_m, noise_tau = ca.SX.sym("tau_m", n), ca.SX.sym("noise_tau", n)
        predicted, rows = _torque_measurement(arm, step, x, tau_m)
        start = x
        for i in range(n):
            innovations.append(predicted[i] - rows[i, :] @ (x - start))
            x, covariance, variance = scalar_update(x, covariance, rows[i, :], innovations[-1], noise_tau[i])
            variances.append(variance)
        inputs += [tau_m, noise_tau]
        names += ["tau_m", "noise_tau"]
    innovation, variance = ca.vertcat(*innovations), ca.vertcat(*variances)
    outputs = {"xi_next": ca.densify(x), "P_next": pack(covariance), "innovation": innovation, "variance": variance}
    outputs["nis"] = ca.sum1(innovation**2 / variance)
    return ca.Function("ekf_step", inputs, list(outputs.values()), names, list(outputs))


def _torque_measurement(arm: Arm, step: CoupledStep, x: ca.SX, tau_m: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Innovation of the measured external torque C + G - tau_m, and its Jacobian's rows (eq. 17-19)."""
    n = arm.n
    bias = arm.inverse_dynamics(step.kinematics, step.dq, ca.SX.zeros(n))
    at_state = ca.Function("at_state", [step.xi, step.phi], [step.tau_e, ca.jacobian(step.tau_e, step.xi), bias])
    tau_e, rows, bias = at_state(x, step.phi)
    return bias - tau_m - tau_e, rows


class Ekf(CoupledFilter):
    """EKF over the coupled state; arguments and attributes as of :class:`.CoupledFilter`.

    Raises:
        ConfigError: contacts of the same name, or an unknown torque for a robot without effort limits.
    """

    def __init__(self, arm: Arm, settings: EkfSettings, name: str = "ekf") -> None:
        super().__init__(arm, settings, name)
        of_torque = torque_intensity(arm, settings.process_noise)
        self._built_from = arm, self.contacts, self._with_torque, of_torque is not None
        self._step = compile_built(build_step, *self._built_from)
        inputs = self._step.inputs
        inputs["noise_q"][:] = settings.measurement_noise.position
        inputs["intensity"][:] = state_intensity(arm, self.contacts, settings.process_noise)
        if self._with_torque:
            inputs["noise_tau"][:] = settings.measurement_noise.torque
        if of_torque is not None:
            inputs["torque_intensity"][:] = of_torque
        self._state = DoubleBuffer.of(self._step)
        self._advance = bind_recursion(self._step, [self._state])
        self._nis = self._step.outputs["nis"]
        self._tau, self._h, self._q_m = inputs["tau"], inputs["h"], inputs["q_m"]
        self._tau_m = inputs.get("tau_m")
        self._tau_next = np.zeros(arm.n)

    @functools.cached_property
    def function(self) -> ca.Function:
        """Return the step on CasADi's virtual machine: see :func:`build_step`."""
        return build_step(*self._built_from)

    @property
    def backend(self) -> str:
        """``"c"`` or ``"vm"``."""
        return self._step.backend

    @property
    def state(self) -> np.ndarray:
        """Mean (N,) of [q; dq; p] in internal units (a view of the live buffer)."""
        return self._state["xi"]

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (N, N) in internal units (a copy)."""
        return unpack_array(self._state["P"], self._size)

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` with the settings' parameters and uncertainties.

        Args:
            t: [s].
            q: (n,) [rad].
        """
        self.friction.reset(q)
        x, covariance, phi = self._initial(q)
        self._step.inputs["phi"][:], self._state["xi"][:], self._state["P"][:] = phi, x, pack_array(covariance)
        self._nis[0] = 0.0
        self._t = t
        self._tau_next[:] = np.nan

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Predict over ``dt`` with the last torque, update with ``q`` (and ``tau`` where torque is measured).

        Args:
            dt: since the last sample [s].
            q: (n,) [rad].
            dq: (n,) [rad/s].
            tau: (n,) [Nm], total torque.
        """
        tau = self.friction.take(dt, q, dq, tau)
        self._tau[:] = self._tau_next if self._tau_next[0] == self._tau_next[0] else tau
        self._tau_next[:] = tau
        self._h[0] = dt
        self._q_m[:] = q
        if self._tau_m is not None:
            self._tau_m[:] = tau
        self._advance()
        self._t += dt

    @property
    def updated(self) -> float:
        """Time of the last update [s]."""
        return self._t

    def innovation(self) -> Innovation:
        """Return the innovation of the last update."""
        variance = self._step.outputs["variance"]
        normalised = self._step.outputs["innovation"] / np.sqrt(variance)
        return Innovation(normalised, -0.5 * float(np.sum(np.log(2 * np.pi * variance) + normalised**2)))

    def _now(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return self._state["xi"], self._state["P"], self._step.inputs["phi"], float(self._nis[0])
