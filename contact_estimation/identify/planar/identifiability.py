"""Which parameters a recording determines: rank, and persistence of excitation (paper 5, sections 4 and 7.3).

Contact impulses are unknown too, so only what they cannot explain informs about the parameters: the regressor is
projected off the columns of the contact forces before its rank and its smallest eigenvalue are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Identifiability:
    """``rank`` of the projected regressor over ``parameters`` columns; ``determined`` tells per parameter whether no
    change of it goes unseen; ``excitation`` is alpha of section 7.3: the smallest eigenvalue of Y^T Y / T with
    columns scaled to unit norm before projection (0: a direction is unseen, 1: forces explain nothing); ``condition``
    is that of Y."""

    parameters: int
    rank: int
    determined: tuple[bool, ...]
    excitation: float
    condition: float


def analyse(regressor, forces=None, tolerance: float = 1e-8) -> Identifiability:
    """Analyse the stacked ``regressor`` (T, r) beside the force columns ``forces`` (T, f).

    Columns without any signal, and directions whose singular value is below ``tolerance`` of a unit column, are
    undetermined.
    """
    regressor = np.asarray(regressor, float)
    count = regressor.shape[1]
    if count == 0:
        return Identifiability(0, 0, (), np.inf, 1.0)
    norms = np.linalg.norm(regressor, axis=0)
    unit = regressor / np.where(norms > 0.0, norms, 1.0)
    if forces is not None and np.size(forces):
        left, values, _ = np.linalg.svd(np.asarray(forces, float), full_matrices=False)
        basis = left[:, values > 1e-10 * values.max()]
        unit = unit - basis @ (basis.T @ unit)
    _, values, right = np.linalg.svd(unit, full_matrices=True)
    values = np.concatenate([values, np.zeros(count - len(values))])
    seen = values > tolerance
    unseen = right[~seen]
    determined = tuple(bool(n > 0.0 and np.abs(unseen[:, i]).max(initial=0.0) < 1e-6) for i, n in enumerate(norms))
    condition = float(values.max() / values.min()) if values.min() > 0.0 else np.inf
    return Identifiability(count, int(seen.sum()), determined, float(values.min()**2), condition)
