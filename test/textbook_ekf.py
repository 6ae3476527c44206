"""A textbook EKF with dense numpy matrices on the same coupled step: the oracle of the generated one."""

import casadi as ca
import numpy as np

from contact_estimation.dynamics import CoupledStep


class TextbookEkf:
    """Paper 2, eq. 13-22, written with numpy.linalg: predict with the last torque, update with q, then with the
    external torque."""

    def __init__(self, arm, contacts, intensity, torque_intensity, noise_q, noise_tau=None):
        step = CoupledStep(arm, contacts)
        bias = arm.inverse_dynamics(step.kinematics, step.dq, ca.SX.zeros(arm.n))
        mass = arm.mass_matrix(step.kinematics)
        self.predict = ca.Function(
            "predict", [step.xi, step.phi, step.tau, step.h], [step.next, ca.jacobian(step.next, step.xi), mass]
        )
        self.torque = ca.Function("torque", [step.xi, step.phi], [step.tau_e, ca.jacobian(step.tau_e, step.xi), bias])
        self.arm, self.intensity, self.torque_intensity = arm, intensity, torque_intensity
        self.noise_q, self.noise_tau = noise_q, noise_tau

    def start(self, x, covariance, phi):
        """Begin with a mean (N,) and a covariance (N, N)."""
        self.x, self.p, self.phi, self.tau, self.nis = x.copy(), covariance.copy(), phi.copy(), None, 0.0

    def step(self, h, q, tau):
        """One sample."""
        n = self.arm.n
        last, self.tau = (tau if self.tau is None else self.tau), tau
        x, jacobian, mass = (v.full() for v in self.predict(self.x, self.phi, last, h))
        noise = np.diag(h * self.intensity)
        if self.torque_intensity is not None:
            inverse = np.linalg.inv(mass + h * np.diag(self.arm.motor.viscous))
            noise[n : 2 * n, n : 2 * n] += h * inverse @ np.diag(self.torque_intensity) @ inverse.T
        self.x, self.p = x.ravel(), jacobian @ self.p @ jacobian.T + noise
        rows = np.eye(n, len(self.x))
        self.nis = self._update(rows, q - self.x[:n], self.noise_q)
        if self.noise_tau is not None:
            tau_e, rows, bias = (v.full() for v in self.torque(self.x, self.phi))
            self.nis += self._update(rows, (bias - tau_e).ravel() - tau, self.noise_tau)

    def _update(self, rows, innovation, variance):
        spread = rows @ self.p @ rows.T + variance * np.eye(len(innovation))
        gain = np.linalg.solve(spread, rows @ self.p).T
        self.x = self.x + gain @ innovation
        keep = np.eye(len(self.x)) - gain @ rows
        self.p = keep @ self.p @ keep.T + variance * gain @ gain.T
        return float(innovation @ np.linalg.solve(spread, innovation))
