"""Friction that trails the direction of sliding, as a part of the filter: the bristles' mean, and their error as a
state.

Noise of the twist does not turn friction at once but draws the bristles aside, and what it did to them lasts for a
presliding length. So the error across the bristles [m] is a state per surface, with the correlation that it has with
the motion; the increments that updates give it are handed over to the bristles, so that its mean stays zero.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.presliding import drag


class Trail:
    """Bristles of every contact of a model.

    Args:
        model: a model with ``trailing`` contacts. stiffness: of the contact before it slides [N/m].
        aside: indices of the error across the bristles in the state, kinematic: those of pose and twist (slices).
    """

    def __init__(self, model, stiffness: float, aside: slice, kinematic: slice):
        self._model, self._stiffness = model, stiffness
        self._aside, self._kinematic = aside, kinematic
        self._first = list(model.trailing)
        self._surfaces = [model.surface_of(i) for i in range(model.contacts)]
        self.deflection, self._velocities, self._across = np.zeros((3, model.contacts, 3))
        self._length = np.zeros(model.contacts)
        self._rows = np.zeros((len(self._first), kinematic.stop))

    def forget(self, covariance, dt: float, pose, twist, s):
        """Before a sample with measured ``pose`` and ``twist``: covariance of the state in which the bristles keep what
        they keep of their error, and have taken the last twist's share."""
        velocities = self._model.slip(pose, twist, s)[2]
        moved = drag(self.deflection, (self._velocities, velocities), dt, self._length)
        return self._mix(covariance, moved.kept, moved.begin)

    def follow(self, x, covariance, dt: float, pose, twist, s, velocities, force: float):
        """Once ``pose`` and ``twist`` are estimated: draw the bristles along with the tangential ``velocities``
        (contacts, 3) of the tips, under a ``force`` [N].

        Returns:
            covariance in which their error has taken this twist's share; ``x`` is changed in place.
        """
        self._length = self._model.grips(pose, s, force) / self._stiffness
        moved = drag(self.deflection, (self._velocities, velocities), dt, self._length)
        rows, axes = self._model.prepare(pose, twist, s)
        across = np.array([axis[1][:, 0] for axis in axes])
        turned = np.einsum("ci,ci->c", across, self._across)  # at a reversal the side that counts as positive changes
        x[self._aside] *= turned[self._first]
        self.deflection, self._velocities = moved.deflection, velocities
        self._rows, self._across = rows[1::2], across
        self.hand_over(x)
        return self._mix(covariance, turned, moved.end)

    def hand_over(self, x) -> None:
        """Move the estimated error from the state ``x``, in place, to the bristles."""
        self.deflection = self.deflection + x[self._aside][self._surfaces][:, None] * self._across
        x[self._aside] = 0.0

    def turn_by_error(self) -> np.ndarray:
        """Transverse velocity per error across the bristles (surfaces,) [1/s] that turns friction alike."""
        speed = np.linalg.norm(self._velocities[self._first], axis=1)
        return speed / np.maximum(np.linalg.norm(self.deflection[self._first], axis=1), 1e-9)

    def _mix(self, covariance, kept, share):
        """Covariance after error = kept error + share (velocity across), per surface."""
        mix = np.eye(len(covariance))
        mix[self._aside, self._aside] = np.diag(kept[self._first])
        mix[self._aside, self._kinematic] = share[self._first, None] * self._rows
        return mix @ covariance @ mix.T
