"""Errors of a model that no calibration took out: worlds in which nothing is exactly as the observers are told.

A neighbour of the scripts. It changes the arms and the torque of :mod:`rigid_body_recording`: masses, centres and
mounting, the ripple of strain wave gears with one and two waves per turn of the wave generator, friction that grows
with the load of a gear and differs by direction, gains of drives or torque sensors. The sizes are assumptions, made
before the worlds were run, and were not changed since.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from rigid_body_recording import COULOMB, RATE, Course, RigidBodyArm, World, friction

#: Largest share of a link's mass, error of its centre [m], tilt of the base [rad], per axis.
MASS, CENTRE, TILT = 0.05, 0.005, 0.012
#: Amplitude of the ripple [Nm]; ratio of the strain wave gears.
RIPPLE = {"ur16e": 0.2 * np.array(COULOMB["ur16e"]), "fr3": np.full(7, 0.1)}
RATIO = 101
#: Friction by the torque that a joint carries; of the torque, the error of its gain. An FR3 measures behind its gears.
BY_LOAD, GAIN = {"ur16e": 0.03, "fr3": 0.004}, {"ur16e": 0.03, "fr3": 0.01}
#: Share of the Coulomb friction by which directions differ, and of the viscous friction.
ASYMMETRY, VISCOUS = 0.2, 0.4


def misbuild(arm: RigidBodyArm, seed: int, size: float) -> None:
    """Give an arm other masses, and its base a tilt.

    Args:
        arm: changed in place.
        seed: of the errors.
        size: factor on all of them.
    """
    rng = np.random.default_rng([seed, 555])
    for j in range(1, arm.model.njoints):
        told, share = arm.model.inertias[j], 1.0 + size * rng.uniform(-MASS, MASS)
        centre = told.lever + size * rng.uniform(-CENTRE, CENTRE, 3)
        arm.model.inertias[j] = pin.Inertia(share * told.mass, centre, share * told.inertia)
    tilt = size * TILT * np.append(rng.uniform(-1, 1, 2), 0.0)
    arm.model.gravity.linear = pin.exp3(tilt) @ arm.model.gravity.linear
    arm.data = arm.model.createData()


def distort(arm: RigidBodyArm, course: Course, tau: np.ndarray, world: World, size: float) -> np.ndarray:
    """Return measured torque ``tau`` (N, n) [Nm] with the errors of gears, friction and gains; ``size`` scales them."""
    rng, n, theta = np.random.default_rng([world.seed, 556]), arm.n, course.theta
    lugre = friction(arm.robot, theta, world)  # (N, n) [Nm]
    coulomb = world.coulomb * np.array(COULOMB[arm.robot])
    for waves in (1, 2):
        amplitude = 0.5 * waves * size * RIPPLE[arm.robot] * rng.uniform(0.5, 1.0, n)
        tau = tau + amplitude * np.sin(waves * RATIO * theta + rng.uniform(0, 2 * np.pi, n))
    tau = tau + size * BY_LOAD[arm.robot] * np.abs(course.held) * lugre / coulomb
    tau = tau + np.abs(lugre) * size * rng.uniform(-ASYMMETRY, ASYMMETRY, n)
    rate = np.gradient(theta, 1 / RATE, axis=0)
    tau = tau + arm.viscous * rate * size * rng.uniform(-VISCOUS, VISCOUS, n)
    return np.asarray(tau * (1.0 + size * GAIN[arm.robot] * rng.uniform(-1, 1, n)))
