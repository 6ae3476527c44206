"""Time per window against the number of samples: eq. 18 over a window, and state with m/I of a drop.

Run from the project's root: ``python benchmark/planar_window.py`` prints the table that
``benchmark/planar_window.md`` holds. Medians over windows in process time, one thread; only ratios travel between
machines.
"""

from __future__ import annotations

import time

import numpy as np

from contact_estimation.identify.planar.drop import identify_drop
from contact_estimation.identify.planar.stepping import gravity
from contact_estimation.identify.planar.window import Slack, body_step, identify_window
from contact_estimation.studies.planar.arm_disk import ArmDisk, arm_disk_step, push
from contact_estimation.studies.planar.table1 import BODIES, add_noise, random_drop
from contact_estimation.studies.planar.wheel import SLOPE, WHEEL, walk

SAMPLES = (50, 100, 150, 200, 400)
DROPS = 20


def median_time(calls) -> float:
    """Median process time [s] of ``calls``."""
    times = []
    for call in calls:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def drop_times(name: str, snr: float, samples: int) -> float:
    """Joint estimation of a drop sampled ``samples`` times within 1.5 s."""
    body, h = BODIES[name], 1.5 / samples
    rng = np.random.default_rng([samples, int(snr)])
    windows = [add_noise(random_drop(body, rng, samples, h), snr, rng) for _ in range(DROPS)]
    return median_time([lambda q=q, v=v: identify_drop(body.shape, q, v, h, body.friction) for q, v in windows])


def wheel_time(samples: int) -> float:
    """Eq. 32 over a wheel's walk of one second."""
    run, fall, nothing = walk(1.0 / samples, samples), gravity(SLOPE), np.zeros(3)

    def call():
        states = zip(run.q, run.v, run.v[1:])
        steps = [body_step(WHEEL.shape, each, run.h, WHEEL.friction, fall, nothing) for each in states]
        return identify_window(steps, Slack(2e-4, 1e-5), known={0: WHEEL.body_mass})

    return median_time([call] * 5)


def arm_time(samples: int) -> float:
    """Eq. 18 over half a second of the arm that pushes the disk."""
    system = ArmDisk()
    run, applied = push(system, 0.5 / samples, samples)

    def call():
        states = zip(run.q, run.v, run.v[1:])
        steps = [arm_disk_step(system, each, force, run.h) for each, force in zip(states, applied)]
        return identify_window(steps, Slack(2e-4, 1e-5))

    return median_time([call] * 5)


def main() -> None:
    """Print the table."""
    print(
        "| samples | square, 30 dB [s] | square, 10 dB [s] | ellipse, 30 dB [s] | ellipse, 10 dB [s] "
        "| wheel, eq. 32 [s] | arm and disk, eq. 18 [s] |\n|---|---|---|---|---|---|---|"
    )
    for samples in SAMPLES:
        drops = [drop_times(name, snr, samples) for name in ("square", "ellipse") for snr in (30, 10)]
        cells = [*drops, wheel_time(samples), arm_time(samples)]
        print(f"| {samples} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
