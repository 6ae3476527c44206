"""The estimate of the probing filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing.settings import ProbingSettings

#: Share of its bound from which a stiffness counts as lying there.
_AT_BOUND = 0.95


@dataclass(frozen=True)
class ProbingEstimate:
    """What the filter knows after a sample; offsets are referred to the world's origin.

    Attributes:
        t: stamp [s].
        names: names of the parameters.
        mean: expected values (n_s,) of the physical parameters, SI; by quadrature for the bounded ones.
        std: their standard deviations (n_s,).
        free: mean (n_s,) of the Gaussian behind them, in free coordinates.
        free_covariance: its covariance (n_s, n_s).
        slip: tangential velocity (contacts,) [m/s].
        modes: probability of each tuple of signs of sliding.
        used: whether this sample's wrench was used.
        nis: its normalised innovation squared, NaN where it was not used.
        nis_dof: degrees of freedom of ``nis``.
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


def bound_problem(estimate: ProbingEstimate, settings: ProbingSettings) -> str:
    """Describe a stiffness at its bound, whose value is then that of the bound; empty if there is none."""
    stiffness = max(float(x) for name, x in zip(estimate.names, estimate.mean) if name.endswith("stiffness"))
    if stiffness <= _AT_BOUND * settings.stiffness_max:
        return ""
    return (
        f"the stiffness {stiffness:.0f} N/m lies at its bound of {settings.stiffness_max:.0f} N/m; "
        "raise stiffness_max in the settings"
    )
