"""The same filters as one writes them with plain Pinocchio and numpy, or with filterpy; peers of growth.py.

The arm's step is that of :class:`~contact_estimation.dynamics.coupled.CoupledStep`, with a spring at the TCP whose
stiffness vector K is estimated: F = K (K . d) / |K|, with the depth vector d = x_rest - x. Its Jacobian is exact, by
Pinocchio's derivatives of the inverse dynamics with the contact as external force.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.process_noise import state_intensity, torque_intensity
from contact_estimation.robot import Arm

DT = 0.002


class PlainArm:
    """Step and Jacobian of an arm with a spring, by Pinocchio.

    Args:
        ekf: gives arm, noise and start; it estimates the stiffness of one contact and nothing else.
        q: where it starts (n,) [rad].
    """

    def __init__(self, ekf: Ekf, q: np.ndarray) -> None:
        arm = ekf.arm
        self.n, self.model = arm.n, arm.model.copy()
        self.model.armature[:] = arm.motor.armature
        self.data, self.frame = self.model.createData(), self.model.getFrameId(arm.tcp_frame)
        self.viscous, self.noise = np.diag(arm.motor.viscous), ekf.settings.measurement_noise.position
        phi, std = ekf.contacts.initial(q)
        self.scale, self.rest = ekf.contacts.scale[0], phi[3:6] * ekf.contacts.scale[3:6]
        s = ekf.settings
        self.start = np.concatenate([q, np.zeros(arm.n), phi[:3]])
        spread = [np.full(arm.n, s.initial_position_std), np.full(arm.n, s.initial_velocity_std), std]
        self.covariance = np.diag(np.concatenate(spread) ** 2)
        self.intensity = np.diag(state_intensity(arm, ekf.contacts, s.process_noise))
        of_torque = torque_intensity(arm, s.process_noise)
        self.of_torque = np.zeros(arm.n) if of_torque is None else of_torque

    def step(self, x: np.ndarray, dt: float, tau: np.ndarray) -> np.ndarray:
        """Return the state [q; dq; K] after ``dt`` [s]."""
        n, (q, dq) = self.n, (x[: self.n], x[self.n : 2 * self.n])
        force, jacobian, mass = self._contact(x)
        bias = pin.nonLinearEffects(self.model, self.data, q, dq)
        self.delta = np.linalg.solve(mass + dt * self.viscous, tau + jacobian[:3].T @ force - bias - self.viscous @ dq)
        velocity = dq + dt * self.delta
        return np.concatenate([q + dt * velocity, velocity, x[2 * n :]])

    def _contact(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return force [N], the TCP's Jacobian and the mass matrix."""
        q, stiffness = x[: self.n], self.scale * x[2 * self.n :]
        mass = pin.crba(self.model, self.data, q)
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        jacobian = pin.getFrameJacobian(self.model, self.data, self.frame, pin.LOCAL_WORLD_ALIGNED)
        depth = self.rest - self.data.oMf[self.frame].translation
        return stiffness * (stiffness @ depth) / np.linalg.norm(stiffness), jacobian, np.triu(mass) + np.triu(mass, 1).T

    def linearise(self, x: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Return A and the process noise of the step that was made last, from ``x``."""
        n, q, dq, k = self.n, x[: self.n], x[self.n : 2 * self.n], self.scale * x[2 * self.n :]
        force, jacobian, mass = self._contact(x)
        placement = self.data.oMf[self.frame]
        joint = self.model.frames[self.frame].parentJoint
        lever = self.model.frames[self.frame].placement.translation
        rotation, stretch = self.data.oMi[joint].rotation, self.rest - placement.translation
        local = rotation.T @ force
        outside = pin.StdVec_Force()
        outside.extend([pin.Force.Zero() for _ in range(self.model.njoints)])
        outside[joint] = pin.Force(local, np.cross(lever, local))
        by_q, by_dq, _ = pin.computeRNEADerivatives(self.model, self.data, q, dq, self.delta, outside)
        norm = np.linalg.norm(k)
        along = np.outer(k, k) / norm
        by_k = (k @ stretch * np.eye(3) + np.outer(k, stretch)) / norm - force[:, None] * k / norm**2
        # In its joint's axes a force that is constant in the world turns: the derivatives above hold it fixed there.
        turned = pin.skew(force) @ jacobian[3:] - along @ jacobian[:3]  # (3, n) of the force, world axes
        by_state = np.hstack(
            [by_q - jacobian[:3].T @ turned, by_dq + self.viscous, -jacobian[:3].T @ by_k * self.scale]
        )
        inverse = np.linalg.inv(mass + dt * self.viscous)
        a = np.eye(len(x))
        a[n : 2 * n] -= dt * inverse @ by_state
        a[:n] += dt * a[n : 2 * n]
        noise = dt * self.intensity
        noise[n : 2 * n, n : 2 * n] += dt * inverse * self.of_torque @ inverse.T
        return a, noise


class Peer:
    """A filter that predicts with the torque of the sample before, as the package's own."""

    def __init__(self) -> None:
        self._tau: np.ndarray | None = None

    def last(self, tau: np.ndarray) -> np.ndarray:
        """Return the torque before, and remember this one."""
        last, self._tau = tau if self._tau is None else self._tau, tau
        return last


class PlainEkf(Peer):
    """Extended Kalman filter in numpy; q is measured."""

    def __init__(self, arm: PlainArm) -> None:
        super().__init__()
        self.arm, self.x, self.P = arm, arm.start.copy(), arm.covariance.copy()

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Predict and update."""
        n, before = self.arm.n, self.x
        self.x = self.arm.step(before, dt, self.last(tau))
        a, noise = self.arm.linearise(before, dt)
        self.P = a @ self.P @ a.T + noise
        gain = np.linalg.solve(self.P[:n, :n] + self.arm.noise * np.eye(n), self.P[:n]).T
        self.x = self.x + gain @ (q - self.x[:n])
        self.P = self.P - gain @ self.P[:n]
        self.P = 0.5 * (self.P + self.P.T)


class FilterpyEkf(Peer):
    """The same by filterpy's ExtendedKalmanFilter."""

    def __init__(self, arm: PlainArm) -> None:
        from filterpy.kalman import ExtendedKalmanFilter

        super().__init__()
        size = len(arm.start)
        self.arm, self._filter = arm, ExtendedKalmanFilter(size, arm.n)
        self._filter.x, self._filter.P, self._filter.R = (
            arm.start.copy(),
            arm.covariance.copy(),
            arm.noise * np.eye(arm.n),
        )
        self._rows = np.eye(arm.n, size)

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Predict and update."""
        own, before = self._filter, self._filter.x
        own.x = self.arm.step(before, dt, self.last(tau))
        own.F, own.Q = self.arm.linearise(before, dt)
        own.P = own.F @ own.P @ own.F.T + own.Q
        own.update(q, lambda x: self._rows, lambda x: x[: self.arm.n])

    @property
    def x(self) -> np.ndarray:
        """State (N,)."""
        return self._filter.x


class FilterpyUkf(Peer):
    """filterpy's UnscentedKalmanFilter on the same model."""

    def __init__(self, arm: PlainArm, alpha: float, beta: float, kappa: float) -> None:
        from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

        super().__init__()
        size, self.arm = len(arm.start), arm
        points = MerweScaledSigmaPoints(size, alpha, beta, kappa)
        self._filter = UnscentedKalmanFilter(size, arm.n, DT, lambda x: x[: arm.n], arm.step, points)
        self._filter.x, self._filter.P, self._filter.R = (
            arm.start.copy(),
            arm.covariance.copy(),
            arm.noise * np.eye(arm.n),
        )

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Predict and update."""
        before, tau = self._filter.x.copy(), self.last(tau)
        self.arm.step(before, dt, tau)
        _, self._filter.Q = self.arm.linearise(before, dt)
        self._filter.predict(dt, tau=tau)
        self._filter.update(q)

    @property
    def x(self) -> np.ndarray:
        """State (N,)."""
        return self._filter.x


class PlainMomentum:
    """Momentum observer, its wrench by a damped pseudo-inverse, in numpy."""

    def __init__(self, arm: Arm, gain: float, damping: float = 1e-3) -> None:
        self.model, self.gain, self.damping = arm.model.copy(), gain, damping
        self.model.armature[:] = arm.motor.armature
        self.data, self.frame = self.model.createData(), self.model.getFrameId(arm.tcp_frame)
        self.viscous, self.residual, self.sum = arm.motor.viscous, np.zeros(arm.n), np.zeros(arm.n)
        self.wrench = np.zeros(6)

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Take one sample."""
        mass = pin.crba(self.model, self.data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        coriolis = pin.computeCoriolisMatrix(self.model, self.data, q, dq)
        gravity = pin.computeGeneralizedGravity(self.model, self.data, q)
        self.sum += dt * (tau + coriolis.T @ dq - gravity - self.viscous * dq + self.residual)
        self.residual = self.gain * (mass @ dq - self.sum)
        jacobian = pin.computeFrameJacobian(self.model, self.data, q, self.frame, pin.LOCAL)
        square = jacobian @ jacobian.T + self.damping * np.eye(6)
        self.wrench = np.linalg.solve(square, jacobian @ self.residual)
