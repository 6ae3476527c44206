"""Calibrated friction along a motion: convert the measured torque to the torque of the links, with its uncertainty."""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import DoubleBuffer, Parts, bind_recursion, compile_built, named_function, symbols
from contact_estimation.robot.actuators import ActuatorSettings, actuators_of
from contact_estimation.robot.arm import Arm
from contact_estimation.robot.friction import (
    deadband_step,
    friction_torque,
    noise_variance,
    presliding_slope,
    presliding_step,
)

#: The model's state, (n,) each: positions behind the low-pass and behind the deadband, the last two positions [rad],
#: presliding states, their derivatives by the logarithm of the breakaway length, and the encoders' variance [rad^2].
_STATE = ("filtered", "followed", "last", "before_last", "presliding", "slope", "noise")
_TAKEN_OFF = ("torque_scale", "viscous", "asymmetry", "coulomb", "bias")
_VARIANCES = ("constant", "by_speed", "by_torque", "by_presliding", "by_slope")


def build_friction(n: int) -> ca.Function:
    """Return the function of a sample.

    Inputs: w, the state; q, dq, tau (n,); dt [s]; settings by their names in ``actuators.yaml``, and the factors of the
    variance. Outputs: w_next; torque (n,) [Nm]; variance (n,) [Nm^2] of it.

    Args:
        n: number of joints.
    """
    parts = Parts(**dict.fromkeys(_STATE, n))
    per_joint = dict.fromkeys(("presliding", *_TAKEN_OFF, *_VARIANCES), n)
    scalars = dict.fromkeys(("dt", "position_filter", "deadband", "deadband_noise", "noise_time"), 1)
    s = symbols(w=parts.size, q=n, dq=n, tau=n, **scalars, **per_joint)
    w = parts.split(s.w)
    w.noise = w.noise + ca.fmin(s.dt / s.noise_time, 1) * (noise_variance(s.q, w.last, w.before_last) - w.noise)
    w.last, w.before_last = s.q, w.last
    w.filtered = w.filtered + (1 - ca.exp(-2 * np.pi * s.position_filter * s.dt)) * (s.q - w.filtered)
    width = ca.fmax(s.deadband, s.deadband_noise * ca.sqrt(w.noise))
    followed = deadband_step(w.followed, w.filtered, width)
    step, w.followed = followed - w.followed, followed
    w.slope = presliding_slope(w.presliding, w.slope, step, s.presliding)
    w.presliding = presliding_step(w.presliding, step, s.presliding)
    measured = s.torque_scale * s.tau
    variance = s.constant + s.by_speed * s.dq**2 + s.by_torque * measured**2
    variance += s.by_presliding * w.presliding**2 + s.by_slope * w.slope**2
    outputs = {
        "w_next": parts.join(w),
        "torque": measured - friction_torque(s, s.dq, w.presliding),
        "variance": variance,
    }
    return named_function("friction_sample", s, outputs)


class FrictionModel:
    """Torque scale and joint friction of ``actuators.yaml``, for observers that do not estimate them.

    The presliding states follow positions behind a low-pass and a deadband, which grows with the encoders' noise.

    Args:
        arm: the robot.
        choice: as :func:`~contact_estimation.robot.actuators.actuators_of` takes it; None takes nothing off, and what
            the robot's own friction may be is uncertainty.

    Attributes:
        actuators: joint friction and actuators.
        torque: (n,) [Nm] what the last :meth:`take` returned (a view).
    """

    def __init__(self, arm: Arm, choice: str | ActuatorSettings | None) -> None:
        self.actuators = actuators_of(arm, choice or "robot", warn=choice is not None)
        function = compile_built(build_friction, arm.n)
        self._parts = Parts(**dict.fromkeys(_STATE, arm.n))
        inputs, outputs = function.inputs, function.outputs
        self._set(inputs, compensates=choice is not None)
        self._q, self._dq, self._tau, self._dt = (inputs[name] for name in ("q", "dq", "tau", "dt"))
        self.torque: np.ndarray = outputs["torque"]
        self._variance: np.ndarray = outputs["variance"]
        self._state = DoubleBuffer.of(function)
        self._advance = bind_recursion(function, [self._state])
        self.reset(np.zeros(arm.n))

    def _set(self, inputs: dict[str, np.ndarray], compensates: bool) -> None:
        """Write the settings; what is not taken off is added to the variance."""
        a = self.actuators
        f = {name: np.array(value) for name, value in vars(a.friction).items()}
        for name in ("position_filter", "deadband", "deadband_noise", "noise_time"):
            inputs[name][:] = getattr(a, name)
        inputs["presliding"][:] = length = np.maximum(f["presliding"], 1e-6)  # [rad] an encoder's resolution
        inputs["constant"][:] = f["bias_std"] ** 2 + np.square(a.disturbance_std) + np.square(a.torque_noise)
        inputs["by_speed"][:] = f["viscous_std"] ** 2 + f["asymmetry_std"] ** 2
        inputs["by_torque"][:] = f["torque_scale_std"] ** 2
        inputs["by_presliding"][:] = f["coulomb_std"] ** 2
        inputs["by_slope"][:] = (f["coulomb"] * f["presliding_std"] / length) ** 2
        if compensates:
            for name in _TAKEN_OFF:
                inputs[name][:] = f[name]
            return
        inputs["torque_scale"][:] = 1.0
        inputs["constant"][:] += f["bias"] ** 2 + f["coulomb"] ** 2
        inputs["by_speed"][:] += f["viscous"] ** 2 + f["asymmetry"] ** 2
        inputs["by_torque"][:] += (f["torque_scale"] - 1.0) ** 2

    @property
    def presliding(self) -> np.ndarray:
        """Presliding states (n,) of the friction (a view, which the sample after the next overwrites)."""
        return self._state["w"][self._parts["presliding"]]

    def reset(self, q: np.ndarray) -> None:
        """Start at rest at ``q`` (n,) [rad]: which way the joints came from is not known."""
        state = self._state["w"]
        state[:] = 0.0
        for name in ("filtered", "followed", "last", "before_last"):
            state[self._parts[name]] = q
        self.take(0.0, q, np.zeros(len(q)), np.zeros(len(q)))

    def take(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Return the torque that moves the links, with the robot's viscous friction B dq inside (a live view).

        Args:
            dt: time since the last sample [s].
            q: positions (n,) [rad].
            dq: velocities (n,) [rad/s].
            tau: measured torque (n,) [Nm].
        """
        self._q[:], self._dq[:], self._tau[:], self._dt[0] = q, dq, tau, dt
        self._advance()
        return self.torque

    def variance(self) -> np.ndarray:
        """Return the variance (n,) [Nm^2] of the last :meth:`take`: what friction and scale may be off, and noise.

        A live view, which the next sample overwrites.
        """
        return self._variance
