"""Ablations: every part of the filter taken out in turn, in the paper's experiment and in harder ones.

In the nominal experiment the twist is measured well and forces are used only after a presliding distance, so the sign
of sliding is never in doubt. The ``poor_velocity`` experiment is the one that needs the merge: the twist comes from
differentiated positions, the trigger is the paper's own, on speed alone, and friction is the paper's, without
presliding. ``near_bounds`` is the one in which an unbounded filter leaves the physical range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from contact_estimation.identify.probing.bounded import Bounds
from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.model import ContactModel, Mean
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.update import Regression, differentiate
from contact_estimation.settings import replace


@dataclass(frozen=True)
class AblationSwitches:
    """Which parts of the filter are in use.

    Attributes:
        cubature: expectations by the integration rule; else by linearisation, as in an extended Kalman filter.
        merge: GPB1 over the signs of sliding; else one mode whose sign is that of each point.
        event_triggered: Algorithm 1; else forces and random walk enter at every sample.
        bounded: Johnson's reparameterisation; else linear parameters, which may leave the physical range.
        coloured: the residual of linearisation repeats (this package's own; the others are the paper's).
    """

    cubature: bool = True
    merge: bool = True
    event_triggered: bool = True
    bounded: bool = True
    coloured: bool = True

    def bounds(self, settings: ProbingSettings) -> tuple[Bounds, Bounds]:
        """Return the intervals of stiffness and friction, without the reparameterisation if that is off."""
        intervals = settings.bounds()
        if self.bounded:
            return intervals
        return Unbounded(**vars(intervals[0])), Unbounded(**vars(intervals[1]))

    def filter(self, model: ContactModel, settings: ProbingSettings) -> ProbingFilter:
        """Return a filter with these parts."""
        if not self.coloured:
            settings = replace(settings, residual_colour=1.0)
        return ProbingFilter(model, settings) if self == FULL else _AblatedFilter(model, settings, self)


FULL = AblationSwitches()
VARIANTS = {
    "full": FULL,
    "EKF expectations (linearised, not cubature)": AblationSwitches(cubature=False),
    "UKF without GPB1": AblationSwitches(merge=False),
    "time-triggered": AblationSwitches(event_triggered=False),
    "without reparameterisation": AblationSwitches(bounded=False),
    "EKF expectations, without reparameterisation": AblationSwitches(cubature=False, bounded=False),
    "residual taken as white": AblationSwitches(coloured=False),
    "plain EKF (none of them)": AblationSwitches(False, False, False, False, False),
}

#: Scenario -> settings that differ from the experiment's: a soft and slippery surface, whose stiffness and friction are
#: near zero, a bound, and known to half their value; and the twist noise [m/s, rad/s] of positions differentiated at
#: 25 Hz instead of a tracking camera's.
SCENARIOS: dict[str, dict[str, Any]] = {
    "nominal": {},
    "near_bounds": {
        "stiffness_start": 2500.0,
        "stiffness_start_std": 1200.0,
        "friction_start": 0.12,
        "friction_start_std": 0.07,
    },
    "poor_velocity": {"velocity_noise": 0.03, "rate_noise": 0.1, "slide_distance_min": 0.0},
}


@dataclass(frozen=True)
class Unbounded(Bounds):
    """The interface of :class:`Bounds` without reparameterisation: x is linear in s, as in process model (9)."""

    def to_bounded(self, s: Any) -> Any:
        """Return x of the coordinate ``s``."""
        return self.lower + (self.upper - self.lower) * np.asarray(s)

    @staticmethod
    def share(s: ca.SX) -> ca.SX:
        """Return the expression of (x - lower) / (upper - lower)."""
        return s

    def to_free(self, x: Any) -> Any:
        """Return the coordinate of ``x``."""
        return (np.asarray(x, dtype=float) - self.lower) / (self.upper - self.lower)

    def slope(self, s: Any) -> Any:
        """Return dx/ds."""
        return (self.upper - self.lower) * np.ones_like(np.asarray(s, dtype=float))

    def fit(self, mean: float, std: float) -> tuple[float, float]:
        """Return mean and standard deviation of s."""
        return float(self.to_free(mean)), std / (self.upper - self.lower)


class _AblatedFilter(ProbingFilter):
    """The probing filter with parts taken out."""

    def __init__(self, model: ContactModel, settings: ProbingSettings, switches: AblationSwitches) -> None:
        super().__init__(model, settings)
        self._use = switches

    def _walk_share(self, dt: float) -> float:
        """Without events: the growth of a probe at the slowest speed that counts, spread over time."""
        if self._use.event_triggered:
            return super()._walk_share(dt)
        return self.settings.slide_speed_min * dt / self.settings.slide_step

    def _forces_count(self, slides: bool) -> bool:
        return slides or not self._use.event_triggered

    def _sign_modes(self) -> tuple[np.ndarray, np.ndarray]:
        return super()._sign_modes() if self._use.merge else (np.zeros(1, dtype=int), np.ones(1))

    def _linearise(self, mean: Mean, kept: np.ndarray) -> None:
        if self._use.cubature:
            super()._linearise(mean, kept)
            return
        lines = self._lines
        lines.mean[:], lines.slope[:] = differentiate(self.model, self._c)
        if not self._use.merge and self.model.slip(mean)[0][0] <= 0.0:
            lines.mean[0], lines.slope[0] = lines.mean[1], lines.slope[1]

    def _spread(self, regression: Regression, mean: Mean) -> None:
        super()._spread(regression, mean)
        if self._use.merge:
            return
        ahead, behind = regression.wrenches[:2]
        slip, gradient, _ = self.model.slip(mean)
        parameters = regression.points[: len(mean.s)] - mean.s[:, None]
        velocity = slip[0] + gradient[0, -len(mean.s) :] @ parameters
        ahead[:, velocity <= 0.0] = behind[:, velocity <= 0.0]
