"""Joint friction: viscous, Coulomb with presliding, asymmetry, bias.

    tau_f = V dq + A |dq| + F_c s + b,      tau = (M ddq + C + G + B dq + tau_f - J^T f) / scale

with the robot's own viscous friction B, which every model of the arm has.

The presliding state s in [-1, 1] is the elastic deflection of the sliding surfaces. It follows the motion within a
breakaway length sigma and keeps its value at standstill, so friction persists there. It is Dahl's model (1968), solved
exactly over a step of the position and therefore independent of the sample rate:

    s+ = sign(step) (1 - e^(-|step| / sigma)) + s e^(-|step| / sigma).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import key, non_negative, positive

#: [rad] Encoder noise below this must not move the presliding state.
DEADBAND = 25e-6


@dataclass(frozen=True, kw_only=True)
class FrictionSettings:
    """Joint friction as an estimator starts with it; every list has one entry per joint.

    A ``_std`` is what to expect of a new run: the uncertainty of the identification and the change between recordings.
    """

    viscous: list[float] = key(
        doc="viscous friction beyond the robot's viscous_friction", unit="Nms/rad", check=non_negative, length="joints"
    )
    viscous_std: list[float] = key(doc="its standard deviation", unit="Nms/rad", check=non_negative, length="joints")
    coulomb: list[float] = key(doc="Coulomb friction F_c", unit="Nm", check=non_negative, length="joints")
    coulomb_std: list[float] = key(doc="its standard deviation", unit="Nm", check=non_negative, length="joints")
    presliding: list[float] = key(
        doc="breakaway length sigma: motion after which 63 % of the Coulomb friction has reversed",
        unit="rad",
        check=positive,
        length="joints",
    )
    presliding_std: list[float] = key(doc="its standard deviation", unit="rad", check=non_negative, length="joints")
    asymmetry: list[float] = key(
        doc="viscous friction forwards less the one backwards, halved", unit="Nms/rad", length="joints"
    )
    asymmetry_std: list[float] = key(doc="its standard deviation", unit="Nms/rad", check=non_negative, length="joints")
    bias: list[float] = key(
        doc="constant torque: sensor offset, asymmetric Coulomb friction, cables", unit="Nm", length="joints"
    )
    bias_std: list[float] = key(doc="its standard deviation", unit="Nm", check=non_negative, length="joints")
    torque_scale: list[float] = key(
        doc="factor from the measured torque to the joint's torque", check=positive, length="joints"
    )
    torque_scale_std: list[float] = key(doc="its standard deviation", check=non_negative, length="joints")

    def check_joints(self, n: int, robot: str) -> None:
        """Check that every list has one entry per joint.

        Args:
            n: number of joints.
            robot: its name, for the error.

        Raises:
            ConfigError: a list has another number of entries.
        """
        for name, value in vars(self).items():
            if len(value) != n:
                raise ConfigError(
                    f"friction of robot '{robot}': {name} has {len(value)} entries, expected one per joint ({n})"
                )

    @classmethod
    def none(cls, n: int) -> FrictionSettings:
        """No friction at all on ``n`` joints."""
        zero = [0.0] * n
        return cls(
            viscous=zero,
            viscous_std=zero,
            coulomb=zero,
            coulomb_std=zero,
            presliding=[1e-3] * n,
            presliding_std=zero,
            asymmetry=zero,
            asymmetry_std=zero,
            bias=zero,
            bias_std=zero,
            torque_scale=[1.0] * n,
            torque_scale_std=zero,
        )


def presliding_step(s: Any, step: Any, length: Any) -> Any:
    """Return the presliding state after a motion (Dahl's law); numpy arrays or CasADi expressions alike.

    Args:
        s: state before, in [-1, 1].
        step: motion [rad].
        length: breakaway length [rad].
    """
    m: Any = ca if isinstance(step, (ca.SX, ca.MX, ca.DM)) else np
    keep = m.exp(-m.fabs(step) / length)
    return m.sign(step) * (1 - keep) + s * keep


def presliding_slope(s: Any, slope: Any, step: Any, length: Any) -> Any:
    """Return the derivative of the presliding state by the logarithm of the breakaway length, after a motion.

    Args:
        s: presliding state before the motion.
        slope: its derivative before the motion.
        step: motion [rad].
        length: breakaway length [rad].
    """
    m: Any = ca if isinstance(step, (ca.SX, ca.MX, ca.DM)) else np
    way = m.fabs(step) / length
    return m.exp(-way) * (slope + (s - m.sign(step)) * way)


def noise_variance(now: Any, last: Any, before_last: Any) -> Any:
    """Return the variance of white noise that three values in a row show: second difference squared over 1 + 4 + 1."""
    return (now - 2 * last + before_last) ** 2 / 6


def deadband_step(behind: Any, position: Any, width: Any) -> Any:
    """Return what was ``behind`` a deadband, of ``width`` to both sides, now that its input is at ``position``.

    CasADi expressions.
    """
    return ca.fmin(ca.fmax(behind, position - width), position + width)


def apply_deadband(q: np.ndarray, deadband: float = DEADBAND) -> np.ndarray:
    """Pass positions through a deadband: noise smaller than it moves nothing.

    Args:
        q: (N, n) [rad].
        deadband: to either side [rad].

    Returns:
        (N, n) [rad].
    """
    out = np.empty_like(q)
    now = q[0].copy()
    for k, row in enumerate(q):
        np.clip(now, row - deadband, row + deadband, out=now)
        out[k] = now
    return out


def presliding_states(q: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Presliding states (N, ...) along positions, from zero at the first one.

    Args:
        q: positions (N, ...) [rad].
        length: breakaway length (...) [rad], broadcast against a sample.
    """
    steps = np.diff(q, axis=0)
    keep = np.exp(-np.abs(steps) / length)
    gain = np.sign(steps) * (1 - keep)
    states = np.zeros((len(q), *keep.shape[1:]))
    for k in range(len(steps)):
        states[k + 1] = gain[k] + states[k] * keep[k]
    return states


def friction_torque(settings: FrictionSettings | SimpleNamespace, dq: Any, s: Any) -> Any:
    """Friction torque [Nm] that the actuator has to overcome; numpy arrays or CasADi expressions alike.

    Args:
        settings: the friction, or symbols of the same names.
        dq: velocities [rad/s].
        s: presliding states.
    """
    m: Any = ca if isinstance(dq, (ca.SX, ca.MX, ca.DM)) else np
    names, given = ("viscous", "asymmetry", "coulomb", "bias"), vars(settings)
    convert = ca.DM if m is ca else np.asarray
    viscous, asymmetry, coulomb, bias = (convert(v) if isinstance(v := given[k], list) else v for k in names)
    return viscous * dq + asymmetry * m.fabs(dq) + coulomb * s + bias
