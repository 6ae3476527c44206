"""Exchanged joints: whole samples in which two joints stand in each other's place.

Position, velocity and torque of two joints are exchanged together, by a driver or a list of names in another order.
They agree with each other then. Only the arm's dynamics show the exchange:

    r = P tau - (M ddq + C dq + G)(P q, P dq, P ddq),   P the permutation that puts them back.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import casadi as ca
import numpy as np

from contact_estimation.codegen import compile_built, named_function, symbols
from contact_estimation.filters.plausibility.explanation import FREE_ARM_CONSTANTS, free_arm
from contact_estimation.filters.plausibility.readings import Reading
from contact_estimation.robot import Arm


class JointExchanges:
    """Residuals of a block of samples with two joints put back.

    Args:
        arm: the robot as its torque sensors see it.
        reading: the configured one.
        constants: by name, those of :func:`~contact_estimation.filters.plausibility.explanation.free_arm`.

    Attributes:
        names: what each exchange is called.
        residual: (P, n) of the last block, in units of what friction and model may be.
    """

    def __init__(self, arm: Arm, reading: Reading, constants: Mapping[str, np.ndarray]) -> None:
        pairs = list(itertools.combinations(range(arm.n), 2))
        self.names = [f"signals with {arm.joint_names[i]} and {arm.joint_names[j]} exchanged" for i, j in pairs]
        self._orders = np.tile(np.arange(arm.n), (len(pairs), 1))
        for order, (i, j) in zip(self._orders, pairs):
            order[[i, j]] = j, i
        self._factor = reading.factor
        self._function = compile_built(build_exchanged, arm, len(pairs))
        for name in FREE_ARM_CONSTANTS:
            self._function.inputs[name][:] = constants[name]
        self._function.inputs["inside"][0] = 1.0 - reading.gravity
        # Buffers are column-major: a column of the function is a row here.
        motion = [self._function.inputs[name].reshape(len(pairs), -1) for name in ("q", "dq", "ddq")]
        self._motion, self._torque = motion, self._function.inputs["torque"].reshape(len(pairs), -1)
        self.residual = self._function.outputs["residual"].reshape(len(pairs), -1)
        self.residual[:] = np.nan

    def misfit(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, effort: np.ndarray) -> np.ndarray:
        """Return the mean square residuals (P,) (a view).

        Args:
            q: (n,) [rad].
            dq: (n,) [rad/s].
            ddq: (n,) [rad/s^2].
            effort: (n,) in the unit of the sensor settings.
        """
        for buffer, values in zip(self._motion, (q, dq, ddq)):
            buffer[:] = values[self._orders]
        self._torque[:] = (self._factor * effort)[self._orders]
        self._function()
        return self._function.outputs["misfit"]


def build_exchanged(arm: Arm, count: int) -> ca.Function:
    """Build the residuals of a free arm in ``count`` states P, one a column.

    Inputs: q, dq, ddq, torque (n, P); the constants of :func:`.explanation.free_arm`; inside: 1 where the torque has
    gravity inside, else 0.
    Outputs: residual (n, P) in units of what friction and model may be; misfit (P,), its mean square.
    """
    n = arm.n
    s = symbols(q=n, dq=n, ddq=n, torque=n, friction=n, coulomb=n, viscous=n, share=2, inside=1)
    free = free_arm(arm, arm.kinematics(s.q), s)
    residual = (s.torque + (1 - s.inside) * free.gravity - free.torque) / free.sigma
    one = named_function("exchanged_joints", s, {"residual": residual, "misfit": ca.sumsqr(residual) / n})
    return one.map("exchanged_joints_all", "serial", count, [*FREE_ARM_CONSTANTS, "inside"], [])
