"""Cross-validation (paper 3, section VII-B): every recording's motion with every recording's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.result import Result
from contact_estimation.identify.batch.runner import Plan, run, trajectory
from contact_estimation.identify.verdict import Finding, Verdict, merge, split

_ALARM = 0.01  # probability of a false alarm, over all pairs of recordings


class CrossValidation(NamedTuple):
    """Tables II and III of paper 3."""

    names: list[str]
    values: Array  # parameters per recording (k, c)
    costs: Array  # of the trajectory alone (k, k + 1), hand-set model first
    results: list[Result]  # of each recording by itself

    @property
    def worst_other_pct(self) -> float:
        """How much higher a cost is with another recording's parameters than with its own, at worst [%]."""
        own = np.diag(self.costs[:, 1:])[:, None]
        return float(100.0 * np.max(self.costs[:, 1:] / own - 1.0))

    @property
    def worst_hand_set_share(self) -> float:
        """Largest ratio of an identified model's cost to the hand-set model's, over all recordings and models."""
        return float(np.max(self.costs[:, 1:] / self.costs[:, :1]))

    @property
    def verdict(self) -> Verdict:
        """Verdicts of the recordings, and a test of whether their parameters agree."""
        single = {f"recording {k}": result.verdict for k, result in enumerate(self.results)}
        return merge(single, [self._agreement()])

    def _agreement(self) -> Finding:
        parts = [
            (value, np.diag([p.total_std**2 for p in result.parameters]))
            for value, result in zip(self.values, self.results)
        ]
        pairs = list(combinations(range(len(parts)), 2))
        tests = [split(parts[i], parts[j], _ALARM / len(pairs), f"recordings {i} and {j}") for i, j in pairs]
        return max(tests, key=lambda test: (np.isnan(test.statistic), test.statistic / test.threshold))


def cross_validate(
    problems: Sequence[Problem],
    plan: Plan,
    hand_set: Array | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> CrossValidation:
    """Identify each recording, then re-estimate every trajectory with every recording's parameters.

    Args:
        problems: one per recording, of the same scene.
        plan: how each is estimated.
        hand_set: optimiser's parameters (c,) that are compared too; None takes the nominal ones.
        progress: called with the number of finished estimates, two per recording.

    Raises:
        IdentificationError: fewer than two recordings.
    """
    if len(problems) < 2:
        raise IdentificationError("cross-validation needs two recordings or more, or parts of one")
    parameters = problems[0].scene.parameters
    found: list[Array] = []
    results: list[Result] = []
    for problem in problems:
        solved = run(problem, plan)
        found.append(solved.estimate.solution.p)
        results.append(solved.result)
        progress(len(found))
    models = [parameters.nominal if hand_set is None else hand_set, *found]
    costs = np.empty((len(problems), len(models)))
    for i, problem in enumerate(problems):
        costs[i] = [trajectory(problem, plan, p).solution.cost for p in models]
        progress(len(problems) + i + 1)
    return CrossValidation(parameters.names, np.array([parameters.values(p) for p in found]), costs, results)
