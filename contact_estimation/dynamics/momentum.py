"""The generalised momentum p = M(q) dq and its rate of change, without differentiating a velocity."""

from __future__ import annotations

import casadi as ca

from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics


def momentum_terms(arm: Arm, kinematics: Kinematics, dq: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Momentum p, its drift C^T dq - G - B dq, and the rigid-body bias C dq + G, each (n,) [Nms, Nm, Nm].

    dp/dt = tau + drift + tau_e (De Luca and Mattone 2005), where C^T dq - G = (dM/dt) dq - (C dq + G).

    Args:
        arm: the robot.
        kinematics: placements at its configuration.
        dq: (n,) [rad/s].
    """
    momentum = arm.mass_matrix(kinematics) @ dq
    bias = arm.inverse_dynamics(kinematics, dq, ca.SX.zeros(arm.n))
    mass_rate = ca.jtimes(momentum, kinematics.q, dq)  # (dM/dt) dq = (C + C^T) dq
    return momentum, mass_rate - bias - ca.SX(arm.motor.viscous) * dq, bias


def momentum_residual(momentum: ca.SX, integral: ca.SX, gain: ca.SX, dt: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the residual r (n,) [Nm] of a momentum observer after a step, and its integral (n,) [Nms].

    r+ = K_O (p+ - s - h r+), with the integral s of everything that is known of dp/dt and of r. It is solved for r+
    (implicit), so that the observer is stable for every gain.

    Args:
        momentum: p+ (n,) [Nms].
        integral: s (n,) [Nms], with this step's known torque.
        gain: K_O [1/s].
        dt: h [s].
    """
    residual = gain * (momentum - integral) / (1 + gain * dt)
    return residual, integral + dt * residual
