"""What the unbiased fit needs of a recording: external torque and friction columns averaged over blocks, and a
contact's torque with its derivative in generated C."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.signal import butter, sosfiltfilt

from contact_estimation.codegen import compile_function
from contact_estimation.fit.features import step_features
from contact_estimation.robot import Arm
from contact_estimation.robot.friction import follow_play, presliding_states

#: [m] Width over which the contact closes: softplus instead of a corner.
_WIDTH = 5e-5


@dataclass(frozen=True)
class Blocks:
    """Block means of one recording: external torque ``y`` (T, n) [Nm], friction columns ``nuisance`` (T, n, k),
    ``inputs`` (T, 12 + 6 n) of the generated function (TCP position, rotation and Jacobian, column-major), ``rate``
    [Hz]."""

    y: np.ndarray
    nuisance: np.ndarray
    inputs: np.ndarray
    rate: float


def block_means(arm: Arm, states, block: float, presliding: float, friction: bool) -> Blocks:
    """Block means of filtered ``states``, over ``block`` [s], with friction's columns -[1, dq, s] where it is wanted:
    the torque that friction takes from the motors is missing in y."""
    f = step_features(arm, states.h, states.q[:-1], states.dq[:-1], states.tau[:-1], states.q[1:], states.dq[1:])
    y = np.linalg.solve(f.inverse, f.error_dq[:, :, None])[:, :, 0] / f.h
    size = max(1, round(block / f.h))
    count = len(y) // size

    def mean(values):
        return values[:count * size].reshape(count, size, *values.shape[1:]).mean(axis=1)

    smooth = sosfiltfilt(butter(2, min(8.0, 0.2 / f.h), fs=1 / f.h, output="sos"), states.q[:-1], axis=0)
    sliding = presliding_states(follow_play(smooth), presliding)
    columns = [-np.ones_like(y), -states.dq[:-1], -sliding] if friction else []
    nuisance = np.stack([mean(c) for c in columns], axis=2) if columns else np.zeros((count, arm.n, 0))
    middle = slice(size // 2, count * size, size)
    inputs = np.hstack([f.position[middle], f.rotation[middle].transpose(0, 2, 1).reshape(count, -1),
                        f.jacobian[middle].transpose(0, 2, 1).reshape(count, -1)])
    return Blocks(mean(y), nuisance, inputs, 1 / f.h / size)


def unilateral_torque(arm: Arm):
    """Compiled tau_e (n,) of a unilateral contact and its derivative by [K; rest; point] (n, 9), SI, from TCP pose and
    Jacobian."""
    n = arm.n
    phi, data = ca.SX.sym("phi", 9), ca.SX.sym("data", 12 + 6 * n)
    position, rotation = data[:3], ca.reshape(data[3:12], 3, 3)
    jacobian = ca.reshape(data[12:], 6, n)
    lever = rotation @ phi[6:]
    norm = ca.norm_2(phi[:3])
    depth = ca.dot(phi[:3], phi[3:6] - position - lever) / norm
    # softplus without overflow: max(x, 0) + log(1 + exp(-|x|))
    scaled = depth / _WIDTH
    closed = _WIDTH * (ca.fmax(scaled, 0) + ca.log1p(ca.exp(-ca.fabs(scaled))))
    force = phi[:3] * closed
    torque = jacobian[:3, :].T @ force + jacobian[3:, :].T @ ca.cross(lever, force)
    return compile_function(
        ca.Function(
            "unilateral_torque",
            [phi, data],
            [torque, ca.densify(ca.jacobian(torque, phi))],
            ["phi", "data"],
            ["tau", "slope"],
        )
    )


def evaluate(run, phi: np.ndarray, inputs: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Torque (T, n) [Nm] and its derivative (T, n, 9) of ``run`` from :func:`unilateral_torque` at ``phi`` (9,) in
    SI."""
    torque, slope = np.empty((len(inputs), n)), np.empty((len(inputs), 9 * n))
    run.inputs["phi"][:] = phi
    data, out_torque, out_slope = run.inputs["data"], run.outputs["tau"], run.outputs["slope"]
    for k, row in enumerate(inputs):
        data[:] = row
        run()
        torque[k], slope[k] = out_torque, out_slope
    return torque, slope.reshape(-1, 9, n).transpose(0, 2, 1)
