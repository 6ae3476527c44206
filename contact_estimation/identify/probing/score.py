"""Score filtered runs against the accuracy the paper reports (section V)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2


@dataclass(frozen=True)
class Tolerance:
    """The paper's accuracy: tip [m], orientation [rad], stiffness [N/m], friction."""

    tip: float = 2e-3
    orientation: float = 3e-2
    stiffness: float = 500.0
    friction: float = 3e-3


PAPER = Tolerance()


def within(trace, tolerance: Tolerance = PAPER) -> np.ndarray:
    """(T,) True where all four errors are within tolerance."""
    return ((trace.tip_error < tolerance.tip) & (trace.orientation_error < tolerance.orientation)
            & (trace.stiffness_error < tolerance.stiffness) & (trace.friction_error < tolerance.friction))


def settling_time(trace, tolerance: Tolerance = PAPER) -> float:
    """Time [s] from which a run stays within tolerance to its end; infinite if it does not end there."""
    outside = np.flatnonzero(~within(trace, tolerance))
    if len(outside) == 0:
        return float(trace.t[0])
    return float(trace.t[outside[-1] + 1]) if outside[-1] + 1 < len(trace.t) else float("inf")


def non_physical(trace) -> bool:
    """True if an estimate of stiffness or friction was ever negative, or any parameter not finite."""
    return bool(np.any(trace.mean[:, -2:] < 0.0) or not np.all(np.isfinite(trace.mean)))


def score(traces, at: float) -> dict:
    """Scores of many runs ``at`` a time [s].

    ``converged_pct`` counts runs within the paper's tolerance at that time; the medians are of the errors then.
    ``nees_mean`` should be near ``nees_dof`` (its 95 % interval for this many honest runs is ``nees_interval``; it
    mixes in model error, since the truth has presliding), ``nees_covered_pct`` near 95; ``nees_over_time`` is the same
    mean after every second. ``updates_per_second`` counts
    full updates only, from the median of their time, and ``used_pct`` is the share of samples with one.
    """
    k = int(np.searchsorted(traces[0].t, at - 1e-9))
    seconds = range(1, int(traces[0].t[-1] + 1e-9) + 1)
    every = [int(np.searchsorted(traces[0].t, second - 1e-9)) for second in seconds]
    runs, dof = len(traces), traces[0].planted.shape[1]
    nees = np.array([trace.nees[k] for trace in traces])
    full = np.concatenate([trace.seconds[trace.used] for trace in traces])
    settled = np.array([settling_time(trace) for trace in traces])
    return {
        "runs": runs, "evaluated_at_s": float(traces[0].t[k]),
        "converged_pct": 100.0 * float(np.mean([within(trace)[k] for trace in traces])),
        "converged_at_end_pct": 100.0 * float(np.mean([within(trace)[-1] for trace in traces])),
        "non_physical_runs": sum(non_physical(trace) for trace in traces),
        "tip_error_mm": 1e3 * float(np.median([trace.tip_error[k] for trace in traces])),
        "orientation_error_rad": float(np.median([trace.orientation_error[k] for trace in traces])),
        "stiffness_error": float(np.median([trace.stiffness_error[k] for trace in traces])),
        "friction_error": float(np.median([trace.friction_error[k] for trace in traces])),
        "settling_time_s": float(np.median(settled)),
        "nees_mean": float(np.mean(nees)), "nees_dof": dof,
        "nees_interval": [float(chi2.ppf(p, runs * dof) / runs) for p in (0.025, 0.975)],
        "nees_over_time": {str(second): float(np.mean([trace.nees[i] for trace in traces]))
                           for second, i in zip(seconds, every)},
        "nees_covered_pct": 100.0 * float(np.mean(nees < chi2.ppf(0.95, dof))),
        "used_pct": 100.0 * float(np.mean(np.concatenate([trace.used for trace in traces]))),
        "updates_per_second": 1.0 / float(np.median(full)) if len(full) else float("nan"),
    }
