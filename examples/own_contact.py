#!/usr/bin/env python3
"""A contact law of one's own in the EKF: a surface that pushes but never pulls, against the papers' spring, which does
both.

The law is a symbolic expression; dynamics, Jacobians, covariances and generated C follow from it.

    python examples/own_contact.py
"""

import casadi as ca
import numpy as np

from contact_estimation.contact import ParallelContacts
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping
from contact_estimation.simulation.press import PressSettings, PressSimulation

WIDTH = 1e-4  # [m] over which the surface begins to push; smooth, so that it can be differentiated


class Surface(ParallelContacts):
    """F = K w log(1 + e^(d/w)) along K with the depth d = n^T (x_rest - x)."""

    def forces(self, kinematics, phi):
        """Forces (3,) [N] on the robot in base axes, one per contact."""
        forces = []
        for (k, rest, _), x in zip(self.split(phi), self.points(kinematics, phi)):
            depth = ca.dot(k, rest - x) / ca.norm_2(k)
            forces.append(k * WIDTH * (ca.fmax(depth, 0) / WIDTH + ca.log1p(ca.exp(-ca.fabs(depth) / WIDTH))))
        return forces


def main() -> None:
    """Both laws on a press that starts 2 mm above the block, whose surface is known."""
    arm = load_arm("ur16e")
    simulation = PressSimulation(arm, PressSettings(start=[0.9, -1.0, 2.2, -2.8, -1.5, 0.5], clearance=0.002), seed=1)
    samples = [simulation.step() for _ in range(2500)]
    mapping = to_mapping(load_observer_settings("ekf"))
    mapping["contacts"][0].update(rest=samples[0].rest.tolist(), stiffness=[0.0, 0.0, 1.5e4])
    # the simulated joints have no friction
    mapping["process_noise"].update(unknown_torque=0.5, unknown_torque_share=0.0)
    settings = replace(load_observer_settings("ekf"), **mapping)
    for name, contacts in (("spring", None), ("surface", Surface(arm, settings.contacts))):
        stream = SampleStream(Ekf(arm, settings, name, contacts), arm, SensorSettings())
        estimates = [stream.push(s.stamp_ns, s.q, s.dq, s.tau) for s in samples]
        errors = np.array([e.force_tcp - s.force_tcp for e, s in zip(estimates, samples)])
        touching = np.array([s.in_contact for s in samples])
        free, contact = (np.sqrt(np.mean(errors[rows, 2] ** 2)) for rows in (~touching, touching))
        stiffness = np.median([e.stiffness for e, t in zip(estimates, touching) if t])
        print(f"{name:8s} force error free {free:5.2f} N, in contact {contact:5.2f} N; stiffness {stiffness / 1e3:.1f} "
              f"kN/m (truth 25.0)")


if __name__ == "__main__":
    main()
