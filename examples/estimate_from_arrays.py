"""Estimate force and stiffness from plain arrays: no ROS, no files.

python examples/estimate_from_arrays.py
"""

import numpy as np
from simulated_press import STIFFNESS, press

from contact_estimation import open_stream

stream = open_stream("ur16e", sensors="joint_torque")
recording = press(stream.arm, seconds=2.5)  # until the press is deepest

# Stamps [ns], joint positions [rad], velocities [rad/s] and torques [Nm], one row per sample.
stamps, q, dq, tau = recording.stamps_ns, recording.q, recording.dq, recording.tau
truth = recording.truth["wrench_tcp"][:, 2]

for k in range(len(stamps)):
    estimate = stream.push(stamps[k], q[k], dq[k], tau[k])
    if not estimate.valid:
        raise SystemExit(f"sample {k} cannot be used: {estimate.reason}")
    if (k + 1) % 250 == 0:
        std = np.sqrt(estimate.force_covariance[2, 2])
        print(
            f"{estimate.t:.1f} s  force {estimate.force_tcp[2]:7.1f} +- {std:.1f} N (truth {truth[k]:7.1f})  stiffness "
            f"{estimate.stiffness / 1e3:5.1f} kN/m (truth {STIFFNESS / 1e3:.1f})"
        )
