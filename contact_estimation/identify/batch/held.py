"""Frozen sensors: one number of a channel repeats exactly while the model moves away from it.

A quantised encoder of a resting joint repeats too, and so does a slow sensor that is logged faster than it measures.
A repetition is therefore long against the channel's usual ones, and counts only where the residuals contradict it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, equal_runs
from contact_estimation.identify.batch.channels import Measurement
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.verdict import Finding

#: A repetition is looked at from this duration [s], and from this multiple of the channel's mean run of equal samples.
_SHORTEST, _FACTOR = 0.03, 10.0
#: Chi-square per number during a repetition from which the channel was frozen. Rounding to steps gives 3 at most.
_FROZEN = 9.0


class _Run(NamedTuple):
    """Equal samples of one number."""

    column: int
    begin: float  # [s]
    end: float  # [s]


def frozen(problem: Problem, residuals: Array) -> list[Finding]:
    """Look for frozen samples in every channel that is used.

    Args:
        problem: what was solved.
        residuals: (n, m) at its solution.

    Returns:
        a finding per channel, of its repetition that the model contradicts most; fatal.
    """
    found = []
    for each in problem.grid_channels:
        if each.channel.weight == 0.0:
            continue
        worst, where = 0.0, _Run(0, 0.0, 0.0)
        for run in _runs(each.raw):
            inside = (problem.grid > run.begin) & (problem.grid < run.end)
            columns = each.residual_columns(run.column)
            weight, worth = problem.weights[inside, columns], problem.worth[inside, columns]
            square = weight * residuals[inside, columns] ** 2 / np.maximum(worth, 1e-9)
            chi_square = float(np.mean(square[weight > 0.0])) if np.any(weight > 0.0) else 0.0
            if chi_square > worst:
                worst, where = chi_square, run
        message = (
            f"'{each.name}' repeats one value from {where.begin:.2f} to {where.end:.2f} s, while the model is "
            f"{np.sqrt(worst):.0f} times the noise away: it was frozen or at its limit; replace "
            "these samples by NaN"
        )
        found.append(Finding(f"frozen[{each.name}]", worst, _FROZEN, message, fatal=True))
    return found


def _runs(raw: Measurement) -> list[_Run]:
    """Long runs of equal samples, by column; NaN ends a run."""
    found = []
    for k, values in enumerate(raw.values.T):
        first, last = equal_runs(values[1:] == values[:-1])
        duration = raw.t[last] - raw.t[first]
        usual = len(values) / len(first) / raw.rate  # [s]
        long = duration > max(_SHORTEST, _FACTOR * usual)
        found += [_Run(k, float(begin), float(end)) for begin, end in zip(raw.t[first[long]], raw.t[last[long]])]
    return found
