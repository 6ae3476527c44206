"""A slow push that free space absorbs: friction seems to change along a force at the tool by more than it can.

A filter of free space lets the torque's bias b and friction disturbance v drift. A push that grows over seconds fits in
every block, so that no other mode becomes likely; but over these seconds A = (b + v)_then - (b + v)_now is its torque.
Friction's own change has the variances

    s^2 = 2 v_std^2 (1 - exp(-t_m / T)) + q t + (e c)^2

of a bias of random walk q within a time t, of a disturbance of time constant T while the arm moves, for t_m of that
time, and of the share e of Coulomb friction c that a reversal may change. The part of A along a force at the TCP, of
Jacobian J, is the log-likelihood ratio of a force of any size and direction,

    A^T W J^T (J W J^T)^-1 J W A,   W = diag(s)^-2,

chi-square with three degrees of freedom where nothing pushes. As in :mod:`.growing_push` the largest over the times at
which the push may have begun decides (Basseville and Nikiforov, Detection of Abrupt Changes, 1993, section 2.4). Where
less of that force is left since an earlier time, a push that nobody noticed has ended.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from contact_estimation.filters.chi_square import chi_square_quantile
from contact_estimation.filters.imm.growing_push import RETURNED
from contact_estimation.filters.imm.state import StateLayout

#: [s] Within a shorter time friction of joints that reverse may change like a push; one that grows faster is named.
_LEAST_TIME = 1.0
#: Probability with which friction alone exceeds the threshold, at one time, and states in a row that must exceed it.
_SIGNIFICANCE, _TIMES = 1e-5, 5
#: Keeps the information invertible where no joint feels some direction of force; it then counts for nothing.
_RIDGE = 1e-9


class AbsorbedPush:
    """Compares the friction of a state with that of earlier states of free space.

    Args:
        layout: parts of the filters' state.
        signals: buffers by name: ``tcp_jacobian`` and ``friction_error``.
    """

    def __init__(self, layout: StateLayout, signals: Mapping[str, np.ndarray]) -> None:
        self._layout, self._signals, self._times = layout, signals, 0
        disturbance = layout.parts["disturbance"]
        self._time, self._spread = layout.time_constant[disturbance], 2 * layout.variance[disturbance]
        self._walk = layout.random_walk[layout.parts["bias"]]
        self._threshold = chi_square_quantile(3, _SIGNIFICANCE)

    def reset(self) -> None:
        """Begin anew with the states in a row."""
        self._times = 0

    def since(
        self, now: np.ndarray, before: np.ndarray, passed: np.ndarray, moved: np.ndarray, stay: int
    ) -> int | None:
        """Take the next state; return since which of the earlier ones friction has absorbed a push, None for none.

        Args:
            now: mean (N,) of free space, or of a known contact that followed it.
            before: means (K, N) of free space, the latest last.
            passed: time (K,) since each [s].
            moved: for so long the arm has moved since each (K,) [s].
            stay: so many of the latest are of the present stay in free space, where a push may have begun.
        """
        long = passed >= _LEAST_TIME
        first = len(before) - stay
        if not long[first:].any():
            self._times = 0
            return None
        ratio, force = self._compare(now, before[long], passed[long], moved[long])
        furthest = first + int(ratio[first:].argmax())
        self._times = self._times + 1 if ratio[furthest] > self._threshold else 0
        if self._times < _TIMES:
            return None
        then = force[furthest]
        return None if (force[:furthest] @ then < RETURNED * then @ then).any() else furthest

    def _compare(
        self, now: np.ndarray, before: np.ndarray, passed: np.ndarray, moved: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the statistic (K,) of each of the earlier states, and its force (K, 3) [N] in base axes."""
        parts, jacobian = self._layout.parts, self._signals["tcp_jacobian"].reshape(3, self._layout.n, order="F")
        bias, disturbance = parts["bias"], parts["disturbance"]
        fallen = before[:, bias] + before[:, disturbance] - now[bias] - now[disturbance]  # (K, n) [Nm]
        variance = self._walk * passed[:, None] - self._spread * np.expm1(-moved[:, None] / self._time)
        variance += (self._signals["friction_error"] * now[parts["coulomb"]]) ** 2
        along = (fallen / variance) @ jacobian.T  # (K, 3)
        information = np.einsum("in,kn,jn->kij", jacobian, 1.0 / variance, jacobian)  # (K, 3, 3)
        information += _RIDGE * (1.0 + np.trace(information, axis1=1, axis2=2))[:, None, None] * np.eye(3)
        force = np.linalg.solve(information, along[:, :, None])[:, :, 0]  # (K, 3) [N]
        return np.sum(along * force, axis=1), force
