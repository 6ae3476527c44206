"""What a centre of mass that is not exactly where it was said leaves of m/I.

An impact gives two equations, for the unknowns m/I and the centre's offset c (2,) in the body's axes. One impact
therefore leaves a direction that its data say nothing about: its height fixes c off the ground, and along the ground c
trades for m/I. With the conditions' residual e = A d ln(m/I) + B c + noise of covariance S, and c of prior covariance
s^2 I, the estimate that takes c for 0 errs by

    d ln(m/I) = G c,    G = -(A^T S^-1 A)^-1 A^T S^-1 B,    cov(c) = P = (B^T S^-1 B + B^T S^-1 A G + s^-2 I)^-1.

P has m/I free. Where G P G^T is nearly G G^T s^2, the impacts do not check the centre.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.identify.planar.contact_geometry import Correction, Impacts

#: Standard deviation of each coordinate of a centre of which only the outline is known, as a share of its radius: that
#: of a point which may be anywhere in a disk.
ANYWHERE = 0.5
#: Posterior over prior standard deviation of the centre above which the impacts do not check it.
_UNCHECKED = 0.5


class CentreCheck(NamedTuple):
    """What impacts say about the centre of mass, in the direction that m/I depends on.

    Attributes:
        error: standard deviation of ln(m/I) from the centre alone.
        unobserved: posterior over prior standard deviation of a centre that may be anywhere in the outline, 0 to 1.
    """

    error: float
    unobserved: float

    @property
    def checked(self) -> bool:
        """Whether the impacts would show a wrong centre."""
        return self.unobserved <= _UNCHECKED


def check_centre(impacts: Impacts, best: Correction, ratio: float, centre_std: float | None) -> CentreCheck:
    """Propagate the centre of mass to m/I.

    Args:
        impacts: of a drop.
        best: their corrected numbers at ``ratio``.
        ratio: m/I [1/m^2].
        centre_std: standard deviation of the centre, as a share of the outline's radius; None if it is not known.
    """
    by_ratio, by_centre, covariance = impacts.sensitivity(best, ratio)
    weighted = np.linalg.solve(covariance, np.column_stack([by_ratio, by_centre]))
    power = float(by_ratio @ weighted[:, 0])
    if power <= 0.0:  # no impact informs
        return CentreCheck(np.inf, 1.0)
    gain = -(by_centre.T @ weighted[:, 0]) / power  # G (2,)
    information = by_centre.T @ weighted[:, 1:] - power * np.outer(gain, gain)

    def error(std: float) -> float:
        return float(np.sqrt(gain @ np.linalg.solve(information + np.eye(2) / std**2, gain)))

    radius = impacts.shape.radius
    prior = ANYWHERE * radius
    unobserved = error(prior) / max(prior * float(np.linalg.norm(gain)), 1e-300)
    return CentreCheck(error(radius * (ANYWHERE if centre_std is None else max(centre_std, 1e-9))), unobserved)
