"""Semi-implicit step of the coupled arm and environment, and its exact linearisation (paper 2, eq. 8-14).

    (M + h B) delta = tau - C - G - B dq + tau_e(q, phi),   dq+ = dq + h delta,   q+ = q + h dq+

which is eq. 12 of paper 1 multiplied by (M + h B). The linearisation holds delta fixed: with the residual
r(q, dq, p) = M delta + C + G + B dq + h B delta - tau - tau_e, implicit differentiation gives d delta = -(M + h B)^-1
dr. That is exact, and needs a fifth of the instructions of differentiating through the solve.

A parameter stays: p+ = p. With a time constant T of its law it forgets its deviation from the start:
p+ = phi + e^(-h/T) (p - phi).
"""

from __future__ import annotations

import math

import casadi as ca

from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.robot import Arm


class CoupledStep:
    """Symbols and expressions of one step of length ``h`` [s].

    The state is xi = [q; dq; p] (eq. 13) with N = 2 n + n_p entries; ``phi`` holds all contact parameters, whose
    estimated entries are taken from ``p``.

    Args:
        arm: the robot.
        contacts: its contacts.

    Attributes:
        q: symbol of the joint positions (n,) [rad].
        dq: symbol of the joint velocities (n,) [rad/s].
        p: symbol of the estimated contact parameters (n_p,).
        phi: symbol of all contact parameters.
        tau: symbol of the motor torque (n,) [Nm].
        h: symbol of the step [s].
        xi: stacked state (q, dq, p).
        kinematics: placements at q.
        phi_now: phi with p in place.
        tau_e: external joint torque (n,) [Nm].
        delta: acceleration (n,).
        next: xi+ (N,).
        jacobian: A = d xi+ / d xi (N, N).
    """

    def __init__(self, arm: Arm, contacts: ParallelContacts) -> None:
        n, n_p = arm.n, contacts.n_estimated
        self.arm, self.contacts = arm, contacts
        self.q, self.dq, self.p = ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("p", n_p)
        self.phi, self.tau, self.h = ca.SX.sym("phi", contacts.size), ca.SX.sym("tau", n), ca.SX.sym("h")
        self.xi = ca.vertcat(self.q, self.dq, self.p)
        self.kinematics = arm.kinematics(self.q)
        self.phi_now = contacts.merge(self.phi, self.p)
        self.tau_e = contacts.joint_torque(self.kinematics, self.phi_now)
        damping = ca.SX(arm.motor.viscous)
        factor = LDL(arm.mass_matrix(self.kinematics) + self.h * ca.diag(damping))
        bias = arm.inverse_dynamics(self.kinematics, self.dq, ca.SX.zeros(n))
        self.delta = factor.solve(self.tau + self.tau_e - bias - damping * self.dq)
        self._factor = factor
        held = ca.SX.sym("delta", n)
        friction = damping * (self.dq + self.h * held)
        residual = arm.inverse_dynamics(self.kinematics, self.dq, held) + friction - self.tau_e
        derivative = -factor.solve(ca.densify(ca.jacobian(residual, self.xi)))
        self.delta_jacobian = ca.substitute(derivative, held, self.delta)
        dq_next = self.dq + self.h * self.delta
        p_next, self._decay = self._forget()
        self.next = ca.vertcat(self.q + self.h * dq_next, dq_next, p_next)
        dq_rows = ca.horzcat(ca.SX(n, n), ca.SX.eye(n), ca.SX(n, n_p)) + self.h * self.delta_jacobian
        q_rows = ca.horzcat(ca.SX.eye(n), ca.SX(n, n + n_p)) + self.h * dq_rows
        self.jacobian = ca.vertcat(q_rows, dq_rows, ca.horzcat(ca.SX(n_p, 2 * n), self._decay))
        self._dq_rows = dq_rows

    def _forget(self) -> tuple[ca.SX, ca.SX]:
        """Return p+ (n_p,) and its derivative by p (n_p, n_p)."""
        p_next, decay = ca.SX(self.p), ca.SX.eye(self.p.numel())
        for k, index in enumerate(self.contacts.estimated.tolist()):
            time_constant = self.contacts.entries[index].time_constant
            if math.isfinite(time_constant):
                decay[k, k] = ca.exp(-self.h / time_constant)
                p_next[k] = self.phi[index] + decay[k, k] * (self.p[k] - self.phi[index])
        return p_next, decay

    def velocity_noise(self, torque_intensity: ca.SX) -> ca.SX:
        """Return the covariance (n, n) of dq+ due to white torque noise: h S diag(.) S, S = (M + h B)^-1.

        Args:
            torque_intensity: (n,) [Nm^2 s].
        """
        inverse = self._factor.solve(ca.SX.eye(self.arm.n))
        return symmetric(self.h * (inverse * ca.repmat(torque_intensity.T, self.arm.n, 1)) @ inverse.T)

    def propagate(self, covariance: ca.SX) -> ca.SX:
        """Return A P A^T for a symmetric ``covariance`` (N, N), in two sparse factors.

        Velocities come first, then q+ = q + h dq+.
        """
        n, size = self.arm.n, self.xi.numel()
        first = ca.vertcat(
            ca.horzcat(ca.SX.eye(n), ca.SX(n, size - n)),
            self._dq_rows,
            ca.horzcat(ca.SX(size - 2 * n, 2 * n), self._decay),
        )
        second = ca.SX.eye(size)
        second[:n, n : 2 * n] = self.h * ca.SX.eye(n)
        return symmetric(second @ symmetric(first @ covariance @ first.T) @ second.T)


def symmetric(matrix: ca.SX) -> ca.SX:
    """Return the matrix with its lower triangle replaced by the upper one, so that only one half is ever computed."""
    return ca.triu2symm(ca.triu(ca.densify(matrix)))
