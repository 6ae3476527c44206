"""A filter that also takes the normal force of a probe that sticks, or does not slide far enough yet.

:class:`~contact_estimation.identify.probing.filter.ProbingFilter` leaves these wrenches out, because their friction is
unknown. Their normal force needs no friction. It tells how the force grows with depth: at the first touch, at the
smallest depths of the recording, and after each reversal. A force that is not linear in depth (Hertz's contact, foam)
shows there.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.identify.probing.filter import ProbingFilter
from contact_estimation.identify.probing.model import Mean

_ONE, _CERTAIN = np.zeros(1, dtype=int), np.ones(1)


class StickingFilter(ProbingFilter):
    """:class:`ProbingFilter` that takes normal forces without sliding, too; innovations are those of sliding alone."""

    def _forces_count(self, slides: bool) -> bool:
        self._slides = slides
        return True

    def _correct_wrench(self, wrench: np.ndarray) -> None:
        if self._slides:
            super()._correct_wrench(wrench)
            return
        self._steps.noise += self._friction_noise(wrench)
        self._make_steps(wrench, _ONE)
        whitened = self._steps.whitened[0]
        if whitened @ whitened <= self._gate:
            self._merge(_ONE, _CERTAIN)
        self._used, self._nis, self._evidence = False, float("nan"), 0.0

    def _friction_noise(self, wrench: np.ndarray) -> np.ndarray:
        """Return the covariance (w, w) of unknown friction: across the normals, at levers of up to a metre.

        The moment of the normal force is left out with it. It is far from linear in a rough tip.
        """
        size, forces = self.model.wrench_size, self.model.force_size
        basis = np.zeros((size, self.model.surfaces))
        basis[:forces] = np.linalg.qr(self.model.normals_in_tool(self._now).T)[0]
        largest = self.settings.friction_max * np.linalg.norm(wrench[:forces])
        return np.asarray(largest**2 * (np.eye(size) - basis @ basis.T))

    def _linearise(self, mean: Mean, kept: np.ndarray) -> None:
        """Without sliding, the normal force is what the wrenches of all modes have in common."""
        if self._slides:
            super()._linearise(mean, kept)
            return
        super()._linearise(mean, np.arange(len(self.model.modes)))
        for line in self._lines:
            line[0] = np.mean(line, axis=0)
