"""Table 1 of paper 5 on our own simulation: error of m/I against signal-to-noise ratio, square and ellipse.

100 random drops per row (unit mass, restitution 0.6, friction 0.7, m/I 6 and 0.8 1/m^2: a homogeneous square of 1 m
side and an ellipse with semi-axes 2 and 1 m), stepped at 10 ms for 1.5 s. White Gaussian noise is on configurations
AND velocities. The signal power of a channel is its mean square over the drop (origin at the release point, angle not
reduced by its mean), which is the noisier of the usual readings. As in the paper the error is that of the mean of the
100 estimates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.identify.planar.shapes import Ellipse, square
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, simulate

BODIES = {"square": FallingBody(square(1.0), 6.0), "ellipse": FallingBody(Ellipse(2.0, 1.0), 0.8)}
SNRS = (40, 30, 20, 10)  # [dB]
#: The paper's table: error in percent.
PAPER = {"square": {40: 0.3, 30: 2.1, 20: 11.0, 10: 58.2}, "ellipse": {40: 0.3, 30: 2.3, 20: 11.7, 10: 80.4}}
STEP, STEPS = 0.01, 150  # [s], samples


class Row(NamedTuple):
    """One row of the table."""

    truth: float  # m/I [1/m^2]
    estimates: Array  # (n,) [1/m^2]
    failed: int  # drops without a consistent answer

    @property
    def error_pct(self) -> float:
        """|mean estimate - truth| in percent of the truth (the paper's column "Error")."""
        return float(100.0 * abs(self.estimates.mean() / self.truth - 1.0))

    @property
    def std_pct(self) -> float:
        """Standard deviation of the single drop's estimate [%]."""
        return float(100.0 * self.estimates.std() / self.truth)

    @property
    def mean_absolute_pct(self) -> float:
        """Mean absolute error of a single drop [%]."""
        return float(100.0 * np.abs(self.estimates / self.truth - 1.0).mean())

    @property
    def median_absolute_pct(self) -> float:
        """Median absolute error of a single drop [%]."""
        return float(100.0 * np.median(np.abs(self.estimates / self.truth - 1.0)))


def random_drop(body: FallingBody, rng: np.random.Generator, steps: int = STEPS, h: float = STEP) -> Trajectory:
    """Drop from 0.2-1 m clearance at any angle, up to 2 m/s sideways, 1 m/s up or down, 4 rad/s."""
    theta = rng.uniform(-np.pi, np.pi)
    height = rng.uniform(0.2, 1.0) - body.shape.levers(theta)[:, 1].min()
    velocity = rng.uniform([-2.0, -1.0, -4.0], [2.0, 1.0, 4.0])
    return simulate(body, [0.0, height, theta], velocity, h, steps)


def add_noise(trajectory: Trajectory, snr: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return q, v (N+1, 3) with white noise ``snr`` [dB] below each channel's mean square."""

    def noisy(signal: Array) -> Array:
        sigma = np.sqrt(np.mean(signal**2, axis=0)) * 10.0 ** (-snr / 20.0)
        return np.asarray(signal + sigma * rng.standard_normal(signal.shape))

    return noisy(trajectory.q), noisy(trajectory.v)


def run_table(
    seed: int, drops: int = 100, progress: Callable[[int], None] = lambda done: None
) -> dict[str, dict[int, Row]]:
    """All rows: ``{"square": {40: Row, ...}, "ellipse": {...}}``; every row has drops and noise of its own.

    Args:
        seed: of drops and noise.
        drops: per row.
        progress: called with the number of drops done.
    """
    table: dict[str, dict[int, Row]] = {name: {} for name in BODIES}
    done = 0
    for s, (name, body) in enumerate(BODIES.items()):
        for snr in SNRS:
            rng, found = np.random.default_rng([seed, s, snr]), []
            for _ in range(drops):
                q, v = add_noise(random_drop(body, rng), snr, rng)
                found.append(identify_drop(body.shape, q, v, STEP, body.friction))
                done += 1
                progress(done)
            estimates, failed = np.array([e.m_over_i for e in found]), sum(e.status == "failed" for e in found)
            table[name][snr] = Row(body.mass_over_inertia, estimates, failed)
    return table
