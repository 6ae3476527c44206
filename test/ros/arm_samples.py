"""Made-up but plausible samples of the UR16e: slow motion, torque that holds the arm up."""

from __future__ import annotations

import numpy as np

from contact_estimation.io.recording import Recording

START_NS = 1_700_000_000_000_000_000
PERIOD_NS = 2_000_000
HOME = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])


def recording(arm, count: int, start_ns: int = START_NS, seed: int = 1) -> Recording:
    """``count`` samples at 500 Hz: every joint swings, torque is gravity with noise and a slow external part."""
    rng = np.random.default_rng(seed)
    t = 0.002 * np.arange(count)[:, None]
    phase, rate = rng.uniform(0, 6, arm.n), rng.uniform(1, 2, arm.n)
    q = HOME + 0.05 * (np.sin(rate * t + phase) - np.sin(phase))
    dq = 0.05 * rate * np.cos(rate * t + phase)
    tau = np.array([arm.gravity(row) for row in q]) + rng.normal(0.0, 0.3, q.shape) + 4.0 * np.sin(t)
    return Recording(
        start_ns + PERIOD_NS * np.arange(count), arm.joint_names, q, dq, tau, "made-up samples", robot=arm.name
    )
