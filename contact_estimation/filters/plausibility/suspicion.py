"""Changes of the torque at rest. What the effort means does not change there, so what changes is a force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: A torque at rest that changes by this share of the friction is no friction, but a contact ...
_CHANGE_SHARE = 0.75
#: ... if that is also as many times what it changes by from block to block: the torque of an exchanged joint may be as
#: noisy as friction is large.
_CHANGE_NOISE = 6.0
#: [rad] Farther away gravity changes the torque of a wrong reading, too.
_SAME_POSTURE = 0.02
#: Blocks of rest in which a free arm must be explained.
_KEPT = 10


def _changed(change: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Tell under which readings (1 + R,) a residual changed by ``change`` (1 + R, n) on any joint, beyond its noise."""
    return np.asarray((np.abs(change) > np.fmax(_CHANGE_SHARE, _CHANGE_NOISE * noise)).any(axis=1))


class _BlockNoise:
    """By how much residuals change from block to block, in the mean.

    Args:
        residual: (1 + R, n) of the first block.

    Attributes:
        mean: (1 + R, n) of the absolute changes.
        blocks: so many since.
    """

    def __init__(self, residual: np.ndarray) -> None:
        self.mean, self.blocks, self._last = np.zeros_like(residual), 0, residual.copy()

    def add(self, residual: np.ndarray) -> None:
        """Take the residuals (1 + R, n) of a block."""
        self.blocks += 1
        self.mean += (np.abs(residual - self._last) - self.mean) / self.blocks
        self._last[:] = residual


@dataclass
class Suspicion:
    """A rival that looks free where the configured reading does not.

    Attributes:
        rival: its index.
        residual: (1 + R, n) in units of friction, under the configured reading and every rival, when the suspicion
            arose, or when a joint reversed.
        direction: (n,) sign of the joints' motion then.
        q: (n,) position then [rad].
        noise: of the residual.
        changed: how long the torque has differed from then by more than friction makes at rest [s].
        time: how long it has lasted [s].
        moving_time: how long of that a joint moved [s].
    """

    rival: int
    residual: np.ndarray
    direction: np.ndarray
    q: np.ndarray
    noise: _BlockNoise
    changed: float = 0.0
    time: float = 0.0
    moving_time: float = 0.0

    @classmethod
    def of(cls, rival: int, residual: np.ndarray, direction: np.ndarray, q: np.ndarray) -> Suspicion:
        """Return a suspicion that arises now."""
        return cls(rival, residual.copy(), direction, q.copy(), _BlockNoise(residual))

    def contradicted(self, residual: np.ndarray, direction: np.ndarray, near: bool) -> np.ndarray:
        """Tell which rivals a change of the torque contradicts: more than friction and noise can make at rest.

        A force that changes under one rival need not do so under another: what is large in Nm is small in amperes. A
        change under the configured reading contradicts all.

        Args:
            residual: (1 + R, n) of the present block.
            direction: (n,) sign of the joints' motion. Joints that set off or reverse change their friction, and begin
                anew.
            near: the arm is near the posture in which the suspicion arose. Elsewhere a wrong torque changes, too.

        Returns:
            (R,) whether the torque changed under the rival since the suspicion arose.
        """
        turned = direction * self.direction < np.abs(direction)
        self.residual[:, turned], self.direction[turned] = residual[:, turned], direction[turned]
        self.noise.add(residual)
        changed = _changed(residual - self.residual, self.noise.mean)
        return np.asarray(changed[1:] | (changed[0] & near))


class FreeAtRest:
    """What the torque of a free arm was as it came to rest. What changes before it moves is a force, no other reading.

    Args:
        lone: (R,) rivals that leave one joint out: a fault of its sensor may change that.
    """

    def __init__(self, lone: np.ndarray) -> None:
        self._lone = lone
        self.forget()

    def forget(self) -> None:
        """Begin anew: the effort may mean something else from now on."""
        self._q: np.ndarray | None = None
        self._noise: _BlockNoise | None = None

    def follow(self, q: np.ndarray, moves: bool) -> None:
        """Begin anew where the arm moves, or is elsewhere.

        Args:
            q: (n,) position [rad].
            moves: a joint does.
        """
        if self._q is not None and (moves or np.abs(q - self._q).max() > _SAME_POSTURE):
            self.forget()

    def add(self, q: np.ndarray, residual: np.ndarray) -> None:
        """Take the position (n,) [rad] and the residuals (1 + R, n) of a block in which the arm rests and is free."""
        if self._noise is None:
            self._q, self._residual, self._noise = q.copy(), residual.copy(), _BlockNoise(residual)
        if self._noise.blocks < _KEPT:
            self._noise.add(residual)
            self._residual += (residual - self._residual) / self._noise.blocks

    def contradicted(self, residual: np.ndarray) -> np.ndarray:
        """Return (R,) rivals that a change since then contradicts: ``residual`` (1 + R, n) of the present block."""
        if self._noise is None or self._noise.blocks < _KEPT:
            return np.zeros(len(self._lone), dtype=bool)
        changed = _changed(residual - self._residual, self._noise.mean)
        return np.asarray(changed[1:] | (changed[0] & ~self._lone))
