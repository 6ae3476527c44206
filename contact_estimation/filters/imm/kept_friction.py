"""What is known of the friction behind a time without samples: its prediction over that time, not its prior.

A push that begins in a gap is found only if the friction is known: with its prior, friction and torque bias explain
60 N at the tool of a UR16e. Bias, Coulomb friction and the friction disturbance go on by their own dynamics, towards
their prior mean, over the time that nobody saw (:class:`~contact_estimation.filters.imm.state.Drift`).

The presliding states are lost. A joint that rests has some friction between -c and c: what is not known of its
presliding state is an error of the disturbance. Contacts, pushes and offsets of the deflections start anew; but an
unknown contact of before has hardly become a known one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.filters.imm.state import StateLayout
from contact_estimation.filters.kalman import unpack_array

#: Parts of the state that are friction, in the order of the state.
FRICTION = ("bias", "coulomb", "disturbance")


class KeptFriction(NamedTuple):
    """Friction of all joints, and the stiffness of the elastic ones.

    Attributes:
        where: (k,) their entries in the state; the first 3 n are those of the friction.
        mean: (k,).
        covariance: (k, k).
    """

    where: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def predict_friction(
    layout: StateLayout, x: np.ndarray, packed: np.ndarray, time: float, unsettled: np.ndarray
) -> KeptFriction:
    """Return what is known of the friction after a time without samples.

    Args:
        layout: parts of the filters' state.
        x: (N,) mean of the filter before it.
        packed: its covariance.
        time: [s].
        unsettled: (n,) share of each joint's presliding state that is not known behind it.
    """
    parts, entries = layout.parts, np.arange(layout.size)
    where = np.concatenate([entries[parts[name]] for name in (*FRICTION, "joint_stiffness")])
    drift = layout.drift(time).of(where)
    covariance = drift.covariance(unpack_array(packed, layout.size)[np.ix_(where, where)])
    n, coulomb = layout.n, parts["coulomb"]
    disturbance = np.arange(2 * n, 3 * n)
    square = x[coulomb] ** 2 + np.diagonal(covariance)[n : 2 * n]
    covariance[disturbance, disturbance] += unsettled**2 * square
    return KeptFriction(where, drift.state(x[where]), covariance)
