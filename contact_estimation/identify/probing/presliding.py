"""The direction of friction follows that of sliding over a distance, not at once.

Before a contact slides it deflects: bristles of tangential stiffness sigma stretch with the tip's travel, z' = v, up
to the length mu N / sigma at which they slide (the elastic-plastic limit of Dahl's and LuGre's law). Beyond it friction
is mu N against z, and z is drawn behind the tip like a rope of that length: where the sliding turns, z turns with it
as exp(-distance / length). With 15 N of friction and 20 kN/m that is 0.75 mm: after a corner of 90 degrees friction
still points 2 degrees aside when 3 mm were slid, and it trails while the probe leans.
"""

from __future__ import annotations

import numpy as np

#: Parts of one sample over which the deflection is integrated, so that the result does not depend on the rate.
_PARTS = 8
#: Least length [m], of a contact that carries nothing.
_SHORTEST = 1e-9


class Bristles:
    """Deflection of every contact [m], world axes; friction acts against it.

    Attributes:
        deflection: (contacts, 3).
    """

    def __init__(self, contacts: int):
        self.deflection = np.zeros((contacts, 3))
        self._velocity = np.zeros((contacts, 3))
        self._shares = ((np.arange(_PARTS) + 0.5) / _PARTS)[:, None, None]

    def slide(self, velocity, dt: float, length) -> None:
        """Move the tips; between samples their velocity changes linearly.

        Args:
            velocity: tangential velocity (contacts, 3) [m/s] at the end of the sample, world axes.
            dt: [s] since the last sample.
            length: (contacts,) [m] of deflection at which each contact slides.
        """
        limit = np.maximum(length, _SHORTEST)
        z = self.deflection
        for step in dt / _PARTS * (self._velocity + self._shares * (velocity - self._velocity)):
            z = z + step
            stretch = np.sqrt(np.einsum("ci,ci->c", z, z)) / limit
            z = z / np.maximum(stretch, 1.0)[:, None]
        self.deflection, self._velocity = z, velocity

    def turn(self, angles, normals) -> None:
        """Turn every deflection about its surface's normal (contacts, 3) by a small angle (contacts,) [rad]."""
        self.deflection = self.deflection + np.asarray(angles)[:, None] * np.cross(normals, self.deflection)


def memory(speed, dt: float, length) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the direction of friction after a sample is made of, to first order in the angles.

    Args:
        speed: tangential speed [m/s], positive. dt: [s]. length: deflection at which the contact slides [m].

    Returns:
        factor on the direction before the sample, weights of the direction of sliding at its begin and at its end;
        they sum to 1.
    """
    ratio = np.asarray(speed) * dt / np.maximum(length, _SHORTEST)
    kept = np.exp(-ratio)
    mean = -np.expm1(-ratio) / ratio
    return kept, mean - kept, 1.0 - mean
