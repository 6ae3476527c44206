"""The press of the demonstration on the physics engine: the interface of
:class:`~contact_estimation.simulation.press.PressSimulation`."""

from __future__ import annotations

import numpy as np

from contact_estimation.robot import Arm
from contact_estimation.simulation.press import PressSample
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors import load_imperfections
from contact_estimation.simulation.session import Simulation


class PhysicsPress:
    """``arm`` in a scenario, with friction, elastic gears and sensors as real; call :meth:`step` once per sample.

    Args:
        arm: the robot. scenario: shipped name or path. seed: of everything random. imperfections: default the robot's
            own.

    Raises:
        ConfigError: unknown scenario or imperfections, or a scenario that does not know the robot.
    """

    def __init__(self, arm: Arm, scenario: str = "linear_contact", seed: int = 0, imperfections: str = ""):
        self.arm = arm
        self.simulation = Simulation(load_scenario(scenario), arm, load_imperfections(imperfections or arm.name), seed)

    @property
    def period(self) -> float:
        """Sampling period [s]."""
        return self.simulation.period

    def step(self) -> PressSample:
        """Advance by one sample and return what the robot would publish, with the truth."""
        sample = self.simulation.step()
        truth = sample.truth
        return PressSample(
            sample.stamp_ns,
            sample.q,
            sample.dq,
            sample.tau,
            truth["wrench_tcp"][:3],
            truth["stiffness"],
            truth["rest"],
            truth["contact_point"],
            bool(np.any(truth["wrench_tcp"][:3])),
        )
