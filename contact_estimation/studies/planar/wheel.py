"""Rimless wheel that walks down a slope (paper 5, section 5.2.3, eq. 32, figure 11): spoke forces from motion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.shapes import rimless_wheel
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, gravity, simulate
from contact_estimation.identify.planar.window import Slack, WindowEstimate, body_steps, identify_window

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
    impacts: tuple[SpokeImpact, ...]


def walk(h: float = 0.005, steps: int = 200) -> Trajectory:
    """Let the wheel walk down the slope from standing on one spoke."""
    angle = 0.12 - np.pi / 2.0
    low = LENGTH * np.array([np.cos(angle), np.sin(angle)])
    velocity = -3.0 * np.array([low[1], -low[0], 1.0])
    return simulate(WHEEL, [0.0, -low[1], angle], velocity, h, steps)


def add_noise(trajectory: Trajectory, noise: float, seed: int) -> tuple[Array, Array, Slack]:
    """States q, v with white noise of ``noise`` [m/s, rad/s], a hundredth on configurations, and the slack for it."""
    rng = np.random.default_rng(seed)
    q = trajectory.q + 0.01 * noise * rng.standard_normal(trajectory.q.shape)
    v = trajectory.v + noise * rng.standard_normal(trajectory.v.shape)
    return q, v, Slack(distance=2e-4 + 0.1 * noise, slip=1e-5 + 5.0 * noise)


def identify_wheel(noise: float = 1e-3, seed: int = 0) -> WheelResult:
    """Walk, add noise (see :func:`add_noise`) and identify."""
    trajectory = walk()
    q, v, slack = add_noise(trajectory, noise, seed)
    steps = body_steps(WHEEL.shape, q, v, trajectory.h, WHEEL.friction, gravity(SLOPE))
    estimate = identify_window(steps, slack, known={0: WHEEL.body_mass})
    return WheelResult(trajectory, estimate, tuple(_impacts(trajectory, estimate)))


def _impacts(trajectory: Trajectory, estimate: WindowEstimate) -> Iterator[SpokeImpact]:
    """Find the steps in which a spoke strikes: its normal impulse is several times what stance needs."""
    stance = 4.0 * WHEEL.body_mass * np.linalg.norm(gravity(SLOPE)) * trajectory.h
    for k, spoke in np.argwhere(trajectory.normal > stance).tolist():
        near = slice(max(k - 1, 0), k + 2)
        simulated, estimated = (float(source.normal[near, spoke].sum()) for source in (trajectory, estimate))
        yield SpokeImpact(spoke, float(k * trajectory.h), simulated, estimated)
