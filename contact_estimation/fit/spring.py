"""The contact of the unbiased fit in generated C: it pushes and never pulls, and it may hold its point by friction.

    F = K softplus(d) + s |K| gate(d) (I - n n^T) (x_rest - x),    n = K / |K|,    d = n^T (x_rest - x)

The first part is eq. 4 of paper 2 made unilateral. The second is the tangential spring of a point that does not slide:
s is its stiffness over the normal one (2/3 to 1 for elastic bodies, Mindlin 1949), zero where friction is not modelled.
It is what three of the papers' primitives with a common rest and point are (a hinge, paper 2, section 3), with two
stiffnesses instead of three.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_function
from contact_estimation.robot import Arm

#: [m] Width over which the contact closes: softplus instead of a corner.
_WIDTH = 5e-5
#: Numbers of one contact: K, rest, point, s.
SIZE = 10


def spring_torque(arm: Arm):
    """Compiled tau_e (n,) of one contact and its derivative by [K; rest; point; s] (n, 10), SI, from TCP pose and
    Jacobian."""
    n = arm.n
    phi, data = ca.SX.sym("phi", SIZE), ca.SX.sym("data", 12 + 6 * n)
    position, rotation = data[:3], ca.reshape(data[3:12], 3, 3)
    jacobian = ca.reshape(data[12:], 6, n)
    lever = rotation @ phi[6:9]
    stretch = phi[3:6] - position - lever
    norm = ca.norm_2(phi[:3])
    normal = phi[:3] / norm
    depth = ca.dot(normal, stretch)
    # softplus and its derivative without overflow
    scaled = depth / _WIDTH
    closed = _WIDTH * (ca.fmax(scaled, 0) + ca.log1p(ca.exp(-ca.fabs(scaled))))
    gate = 0.5 * (1 + ca.tanh(0.5 * scaled))
    force = phi[:3] * closed + phi[9] * norm * gate * (stretch - normal * depth)
    torque = jacobian[:3, :].T @ force + jacobian[3:, :].T @ ca.cross(lever, force)
    return compile_function(
        ca.Function(
            "spring_torque",
            [phi, data],
            [torque, ca.densify(ca.jacobian(torque, phi))],
            ["phi", "data"],
            ["tau", "slope"],
        )
    )


def evaluate(run, phi: np.ndarray, inputs: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Torque (T, n) [Nm] and its derivative (T, n, 10) of ``run`` from :func:`spring_torque` at ``phi`` (10,) in SI,
    for the ``inputs`` of :class:`~contact_estimation.fit.blocks.Blocks`."""
    torque, slope = np.empty((len(inputs), n)), np.empty((len(inputs), SIZE * n))
    run.inputs["phi"][:] = phi
    data, out_torque, out_slope = run.inputs["data"], run.outputs["tau"], run.outputs["slope"]
    for k, row in enumerate(inputs):
        data[:] = row
        run()
        torque[k], slope[k] = out_torque, out_slope
    return torque, slope.reshape(-1, SIZE, n).transpose(0, 2, 1)
