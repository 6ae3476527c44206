"""A simulated press as a source of samples, truth included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import ConfigError, DriverError
from contact_estimation.robot import Arm
from contact_estimation.settings import find_config, from_yaml
from contact_estimation.simulation.press import PressSample, PressSettings, PressSimulation

#: What computes the press.
ENGINES = ("coupled", "physics")


class SimulatedBackend:
    """``arm`` presses on a block for ``duration`` [s] as ``config/tasks/press_<robot>.yaml`` says; stamps count from
    its start.

    ``engine`` is ``coupled`` (the package's own dynamics, an ideal arm with noisy sensors) or ``physics`` (the scenario
    ``linear_contact`` on the physics engine, with friction, elastic gears and sensors as a real arm has them).

    Nothing acts back on the arm but the block, so the whole press is simulated in :meth:`connect`: no sample is late
    because some step took longer to solve.
    """

    commandable = False

    def __init__(self, arm: Arm, duration: float, seed: int = 0, engine: str = "coupled"):
        if engine not in ENGINES:
            raise ConfigError(f"there is no engine '{engine}' for the simulated press; choose {' or '.join(ENGINES)}")
        self.joint_names = tuple(arm.joint_names)
        self._arm, self._duration, self._seed, self._engine = arm, duration, seed, engine
        self._samples: Iterator[Sample] = iter(())

    def connect(self) -> None:
        """Simulate; raises ConfigError where no press is described for the robot."""
        if self._engine == "physics":
            from contact_estimation.simulation.physics_press import PhysicsPress

            simulation = PhysicsPress(self._arm, seed=self._seed)
        else:
            settings = from_yaml(PressSettings, find_config("tasks", f"press_{self._arm.name}"))
            simulation = PressSimulation(self._arm, settings, self._seed)
        self._samples = iter([_sample(simulation.step()) for _ in range(round(self._duration / simulation.period))])

    def read(self) -> Sample | None:
        """The next sample."""
        return next(self._samples, None)

    def equilibrium(self) -> EquilibriumPose | None:
        """Unknown here."""
        return None

    def command(self, pose: EquilibriumPose) -> None:
        """Refused: nothing here moves."""
        raise DriverError("the demonstration press cannot be commanded; choose driver sim")

    def close(self) -> None:
        """Forget the simulation."""
        self._samples = iter(())


def _sample(step: PressSample) -> Sample:
    wrench = np.concatenate([step.force_tcp, np.zeros(3)])  # the block touches the TCP itself: no torque about it
    truth = {"wrench_tcp": wrench, "stiffness": step.stiffness, "rest": step.rest, "contact_point": step.contact_point}
    return Sample(step.stamp_ns, step.q, step.dq, step.tau, truth=truth)
