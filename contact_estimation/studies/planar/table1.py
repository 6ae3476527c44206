"""Table 1 of paper 5 on our own simulation: error of m/I against signal-to-noise ratio, square and ellipse.

100 random drops per row (unit mass, restitution 0.6, friction 0.7, m/I 6 and 0.8 1/m^2: a homogeneous square of 1 m
side and an ellipse with semi-axes 2 and 1 m), stepped at 10 ms for 1.5 s. White Gaussian noise is on configurations
AND velocities. The signal power of a channel is its mean square over the drop (origin at the release point, angle not
reduced by its mean), which is the noisier of the usual readings. As in the paper the error is that of the mean of the
100 estimates.

A mean over drops of one body hides the error of one drop. A second set of drops therefore has bodies at random, drawn
as the estimator's prior says, and compares the mean absolute error with the Cramer-Rao bound and with the prior alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.identify.planar.shapes import SMALLEST_GYRATION, Ellipse, square
from contact_estimation.identify.planar.stepping import FallingBody, Trajectory, fall, simulate

BODIES = {"square": FallingBody(square(1.0), 6.0), "ellipse": FallingBody(Ellipse(2.0, 1.0), 0.8)}
SNRS = (40, 30, 20, 10)  # [dB]
#: The paper's table: error in percent.
PAPER = {"square": {40: 0.3, 30: 2.1, 20: 11.0, 10: 58.2}, "ellipse": {40: 0.3, 30: 2.3, 20: 11.7, 10: 80.4}}
STEP, STEPS = 0.01, 150  # [s], samples
_DIFFERENCE = 1e-7  # of the central differences of the bound


class Bodies(NamedTuple):
    """Drops of bodies with m/I at random."""

    truth: Array  # m/I of each (n,) [1/m^2]
    estimates: Array  # (n,) [1/m^2]
    bounds_pct: Array  # Cramer-Rao bound of each as mean absolute error (n,) [%]
    prior: float  # median of the prior over m/I [1/m^2]

    @property
    def bound_ratio(self) -> float:
        """Mean absolute error over the mean bound."""
        return self.mean_absolute_pct / float(self.bounds_pct.mean())

    @property
    def mean_absolute_pct(self) -> float:
        """Mean absolute error of one drop [%]."""
        return float(100.0 * np.abs(self.estimates / self.truth - 1.0).mean())

    @property
    def prior_pct(self) -> float:
        """Mean absolute error [%] of one who answers with the prior's median."""
        return float(100.0 * np.abs(self.prior / self.truth - 1.0).mean())


class Row(NamedTuple):
    """One row of the table."""

    truth: float  # m/I [1/m^2]
    estimates: Array  # (n,) [1/m^2]
    failed: int  # drops without a consistent answer
    bodies: Bodies  # drops of bodies at random

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


def random_body(body: FallingBody, rng: np.random.Generator) -> FallingBody:
    """Draw a body with the outline of ``body``: radii of gyration that the estimator allows are equally likely."""
    return replace(body, mass_over_inertia=_ratio(body, rng.uniform(SMALLEST_GYRATION, 1.0)))


def _ratio(body: FallingBody, share: float) -> float:
    """m/I [1/m^2] of a radius of gyration that is ``share`` of the outline's radius."""
    return 1.0 / (share * body.shape.radius) ** 2


def noise_of(trajectory: Trajectory, snr: float) -> Array:
    """Return the standard deviation (6,) of the noise of q and v, ``snr`` [dB] below each channel's mean square."""
    signal = np.hstack([trajectory.q, trajectory.v])
    return np.asarray(np.sqrt(np.mean(signal**2, axis=0)) * 10.0 ** (-snr / 20.0))


def add_noise(trajectory: Trajectory, snr: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return q, v (N+1, 3) with white noise ``snr`` [dB] below each channel's mean square."""
    sigma, shape = noise_of(trajectory, snr), trajectory.q.shape
    q = trajectory.q + sigma[:3] * rng.standard_normal(shape)
    return q, trajectory.v + sigma[3:] * rng.standard_normal(shape)


def bound_pct(body: FallingBody, trajectory: Trajectory, snr: float) -> float:
    """Cramer-Rao bound of m/I for one drop, as mean absolute error [%].

    It holds for an estimator that knows outline, friction, noise and contact modes, and that one restitution serves
    all bounces. Unknown are the first state, the restitution and m/I. All samples of the drop count.
    """
    truth = np.concatenate([trajectory.q[0], trajectory.v[0], [body.mass_over_inertia, body.restitution]])
    sigma = noise_of(trajectory, snr)

    def states(u: Array) -> Array:
        moved = replace(body, mass_over_inertia=float(u[6]), restitution=float(u[7]))
        q, v = fall(moved, u[:3], u[3:6], trajectory.h, len(trajectory.q) - 1)
        return np.asarray((np.hstack([q, v]) / sigma).ravel())

    steps = _DIFFERENCE * np.eye(len(truth))
    slope = np.stack([(states(truth + step) - states(truth - step)) / (2.0 * _DIFFERENCE) for step in steps], axis=-1)
    std = np.sqrt(np.linalg.pinv(slope.T @ slope)[6, 6])
    return float(100.0 * np.sqrt(2.0 / np.pi) * std / body.mass_over_inertia)


def run_table(
    seed: int, drops: int = 100, progress: Callable[[int], None] = lambda done: None
) -> dict[str, dict[int, Row]]:
    """All rows: ``{"square": {40: Row, ...}, "ellipse": {...}}``; every row has drops and noise of its own.

    Args:
        seed: of drops and noise.
        drops: per row.
        progress: called with the number of drops done.
    """
    rows = [(name, snr) for name in BODIES for snr in SNRS]
    table: dict[str, dict[int, Row]] = {name: {} for name in BODIES}
    for done, (name, snr) in enumerate(rows, 1):
        table[name][snr] = run_row(name, snr, seed, drops)
        progress(done * drops)
    return table


def run_row(name: str, snr: int, seed: int, drops: int) -> Row:
    """One row of :func:`run_table`, which is the same without the others."""
    key, body = [seed, list(BODIES).index(name), snr], BODIES[name]
    rng, found = np.random.default_rng(key), []
    for _ in range(drops):
        q, v = add_noise(random_drop(body, rng), snr, rng)
        found.append(identify_drop(body.shape, q, v, STEP, body.friction))
    estimates, failed = np.array([e.m_over_i for e in found]), sum(e.status == "failed" for e in found)
    bodies = _random_bodies(body, snr, np.random.default_rng([*key, 1]), drops)
    return Row(body.mass_over_inertia, estimates, failed, bodies)


def _random_bodies(body: FallingBody, snr: int, rng: np.random.Generator, drops: int) -> Bodies:
    rows = []
    for _ in range(drops):
        drawn = random_body(body, rng)
        run = random_drop(drawn, rng)
        q, v = add_noise(run, snr, rng)
        found = identify_drop(drawn.shape, q, v, STEP, drawn.friction)
        rows.append((drawn.mass_over_inertia, found.m_over_i, bound_pct(drawn, run, snr)))
    truth, estimates, bounds = np.array(rows).T
    return Bodies(truth, estimates, bounds, _ratio(body, 0.5 * (SMALLEST_GYRATION + 1.0)))
