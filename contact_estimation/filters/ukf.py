"""An unscented Kalman filter on the same coupled step as the EKF (Julier and Uhlmann 2004; scaled sigma points).

It needs no Jacobian of the dynamics and therefore checks the linearisation of the EKF. It costs tens of times more.
Order of prediction and update, noise, units and results equal the EKF's.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built
from contact_estimation.codegen.compile import CompiledFunction
from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics import CoupledStep
from contact_estimation.filters.coupled_filter import CoupledFilter
from contact_estimation.filters.kalman import pack_array
from contact_estimation.filters.process_noise import state_intensity, torque_intensity
from contact_estimation.filters.settings import UkfSettings
from contact_estimation.robot import Arm


def build_prediction(arm: Arm, contacts: ParallelContacts, count: int) -> ca.Function:
    """Return the coupled step at ``count`` states side by side: (xi (N, count), phi, tau, h) -> xi+ (N, count).

    Args:
        arm: the robot.
        contacts: its contacts.
        count: number of states.
    """
    step = CoupledStep(arm, contacts)
    one = ca.Function("one", [step.xi, step.phi, step.tau, step.h], [ca.densify(step.next)])
    xi, phi = ca.MX.sym("xi", step.xi.numel(), count), ca.MX.sym("phi", contacts.size)
    tau, h = ca.MX.sym("tau", arm.n), ca.MX.sym("h")
    mapped = one.map("many", "serial", count, [1, 2, 3], [])
    return ca.Function(
        "ukf_predict", [xi, phi, tau, h], [mapped(xi, phi, tau, h)], ["xi", "phi", "tau", "h"], ["xi_next"]
    )


def build_contact_torque(arm: Arm, contacts: ParallelContacts, count: int) -> ca.Function:
    """Return tau_e at ``count`` states: (xi (N, count), phi) -> (n, count) [Nm].

    Args:
        arm: the robot.
        contacts: its contacts.
        count: number of states.
    """
    step = CoupledStep(arm, contacts)
    one = ca.Function("one", [step.xi, step.phi], [ca.densify(step.tau_e)])
    xi, phi = ca.MX.sym("xi", step.xi.numel(), count), ca.MX.sym("phi", contacts.size)
    mapped = one.map("many", "serial", count, [1], [])
    return ca.Function("ukf_torque", [xi, phi], [mapped(xi, phi)], ["xi", "phi"], ["tau_e"])


def build_noise(arm: Arm, contacts: ParallelContacts) -> ca.Function:
    """Return the covariance of dq+ due to unknown torque, at the mean: (q, h, intensity (n,)) -> (n, n).

    Args:
        arm: the robot.
        contacts: its contacts.
    """
    step, intensity = CoupledStep(arm, contacts), ca.SX.sym("intensity", arm.n)
    return ca.Function(
        "ukf_noise",
        [step.q, step.h, intensity],
        [ca.densify(step.velocity_noise(intensity))],
        ["q", "h", "intensity"],
        ["Q"],
    )


class Ukf(CoupledFilter):
    """UKF over the coupled state; arguments and attributes as of :class:`.CoupledFilter`.

    Raises:
        ConfigError: contacts of the same name, or an unknown torque for a robot without effort limits.
    """

    def __init__(self, arm: Arm, settings: UkfSettings, name: str = "ukf") -> None:
        super().__init__(arm, settings, name)
        size = self._size
        self._spread = settings.alpha * np.sqrt(size + settings.kappa)
        self._weight = 0.5 / self._spread**2
        self._central = settings.beta - settings.alpha**2
        self._predict = compile_built(build_prediction, arm, self.contacts, 2 * size + 1)
        self._torque = None
        if self._with_torque:
            self._torque = compile_built(build_contact_torque, arm, self.contacts, 2 * size + 1)
        self._intensity = state_intensity(arm, self.contacts, settings.process_noise)
        of_torque = torque_intensity(arm, settings.process_noise)
        self._noise = None if of_torque is None else compile_built(build_noise, arm, self.contacts)
        if self._noise is not None:
            self._noise.inputs["intensity"][:] = of_torque
        self._phi = np.zeros(self.contacts.size)
        self.state, self.covariance = np.zeros(size), np.eye(size)
        self._tau: np.ndarray | None = None
        self._nis = 0.0

    @property
    def backend(self) -> str:
        """``"c"`` or ``"vm"``."""
        return self._predict.backend

    def reset(self, t: float, q: np.ndarray) -> None:
        """Start at rest at ``q`` with the settings' parameters and uncertainties.

        Args:
            t: [s].
            q: (n,) [rad].
        """
        self.friction.reset(q)
        self.state, self.covariance, self._phi = self._initial(q)
        self._tau, self._nis, self._t = None, 0.0, t

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Predict over ``dt`` with the last torque, update with ``q`` (and ``tau`` where torque is measured).

        Args:
            dt: since the last sample [s].
            q: (n,) [rad].
            dq: (n,) [rad/s].
            tau: (n,) [Nm], total torque.
        """
        tau = self.friction.take(dt, q, dq, tau)
        self._t += dt
        n, noise = self.arm.n, self.settings.measurement_noise
        last, self._tau = tau if self._tau is None else self._tau, np.array(tau, float)
        if not np.isfinite(self.state).all():
            return  # diverged: the stream marks the estimate invalid until it restarts
        self._predict.inputs["tau"][:], self._predict.inputs["h"][0] = last, dt
        q_noise = self._process_noise(dt)
        mean, covariance, _ = self._transform(self._predict, len(self.state))
        self.state, self.covariance = mean, covariance + q_noise
        cross, innovation = self.covariance[:, :n], q - self.state[:n]
        self._nis = self._update(cross, cross[:n] + noise.position * np.eye(n), innovation)
        if self._torque is not None:
            bias = self.arm.coriolis(self.state[:n], self.state[n : 2 * n]) + self.arm.gravity(self.state[:n])
            mean, spread, cross = self._transform(self._torque, n)
            self._nis += self._update(cross, spread + noise.torque * np.eye(n), bias - tau - mean)

    def _process_noise(self, dt: float) -> np.ndarray:
        n, noise = self.arm.n, np.diag(dt * self._intensity)
        if self._noise is not None:
            self._noise.inputs["q"][:], self._noise.inputs["h"][0] = self.state[:n], dt
            self._noise()
            noise[n : 2 * n, n : 2 * n] += self._noise.outputs["Q"].reshape(n, n)
        return noise

    def _transform(self, function: CompiledFunction, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean (rows,) and covariance of ``function`` of the state, and its covariance (N, rows) with the state.

        Written in deviations from the central point, so that no large weights cancel.
        """
        root = self._spread * _root(self.covariance)
        points = np.column_stack([self.state, self.state[:, None] + root, self.state[:, None] - root])
        function.inputs["xi"][:], function.inputs["phi"][:] = points.ravel(order="F"), self._phi
        function()
        values = next(iter(function.outputs.values())).reshape(rows, -1, order="F")
        centre = values[:, 0]
        deviation = values[:, 1:] - centre[:, None]
        shift = self._weight * deviation.sum(axis=1)
        covariance = self._weight * deviation @ deviation.T + self._central * np.outer(shift, shift)
        size = root.shape[1]
        cross = self._weight * root @ (deviation[:, :size] - deviation[:, size:]).T
        return centre + shift, covariance, cross

    def _update(self, cross: np.ndarray, spread: np.ndarray, innovation: np.ndarray) -> float:
        """Kalman update of the state; returns the normalised innovation squared."""
        gain = np.linalg.solve(spread, cross.T).T
        self.state = self.state + gain @ innovation
        covariance = self.covariance - gain @ cross.T
        self.covariance = 0.5 * (covariance + covariance.T)
        return float(innovation @ np.linalg.solve(spread, innovation))

    def _now(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        return self.state, pack_array(self.covariance), self._phi, self._nis


def _root(covariance: np.ndarray) -> np.ndarray:
    """Lower triangular root; rounding below zero is lifted, a covariance that is lost (diverged) becomes NaN."""
    for lift in (0.0, 1e-12, 1e-9):
        try:
            return np.linalg.cholesky(covariance + np.diag(lift * np.diag(covariance) + lift * 1e-12))
        except np.linalg.LinAlgError:
            continue
    return np.full_like(covariance, np.nan)
