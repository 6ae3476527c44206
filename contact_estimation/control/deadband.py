"""Dead band of force control: an error of the force by which its estimate may drift moves nothing.

The error of a force that is estimated without a sensor is slow, because friction of the gears changes with every
reversal of the motion. A controller that follows it moves the tool, which changes the friction anew: it hunts, and the
force creeps away under an estimate that stays at the wanted one (Armstrong-Helouvry, Dupont, Canudas de Wit, *A survey
of models, analysis tools and compensation methods for the control of machines with friction*, Automatica 30, 1994). A
tool that rests keeps its force.
"""

from __future__ import annotations

import math

#: [s] Time constant of the mean error, and how long the force must be reached.
_TIME = 0.5
#: The force is reached while the mean error is within this share of the dead band.
_REACHED = 0.05
#: An error beyond the band is brought back to this share of it: on the edge, noise would end the rest.
_EDGE = 0.9
#: An error of so many dead bands is not one of the estimate: it is controlled to zero, not to the edge of the band.
_REAL = 2.0


class Deadband:
    """Rests at the mean equilibrium once the force is reached; an error beyond the dead band is brought to its edge.

    Attributes:
        aim: error [N] that is controlled to: zero, or the edge of the dead band.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Act on every error until the force is reached again."""
        self.aim = 0.0
        self._rest: float | None = None
        self._begin()

    def _begin(self) -> None:
        self._last: float | None = None
        self._error = 0.0
        self._since: float | None = None  # [s] when the force was reached
        self._sum, self._ticks = 0.0, 0  # of the equilibrium since then [m]

    def update(self, t: float, error: float, width: float, equilibrium: float) -> float | None:
        """Return the equilibrium [m] along the push to rest at; None while the force is controlled.

        Args:
            t: time [s].
            error: of the estimated force [N].
            width: error by which the estimate may drift [N].
            equilibrium: that is in force now [m].
        """
        if self._rest is not None:
            if abs(error) <= width:
                return self._rest
            self._rest, self.aim = None, math.copysign(_EDGE * width, error)
            self._begin()
        if abs(error) > _REAL * width:
            self.aim = 0.0
        share = 1.0 if self._last is None else -math.expm1(-(t - self._last) / _TIME)
        self._error, self._last = self._error + share * (error - self.aim - self._error), t
        if not abs(self._error) <= _REACHED * width:
            self._since = None
            return None
        if self._since is None:
            self._since, self._sum, self._ticks = t, 0.0, 0
        self._sum, self._ticks = self._sum + equilibrium, self._ticks + 1
        if t - self._since >= _TIME:
            self._rest = self._sum / self._ticks
        return self._rest
