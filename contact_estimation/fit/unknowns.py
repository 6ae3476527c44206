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


class Unknowns:
    """The vector theta (size,), SI, of ``contacts`` contacts in ``recordings`` recordings.

    Attributes:
        size: of theta. scale: (size,) SI value of one internal unit. free: (size,) what is estimated. prior: (size,)
            inverse variances in internal units, zero where kept. shares: places of the tangential shares.

    Raises:
        IdentificationError: ``estimate`` names what a fit cannot estimate.
    """

    def __init__(self, contacts: int, recordings: int, estimate: tuple[str, ...], priors: tuple[float, ...]):
        unknown = [name for name in estimate if name not in FIT_KINDS]
        if unknown or not estimate:
            raise IdentificationError(f"a fit estimates any of {', '.join(FIT_KINDS)}; found {list(estimate)}")
        one = ["stiffness"] * 3 + ["point"] * 3 + ["tangential"] + ["rest"] * (3 * recordings)
        self.contacts, self.recordings, self._stride = contacts, recordings, len(one)
        kinds = one * contacts
        self.size = len(kinds)
        self.scale = np.array([_UNIT[kind] for kind in kinds])
        self.free = np.array([kind in estimate for kind in kinds])
        width = np.array([priors[FIT_KINDS.index(kind)] for kind in kinds])
        self.prior = np.where(self.free, (self.scale / width) ** 2, 0.0)
        self.shares = np.array([kind == "tangential" for kind in kinds])

    def places(self, contact: int, recording: int) -> np.ndarray:
        """Indices (10,) of one contact's [K; rest; point; s] in one recording."""
        first = contact * self._stride
        rest = first + 7 + 3 * recording
        return np.concatenate([np.arange(first, first + 3), np.arange(rest, rest + 3), np.arange(first + 3, first + 7)])
