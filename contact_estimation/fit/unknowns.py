"""Layout of the vector of unknowns of the unbiased fit.

Of every contact: stiffness K (3), point (3) and the parameters of its law, common to all recordings, then one rest (3)
per recording.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_estimation.contact.law import LAW_GROUPS
from contact_estimation.contact.settings import CONTACT_PARAMETERS
from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.contact_torque import FitContact

#: What a fit can estimate: the filters' parameters, those of the contact law that act sideways, and its others.
FIT_PARAMETERS = (*CONTACT_PARAMETERS, *LAW_GROUPS)
#: Internal unit of stiffness [N/m], rest [m] and point [m].
_UNIT = dict(zip(CONTACT_PARAMETERS, (1e4, 1e-3, 1e-2)))
#: [rad] What is known about the normal of a contact that holds its point. It is nearly as stiff sideways, so that its
#: forces hardly show where its normal is.
_NORMAL_STD = 0.15


class Unknowns:
    """The vector theta (size,), SI, of contacts in a number of recordings.

    Args:
        contacts: the contacts, with their configured normals.
        recordings: how many.
        estimate: any of ``FIT_PARAMETERS``.
        priors: standard deviation of stiffness [N/m], rest [m] and point [m].

    Attributes:
        size: of theta.
        scale: (size,) SI value of one internal unit.
        free: (size,) what is estimated.
        lower: (size,) least values, SI.

    Raises:
        IdentificationError: ``estimate`` names what a fit cannot estimate.
    """

    def __init__(
        self, contacts: list[FitContact], recordings: int, estimate: tuple[str, ...], priors: tuple[float, float, float]
    ) -> None:
        unknown = [name for name in estimate if name not in FIT_PARAMETERS]
        if unknown or not estimate:
            raise IdentificationError(f"a fit estimates any of {', '.join(FIT_PARAMETERS)}; found {list(estimate)}")
        for group in LAW_GROUPS:
            if group in estimate and not any(p.group == group for c in contacts for p, *_ in c.prior):
                laws = ", ".join(sorted({c.settings.law for c in contacts}))
                raise IdentificationError(f"no contact has a law with '{group}' parameters to estimate; found {laws}")
        self.contacts, self.recordings = contacts, recordings
        self._normals = [np.asarray(c.settings.stiffness) / np.linalg.norm(c.settings.stiffness) for c in contacts]
        self._holds = ["stiffness" in estimate and c.law.feels_slip for c in contacts]
        width = dict(zip(CONTACT_PARAMETERS, priors))
        rows: list[tuple[float, float, float, bool]] = []  # scale, prior standard deviation, least value, estimated
        self._starts = []
        for contact in contacts:
            self._starts.append(len(rows))
            own = [(p.scale, std or 1.0, p.lower, p.group in estimate and std > 0) for p, _, std in contact.prior]
            stiffness, rest, point = ((_UNIT[k], width[k], -np.inf, k in estimate) for k in CONTACT_PARAMETERS)
            rows += [stiffness] * 3 + [point] * 3 + own + [rest] * (3 * recordings)
        scale, std, lower, free = (np.array(column) for column in zip(*rows))
        self.size, self.scale, self.lower, self.free = len(rows), scale, lower, free.astype(bool)
        self._precision = np.where(self.free, (scale / std) ** 2, 0.0)

    def places(self, contact: int, recording: int) -> NDArray[np.int64]:
        """Return the indices of one contact's [K; rest; point; law parameters] in one recording.

        Returns:
            (9 + the law's own,) places in theta.
        """
        first, own = self._starts[contact], self.contacts[contact].size - 9
        rest = first + 6 + own + 3 * recording
        return np.concatenate(
            [np.arange(first, first + 3), np.arange(rest, rest + 3), np.arange(first + 3, first + 6 + own)]
        )

    def prior(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean (size,) and precision (size, size) in internal units, about ``theta``; zero where kept."""
        mean, precision = theta / self.scale, np.diag(self._precision)
        for c, (normal, holds) in enumerate(zip(self._normals, self._holds)):
            if holds:
                K = self.places(c, 0)[:3]
                across = np.eye(3) - np.outer(normal, normal)
                mean[K] -= across @ mean[K]
                precision[np.ix_(K, K)] += across / (_NORMAL_STD * max(float(np.linalg.norm(mean[K])), 1e-3)) ** 2
        return mean, precision
