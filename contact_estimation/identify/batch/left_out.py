"""Prediction of a channel that the estimate did not use (paper 3, section VII-A)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array, Flags
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import TORQUE, columns
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.solver import Solution


class LeftOut(NamedTuple):
    """A channel predicted without being used."""

    channel: str
    t: Array  # (n,) [s]
    measured: Array  # (n, m), its delay, gain and bias taken off
    predicted: Array  # (n, m)
    rms_pct: float  # RMS error over the measured RMS about the median, which a constant weight does not flatter [%]


def left_out(problem: Problem, solution: Solution, name: str) -> LeftOut:
    """Compare a channel with what the solution predicts for it, at times with samples and neighbours.

    Args:
        problem: its channel ``name`` has weight 0.
        solution: of the problem.
        name: of the channel.

    Raises:
        IdentificationError: the channel has no measurement.
    """
    channel = next((each for each in problem.channels if each.name == name), None)
    if channel is None:
        raise IdentificationError(
            f"channel '{name}' has no measurement to compare with; measured: "
            f"{', '.join(each.name for each in problem.channels)}"
        )
    measured = problem.measured(name, solution.p)
    if channel.model == TORQUE:
        dofs = columns(problem.scene.nominal, channel)[0]
        predicted = measured + problem.residuals(solution.q, solution.p)[:, dofs]
    else:
        predicted = problem.predicted(solution.q, solution.p, name)
    if channel.model == "orientation":
        first = rotations.conjugate(np.broadcast_to(measured[:1], measured.shape))
        measured, predicted = (rotations.log(rotations.multiply(first, each)) for each in (measured, predicted))
    counts = problem.holds_samples(name) & _inner(problem)
    error = np.sqrt(np.mean((predicted - measured)[counts] ** 2))
    moving = (measured - np.median(measured[counts], axis=0))[counts]
    return LeftOut(name, problem.grid, measured, predicted, float(100.0 * error / np.sqrt(np.mean(moving**2))))


def _inner(problem: Problem) -> Flags:
    """Return the times (n,) whose neighbours have an acceleration too, two from the ends of each recording."""
    interior = problem.stencil.interior
    return interior & np.roll(interior, 1) & np.roll(interior, -1)
