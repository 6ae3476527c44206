"""A simulated arm in a scenario as a backend: the same graph as on a robot, with the truth beside."""

from __future__ import annotations

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm
from contact_estimation.simulation.scenarios import load_scenario
from contact_estimation.simulation.sensors import load_imperfections
from contact_estimation.simulation.session import Simulation


class SimulationBackend:
    """``arm`` in the scenario named ``scenario`` for ``duration`` [s] (0: as long as its motion); stamps count from
    its start.

    Samples are made when they are read: whoever reads sets the pace, so that commands act as they do on a robot: from
    the first one on the arm follows its equilibrium with ``stiffness`` (3,) [N/m, base axes], as a joint-torque arm's
    impedance and the RTDE driver's admittance (of ``admittance_damping`` [Ns/m]) do. Without ``stiffness`` it is the
    scenario's own controller that follows.
    """

    commandable = True

    def __init__(
        self,
        arm: Arm,
        scenario: str,
        duration: float = 0.0,
        seed: int = 0,
        imperfections: str = "",
        stiffness: np.ndarray | None = None,
        admittance_damping: float = 4000.0,
    ):
        self.joint_names = tuple(arm.joint_names)
        self.simulation: Simulation | None = None
        self._arm, self._scenario, self._seed = arm, scenario, seed
        self._duration, self._imperfections = duration, imperfections or arm.name
        self._stiffness = None if stiffness is None else np.array(stiffness, float)
        self._admittance_damping, self._complies = admittance_damping, False

    def connect(self) -> None:
        """Build the simulation at its start; raises ConfigError where scenario, robot or imperfections are unknown."""
        settings = load_scenario(self._scenario)
        self.simulation = Simulation(settings, self._arm, load_imperfections(self._imperfections), self._seed)
        self._end, self._complies = self._duration or settings.duration, False

    def read(self) -> Sample | None:
        """The next sample; raises DriverError where the backend is not connected."""
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        if self.simulation.time > self._end - 0.5 * self.simulation.period:
            return None
        return self.simulation.step()

    def equilibrium(self) -> EquilibriumPose | None:
        """Where the equilibrium has to be for the force the arm presses with now."""
        if self.simulation is None:
            return None
        if self._stiffness is None:
            return EquilibriumPose(*self.simulation.equilibrium)
        position, rotation, force = self.simulation.pressing()
        return EquilibriumPose(position + force / self._stiffness, rotation)

    def command(self, pose: EquilibriumPose) -> None:
        """Set the equilibrium of the simulated controller."""
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        if self._stiffness is not None and not self._complies:
            self._complies = True
            self.simulation.comply(self._stiffness, self._admittance_damping)
        self.simulation.command(pose.position, pose.rotation)

    def close(self) -> None:
        """Forget the simulation."""
        self.simulation = None
