"""A simulated arm in a scenario as a backend: the same graph as on a robot, with the truth beside."""

from __future__ import annotations

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors import load_imperfections
from contact_estimation.simulation.session import Simulation


class SimulationBackend:
    """``arm`` in the scenario named ``scenario`` for ``duration`` [s] (0: as long as its motion); stamps count from
    its start.

    Samples are made when they are read: whoever reads sets the pace, so that commands act as they do on a robot.
    """

    commandable = True

    def __init__(self, arm: Arm, scenario: str, duration: float = 0.0, seed: int = 0, imperfections: str = ""):
        self.joint_names = tuple(arm.joint_names)
        self.simulation: Simulation | None = None
        self._arm, self._scenario, self._seed = arm, scenario, seed
        self._duration, self._imperfections = duration, imperfections or arm.name

    def connect(self) -> None:
        """Build the simulation at its start; raises ConfigError where scenario, robot or imperfections are unknown."""
        settings = load_scenario(self._scenario)
        self.simulation = Simulation(settings, self._arm, load_imperfections(self._imperfections), self._seed)
        self._end = self._duration or settings.duration

    def read(self) -> Sample | None:
        """The next sample; raises DriverError where the backend is not connected."""
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        if self.simulation.time > self._end - 0.5 * self.simulation.period:
            return None
        return self.simulation.step()

    def equilibrium(self) -> EquilibriumPose | None:
        """The simulated controller's own."""
        return None if self.simulation is None else EquilibriumPose(*self.simulation.equilibrium)

    def command(self, pose: EquilibriumPose) -> None:
        """Set the equilibrium of the simulated controller."""
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        self.simulation.command(pose.position, pose.rotation)

    def close(self) -> None:
        """Forget the simulation."""
        self.simulation = None
