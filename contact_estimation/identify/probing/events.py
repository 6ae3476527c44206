"""When parameters may change and when forces are believed (paper 4, section III-D, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SlideEvents:
    """Bookkeeping of Algorithm 1, with |v_t| where the paper prints v_t.

    ``step`` [m] is Delta s_tm, ``speed_min`` [m/s] is v_tm. ``distance_min`` [m] refines the paper's condition: after a
    stop or a reversal the friction force needs a presliding distance before it is Coulomb's, whatever the speed.
    """

    step: float
    speed_min: float
    distance_min: float
    travelled: float = 0.0
    since_stop: float = 0.0
    direction: int = 0

    def parameters_may_change(self) -> bool:
        """True once per ``step`` of sliding; resets the travelled distance."""
        if self.travelled <= self.step:
            return False
        self.travelled = 0.0
        return True

    def record(self, slip: float, dt: float) -> bool:
        """Note the estimated slip velocity [m/s] of a sample; True when forces may be used: it slides, and has slid enough."""
        self.travelled += abs(slip) * dt
        direction = 0 if abs(slip) <= self.speed_min else (1 if slip > 0.0 else -1)
        if direction == 0 or direction != self.direction:
            self.since_stop = 0.0
        self.direction = direction
        if direction == 0:
            return False
        self.since_stop += abs(slip) * dt
        return self.since_stop > self.distance_min
