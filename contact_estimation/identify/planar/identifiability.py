"""Which parameters a recording determines: rank, and persistence of excitation (paper 5, sections 4 and 7.3).

Contact impulses are unknown too. Only motion that they cannot explain has information on the parameters. The regressor
is therefore projected orthogonally to the columns of the contact forces, before its rank and smallest eigenvalue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_NULL = 1e-10  # share of the largest singular value below which a direction of the forces is rounding
_SEEN = 1e-6  # largest component of an unseen direction that a determined parameter may have


class Identifiability(NamedTuple):
    """What a regressor determines."""

    parameters: int  # number of columns
    rank: int  # of the projected regressor Y
    determined: tuple[bool, ...]  # per parameter, whether no change of it goes unseen
    # alpha of section 7.3, the smallest eigenvalue of Y^T Y with columns scaled to unit norm before projection (0: a
    # direction is unseen, 1: the columns are orthogonal and forces explain nothing of them)
    excitation: float
    condition: float  # of Y


def analyse(regressor: ArrayLike, forces: ArrayLike | None = None, tolerance: float = 1e-8) -> Identifiability:
    """Analyse a regressor beside unknown forces.

    Args:
        regressor: stacked rows (T, r).
        forces: columns of the contact forces (T, f).
        tolerance: singular value, for unit columns, below which a direction is undetermined.
    """
    regressor = np.asarray(regressor, float)
    count = regressor.shape[1]
    if count == 0:
        return Identifiability(0, 0, (), np.inf, 1.0)
    norms = np.linalg.norm(regressor, axis=0)
    unit = regressor / np.where(norms > 0.0, norms, 1.0)
    if forces is not None and np.size(forces):
        left, values, _ = np.linalg.svd(np.asarray(forces, float), full_matrices=False)
        basis = left[:, values > _NULL * values.max()]
        unit = unit - basis @ (basis.T @ unit)
    _, values, right = np.linalg.svd(unit, full_matrices=True)
    values = np.concatenate([values, np.zeros(count - len(values))])
    seen = values > tolerance
    unseen = np.abs(right[~seen]).max(axis=0, initial=0.0)  # (r,)
    determined = tuple(bool(n > 0.0 and part < _SEEN) for n, part in zip(norms, unseen))
    condition = float(values.max() / values.min()) if values.min() > 0.0 else np.inf
    return Identifiability(count, int(seen.sum()), determined, float(values.min() ** 2), condition)
