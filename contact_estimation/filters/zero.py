"""Zeroing: measure the torque of a free, still arm beyond gravity, and subtract it from later samples."""

from __future__ import annotations

import numpy as np

from contact_estimation.robot import Arm

#: A faster joint [rad/s] is not at rest; its friction would enter the offset.
MAX_SPEED = 0.02


class TorqueZero:
    """Offset of the torque signal (n,) [Nm], measured on request as the mean of tau - G(q) over ``samples`` samples.

    Without a request :meth:`apply` only subtracts the offset. The measured torque contains static friction, up to the
    Coulomb friction of the arm at rest. Zero therefore after a small motion, and in free space.

    Attributes:
        offset: the subtracted torque (n,) [Nm].
        status: result of the last request, one sentence.
    """

    def __init__(self, arm: Arm, samples: int) -> None:
        self._arm, self._samples = arm, samples
        self._residuals: list[np.ndarray] | None = None
        self.offset = np.zeros(arm.n)
        self.status = "not zeroed"

    @property
    def measuring(self) -> bool:
        """Return whether a request is at work."""
        return self._residuals is not None

    def start(self) -> None:
        """Measure over the next samples."""
        self._residuals = []
        self.status = "measuring"

    def refuse(self, why: str) -> None:
        """End a request, and keep the offset; ``why`` says what is wrong and what to do."""
        self._residuals = None
        self.status = f"refused: {why}"

    def clear(self) -> None:
        """Set the offset to zero."""
        self._residuals = None
        self.offset[:] = 0.0
        self.status = "not zeroed"

    def apply(self, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> bool:
        """Subtract the offset from a torque in place; collect the sample for a request.

        Args:
            q: (n,) [rad].
            dq: (n,) [rad/s].
            tau: (n,) [Nm], total torque; changed.

        Returns:
            Whether the offset is a new one from this sample on.
        """
        changed = self._residuals is not None and self._collect(self._residuals, q, dq, tau)
        tau -= self.offset
        return changed

    def _collect(self, residuals: list[np.ndarray], q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> bool:
        """Add a sample; return whether it was the last one and set the offset."""
        fastest = int(np.argmax(np.abs(dq)))
        if abs(dq[fastest]) > MAX_SPEED:
            self.refuse(
                f"{self._arm.joint_names[fastest]} moved with {abs(dq[fastest]):.3f} rad/s "
                f"(limit {MAX_SPEED:g}); the offset is unchanged. Stop the arm in free space and zero again."
            )
            return False
        residuals.append(tau - self._arm.gravity(q))
        if len(residuals) < self._samples:
            return False
        self.offset[:] = np.mean(residuals, axis=0)
        self._residuals = None
        self.status = "zeroed: offset " + ", ".join(f"{value:.2f}" for value in self.offset) + " Nm"
        return True
