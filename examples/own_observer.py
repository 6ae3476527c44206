"""Write an observer of your own and feed it checked samples: here the static one, force from torque beyond gravity.

python examples/own_observer.py
"""

import numpy as np
from simulated_press import press

from contact_estimation import Estimate, SampleStream, load_arm, replay
from contact_estimation.filters.settings import load_sensor_settings


class StaticObserver:
    """tau_ext = g(q) - tau, F = (J^T)^+ tau_ext: right for an arm that hardly moves and has no friction."""

    name, backend = "static", "python"

    def __init__(self, arm):
        self.arm = arm

    def reset(self, t, q):
        """Start at time ``t`` [s] at rest at ``q`` (n,) [rad]."""
        self.t, self.q, self.dq, self.tau = t, q.copy(), np.zeros_like(q), self.arm.gravity(q)

    def step(self, dt, q, dq, tau):
        """Take the sample that came ``dt`` [s] after the last one."""
        self.t += dt
        self.q, self.dq, self.tau = q.copy(), dq.copy(), tau.copy()

    def estimate(self):
        """Say what is known after the last sample."""
        tau_ext = self.arm.gravity(self.q) - self.tau
        wrench = np.linalg.pinv(self.arm.tcp_jacobian(self.q).T) @ tau_ext  # (6,) base axes
        _, rotation = self.arm.tcp_pose(self.q)
        force, torque = wrench[:3], wrench[3:]
        covariance = np.full((3, 3), np.nan)  # it does not know its uncertainty
        turned = rotation.T @ force, rotation.T @ torque
        return Estimate(self.t, self.q, self.dq, tau_ext, force, *turned, covariance)


arm = load_arm("ur16e")
recording = press(arm)
log = replay(recording, SampleStream(StaticObserver(arm), arm, load_sensor_settings("joint_torque")))
error = log.columns()["force"][:, 2] - recording.truth["wrench_tcp"][:, 2]
print(f"static observer: force error along z {np.sqrt(np.nanmean(error**2)):.2f} N RMS")
