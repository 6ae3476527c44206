"""The direction of friction follows that of sliding over a distance, not at once.

Before a contact slides it deflects: bristles of tangential stiffness sigma stretch with the tip's travel, z' = v, up
to the length mu N / sigma at which they slide (the elastic-plastic limit of Dahl's and LuGre's law). Beyond it friction
is mu N against z, and z is drawn behind the tip like a rope of that length: where the sliding turns, z turns with it
as exp(-distance / length). With 15 N of friction on rubber that is most of a millimetre: after a corner of 90 degrees
friction still points 2 degrees aside when 3 mm were slid, and while the probe leans it trails by a degree or two.
"""

from __future__ import annotations

import numpy as np

#: Parts of one sample over which the deflection is integrated, so that the result does not depend on the rate.
_PARTS = 8
#: Relative change of the length by which its effect is differentiated.
_STEP = 0.05


class Bristles:
    """Deflection of every contact, at the estimated presliding length and at a slightly greater one."""

    def __init__(self, contacts: int):
        self._z = np.zeros((2, contacts, 3))
        self._velocity = np.zeros((contacts, 3))
        self._shares = ((np.arange(_PARTS) + 0.5) / _PARTS)[:, None, None]

    def slide(self, velocity, dt: float, length) -> None:
        """Move the tips.

        Args:
            velocity: tangential velocity (contacts, 3) [m/s] at the end of the sample, world axes.
            dt: [s] since the last sample.
            length: (contacts,) [m] of deflection at which each contact slides.
        """
        steps = dt / _PARTS * (self._velocity + self._shares * (velocity - self._velocity))
        limit = np.maximum(np.array([[1.0], [1.0 + _STEP]]) * length, 1e-9)
        z = self._z
        for step in steps:
            z = z + step
            stretch = np.sqrt(np.einsum("kci,kci->kc", z, z)) / limit
            z = z / np.maximum(stretch, 1.0)[..., None]
        self._z, self._velocity = z, velocity

    def turn(self, angles, normals) -> None:
        """Turn every deflection about its surface's normal (contacts, 3) by a small angle (contacts,) [rad]."""
        self._z = self._z + np.asarray(angles)[:, None] * np.cross(normals, self._z)

    @property
    def deflection(self) -> np.ndarray:
        """(contacts, 3) [m], world axes; friction acts against it."""
        return self._z[0]

    @staticmethod
    def memory(speed, dt, length):
        """How the direction after a sample depends on what was before: factor on the direction before it, and weights
        of the velocity's direction at its begin and at its end (they sum to 1).

        Args:
            speed: tangential [m/s]. dt: [s]. length: [m]; arrays of one shape.
        """
        ratio = np.maximum(speed * dt / np.maximum(length, 1e-9), 1e-6)
        kept = np.exp(-ratio)
        mean = -np.expm1(-ratio) / ratio
        return kept, mean - kept, 1.0 - mean

    def derivative(self, function) -> np.ndarray:
        """Of ``function``(deflection) by the logarithm of the length."""
        return (function(self._z[1]) - function(self._z[0])) / np.log1p(_STEP)
