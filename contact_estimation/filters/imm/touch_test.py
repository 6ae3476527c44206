"""Tests whether a contact differs from free space: by its force, or by friction that free space cannot have.

A contact is a model with more freedom than free space. It is likely wherever friction does not fit for a moment, as at
standstill or where a joint sets off, also with a force that is zero within its uncertainty. Two tests distinguish
such a contact from one that acts:

    force       unknown contact: z^T z of the whitened external torque z is chi-square; known contact: probability
                Phi(F_n / sigma) that it presses
    friction    (|f - mean| - bound) / sigma of a bias or friction disturbance f, beyond its normal quantile

The bounds are those of free space (``friction_bound``). In filters of contacts friction may pass them. A touch that a
known contact does not explain shows there at first.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.imm.unknown import ZeroTorqueTest, whitening
from contact_estimation.filters.kalman import packed_places


class TouchTest:
    """Tests of a filter's state against free space.

    Args:
        layout: parts of the filters' state.
        significance: of either test.
    """

    def __init__(self, layout: StateLayout, significance: float) -> None:
        places = packed_places(layout.size)
        self._external, self._layout = layout.parts["external"], layout
        self._torque = places[self._external, self._external]
        self._friction = np.diagonal(places)[layout.friction_rows]
        self._zero = ZeroTorqueTest(layout.n, significance)
        self._surely = 1.0 - significance
        each = significance / max(len(layout.friction_rows), 1)  # Bonferroni
        self._most = chi_square_quantile(1, 2 * each) ** 0.5  # one-sided

    def presses(self, pressed: np.ndarray) -> bool:
        """Return whether a known contact presses.

        Args:
            pressed: probability (k,) that each closed contact of the filter does.
        """
        return bool(len(pressed) and pressed.max() > self._surely)

    def pushes(self, x: np.ndarray, p: np.ndarray, drift: np.ndarray) -> bool:
        """Return whether the torque of an unknown contact differs from zero.

        Args:
            x: mean (N,).
            p: packed covariance.
            drift: variance (n,) [Nm^2] of the friction that changed during the push.
        """
        return not self._zero.accepts(whitening(p[self._torque] + np.diag(drift)).T @ x[self._external])

    def exceeds_friction(self, x: np.ndarray, p: np.ndarray) -> bool:
        """Return whether the filter has more friction than free space may have.

        Args:
            x: mean (N,).
            p: packed covariance.
        """
        beyond = self._layout.friction_beyond(x)
        return bool((beyond > self._most * np.sqrt(p[self._friction])).any())
