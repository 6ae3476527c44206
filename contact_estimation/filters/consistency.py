"""Consistency of an observer of given contacts: do its contacts explain the torque, and is its force known well enough?

An EKF of papers 1 and 2 knows the contacts it was given. Its innovations show little of any other push, because their
noise is that of its process. So the momentum p = M(q) dq judges it from outside,

    dp/dt = tau + C^T dq - G - B dq + tau_e + m,

with tau_e the torque of the observer's contacts and m the missed torque, which a momentum observer follows. With W the
inverse of what friction, torque noise and the observer's covariance leave open, the force at the TCP that explains m
best, and how likely there is none (generalised least squares; Bar-Shalom, Li and Kirubarajan 2001, section 3.4), are

    F = (J W J^T)^-1 J W m,    m^T W J^T F ~ chi-square with 3 degrees of freedom.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from contact_estimation.codegen import DoubleBuffer, bind_recursion, compile_built, named_function, symbols
from contact_estimation.dynamics.ldl import LDL
from contact_estimation.dynamics.momentum import momentum_residual, momentum_terms
from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.settings import ConsistencySettings
from contact_estimation.robot import Arm
from contact_estimation.robot.friction_model import FrictionModel

#: Looks at the momentum within a time constant of its observer: what the observer lets through hardly changes between.
_LOOKS = 5


class ContactTorque(NamedTuple):
    """What the contacts of an observer do (views)."""

    #: (n,) [Nm] joint torque.
    torque: np.ndarray
    #: (n,) [Nm^2] its variance.
    variance: np.ndarray
    #: (3,) [N^2] variance of the force along the axes of the TCP.
    force_variance: np.ndarray


@runtime_checkable
class GivenContacts(Protocol):
    """An observer whose external torque is that of contacts it was given, and of nothing else.

    Attributes:
        friction: converts the measured torque.
        consistency: from when on its estimates are refused.
        settling: [s] time over which the variance of its force is averaged.
    """

    friction: FrictionModel
    consistency: ConsistencySettings
    settling: float

    def contact_torque(self) -> ContactTorque:
        """Return what the contacts do after the last sample."""


def build_missed_force(arm: Arm) -> ca.Function:
    """Return the function of an interval.

    Inputs: w = [m; integral] (2 n,); q, dq (n,) at its end; impulse (n,) [Nms] of the measured torque in it; torque and
    variance (n,) [Nm, Nm^2], of the contacts and of all that is known of m; dt [s]; gain [1/s]; prior [N]. Outputs:
    w_next; force (3,) [N] in base axes; evidence.

    Args:
        arm: the robot.
    """
    n = arm.n
    s = symbols(w=2 * n, q=n, dq=n, impulse=n, torque=n, variance=n, dt=1, gain=1, prior=1)
    kinematics = arm.kinematics(s.q)
    momentum, drift, _ = momentum_terms(arm, kinematics, s.dq)
    integral = s.w[n:] + s.impulse + s.dt * (drift + s.torque)
    missed, integral = momentum_residual(momentum, integral, s.gain, s.dt)
    jacobian = kinematics.jacobian(arm.tcp_frame)[:3, :]
    weighted = jacobian / ca.repmat(s.variance.T, 3, 1)
    force = LDL(weighted @ jacobian.T + ca.SX.eye(3) / s.prior**2).solve(weighted @ missed)
    outputs = {"w_next": ca.vertcat(missed, integral), "force": force}
    return named_function("missed_force", s, outputs | {"evidence": ca.dot(weighted @ missed, force)})


def consistency_of(observer: object, arm: Arm) -> ConsistencyMonitor | None:
    """Return the monitor of an observer that knows only the contacts it was given.

    Any other observer has none, nor has one whose settings refuse nothing.

    Args:
        observer: any.
        arm: the robot as its torque sensors see it.
    """
    if not isinstance(observer, GivenContacts):
        return None
    settings = observer.consistency
    refuses = settings.significance > 0 or settings.largest_std is not None
    return ConsistencyMonitor(observer, arm) if refuses else None


class ConsistencyMonitor:
    """Tells when the force of an observer of given contacts must not be used.

    Args:
        observer: is judged.
        arm: the robot as its torque sensors see it.

    Attributes:
        force: (3,) [N] in base axes: what is missed at the TCP (a view).
        evidence: (1,) chi-square of it (a view).
        reason: why estimates must not be used; empty while they may.
    """

    def __init__(self, observer: GivenContacts, arm: Arm) -> None:
        self._observer, self._settings, self._n = observer, observer.consistency, arm.n
        function = compile_built(build_missed_force, arm)
        self._inputs = inputs = function.inputs
        inputs["gain"][:], inputs["prior"][:] = self._settings.gain, self._settings.force_std
        self._interval = 1.0 / (_LOOKS * self._settings.gain)  # [s]
        self._state = DoubleBuffer.of(function)
        self._advance = bind_recursion(function, [self._state])
        self.evidence, self.force = function.outputs["evidence"], function.outputs["force"]
        self._largest = chi_square_quantile(3, self._settings.significance)
        self._impulse, self._product = np.zeros((2, arm.n))
        self.reset()

    def reset(self) -> None:
        """Forget the past: the next sample starts anew."""
        self._impulse[:], self._elapsed, self._started = 0.0, 0.0, False
        self._variance = 0.0  # [N^2]
        self.reason = ""

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray) -> None:
        """Take the sample that the observer has just taken.

        Args:
            dt: time since the last one [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s].
        """
        np.multiply(self._observer.friction.torque, dt, out=self._product)
        self._impulse += self._product
        self._elapsed += dt
        if self._elapsed < self._interval - 0.5 * dt and self._started:
            return
        inputs, contacts = self._inputs, self._observer.contact_torque()
        inputs["q"][:], inputs["dq"][:], inputs["torque"][:] = q, dq, contacts.torque
        np.add(contacts.variance, self._observer.friction.variance(), out=inputs["variance"])
        variance = float(contacts.force_variance.max())
        if self._started:
            inputs["impulse"][:], inputs["dt"][:] = self._impulse, self._elapsed
            self._advance()
            share = self._elapsed / (self._elapsed + self._observer.settling)  # first-order lag
            self._variance += share * (variance - self._variance)
        else:
            self._start()
            self._variance = variance
        self._impulse[:], self._elapsed, self._started = 0.0, 0.0, True
        self.reason = self._judge()

    def _start(self) -> None:
        """Begin with nothing missed and the momentum of this sample."""
        inputs, missed, integral = self._inputs, slice(0, self._n), slice(self._n, None)
        self._state["w"][:], inputs["impulse"][:], inputs["dt"][:] = 0.0, 0.0, 0.0
        self._advance()
        state = self._state["w"]
        state[integral] = state[missed] / self._settings.gain  # m = K_O p where the integral is zero and no time passed
        state[missed] = 0.0
        self.force[:], self.evidence[:] = 0.0, 0.0

    def _judge(self) -> str:
        """Return why the force must not be used; numbers that are not finite are reported elsewhere."""
        evidence, largest = float(self.evidence[0]), self._settings.largest_std
        if evidence > self._largest:
            return (
                f"a force of about {np.linalg.norm(self.force):.0f} N that its contacts do not explain (chi-square "
                f"{evidence:.0f}, at most {self._largest:.0f}): this observer sees the contacts of its settings only"
            )
        if largest is not None and self._variance > largest**2:
            return f"the force is uncertain by {math.sqrt(self._variance):.0f} N, more than largest_std {largest:g} N"
        return ""
