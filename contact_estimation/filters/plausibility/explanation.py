"""What each reading of the effort leaves unexplained of a free arm's torque, in generated C.

    r = (A effort + g G(q)) - (M ddq + C dq + G),   misfit = mean (r / sigma)^2,

with sigma what friction and an imperfect model make. Beside the readings of :mod:`.readings` there are rivals with free
numbers: a common factor (the one that fits best), a delay, gravity in another direction (a wrong mounting; its vector
is the maximum a posteriori), and one joint whose torque is wrong, whatever it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from contact_estimation.codegen import named_function, symbols
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.filters.plausibility.readings import Reading
from contact_estimation.robot import Arm
from contact_estimation.robot.rigid_body import Kinematics, RigidBody

#: Below this misfit the configured reading explains a free arm, and below that one an alternative does.
FREE, RIVAL_FREE = 1.0, 0.5
#: A torque that is off by a factor between these is no mistake of a unit: torque constants vary.
_USUAL_FACTORS = (0.7, 1.5)
#: [rad/s] From this speed on friction has the sign of the motion.
_MOVING_SPEED = 0.01
#: Standard deviations of the gravity vector [m/s^2]: of its direction, as a component, and of its length.
GRAVITY_STD, GRAVITY_LENGTH_STD = 10.0, 0.7
#: [m/s^2] A vector of gravity that turned by less (about 10 degrees) is no wrong mounting.
GRAVITY_TURN = 1.7


class FreeArm(NamedTuple):
    """The torque of an arm that nothing touches.

    Attributes:
        gravity, inertia: (n,) [Nm] parts of it.
        torque: (n,) [Nm] their sum, and Coulomb friction.
        sigma: (n,) [Nm] what friction and an imperfect model may add.
    """

    gravity: ca.SX
    inertia: ca.SX
    torque: ca.SX
    sigma: ca.SX


#: Inputs that :func:`free_arm` takes beside the motion.
FREE_ARM_CONSTANTS = ("friction", "coulomb", "viscous", "share")


def free_arm(arm: Arm, kinematics: Kinematics, s: Any) -> FreeArm:
    """Write the torque of a free arm.

    Args:
        arm: the robot as its torque sensors see it.
        kinematics: at ``s.q``.
        s: symbols dq, ddq (n,), and friction, coulomb, viscous (n,) [Nm, Nm, Nms/rad]; share (2,) of gravity and
            inertia by which the model may be wrong.
    """
    gravity = arm.body.gravity_torque(kinematics)
    inertia = arm.inverse_dynamics(kinematics, s.dq, s.ddq) - gravity
    turning = s.dq / (ca.fabs(s.dq) + _MOVING_SPEED)  # Coulomb friction has the sign of the motion, and at rest any
    allowance = ca.sqrt(s.friction**2 + s.coulomb**2 * (1 - turning**2))
    sigma = allowance + s.share[0] * ca.fabs(gravity) + s.share[1] * ca.fabs(inertia) + s.viscous * ca.fabs(s.dq)
    return FreeArm(gravity, inertia, gravity + inertia + s.coulomb * turning, sigma)


def build_explanation(arm: Arm, readings: Sequence[Reading], delays: int) -> ca.Function:
    """Build the judgement of one block of samples.

    Args:
        arm: the robot as its torque sensors see it.
        readings: the configured one and its rivals; only their joint orders are compiled in.
        delays: number of delays that are looked for.

    Inputs: q, dq, ddq, effort (n,); load (n,) [Nm], external torque of a known payload; factor (n R0) and added (R0)
    of the readings; friction, coulomb, viscous (n,) [Nm, Nm, Nms/rad]; share (2,) of gravity and inertia; past_model
    and past_torque (n delays) [Nm], the model's torque some time ago and what the configured reading said then; contact
    (6,), standard deviations of a wrench at the tool [N, Nm].
    Outputs: residual (n (1 + R)) in units of sigma and misfit (1 + R), of the configured reading and all rivals; felt
    (1,), what gravity and inertia are in these units; pushed (1,), the misfit where a wrench at the tool may help;
    early (delays,), the misfit of the torque some time ago with the model now; model and torque (n,) [Nm], the latter
    of the configured reading.
    """
    n, count = arm.n, len(readings)
    s = symbols(
        q=n,
        dq=n,
        ddq=n,
        effort=n,
        load=n,
        factor=(n, count),
        added=count,
        friction=n,
        coulomb=n,
        viscous=n,
        share=2,
        past_model=(n, delays),
        past_torque=(n, delays),
        contact=6,
    )
    kinematics = arm.kinematics(s.q)
    gravity, inertia, unloaded, sigma = free_arm(arm, kinematics, s)
    model, sigma = unloaded - s.load, sigma + s.share[0] * ca.fabs(s.load)
    torque = [
        s.factor[:, r] * s.effort[reading.order.tolist()] + s.added[r] * gravity for r, reading in enumerate(readings)
    ]
    own = torque[0]
    residual = [t - model for t in torque]
    residual.append(_factor(own, model, sigma) * own - model)
    residual += [own - s.past_model[:, k] for k in range(delays)]
    leaning, price = _mounting(arm, kinematics, residual[0], sigma)
    residual.append(leaning)
    # One joint is wrong, whatever it says.
    residual += [ca.if_else(ca.DM(np.arange(n) == j), 0, residual[0]) for j in range(n)]
    residual = [r / sigma for r in residual]
    misfit = [ca.sumsqr(r) / n for r in residual]
    misfit[-n - 1] += price
    wrench = kinematics.jacobian(arm.tcp_frame).T @ ca.diag(s.contact)  # (n, 6)
    covariance = ca.diag(sigma**2) + wrench @ wrench.T
    left = residual[0] * sigma
    pushed = ca.dot(left, LDL(covariance).solve(left)) / n
    outputs = {
        "residual": ca.horzcat(*residual),
        "misfit": ca.vertcat(*misfit),
        "felt": ca.sumsqr((gravity + inertia) / sigma) / n,
        "pushed": pushed,
        "early": ca.vertcat(*(ca.sumsqr((s.past_torque[:, k] - model) / sigma) / n for k in range(delays))),
        "model": model,
        "torque": own,
    }
    return named_function("signal_explanation", s, outputs)


def _factor(own: ca.SX, model: ca.SX, sigma: ca.SX) -> ca.SX:
    """Return the common factor that fits best, 1 where it would be no mistake of a unit."""
    factor = ca.dot(own, model / sigma**2) / ca.fmax(ca.dot(own, own / sigma**2), 1e-12)
    least, most = _USUAL_FACTORS
    usual = ca.logic_and(factor * least < 1, factor * most > 1)
    return ca.if_else(usual, 1, factor)


def _mounting(arm: Arm, kinematics: Kinematics, residual: ca.SX, sigma: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the residual (n,) [Nm] under the gravity vector that fits best, and the price of that vector."""
    columns = []
    for axis in np.eye(3):
        model = arm.model.copy()
        model.gravity.linear = axis
        columns.append(RigidBody(model, arm.base_frame).gravity_torque(kinematics))
    regressor = ca.horzcat(*columns)  # (n, 3)
    weighted = regressor / ca.repmat(sigma, 1, 3)
    square = weighted.T @ weighted + ca.DM.eye(3) / GRAVITY_STD**2
    change = LDL(square).solve(weighted.T @ (residual / sigma))
    configured = ca.DM(arm.model.gravity.linear)
    length = ca.norm_2(configured + change)
    price = ((length - ca.norm_2(configured)) / GRAVITY_LENGTH_STD) ** 2
    turned = ca.norm_2(change) > GRAVITY_TURN
    return residual - regressor @ change, ca.if_else(turned, price, 1e6)
