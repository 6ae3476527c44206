"""Table 1 of paper 5 on our own simulation: error of m/I against signal-to-noise ratio, square and ellipse.

100 random drops per row (unit mass, restitution 0.6, friction 0.7, m/I 6 and 0.8 1/m^2: a homogeneous square of 1 m
side and an ellipse with semi-axes 2 and 1 m), stepped at 10 ms for 1.5 s; white Gaussian noise on configurations AND
velocities. The signal power of a channel is its mean square over the drop (origin at the release point, angle not
reduced by its mean), which is the noisier of the usual readings. As in the paper the error is that of the mean of the
100 estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.identify.planar.shapes import Ellipse, square
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, simulate

BODIES = {"square": FallingBody(square(1.0), 6.0), "ellipse": FallingBody(Ellipse(2.0, 1.0), 0.8)}
SNRS = (40, 30, 20, 10)
#: The paper's table: error in percent.
PAPER = {"square": {40: 0.3, 30: 2.1, 20: 11.0, 10: 58.2}, "ellipse": {40: 0.3, 30: 2.3, 20: 11.7, 10: 80.4}}
STEP, STEPS = 0.01, 150


@dataclass(frozen=True)
class Row:
    """One row: the estimates (n,) of m/I [1/m^2] against ``truth``, and how many drops failed to give a consistent
    answer."""

    truth: float
    estimates: np.ndarray
    failed: int

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
    """A drop from 0.2-1 m clearance at any angle, up to 2 m/s sideways, 1 m/s up or down, 4 rad/s."""
    theta = rng.uniform(-np.pi, np.pi)
    height = rng.uniform(0.2, 1.0) - body.shape.levers(theta)[:, 1].min()
    velocity = rng.uniform([-2.0, -1.0, -4.0], [2.0, 1.0, 4.0])
    return simulate(body, [0.0, height, theta], velocity, h, steps)


def add_noise(trajectory: Trajectory, snr: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """q, v (N+1, 3) with white noise ``snr`` [dB] below each channel's mean square."""
    noisy = []
    for signal in (trajectory.q, trajectory.v):
        sigma = np.sqrt(np.mean(signal**2, axis=0)) * 10.0**(-snr / 20.0)
        noisy.append(signal + sigma * rng.standard_normal(signal.shape))
    return noisy[0], noisy[1]


def run_table(seed: int, drops: int = 100, progress: Callable[[int], None] | None = None) -> dict[str, dict[int, Row]]:
    """All rows: ``{"square": {40: Row, ...}, "ellipse": {...}}``; every row has drops and noise of its own."""
    table: dict[str, dict[int, Row]] = {}
    done = 0
    for s, (name, body) in enumerate(BODIES.items()):
        table[name] = {}
        for snr in SNRS:
            rng = np.random.default_rng([seed, s, snr])
            estimates, failed = [], 0
            for _ in range(drops):
                q, v = add_noise(random_drop(body, rng), snr, rng)
                estimate = identify_drop(body.shape, q, v, STEP, body.friction)
                estimates.append(estimate.m_over_i)
                failed += estimate.status == "failed"
                done += 1
                if progress:
                    progress(done)
            table[name][snr] = Row(body.mass_over_inertia, np.array(estimates), failed)
    return table
