"""A simulated arm under Cartesian impedance control that carries the probe of an exploration.

What the explorer asks for as a twist becomes an equilibrium of the impedance controller; what it gets back is what the
arm's sensors say. The wrench comes from the flange's sensor or from joint torque.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_estimation.control.impedance import clip_norm
from contact_estimation.identify.probing.sensorless import tool_jacobian, torque_to_wrench
from contact_estimation.identify.probing.world_spatial import homogeneous
from contact_estimation.simulation.session import Simulation

#: Time constant [s] of the wrench that the force control sees.
_SMOOTHING = 0.02


class WrenchSensing:
    """Wrench of the flange's sensor; its offset is tared."""

    def value(self, sample) -> np.ndarray:
        """What is averaged and tared: the wrench (6,) itself."""
        return sample.wrench_tcp

    def wrench(self, q, ddq, value):
        """Wrench (6,) in TCP axes, and nothing else: noise as the settings have it."""
        return (value,)


class TorqueSensing:
    """Wrench from joint torque measured behind the gears; ``torque_std`` (n,) [Nm] weighs the joints."""

    def __init__(self, arm, torque_std):
        self._arm, self._variance = arm.measured_at("link"), np.square(torque_std)

    def value(self, sample) -> np.ndarray:
        """External joint torque (n,), the inertial torque not yet in it."""
        return self._arm.gravity(sample.q) + self._arm.coriolis(sample.q, sample.dq) - sample.tau

    def wrench(self, q, ddq, value):
        """Wrench (6,), its covariance (6, 6) and the map (6, n) of the torque's slow error. Leaning the probe
        accelerates the arm: M ddq is newtons at the tip, so it is taken off."""
        to_wrench, covariance = torque_to_wrench(tool_jacobian(self._arm, q), self._variance)
        return to_wrench @ (value + self._arm.mass(q) @ ddq), covariance, to_wrench


class ImpedanceProbe:
    """Tool, sense and measure of :class:`~contact_estimation.identify.probing.explore.Explorer` on a simulated arm.

    Args:
        simulation: arm under impedance control. sensing: :class:`WrenchSensing` or :class:`TorqueSensing`.
        tare: [s] at rest in free space over which the sensor's offset is averaged.
    """

    def __init__(self, simulation: Simulation, sensing, tare: float):
        self._sim, self._sensing = simulation, sensing
        controller = simulation.controller
        self._stiffness, self._damping = controller.stiffness, controller.damping
        settings = controller.settings
        turn_stiffness = np.array(settings.rotational_stiffness)
        self._turn_lead = settings.rotational_damping_ratio / np.sqrt(turn_stiffness)
        self._max_force = settings.max_force
        self._x0, self._rotation0 = (np.array(part) for part in simulation.equilibrium)
        samples = [simulation.step() for _ in range(round(tare / simulation.period))]
        self._tare = np.mean([sensing.value(sample) for sample in samples], axis=0)
        self._smooth = np.zeros_like(self._tare)
        self.sample = samples[-1]
        self._clear()
        self._take(self.sample)
        self.max_force = 0.0

    def _clear(self):
        self._count, self._sums, self._first_dq = 0, 0.0, self.sample.dq

    def _take(self, sample):
        value = self._sensing.value(sample) - self._tare
        self._smooth += self._sim.period / _SMOOTHING * (value - self._smooth)
        row = np.concatenate([sample.q, sample.dq, value])
        self._sums = self._sums + row
        self._count += 1
        self.sample = sample

    @property
    def pose(self) -> np.ndarray:
        """Measured pose (4, 4) of the TCP in the base frame."""
        position, rotation = self._sim.arm.tcp_pose(self.sample.q)
        return homogeneous(rotation, position)

    def move(self, twist: np.ndarray, dt: float) -> np.ndarray:
        """Shift the equilibrium by ``twist`` (6,) for ``dt`` [s]; returns the measured twist (6,), base axes.

        The damper's pull at that speed is led, so that the arm follows without lag; the spring is not stretched beyond
        the controller's limit.
        """
        sim = self._sim
        for _ in range(round(dt / sim.period)):
            self._x0 = self._x0 + sim.period * twist[:3]
            self._rotation0 = pin.exp3(sim.period * twist[3:]) @ self._rotation0
            x = sim.arm.tcp_pose(self.sample.q)[0]
            self._x0 = x + clip_norm(self._stiffness * (self._x0 - x), self._max_force) / self._stiffness
            lead = self._damping * twist[:3] / self._stiffness
            sim.command(self._x0 + lead, pin.exp3(self._turn_lead * twist[3:]) @ self._rotation0)
            self._take(sim.step())
            self.max_force = max(self.max_force, float(np.linalg.norm(sim.plant.wrench_tcp[:3])))
        return sim.arm.tcp_jacobian(self.sample.q) @ self.sample.dq

    def sense(self, pose, twist, dt) -> np.ndarray:
        """Wrench (6,) for the force control: lightly smoothed."""
        return self._sensing.wrench(self.sample.q, np.zeros(self._sim.arm.n), self._smooth)[0]

    def measure(self, pose, twist, wrench) -> tuple:
        """Pose, twist and wrench as means since the last call, and what the sensing adds: arguments of the filter."""
        n, mean = self._sim.arm.n, self._sums / self._count
        ddq = (self.sample.dq - self._first_dq) / (self._count * self._sim.period)
        self._clear()
        q, dq, value = mean[:n], mean[n:2 * n], mean[2 * n:]
        position, rotation = self._sim.arm.tcp_pose(q)
        return homogeneous(rotation, position), self._sim.arm.tcp_jacobian(q) @ dq, *self._sensing.wrench(q, ddq, value)
