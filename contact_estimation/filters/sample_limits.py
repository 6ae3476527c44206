"""Limits of one sample: values that no arm has, and positions that it cannot reach since the last sample."""

from __future__ import annotations

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function, symbols
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm

#: What has no limit is finite.
_LARGEST = float(np.finfo(float).max)


class SampleLimits:
    """Tests samples of one arm.

    Args:
        arm: the robot.
        sensors: limits.
        scale: (n,) [Nm per unit of effort].

    Attributes:
        q, dq, effort: (n,) the sample, written by the caller.
        last_q: (n,) [rad] of the last good sample, written by the caller.
        torque: (n,) [Nm] of :meth:`beyond`'s sample.
    """

    def __init__(self, arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> None:
        self._names, self._sensors, self._unlimited = arm.joint_names, sensors, arm.unlimited
        self._run = function = compile_built(build_limits, arm.n)
        inputs = function.inputs
        self.q, self.dq, self.effort, self.last_q = (inputs[k] for k in ("q", "dq", "effort", "last_q"))
        self.torque, self._found = function.outputs["torque"], function.outputs["found"].data
        inputs["scale"][:], inputs["largest"][0] = scale, _LARGEST
        for name, factor, limit in (
            ("max_velocity", sensors.max_velocity, arm.velocity_limit),
            ("max_torque", sensors.max_torque, arm.effort_limit),
        ):
            inputs[name][:] = np.minimum(factor * np.where(limit > 0, limit, np.inf), _LARGEST)
        self._max_velocity, self._max_torque = inputs["max_velocity"], inputs["max_torque"]

    def unwrap(self) -> None:
        """Turn the sample's unlimited joints by whole turns to next to the last good sample."""
        if len(which := self._unlimited):
            self.q[which] -= 2.0 * np.pi * np.rint((self.q[which] - self.last_q[which]) / (2.0 * np.pi))

    def beyond(self) -> bool:
        """Return whether a value of the sample is no number or beyond its limit."""
        self._run()
        return self._found[0] > 0.0

    def jumped(self, dt: float) -> bool:
        """Return whether the sample of :meth:`beyond` is further from the last one than joints move in ``dt`` [s]."""
        return self._found[1] > dt

    def describe(self) -> tuple[str, str]:
        """Return the name of the failed test and the reason, for a sample beyond its limits."""
        sample = np.array([self.q, self.dq, self.effort])
        if not np.isfinite(sample).all():
            bad = self._name(~np.isfinite(sample))
            return "not_finite", f"a sample has values that are not finite: {bad}"
        factors = self._sensors
        if (over := np.abs(self.torque) > self._max_torque).any():
            bad = self._name(over[None], ("torque",))
            return "torque_limit", f"a torque is beyond {factors.max_torque:g} times the joint's limit: {bad}"
        bad = self._name((np.abs(self.dq) > self._max_velocity)[None], ("velocity",))
        return "velocity_limit", f"a velocity is beyond {factors.max_velocity:g} times the joint's limit: {bad}"

    def describe_jump(self, dt: float) -> tuple[str, str]:
        """Return the name of the failed test and the reason, for a sample that came ``dt`` [s] after the last one."""
        bad = self._name((np.abs(self.q - self.last_q) > self._max_velocity * dt)[None], ("position",))
        limit = f"{self._sensors.max_velocity:g} times the joint's velocity limit"
        return "position_jump", f"a position moved faster than {limit}: {bad}"

    def _name(self, mask: np.ndarray, kinds: tuple[str, ...] = ("position", "velocity", "torque")) -> str:
        return ", ".join(f"{kinds[k]} of {self._names[j]}" for k, j in zip(*np.nonzero(mask)))


def build_limits(n: int) -> ca.Function:
    """Return the function of the tests of one sample.

    Inputs: q, dq, effort, last_q, scale, max_velocity, max_torque (n,); largest. Outputs: torque (n,) = scale effort;
    found: how many values are beyond their limits or no numbers, and the least time [s] that the way from last_q takes.
    """
    names = ("q", "dq", "effort", "last_q", "scale", "max_velocity", "max_torque")
    s = symbols(**dict.fromkeys(names, n), largest=1)
    torque = s.scale * s.effort
    # Comparisons with NaN are false.
    within = [ca.fabs(v) <= limit for v, limit in ((s.q, s.largest), (s.dq, s.max_velocity), (torque, s.max_torque))]
    beyond = 3 * n - ca.sum1(ca.vertcat(*within))
    least_time = ca.mmax(ca.fabs(s.q - s.last_q) / s.max_velocity)
    return named_function("sample_limits", s, {"torque": torque, "found": ca.vertcat(beyond, least_time)})
