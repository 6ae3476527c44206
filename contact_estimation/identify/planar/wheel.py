"""The rimless wheel that walks down a slope (paper 5, section 5.2.3, eq. 32, figure 11): forces of every spoke from
motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.identify.planar.shapes import rimless_wheel
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, gravity, simulate
from contact_estimation.identify.planar.window import Slack, WindowEstimate, body_steps, identify_window

SPOKES, LENGTH, SLOPE = 6, 0.3, 0.2
WHEEL = FallingBody(rimless_wheel(SPOKES, LENGTH), mass_over_inertia=20.0, body_mass=1.0, friction=0.7,
                    restitution=0.0, slope=SLOPE)


@dataclass(frozen=True)
class SpokeImpact:
    """A spoke that strikes the ground: its number, the time [s], normal impulse simulated and estimated [N s]."""

    spoke: int
    t: float
    simulated: float
    estimated: float

    @property
    def error_pct(self) -> float:
        """Error of the impulse [%]."""
        return 100.0 * abs(self.estimated / self.simulated - 1.0)


@dataclass(frozen=True)
class WheelResult:
    """Simulation, noisy states, window estimate (theta = m given, I) and its spoke impacts."""

    trajectory: Trajectory
    estimate: WindowEstimate
    impacts: tuple[SpokeImpact, ...]


def walk(h: float = 0.005, steps: int = 200) -> Trajectory:
    """The wheel walks down the slope from standing on one spoke."""
    angle = 0.12 - np.pi / 2.0
    low = LENGTH * np.array([np.cos(angle), np.sin(angle)])
    start, spin = np.array([0.0, -low[1], angle]), -3.0
    velocity = spin * np.array([low[1], -low[0], 1.0])
    return simulate(WHEEL, start, velocity, h, steps)


def identify_wheel(noise: float = 1e-3, seed: int = 0) -> WheelResult:
    """Walk, add white noise of ``noise`` [m/s, rad/s] to velocities and a hundredth of it [m, rad] to configurations,
    identify."""
    trajectory = walk()
    rng = np.random.default_rng(seed)
    q = trajectory.q + 0.01 * noise * rng.standard_normal(trajectory.q.shape)
    v = trajectory.v + noise * rng.standard_normal(trajectory.v.shape)
    steps = body_steps(WHEEL.shape, q, v, trajectory.h, WHEEL.friction, gravity(SLOPE))
    slack = Slack(distance=2e-4 + 0.1 * noise, slip=1e-5 + 5.0 * noise)
    estimate = identify_window(steps, slack, known={0: WHEEL.body_mass})
    return WheelResult(trajectory, estimate, tuple(_impacts(trajectory, estimate)))


def _impacts(trajectory, estimate):
    """Steps in which a spoke strikes: its normal impulse is several times what stance needs."""
    stance = 4.0 * WHEEL.body_mass * np.linalg.norm(gravity(SLOPE)) * trajectory.h
    for k, spoke in zip(*np.nonzero(trajectory.normal > stance)):
        near = slice(max(k - 1, 0), k + 2)
        yield SpokeImpact(int(spoke), float(k * trajectory.h), float(trajectory.normal[near, spoke].sum()),
                          float(estimate.normal[near, spoke].sum()))
