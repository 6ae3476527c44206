"""One sample of an arm, as a driver returns it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample, real or simulated.

    Attributes:
        stamp_ns: when it was taken [ns]: by the wall clock of this computer where a driver is live, else by any clock.
        q: (n,) joint positions [rad].
        dq: (n,) joint velocities [rad/s].
        tau: (n,) joint torques [Nm], as the sensor set describes them.
        wrench_tcp: (6,) [N, Nm] environment ON the robot, about the TCP, TCP axes; None without a sensor.
        truth: ground truth by name (``wrench_tcp``, ``stiffness``, ``rest``, ``contact_point``, ``tau_ext``); empty on
            real arms.
    """

    stamp_ns: int
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray
    wrench_tcp: np.ndarray | None = None
    truth: dict[str, np.ndarray] = field(default_factory=dict)
