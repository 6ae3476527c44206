"""The wrench at the TCP that explains an external joint torque, also where the posture does not determine it.

Damped least squares with units (Nakamura and Hanafusa 1986): w minimises |tau_e - J^T w|^2 / error^2 + |w / prior|^2,

    w = A tau_e,    A = (J J^T + (error / prior)^2)^-1 J.

Where the posture determines the wrench, the prior has no effect. Along a direction without a lever at any joint, w is
zero and its standard deviation is the prior's.
"""

from __future__ import annotations

import casadi as ca


def damped_inverse(jacobian: ca.SX, prior: ca.SX, error: ca.SX) -> ca.SX:
    """Return the matrix A (r, n) of the wrench w = A tau_e (r,) that fits all joints' torques equally well.

    Args:
        jacobian: J (r, n), rows of a force and perhaps a torque.
        prior: standard deviations (r,) of these [N, Nm].
        error: torque [Nm] that damps: a force is halved where its lever is as short as error / prior.
    """
    damped = jacobian @ jacobian.T + ca.diag((error / prior) ** 2)
    return ca.ldl_solve(jacobian, *ca.ldl(damped, False))


def wrench_covariance(matrix: ca.SX, jacobian: ca.SX, prior: ca.SX, torque_variance: ca.SX) -> ca.SX:
    """Return the covariance (r, r) of the wrench A tau_e: torque errors, and what the damping takes away of it.

    Args:
        matrix: A (r, n).
        jacobian: J (r, n).
        prior: standard deviations (r,) of the wrench [N, Nm].
        torque_variance: (n,) [Nm^2] of tau_e.
    """
    rows = prior.shape[0]
    missed = (matrix @ jacobian.T - ca.DM.eye(rows)) @ ca.diag(prior)
    return matrix @ ca.diag(torque_variance) @ matrix.T + missed @ missed.T
