"""How well could anyone do on one drop of table 1?

The Cramer-Rao bound of m/I for the 40 dB drops of ``--example table1``; it grows by sqrt(10) for every 10 dB less.

    python benchmark/planar_bound.py [--seed 0] [--drops 100]

The bound is for an estimator that knows outline, friction, noise levels, every contact mode and that restitution is one
constant, and has to find the first state, that restitution and m/I from the drop up to the impact after the first 2, 4
or all impacts. It knows more than the identification does, which takes every normal impulse as it comes. The noise
limits shown are E|error| = sqrt(2 / pi) times the bound's standard deviation, averaged over the drops, in percent.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from contact_estimation.identify.planar.stepping import simulate
from contact_estimation.studies.planar.table1 import BODIES, STEP, STEPS, add_noise, random_drop

WINDOWS = (2, 4, None)
DIFFERENCE = 1e-7
SNR = 40


def bound_pct(body, run, snr: float) -> list[float]:
    """Limits of E|error| [%] of m/I for the windows, one drop."""
    signal = np.hstack([run.q, run.v])
    sigma = np.sqrt(np.mean(signal**2, axis=0)) * 10.0 ** (-snr / 20.0)

    def states(u):
        moved = replace(body, mass_over_inertia=u[6], restitution=u[7])
        trajectory = simulate(moved, u[:3], u[3:6], STEP, STEPS)
        return np.hstack([trajectory.q, trajectory.v]) / sigma

    truth = np.concatenate([run.q[0], run.v[0], [body.mass_over_inertia, body.restitution]])
    slope = np.stack(
        [(states(truth + d) - states(truth - d)) / (2.0 * DIFFERENCE) for d in DIFFERENCE * np.eye(len(truth))], axis=-1
    )
    impacts = np.flatnonzero(run.normal.any(axis=1))
    limits = []
    for window in WINDOWS:
        end = impacts[window] + 1 if window is not None and window < len(impacts) else len(signal)
        rows = slope[:end].reshape(-1, len(truth))
        std = np.sqrt(np.linalg.pinv(rows.T @ rows)[6, 6]) / body.mass_over_inertia
        limits.append(100.0 * np.sqrt(2.0 / np.pi) * std)
    return limits


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drops", type=int, default=100)
    args = parser.parse_args()
    print("| shape | 2 impacts | 4 impacts | all impacts |\n|---|---|---|---|")
    for s, (name, body) in enumerate(BODIES.items()):
        rng = np.random.default_rng([args.seed, s, SNR])
        limits = []
        for _ in range(args.drops):
            run = random_drop(body, rng)
            add_noise(run, SNR, rng)  # keeps the drops those of the table
            limits.append(bound_pct(body, run, SNR))
        means = " | ".join(f"{value:.2f}" for value in np.mean(limits, axis=0))
        print(f"| {name} | {means} |", flush=True)


if __name__ == "__main__":
    main()
