#!/usr/bin/env python3
"""The library on plain arrays: no ROS, no files. Here a simulated press makes them; yours may come from anywhere.

    python examples/estimate_from_arrays.py
"""

import numpy as np

from contact_estimation.filters.registry import open_stream
from contact_estimation.simulation.press import PressSettings, PressSimulation


def main() -> None:
    """Estimate force and stiffness of a press and compare them with the truth."""
    stream = open_stream("ur16e", "ekf", sensors="joint_torque")
    settings = PressSettings(start=[0.9, -1.0, 2.2, -2.8, -1.5, 0.5], clearance=0.0)
    simulation = PressSimulation(stream.arm, settings, seed=1)
    samples = [simulation.step() for _ in range(1250)]  # 2.5 s at 500 Hz: down to the lowest point

    # The arrays: stamps [ns], joint positions [rad], velocities [rad/s] and torques [Nm], one row per sample.
    stamps = np.array([s.stamp_ns for s in samples])
    q, dq, tau = (np.array([getattr(s, name) for s in samples]) for name in ("q", "dq", "tau"))

    for k in range(len(stamps)):
        estimate = stream.push(stamps[k], q[k], dq[k], tau[k])
        if not estimate.valid:
            raise SystemExit(f"sample {k} cannot be used: {estimate.reason}")
        if (k + 1) % 250 == 0:
            std = np.sqrt(estimate.force_covariance[2, 2])
            print(f"{estimate.t:.1f} s  force {estimate.force_tcp[2]:7.1f} +- {std:.1f} N (truth "
                  f"{samples[k].force_tcp[2]:7.1f})  stiffness {estimate.stiffness / 1e3:5.1f} kN/m (truth "
                  f"{settings.stiffness / 1e3:.1f})")


if __name__ == "__main__":
    main()
