"""The direction of friction follows that of sliding over a distance, not at once.

Before a contact slides it deflects: bristles of tangential stiffness sigma stretch with the tip's travel, z' = v, up
to the length mu N / sigma at which they slide (the elastic-plastic limit of Dahl's and LuGre's law). Beyond it friction
is mu N against z, and z is drawn behind the tip like a rope of that length: where the sliding turns, z turns with it
as exp(-distance / length). With 15 N of friction and 20 kN/m that is 0.75 mm: after a corner of 90 degrees friction
still points 2 degrees aside when 3 mm were slid, and it trails while the probe leans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Parts of one sample over which the deflection is integrated, so that the result does not depend on the rate.
_PARTS = 16
_SHARES = tuple((k + 0.5) / _PARTS for k in range(_PARTS))
#: Least length [m], of a contact that carries nothing.
_SHORTEST = 1e-9


@dataclass(frozen=True)
class Drag:
    """Deflections after a sample, and what an error across them is made of.

    ``deflection`` (contacts, 3) [m]. Across it, an error is ``kept`` (contacts,) times the one before, plus ``begin``
    and ``end`` (contacts,) [s] times those of the tangential velocity at either end of the sample.
    """

    deflection: np.ndarray
    kept: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def drag(deflection, velocities, dt: float, length) -> Drag:
    """Draw the bristles behind their tips for one sample, during which the velocity changes linearly.

    Args:
        deflection: (contacts, 3) [m], world axes; friction acts against it.
        velocities: tangential velocities (contacts, 3) [m/s] at the begin and at the end.
        dt: [s]. length: (contacts,) [m] of deflection at which each contact slides.
    """
    moved, part = np.empty_like(deflection), dt / _PARTS
    weights = np.empty((3, len(deflection)))
    for i, (x, y, z) in enumerate(deflection.tolist()):  # plain numbers: far faster than short arrays
        (vx, vy, vz), change = velocities[0][i].tolist(), velocities[1][i] - velocities[0][i]
        ax, ay, az = change.tolist()
        limit, kept, begin, end = max(float(length[i]), _SHORTEST), 1.0, 0.0, 0.0
        for share in _SHARES:
            x, y, z = x + part * (vx + share * ax), y + part * (vy + share * ay), z + part * (vz + share * az)
            scale = 1.0 / max(math.sqrt(x * x + y * y + z * z) / limit, 1.0)
            x, y, z = scale * x, scale * y, scale * z
            kept, begin, end = scale * kept, scale * (begin + part * (1.0 - share)), scale * (end + part * share)
        moved[i], weights[:, i] = (x, y, z), (kept, begin, end)
    return Drag(moved, *weights)
