"""A simulated arm under Cartesian impedance control that carries the probe of an exploration.

A twist of the explorer becomes an equilibrium of the impedance controller. The explorer gets the arm's sensor signals.
The wrench comes from the flange's sensor or from joint torque measured behind the gears.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import CartesianImpedance, clip_norm
from contact_estimation.identify.probing.joint_torque import TorqueBlock, tool_jacobian, torque_to_wrench
from contact_estimation.identify.probing.spatial import homogeneous
from contact_estimation.robot.sample import Sample
from contact_estimation.simulation.session import Simulation

#: Time constant [s] of the wrench that the force control sees.
_SMOOTHING = 0.02


class ImpedanceProbe:
    """:class:`~contact_estimation.identify.probing.explore.Tool` of an explorer on a simulated arm.

    Args:
        simulation: arm under impedance control.
        torque_std: white error (n,) of the external joint torque [Nm], which tells the wrench; empty: the flange's
            sensor tells it, with noise as the settings have it.
        tare: time at rest in free space over which the sensor's offset is averaged [s].

    Attributes:
        sample: the last sample.
        max_force: largest norm of the true force [N].
    """

    def __init__(self, simulation: Simulation, torque_std: Sequence[float], tare: float) -> None:
        self._sim, self._variance = simulation, np.square(torque_std)
        self._arm = simulation.arm.measured_at("link")
        self._block = TorqueBlock(self._arm)
        controller = simulation.controller
        assert isinstance(controller, CartesianImpedance)
        self._stiffness, self._damping, settings = controller.stiffness, controller.damping, controller.settings
        self._turn_lead = settings.rotational_damping_factor / np.sqrt(np.array(settings.rotational_stiffness))
        self._max_force = settings.max_force
        self._x0, self._rotation0 = (np.array(part) for part in simulation.equilibrium)
        values = []
        for _ in range(round(tare / simulation.period)):
            self.sample = simulation.step()
            values.append(self._value(self.sample))
        self._tare = np.mean(values, axis=0)
        self._smooth, self.max_force = np.zeros_like(self._tare), 0.0
        self._block.take()
        self._values = np.zeros_like(self._tare)
        self.take(self.sample)

    def _value(self, sample: Sample) -> np.ndarray:
        """Return what is averaged and tared: the flange's wrench (6,), or the external torque (n,) without inertia."""
        external = self._block.add(self._sim.period, sample.q, sample.dq, sample.tau)
        return external if len(self._variance) else np.asarray(sample.wrench_tcp)

    def take(self, sample: Sample) -> None:
        """Take over a sample of the arm, whoever moved it."""
        value = self._value(sample) - self._tare
        self._smooth += self._sim.period / _SMOOTHING * (value - self._smooth)
        self._values = self._values + self._sim.period * value
        self.sample = sample

    @property
    def pose(self) -> np.ndarray:
        """Measured pose (4, 4) of the TCP in the base frame."""
        position, rotation = self._sim.arm.tcp_pose(self.sample.q)
        return homogeneous(rotation, position)

    def move(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Shift the equilibrium; returns the measured twist (6,), base axes.

        The damper's pull at that speed is led, so that the arm follows without lag; the spring is not stretched beyond
        the controller's limit.

        Args:
            twist: commanded twist (6,) [m/s, rad/s], base axes.
            dt: for how long [s].
        """
        sim = self._sim
        for _ in range(round(dt / sim.period)):
            self._x0 = self._x0 + sim.period * twist[:3]
            self._rotation0 = pin.exp3(sim.period * twist[3:]) @ self._rotation0
            x = sim.arm.tcp_pose(self.sample.q)[0]
            self._x0 = x + clip_norm(self._stiffness * (self._x0 - x), self._max_force) / self._stiffness
            lead = self._damping * twist[:3] / self._stiffness
            sim.command(self._x0 + lead, pin.exp3(self._turn_lead * twist[3:]) @ self._rotation0)
            self.take(sim.step())
            self.max_force = max(self.max_force, float(np.linalg.norm(sim.plant.wrench_tcp[:3])))
        return np.asarray(sim.arm.tcp_jacobian(self.sample.q) @ self.sample.dq)

    def sense(self, twist: np.ndarray | None = None, dt: float = 0.0) -> np.ndarray:
        """Return the wrench (6,), TCP axes, for the force control: lightly smoothed, the arm's inertia still in it."""
        return self._wrench(self.sample.q, self._smooth)[0]

    def measure(self, twist: np.ndarray | None = None, wrench: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        """Return pose, twist and wrench as means since the last call, and for joint torque covariance and bias map."""
        elapsed = self._block.elapsed
        q, dq, external = self._block.take()
        value = external - self._tare if len(self._variance) else self._values / elapsed
        self._values = np.zeros_like(self._tare)
        position, rotation = self._sim.arm.tcp_pose(q)
        return homogeneous(rotation, position), self._sim.arm.tcp_jacobian(q) @ dq, *self._wrench(q, value)

    def _wrench(self, q: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, ...]:
        """Wrench (6,), TCP axes; from joint torque also its covariance (6, 6) and map (6, n) of the slow error."""
        if not len(self._variance):
            return (value,)
        to_wrench, covariance = torque_to_wrench(tool_jacobian(self._arm, q), self._variance)
        return to_wrench @ value, covariance, to_wrench
