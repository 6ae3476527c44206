"""A simulated arm in a scenario as a backend: the same graph as on a robot, with ground truth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.exceptions import DriverError
from contact_estimation.robot import Arm
from contact_estimation.settings import key, non_negative, positive
from contact_estimation.simulation.session import Simulation, open_simulation


@dataclass(frozen=True, kw_only=True)
class SimulatedSettings:
    """Settings of the simulation and of its controller."""

    scenario: str = key("linear_contact", doc="a scenario of config/tasks, or path of a YAML")
    duration: float = key(0.0, unit="s", check=non_negative, doc="how long; 0: as long as the scenario's motion")
    seed: int = key(0, check=non_negative, doc="seed of everything random")
    imperfections: str = key(
        "", doc="sensors and joints: a robot's name, ideal, or path of a YAML; empty: the robot's own"
    )
    ahead: bool = key(
        False, doc="simulate all of it before the first sample, so that none is late; takes no commands then"
    )
    impedance_stiffness: list[float] | None = key(
        None,
        doc="stiffness with which commands are followed, base axes; null: the scenario's own controller follows",
        unit="N/m",
        check=positive,
        length=3,
    )
    admittance_damping: float = key(
        4000.0, doc="force per commanded speed of a position-controlled arm", unit="Ns/m", check=positive
    )


class SimulatedBackend:
    """An arm in a scenario; stamps count from its start.

    Samples are made when they are read: whoever reads sets the pace, so that commands act as they do on a robot. From
    the first one on the arm follows its equilibrium as a joint-torque arm's impedance and the RTDE driver's admittance
    do. With ``ahead`` nothing can act back on the arm, so the whole scenario is simulated by :meth:`connect`.

    Args:
        arm: the robot.
        settings: of the driver.
    """

    def __init__(self, arm: Arm, settings: SimulatedSettings) -> None:
        self.joint_names, self.commandable = tuple(arm.joint_names), not settings.ahead
        self.simulation: Simulation | None = None
        self._arm, self._settings, self._complies = arm, settings, False
        self._samples: Iterator[Sample] = iter(())
        stiffness = settings.impedance_stiffness
        self._stiffness = None if stiffness is None else np.array(stiffness, float)

    def connect(self) -> None:
        """Build the simulation at its start.

        Raises:
            ConfigError: scenario, robot or imperfections are unknown.
        """
        s = self._settings
        self.simulation = open_simulation(s.scenario, self._arm, s.imperfections or None, s.seed)
        samples = self.simulation.run(s.duration or None)
        self._samples, self._complies = iter(list(samples)) if s.ahead else samples, False

    def read(self) -> Sample | None:
        """Return the next sample.

        Raises:
            DriverError: the backend is not connected.
        """
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        return next(self._samples, None)

    def equilibrium(self) -> EquilibriumPose | None:
        """Where the equilibrium has to be for the force the arm presses with now; None before :meth:`connect`."""
        if self.simulation is None:
            return None
        if self._stiffness is None:
            return EquilibriumPose(*self.simulation.equilibrium)
        position, rotation, force = self.simulation.pressing()
        return EquilibriumPose(position + force / self._stiffness, rotation)

    def standing(self) -> EquilibriumPose | None:
        """Where the equilibrium has to be at the end of a motion: an impedance's spring is relaxed, as on a robot.

        A position-controlled arm stands under the force that it feels.
        """
        if self.simulation is None or not self.simulation.uses_impedance:
            return self.equilibrium()
        position, rotation, _ = self.simulation.pressing()
        return EquilibriumPose(position, rotation)

    def command(self, pose: EquilibriumPose) -> None:
        """Set the equilibrium of the simulated controller.

        Args:
            pose: equilibrium in the base frame.

        Raises:
            DriverError: the backend is not connected, or has simulated ahead.
        """
        if self.simulation is None:
            raise DriverError("the simulation is not connected; call connect() first")
        if not self.commandable:
            raise DriverError("what was simulated ahead cannot be commanded; leave out 'ahead'")
        if self._stiffness is not None and not self._complies:
            self._complies = True
            self.simulation.comply(self._stiffness, self._settings.admittance_damping)
        self.simulation.command(pose.position, pose.rotation)

    def close(self) -> None:
        """Forget the simulation."""
        self.simulation, self._samples = None, iter(())
