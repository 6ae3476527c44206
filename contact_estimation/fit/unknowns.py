"""Where the contacts' parameters sit in the vector that the unbiased fit maximises over.

Of every contact: stiffness K (3), point (3) and tangential share s, common to all recordings, then one rest (3) per
recording.
"""

from __future__ import annotations

import numpy as np

from contact_estimation.contact.settings import KINDS
from contact_estimation.exceptions import IdentificationError

#: What a fit can estimate: the filters' parameters, and the tangential stiffness over the normal one of a point that
#: does not slide.
FIT_KINDS = (*KINDS, "tangential")
#: Internal unit of each kind: N/m, m, m, 1.
_UNIT = dict(zip(FIT_KINDS, (1e4, 1e-3, 1e-2, 1.0)))
#: [rad] What is known about the normal of a contact that holds its point. It is nearly as stiff sideways, so that its
#: forces hardly show where its normal is.
_NORMAL_STD = 0.15


class Unknowns:
    """The vector theta (size,), SI, of contacts with the configured ``normals`` (C, 3) in ``recordings`` recordings.

    Args:
        estimate: any of ``FIT_KINDS``. priors: standard deviation of each kind, SI.

    Attributes:
        size: of theta. scale: (size,) SI value of one internal unit. free: (size,) what is estimated. shares: places of
            the tangential shares.

    Raises:
        IdentificationError: ``estimate`` names what a fit cannot estimate.
    """

    def __init__(self, normals: np.ndarray, recordings: int, estimate: tuple[str, ...], priors: tuple[float, ...]):
        unknown = [name for name in estimate if name not in FIT_KINDS]
        if unknown or not estimate:
            raise IdentificationError(f"a fit estimates any of {', '.join(FIT_KINDS)}; found {list(estimate)}")
        one = ["stiffness"] * 3 + ["point"] * 3 + ["tangential"] + ["rest"] * (3 * recordings)
        self._normals = np.atleast_2d(normals) / np.linalg.norm(np.atleast_2d(normals), axis=1, keepdims=True)
        self.contacts, self.recordings, self._stride = len(self._normals), recordings, len(one)
        kinds = one * self.contacts
        self.size = len(kinds)
        self.scale = np.array([_UNIT[kind] for kind in kinds])
        self.free = np.array([kind in estimate for kind in kinds])
        width = np.array([priors[FIT_KINDS.index(kind)] for kind in kinds])
        self._precision = np.where(self.free, (self.scale / width) ** 2, 0.0)
        self.shares = np.array([kind == "tangential" for kind in kinds])
        self._holds = "tangential" in estimate and "stiffness" in estimate

    def places(self, contact: int, recording: int) -> np.ndarray:
        """Indices (10,) of one contact's [K; rest; point; s] in one recording."""
        first = contact * self._stride
        rest = first + 7 + 3 * recording
        return np.concatenate([np.arange(first, first + 3), np.arange(rest, rest + 3), np.arange(first + 3, first + 7)])

    def prior(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean (size,) and precision (size, size) in internal units, about ``theta``; zero where kept."""
        mean, precision = theta / self.scale, np.diag(self._precision)
        if self._holds:
            for c, normal in enumerate(self._normals):
                K = self.places(c, 0)[:3]
                across = np.eye(3) - np.outer(normal, normal)
                mean[K] -= across @ mean[K]
                precision[np.ix_(K, K)] += across / (_NORMAL_STD * max(np.linalg.norm(mean[K]), 1e-3)) ** 2
        return mean, precision
