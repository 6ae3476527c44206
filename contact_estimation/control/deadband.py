"""Dead band of force control: an error that the estimate cannot tell from zero moves nothing.

Without a force sensor the error of an estimated force is slow: friction of the gears changes with every reversal of
the motion. A controller that follows it moves the tool, the motion reverses friction anew, and the force creeps away
by ten newtons while its estimate stays at the wanted one (hunting: Armstrong-Helouvry, Dupont, Canudas de Wit, *A survey
of models, analysis tools and compensation methods for the control of machines with friction*, 1994). Standing still
keeps the force, because surface and arm stay where they are.
"""

from __future__ import annotations

import math

import numpy as np

#: [s] Time constant of the means of force error and equilibrium. The force is reached where the mean error has been
#: within this share of the standard deviation for as long.
_TIME, _REACHED = 0.5, 0.1


class Deadband:
    """Rests at the mean equilibrium once the force was reached, until its error is significant.

    Args:
        width: standard deviations of the force that are significant; 0: every error is.
    """

    def __init__(self, width: float) -> None:
        self._width = width
        self.restart()

    def restart(self) -> None:
        """Act on every error until the force is reached again."""
        self._last: float | None = None
        self._means = np.zeros(2)  # of error [N] and equilibrium [m]
        self._reached_since = 0.0
        self._rest: float | None = None

    def update(self, t: float, error: float, std: float, equilibrium: float) -> float | None:
        """Return the equilibrium [m] to rest at; None while the force is controlled.

        Args:
            t: time [s].
            error: of the estimated force [N].
            std: standard deviation [N] of the estimated force.
            equilibrium: that is in force now [m], along the push.
        """
        if self._rest is not None and abs(error) <= self._width * std:
            return self._rest
        if self._rest is not None or self._last is None:
            self.restart()
            self._means[:], self._reached_since = (error, equilibrium), t
        else:
            share = -math.expm1(-(t - self._last) / _TIME)
            self._means += share * (np.array([error, equilibrium]) - self._means)
        self._last = t
        if abs(self._means[0]) > _REACHED * std:
            self._reached_since = t
        elif self._width > 0.0 and t - self._reached_since >= _TIME:
            self._rest = float(self._means[1])
        return self._rest
