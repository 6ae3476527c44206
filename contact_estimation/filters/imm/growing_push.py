"""A push that grows slowly: free space absorbs it in the torque's bias and in the offset of the gears' deflection.

A filter of free space lets the torque's bias b and friction disturbance v drift, and the offsets o of the deflections.
A push tau_e that grows no faster fits in every block, so that no other mode becomes likely. Over seconds it shows in
two changes at once, which have no other cause in common:

    torque        -(b + v) changes by tau_e
    deflection      k o    changes by tau_e, with the joint stiffness k.

The smaller of the two is the torque that both agree on. It is a push where it bends a joint by more than the width w of
the loop of its hysteresis and what motion makes of the offset: by more than (w^2 + 4 V)^(1/2), where V is by how much
the variance of o has differed in that time. This is a generalised likelihood ratio test over the time at which the push
began (Basseville and Nikiforov, Detection of Abrupt Changes, 1993, section 2.4), with kept states in place of a bank of
filters. Where states before that one were as the present one is, a push that nobody noticed has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import packed_places

#: Standard deviations of an offset that motion may change it by.
_SIGMAS = 2.0
#: States in a row that must show the push: fast motion disturbs torque and deflection for a moment.
_TIMES = 5
#: Less than this share of a change is left where it is taken back.
RETURNED = 0.5


class GrowingPush:
    """Compares a state with those of the stay in free space before it.

    Args:
        layout: parts of the filters' state, with elastic joints.
    """

    def __init__(self, layout: StateLayout) -> None:
        self._layout, parts = layout, layout.parts
        self._joints, self._loop = np.asarray(layout.elastic_joints, int), layout.deflection_loop
        self._offset, self._times = parts["offset"], 0
        self._variances = np.diagonal(packed_places(layout.size))[self._offset]  # of the offsets in a packed covariance

    def reset(self) -> None:
        """Begin anew with the states in a row."""
        self._times = 0

    def traces(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return what a push changes in a state: (3, m) offset [rad], its variance [rad^2], and friction [Nm].

        Args:
            x: mean (N,) of a filter.
            p: its packed covariance.
        """
        friction = x[self._layout.parts["bias"]] + x[self._layout.parts["disturbance"]]
        return np.array([x[self._offset], p[self._variances], friction[self._joints]])

    def since(self, now: np.ndarray, before: Sequence[np.ndarray], stiffness: np.ndarray) -> int | None:
        """Take the next state; return since which of the earlier ones a push has grown, None where none has.

        Args:
            now: traces (3, m) of free space, or of a known contact that followed it.
            before: earlier ones of free space, the latest last.
            stiffness: of the joints (m,) [Nm/rad].
        """
        if not before:
            self._times = 0
            return None
        then = np.array(before)  # (K, 3, m)
        bent = stiffness * (now[0] - then[:, 0])  # (K, m) [Nm]
        lost = then[:, 2] - now[2]
        agreed = _agreed(bent, lost)
        variance = np.concatenate([now[None, 1], then[::-1, 1]])  # (K + 1, m), the latest first
        moved = (np.maximum.accumulate(variance) - np.minimum.accumulate(variance))[:0:-1]
        most = (agreed / stiffness / np.sqrt(self._loop**2 + _SIGMAS**2 * moved)).max(axis=1)
        furthest = int(most.argmax())
        self._times = self._times + 1 if most[furthest] > 1 else 0
        return furthest if self._times >= _TIMES else None

    def returns(self, now: np.ndarray, then: np.ndarray, earlier: Sequence[np.ndarray], stiffness: np.ndarray) -> bool:
        """Return whether what has changed since a state was like now before it: a push that nobody noticed has ended.

        Args:
            now: traces (3, m), as in :meth:`since`.
            then: those of the state since which they have changed.
            earlier: those of states before it.
            stiffness: of the joints (m,) [Nm/rad].
        """
        if not earlier:
            return False
        before = np.array(earlier)
        bent, lost = stiffness * (now[0] - then[0]), then[2] - now[2]
        joint = int(_agreed(bent, lost).argmax())
        left_bent = stiffness[joint] * (now[0, joint] - before[:, 0, joint]) / bent[joint]
        left_lost = (before[:, 2, joint] - now[2, joint]) / lost[joint]
        return bool((np.maximum(left_bent, left_lost) < RETURNED).any())


def _agreed(bent: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Return the torque [Nm] that deflection and torque agree on, zero where they contradict each other."""
    return np.where(bent * lost > 0, np.minimum(np.abs(bent), np.abs(lost)), 0.0)
