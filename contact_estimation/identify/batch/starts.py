"""Several starts of one estimate: the best one counts. Equally good minima that lie apart are no estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_estimation.identify.batch.result import Result
from contact_estimation.identify.verdict import Verdict, conclude, different_optima


def best_of(results: Sequence[Result]) -> tuple[Result, Verdict]:
    """Return the result of the lowest cost, and its verdict with a test of whether the others agree.

    Args:
        results: of the same problem, from different starts.
    """
    costs = np.array([result.cost for result in results])
    best = results[int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))]
    values = [np.array(list(result.values().values())) for result in results]
    std = np.array([p.total_std for p in best.parameters])
    apart = different_optima(costs.tolist(), values, std)
    failures = [] if best.verdict.verdict != "failed" else ["the best start failed"]
    return best, conclude([*best.verdict.findings, apart], failures, best.verdict.unchecked)
