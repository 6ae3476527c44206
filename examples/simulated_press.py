"""The recording that the other examples work on: a UR16e presses on a block of 25 kN/m. Yours comes from a robot."""

import numpy as np

from contact_estimation import Arm, Recording
from contact_estimation.simulation.press import PressSettings, PressSimulation

START = [0.9, -1.0, 2.2, -2.8, -1.5, 0.5]  # [rad], the tool points down
STIFFNESS = 25e3  # [N/m]


def press(arm: Arm, seconds: float = 5.0, clearance: float = 0.002) -> Recording:
    """Press for ``seconds`` [s] from ``clearance`` [m] above the block, 500 Hz; the truth is in the recording."""
    simulation = PressSimulation(arm, PressSettings(start=START, clearance=clearance, stiffness=STIFFNESS), seed=1)
    samples = [simulation.step() for _ in range(round(500 * seconds))]
    columns = {name: np.array([getattr(s, name) for s in samples]) for name in ("q", "dq", "tau", "force_tcp")}
    wrench = np.pad(columns["force_tcp"], ((0, 0), (0, 3)))  # (N, 6), no torque
    truth = {name: np.array([getattr(s, name) for s in samples]) for name in ("stiffness", "rest", "contact_point")}
    return Recording(
        np.array([s.stamp_ns for s in samples]) + 1_000_000_000,
        arm.joint_names,
        columns["q"],
        columns["dq"],
        columns["tau"],
        "simulated press",
        truth={"wrench_tcp": wrench, **truth},
        sensors="joint_torque",
    )
