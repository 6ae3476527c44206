"""Rimless wheel that walks down a slope (paper 5, section 5.2.3, eq. 32, figure 11): spoke forces from motion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.shapes import rimless_wheel
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, gravity, simulate
from contact_estimation.identify.planar.window import Step, WindowEstimate, body_step
from contact_estimation.identify.verdict import Verdict
from contact_estimation.studies.planar.noisy_states import identify_noisy

SPOKES, LENGTH, SLOPE = 6, 0.3, 0.2  # -, [m], [rad]
WHEEL = FallingBody(
    rimless_wheel(SPOKES, LENGTH), mass_over_inertia=20.0, body_mass=1.0, friction=0.7, restitution=0.0, slope=SLOPE
)


class SpokeImpact(NamedTuple):
    """A spoke that strikes the ground."""

    spoke: int
    t: float  # [s]
    simulated: float  # normal impulse [N s]
    estimated: float  # normal impulse [N s]

    @property
    def error_pct(self) -> float:
        """Error of the impulse [%]."""
        return 100.0 * abs(self.estimated / self.simulated - 1.0)


class WheelResult(NamedTuple):
    """A walk and what was identified from its noisy states."""

    trajectory: Trajectory
    estimate: WindowEstimate  # theta = m (given), I
    verdict: Verdict
    intervals: Array  # 95 % of theta (2, 2)
    impacts: tuple[SpokeImpact, ...]


def walk(h: float = 0.005, steps: int = 200) -> Trajectory:
    """Let the wheel walk down the slope from standing on one spoke."""
    angle = 0.12 - np.pi / 2.0
    low = LENGTH * np.array([np.cos(angle), np.sin(angle)])
    velocity = -3.0 * np.array([low[1], -low[0], 1.0])
    return simulate(WHEEL, [0.0, -low[1], angle], velocity, h, steps)


def identify_wheel(noise: float = 1e-3, seed: int = 0) -> WheelResult:
    """Walk, add noise and identify (see :func:`~.noisy_states.identify_noisy`)."""
    trajectory, fall, nothing = walk(), gravity(SLOPE), np.zeros(3)

    def model(k: int | Indices, before: Array, rate: Array, after: Array) -> Step:
        return body_step(WHEEL.shape, (before, rate, after), trajectory.h, WHEEL.friction, fall, nothing)

    found = identify_noisy(model, trajectory, noise, seed, known={0: WHEEL.body_mass})
    return WheelResult(trajectory, *found, tuple(_impacts(trajectory, found.estimate)))


def _impacts(trajectory: Trajectory, estimate: WindowEstimate) -> Iterator[SpokeImpact]:
    """Find the steps in which a spoke strikes: its normal impulse is several times what stance needs."""
    stance = 4.0 * WHEEL.body_mass * np.linalg.norm(gravity(SLOPE)) * trajectory.h
    for k, spoke in np.argwhere(trajectory.normal > stance).tolist():
        near = slice(max(k - 1, 0), k + 2)
        simulated, estimated = (float(source.normal[near, spoke].sum()) for source in (trajectory, estimate))
        yield SpokeImpact(spoke, float(k * trajectory.h), simulated, estimated)
