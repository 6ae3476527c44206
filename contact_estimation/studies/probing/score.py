"""Score filtered runs against the accuracy the paper reports (section V)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from contact_estimation.identify.probing.estimate import ProbingEstimate
from contact_estimation.identify.probing.model import ContactModel
from contact_estimation.identify.probing.spatial import SpatialModel

#: The paper's accuracy: tip [m], orientation [rad], stiffness [N/m], friction.
PAPER = np.array([2e-3, 3e-2, 500.0, 3e-3])


@dataclass(frozen=True)
class Trace:
    """One filtered run, every array over its T samples.

    Attributes:
        t: [s].
        mean: estimated parameters (T, n_s).
        std: their standard deviations.
        planted: their truth.
        errors: (T, 4) of the worst tip [m], the normal [rad], stiffness [N/m] and friction.
        nees: normalised estimation error squared of the free parameters.
        slip: [m/s].
        used: whether the wrench was used.
        nis: its normalised innovation squared per component, NaN where it was not used.
        seconds: processor time of every step [s].
    """

    t: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    planted: np.ndarray
    errors: np.ndarray
    nees: np.ndarray
    slip: np.ndarray
    used: np.ndarray
    nis: np.ndarray
    seconds: np.ndarray

    @classmethod
    def of(
        cls,
        model: ContactModel,
        t: np.ndarray,
        estimates: list[ProbingEstimate],
        planted: np.ndarray,
        seconds: np.ndarray,
    ) -> Trace:
        """Compare the estimates of a run with the planted parameters (T, n_s)."""
        mean = np.array([e.mean for e in estimates])
        difference = mean - planted
        tips = difference[:, : model.force_size * model.contacts].reshape(len(mean), model.contacts, -1)
        turned = np.abs(difference[:, 2])
        if isinstance(model, SpatialModel):
            turned = angle_between(model.normal(mean.T).T, model.normal(planted.T).T)
        errors = [np.linalg.norm(tips, axis=2).max(axis=1), turned, *np.abs(difference[:, -2:]).T]
        free = np.array(planted)
        for i, interval in model.bounds.items():
            free[:, i] = interval.to_free(planted[:, i])
        nees = [(e.free - x) @ np.linalg.solve(e.free_covariance, e.free - x) for e, x in zip(estimates, free)]
        return cls(
            t,
            mean,
            np.array([e.std for e in estimates]),
            planted,
            np.column_stack(errors),
            np.array(nees),
            np.array([e.slip[0] for e in estimates]),
            np.array([e.used for e in estimates]),
            np.array([e.nis / e.nis_dof for e in estimates]),
            seconds,
        )

    def within(self) -> np.ndarray:
        """Return where (T,) all four errors are within the paper's accuracy."""
        return np.asarray(np.all(self.errors < PAPER, axis=1))

    def settling_time(self) -> float:
        """Return the time [s] from which the run stays within the paper's accuracy; infinite if it ends outside."""
        outside = np.flatnonzero(~self.within())
        first = outside[-1] + 1 if len(outside) else 0
        return float(self.t[first]) if first < len(self.t) else float("inf")

    def non_physical(self) -> bool:
        """Return True if stiffness or friction was ever negative, or any parameter not finite."""
        return bool(np.any(self.mean[:, -2:] < 0.0) or not np.all(np.isfinite(self.mean)))


def angle_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the angles (...) [rad] between vectors (..., 3)."""
    return np.asarray(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), np.sum(a * b, axis=-1)))


def named_errors(errors: np.ndarray) -> dict[str, float]:
    """Return tip [m], orientation [rad], stiffness [N/m] and friction errors (4,) under the names of results."""
    tip, angle, stiffness, friction = (float(error) for error in errors)
    return {
        "tip_error_mm": 1e3 * tip,
        "orientation_error_rad": angle,
        "stiffness_error": stiffness,
        "friction_error": friction,
    }


def errors_text(result: dict[str, Any]) -> str:
    """Return the errors of :func:`named_errors` as text."""
    return (
        f"tip {result['tip_error_mm']:.2f} mm, orientation {result['orientation_error_rad']:.4f} rad, "
        f"stiffness {result['stiffness_error']:.0f} N/m, friction {result['friction_error']:.4f}"
    )


def score(traces: list[Trace], at: float) -> dict[str, Any]:
    """Score many runs ``at`` a time [s].

    Returns:
        ``converged_pct`` counts runs within the paper's accuracy at that time; the errors are medians then.
        ``nees_mean`` should be near ``nees_dof``; ``nees_interval`` is its 95 % interval for this many consistent runs.
        It includes model error, because the truth has presliding. ``nees_covered_pct`` should be near 95;
        ``nees_over_time`` is the mean after every second. ``used_pct`` is the share of samples with a full update.
        ``updates_per_second`` is their number over the time they took, NaN where the clock saw none of it: some clocks
        of processor time tick every 10 ms, far longer than an update.
    """
    t = traces[0].t
    k = int(np.searchsorted(t, at - 1e-9))
    runs, dof = len(traces), traces[0].planted.shape[1]
    nees = np.array([trace.nees for trace in traces])  # (R, T)
    within = np.array([trace.within() for trace in traces])
    full = np.concatenate([trace.seconds[trace.used] for trace in traces])
    seconds = range(1, int(t[-1] + 1e-9) + 1)
    return {
        "runs": runs,
        "evaluated_at_s": float(t[k]),
        "converged_pct": 100.0 * float(np.mean(within[:, k])),
        "converged_at_end_pct": 100.0 * float(np.mean(within[:, -1])),
        "non_physical_runs": sum(trace.non_physical() for trace in traces),
        **named_errors(np.median([trace.errors[k] for trace in traces], axis=0)),
        "settling_time_s": float(np.median([trace.settling_time() for trace in traces])),
        "nees_mean": float(np.mean(nees[:, k])),
        "nees_dof": dof,
        "nees_interval": [float(chi2.ppf(p, runs * dof) / runs) for p in (0.025, 0.975)],
        "nees_over_time": {str(s): float(np.mean(nees[:, np.searchsorted(t, s - 1e-9)])) for s in seconds},
        "nees_covered_pct": 100.0 * float(np.mean(nees[:, k] < chi2.ppf(0.95, dof))),
        "nis_per_component": float(np.nanmean([trace.nis for trace in traces])),
        "used_pct": 100.0 * float(np.mean([trace.used for trace in traces])),
        "updates_per_second": len(full) / float(full.sum()) if full.any() else float("nan"),
    }
