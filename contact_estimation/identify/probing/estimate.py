"""The estimate of the probing filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.probing.settings import ProbingSettings

#: Share of its upper bound from which a parameter counts as lying there.
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
    """Describe stiffness and friction at their bounds, whose values are then those of the bounds; empty without any."""
    problems = []
    for what, bound, unit in (("stiffness", settings.stiffness_max, " N/m"), ("friction", settings.friction_max, "")):
        value = max(float(x) for name, x in zip(estimate.names, estimate.mean) if name.endswith(what))
        if value > _AT_BOUND * bound:
            problems.append(
                f"the {what} {value:.5g}{unit} lies at its bound of {bound:.5g}{unit}; raise {what}_max in the settings"
            )
    return ", and ".join(problems)
