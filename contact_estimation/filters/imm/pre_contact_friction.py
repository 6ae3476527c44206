"""The friction from before something seemed to touch the arm. A load that changes leaves it as it is.

Two states are kept. The later one is that of the last block without a known contact: an unknown contact leaves friction
as it is. A slow change of the load has changed it before anything was named. The earlier state is that of some seconds
of free space before. It has drifted since (:class:`~contact_estimation.filters.imm.state.Drift`).

The history of free space has the earlier state, but not the later one: it takes no state of an unknown contact.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import pack_array, unpack_array


class PreContactFriction:
    """The two states.

    Args:
        layout: parts of the filters' state.
        age: of the earlier one [s].
    """

    def __init__(self, layout: StateLayout, age: float) -> None:
        self._layout, self._drift = layout, layout.drift(age)
        self._states = [(np.array(layout.mean), pack_array(np.diag(layout.first_variance)))]

    def keep(self, x: np.ndarray, p: np.ndarray, earlier: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Keep the state of a block, mean (N,) and packed covariance, and one of free space before, None for none."""
        self._states[0][0][:], self._states[0][1][:] = x, p
        self._states[1:] = [] if earlier is None else [earlier]

    def torques(self, presliding: np.ndarray) -> list[np.ndarray]:
        """Return the friction (n,) [Nm] of each state at presliding states (n,)."""
        rows = self.rows(presliding)
        return [rows @ self._mean(k) for k in range(len(self._states))]

    def rows(self, presliding: np.ndarray) -> np.ndarray:
        """Return the derivative (n, N) of the friction by the state, at presliding states (n,)."""
        parts, rows = self._layout.parts, np.zeros((self._layout.n, self._layout.size))
        rows[:, parts["bias"]] = rows[:, parts["disturbance"]] = np.eye(self._layout.n)
        rows[:, parts["coulomb"]] = np.diag(presliding)
        return rows

    def state(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (N,) and covariance (N, N) of a state."""
        covariance = unpack_array(self._states[k][1], self._layout.size)
        return self._mean(k), self._drift.covariance(covariance) if k > 0 else covariance

    def _mean(self, k: int) -> np.ndarray:
        x = self._states[k][0]
        return x if k == 0 else self._drift.state(x)
