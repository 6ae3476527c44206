"""The way of the equilibrium after a lost contact: sink, withdraw, or rise, go back and sink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.control.mpc.settings import SupervisionSettings
from contact_estimation.control.path import detour


@dataclass
class ContactSearch:
    """The answer to one lost contact.

    Attributes:
        limits: of the task.
        normal: (3,) direction of the wanted force, base axes.
        begun_at: (3,) where the contact was lost [m], base frame.
        begun: when it was lost [s]; time that is spent holding moves it.
        reason: why it counts as lost.
        back: (3,) way [m] to where the tool pressed, across the normal; zero where that is not known.
    """

    limits: SupervisionSettings
    normal: np.ndarray
    begun_at: np.ndarray
    begun: float
    reason: str
    back: np.ndarray

    @property
    def retracts(self) -> bool:
        """Whether the tool withdraws and does not look for the contact."""
        return self.limits.on_loss == "retract"

    @property
    def returns(self) -> bool:
        """Whether the contact is looked for where the tool pressed before."""
        return self.limits.on_loss == "return"

    def equilibrium(self, t: float) -> tuple[np.ndarray, bool]:
        """Return the equilibrium (3,) [m] at ``t`` [s], and whether it sinks."""
        way = self.limits.search_speed * (t - self.begun)
        if self.retracts:
            return self.begun_at + min(way, self.limits.retract_distance) * self.normal, False
        if self.returns:
            moved, sinks = detour(way, self.limits.retract_distance * self.normal, self.back)
            return self.begun_at + moved, sinks
        return self.begun_at - way * self.normal, True

    def finished(self, t: float, x: np.ndarray) -> str:
        """Return why it ends without a contact for a tool at ``x`` (3,) [m], or an empty string.

        Args:
            t: time [s].
            x: (3,) position of the TCP [m], base frame.
        """
        if self.retracts:
            gone = self.limits.search_speed * (t - self.begun)
            return f"retracted; {self.reason}" if gone >= self.limits.retract_distance else ""
        if float(self.normal @ (self.begun_at - x)) > self.limits.search_travel:
            return f"no contact within {self.limits.search_travel:g} m; {self.reason}"
        return ""


def retreat_path(x: np.ndarray, trail: np.ndarray, normal: np.ndarray, distance: float) -> np.ndarray:
    """Return the way (3,) [m] from ``x``, across ``normal``, to the last place of a trail that is farther away.

    Args:
        x: (3,) [m].
        trail: (N, 3) [m] where the tool pressed, oldest first.
        normal: (3,) direction of the force.
        distance: least length of the way [m].

    Returns:
        The way; zero where no place is that far.
    """
    ways = trail - x
    ways = ways - np.outer(ways @ normal, normal)
    far = np.flatnonzero(np.linalg.norm(ways, axis=1) > distance)
    return np.array(ways[far[-1]]) if far.size else np.zeros(3)
