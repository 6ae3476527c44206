"""What a step of the effort between two samples may be: a fault of the signal, or a hard contact.

Every hypothesis is a Gaussian of the change r of the torque within one sample,

    r ~ N(m, diag(s^2) + D D^T),

with s the present noise of the signal. A change of meaning says m, what a reading would make of the torque before. What
a hypothesis leaves open has directions D: a contact J^T diag(force, moment), a factor the torque itself, a wrong joint
its axis, a wrong mounting the regressor of gravity. The likeliest one wins; contacts are likelier beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_estimation.filters.gaussian import ZeroMeanGaussian
from contact_estimation.filters.plausibility.explanation import GRAVITY_LENGTH_STD, GRAVITY_STD, GRAVITY_TURN
from contact_estimation.filters.plausibility.readings import Reading
from contact_estimation.robot import Arm

#: Index of the first joint whose torque alone may come from a contact on its link; earlier links hardly move.
_FIRST_LINK = 2
#: Standard deviation of a wrong torque on a joint, as a share of the effort limit.
_FAULT = 0.3
#: Standard deviation of a wrong common factor.
_FACTOR_STD = 3.0
#: [m] Lever arm about the TCP of an impact on the tool, and on a link; standard deviations.
_TOOL_LEVER, _LINK_LEVER = 0.07, 0.5


@dataclass
class Step:
    """A step of the effort from one sample to the next.

    Attributes:
        t: its stamp [s].
        mean: (n,) mean effort before it, as it comes.
        before, after: (n,) effort of the two samples.
        noise: (n,) root mean square change between samples before it, in units of friction.
        q: (n,) position then [rad].
    """

    t: float
    mean: np.ndarray
    before: np.ndarray
    after: np.ndarray
    noise: np.ndarray
    q: np.ndarray


class StepHypotheses:
    """Likelihoods of the causes of a step.

    Args:
        arm: the robot as its torque sensors see it.
        readings: the configured one and its rivals.
        impact_force: [N] standard deviation of a contact force that rises within a sample.
    """

    def __init__(self, arm: Arm, readings: Sequence[Reading], impact_force: float) -> None:
        self._arm, self._readings, self._impact_force = arm, readings, impact_force
        limit = np.where(arm.effort_limit > 0, arm.effort_limit, np.max(arm.effort_limit))
        self._size = _FAULT * limit  # (n,) [Nm]
        self._leaning = arm.model.copy(), arm.model.createData()

    def faults(self, step: Step, gravity: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """Return the log densities (R + 3 + n,) of the faults.

        They are: the R rivals of the configured reading, a common factor, another mounting, one joint alone (n), and
        anything at all.

        Args:
            step: the step.
            gravity: (n,) G [Nm] then.
            sigma: (n,) noise [Nm] of a change between two samples.
        """
        own, *rivals = self._readings
        before, after = own.torque(step.before, gravity), own.torque(step.after, gravity)
        none = np.zeros((len(sigma), 0))
        found = []
        for rival in rivals:
            # The density is one of the effort after the step, whatever its unit.
            stretch = np.sum(np.log(np.abs(rival.factor[np.argsort(rival.order)] / own.factor)))
            found.append(_log_density(rival.torque(step.after, gravity) - before, sigma, none) + stretch)
        change, axes = after - before, np.diag(self._size)
        found.append(_log_density(change, sigma, _FACTOR_STD * before[:, None]))
        found.append(self._mounting(change, sigma, self._gravity_regressor(step.q)))
        found += [_log_density(change, sigma, axis[:, None]) for axis in axes]
        found.append(_log_density(change, sigma, axes))
        return np.array(found)

    def healthy(self, step: Step, gravity: np.ndarray, sigma: np.ndarray) -> float:
        """Return the log density of a healthy signal: of noise, or of a contact at the tool or on the likeliest link.

        Arguments as in :meth:`faults`.
        """
        own = self._readings[0]
        change = own.torque(step.after, gravity) - own.torque(step.before, gravity)
        jacobian = self._impact_force * self._arm.tcp_jacobian(step.q).T  # (n, 6)
        tool = jacobian * ([1.0] * 3 + [_TOOL_LEVER] * 3)
        # About the TCP a force on a link has a moment, too; the joints beyond it feel nothing.
        link = jacobian * ([1.0] * 3 + [_LINK_LEVER] * 3)
        felt = np.tri(len(sigma), dtype=bool)[_FIRST_LINK:-1, :, None]
        causes = [np.zeros_like(tool), tool, *(link * on_link for on_link in felt)]
        return max(_log_density(change, sigma, directions) for directions in causes)

    def _mounting(self, change: np.ndarray, sigma: np.ndarray, regressor: np.ndarray) -> float:
        """Return the log density of another direction of gravity: its vector turns and keeps its length."""
        weighted = regressor / sigma[:, None]
        square = weighted.T @ weighted + np.eye(3) / GRAVITY_STD**2
        turned = np.linalg.solve(square, weighted.T @ (change / sigma))  # [m/s^2] maximum a posteriori
        if np.linalg.norm(turned) < GRAVITY_TURN:
            return -np.inf
        configured = self._arm.model.gravity.linear
        longer = np.linalg.norm(configured + turned) - np.linalg.norm(configured)
        density = _log_density(change, sigma, GRAVITY_STD * regressor)
        return density - 0.5 * float(longer / GRAVITY_LENGTH_STD) ** 2

    def _gravity_regressor(self, q: np.ndarray) -> np.ndarray:
        """Return G (n, 3) [Nm s^2/m] per component of gravity at ``q`` (n,) [rad]."""
        model, data = self._leaning
        columns = []
        for axis in np.eye(3):
            model.gravity.linear = axis
            columns.append(pin.computeGeneralizedGravity(model, data, q).copy())
        return np.column_stack(columns)


def _log_density(residual: np.ndarray, sigma: np.ndarray, directions: np.ndarray) -> float:
    """Return log N(residual; 0, diag(sigma^2) + D D^T) up to a constant, for D ``directions`` (n, k)."""
    return ZeroMeanGaussian(np.diag(sigma**2) + directions @ directions.T).log_density(residual)
