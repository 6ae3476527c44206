"""Per-sample features of the coupled dynamics that do not depend on the contact parameters.

Between two filtered states the step's error is affine in the contact torque: with S = (M + h B)^-1 and
delta0 = S (tau - C - G - B dq),

    e_dq = (dq+ - dq - h delta0) - h S tau_e(q, phi),     e_q = (q+ - q - h dq - h^2 delta0) - h^2 S tau_e(q, phi).

Computing S, delta0 and the kinematics once makes an objective over thousands of samples several times cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.robot import Arm


@dataclass(frozen=True)
class StepFeatures:
    """Features of T transitions.

    Attributes:
        h: length of a transition [s].
        inverse: (T, n, n) the matrix S.
        error_dq: (T, n) [rad/s] error of the step without contact.
        error_q: (T, n) [rad] error of the step without contact.
        position: (T, 3) [m] of the TCP, base frame.
        rotation: (T, 3, 3) of the TCP, base frame.
        jacobian: (T, 6, n) of the TCP, base axes.
    """

    h: float
    inverse: np.ndarray
    error_dq: np.ndarray
    error_q: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    jacobian: np.ndarray


def step_features(
    arm: Arm, h: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray, q_next: np.ndarray, dq_next: np.ndarray
) -> StepFeatures:
    """Return the features of T transitions (q, dq) -> (q_next, dq_next) under a torque.

    Args:
        arm: the robot.
        h: length of a step [s].
        q: (T, n) [rad].
        dq: (T, n) [rad/s].
        tau: (T, n) [Nm].
        q_next: (T, n) [rad].
        dq_next: (T, n) [rad/s].
    """
    n = arm.n
    qs, dqs, taus, hs = ca.SX.sym("q", n), ca.SX.sym("dq", n), ca.SX.sym("tau", n), ca.SX.sym("h")
    kin = arm.kinematics(qs)
    damping = ca.SX(arm.motor.viscous)
    factor = LDL(arm.mass_matrix(kin) + hs * ca.diag(damping))
    delta = factor.solve(taus - arm.inverse_dynamics(kin, dqs, ca.SX.zeros(n)) - damping * dqs)
    rotation, position = arm.tcp(kin)
    outputs = [factor.solve(ca.SX.eye(n)), delta, position, rotation, kin.jacobian(arm.tcp_frame)]
    run = compile_function(
        ca.Function(
            "step_features",
            [qs, dqs, taus, hs],
            [ca.densify(o) for o in outputs],
            ["q", "dq", "tau", "h"],
            ["S", "delta", "p", "R", "J"],
        )
    )
    count = len(q)
    inverse, deltas = np.empty((count, n, n)), np.empty((count, n))
    positions, rotations, jacobians = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 6, n))
    run.inputs["h"][0] = h
    for k in range(count):
        run.inputs["q"][:], run.inputs["dq"][:], run.inputs["tau"][:] = q[k], dq[k], tau[k]
        run()
        out = run.outputs
        inverse[k], deltas[k] = out["S"].reshape(n, n), out["delta"]
        positions[k], rotations[k] = out["p"], out["R"].reshape(3, 3, order="F")
        jacobians[k] = out["J"].reshape(6, n, order="F")
    error_dq = dq_next - dq - h * deltas
    return StepFeatures(h, inverse, error_dq, q_next - q - h * dq - h**2 * deltas, positions, rotations, jacobians)
