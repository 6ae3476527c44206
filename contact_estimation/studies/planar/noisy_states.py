"""White noise on a simulated trajectory, and eq. 18 from such states (paper 5, section 7.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.discretisation import Model
from contact_estimation.identify.planar.errors_in_variables import StateNoise, judge, smooth_window
from contact_estimation.identify.planar.stepping import Trajectory
from contact_estimation.identify.planar.window import Slack, WindowEstimate, identify_window
from contact_estimation.identify.verdict import Verdict, conclude, interval, total_std


class Identified(NamedTuple):
    """What was identified from noisy states."""

    estimate: WindowEstimate
    verdict: Verdict
    intervals: Array  # 95 % of the parameters (r, 2), with the model error that was found


def identify_noisy(
    model: Model, trajectory: Trajectory, noise: float, seed: int, known: dict[int, float] | None = None
) -> Identified:
    """Add noise to a trajectory; identify states, parameters and impulses together.

    States without noise are taken as they are, which makes the problem convex.

    Args:
        model: eq. 18 of a step.
        trajectory: simulated.
        noise: white noise of the velocities [m/s, rad/s]; configurations have a hundredth of it.
        seed: of the noise.
        known: parameters given beforehand, index -> value.
    """
    rng = np.random.default_rng(seed)
    q = trajectory.q + 0.01 * noise * rng.standard_normal(trajectory.q.shape)
    v = trajectory.v + noise * rng.standard_normal(trajectory.v.shape)
    slack = Slack(distance=2e-4 + 0.1 * noise, slip=1e-5 + 5.0 * noise)
    if noise == 0.0:
        estimate = identify_window([model(k, q[k], v[k], v[k + 1]) for k in range(len(q) - 1)], slack, known)
        failures = [] if estimate.status == "global" else [estimate.reason]
        return Identified(estimate, conclude([], failures), interval(estimate.theta, np.zeros(len(estimate.theta))))
    std = np.full(q.shape[1], noise)
    found = smooth_window(model, q, v, trajectory.h, StateNoise(0.01 * std, std), slack, known)
    wide = total_std(found.std, found.chi_square)
    return Identified(found.estimate, judge(found), interval(found.estimate.theta, wide))
