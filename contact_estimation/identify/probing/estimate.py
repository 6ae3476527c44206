"""What the probing filter gives, and which of its ingredients are in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ingredients:
    """Which ingredients are in use; everything but the default is an ablation. ``coloured`` is this package's own,
    the others are the paper's."""

    cubature: bool = True
    merge: bool = True
    event_triggered: bool = True
    bounded: bool = True
    coloured: bool = True


@dataclass(frozen=True)
class ProbingEstimate:
    """What the filter knows after a sample.

    ``mean`` and ``std`` (n_s,) are of the physical parameters ``names`` (SI; expected values by quadrature for the
    bounded ones), with offsets referred to the world origin. ``free`` (n_s,) and ``free_covariance`` (n_s, n_s) are
    the Gaussian behind them. ``slip`` (contacts,) [m/s] is the tangential velocity, ``modes`` the probability of each
    tuple of signs, ``used`` whether this sample's wrench was used, ``nis`` its normalised innovation squared with
    ``nis_dof`` degrees of freedom.
    """

    t: float
    names: tuple[str, ...]
    mean: np.ndarray
    std: np.ndarray
    free: np.ndarray
    free_covariance: np.ndarray
    slip: np.ndarray
    modes: np.ndarray
    used: bool
    nis: float
    nis_dof: int
