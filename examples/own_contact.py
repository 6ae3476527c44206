#!/usr/bin/env python3
"""A contact law of one's own in the EKF: an adhesive pad, beside the papers' spring and the surface that never pulls.

The pad pulls until 3 mm of clearance, then it lets go. The law is one symbolic expression: dynamics, Jacobians,
covariances and generated C follow from it, in the EKF as in the contact IMM filter, the fit and the MPC. In a YAML file
it is ``law: examples/own_contact.py:Adhesive``.

    python examples/own_contact.py
"""

import casadi as ca
import numpy as np
from simulated_press import PressSettings, PressSimulation

from contact_estimation.contact import LawParameter
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping

WIDTH = 5e-5  # [m] over which the pad lets go; smooth, so that it can be differentiated


class Adhesive:
    """N = k d g with g = 1 / (1 + e^(-(d + r) / w)): the pad pulls up to the clearance r."""

    parameters = (LawParameter(name="reach", unit="m", scale=1e-3, mean=3e-3, std=3e-4),)
    feels_slip = False
    opens = True

    def force(self, stiffness, depth, slip, parameters):
        """Return normal and tangential force [N] of the closed contact."""
        attached = 0.5 * (1 + ca.tanh(0.5 * (depth + parameters[0]) / WIDTH))
        return stiffness * depth * attached, 0 * slip


def main() -> None:
    """Run three laws on a press that starts 5 mm above a block whose surface is known, and which does not stick."""
    arm = load_arm("ur16e")
    simulation = PressSimulation(arm, PressSettings(start=[0.9, -1.0, 2.2, -2.8, -1.5, 0.5], clearance=0.005), seed=1)
    samples = [simulation.step() for _ in range(2500)]
    mapping = to_mapping(load_observer_settings("ekf"))
    # the simulated joints have no friction
    mapping["process_noise"].update(unknown_torque=0.5, unknown_torque_share=0.0)
    for name, law in (("spring", "spring"), ("unilateral", "unilateral"), ("adhesive", f"{__file__}:Adhesive")):
        mapping["contacts"][0].update(law=law, rest=samples[0].rest.tolist(), stiffness=[0.0, 0.0, 1.5e4])
        settings = replace(load_observer_settings("ekf"), **mapping)
        stream = SampleStream(Ekf(arm, settings, name), arm, SensorSettings())
        estimates = [stream.push(s.stamp_ns, s.q, s.dq, s.tau) for s in samples]
        errors = np.array([e.force_tcp - s.force_tcp for e, s in zip(estimates, samples)])
        touching = np.array([s.in_contact for s in samples])
        free, contact = (np.sqrt(np.mean(errors[rows, 2] ** 2)) for rows in (~touching, touching))
        stiffness = np.median([e.stiffness for e, t in zip(estimates, touching) if t])
        print(
            f"{name:10s} force error free {free:5.2f} N, in contact {contact:5.2f} N; stiffness {stiffness / 1e3:.1f} "
            f"kN/m (truth 25.0)"
        )


if __name__ == "__main__":
    main()
