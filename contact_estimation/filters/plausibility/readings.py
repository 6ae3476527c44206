"""Readings of the effort signal: what it could mean, and the total joint torque that each meaning gives.

The configured reading is one of them. The others are the mistakes that are made: current for torque, another power of
ten, gravity taken off, the external torque alone, another sign, another joint order, one joint reversed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm


@dataclass(frozen=True)
class Reading:
    """An affine reading of the effort: total torque = ``factor`` effort[``order``] + ``gravity`` G(q).

    Attributes:
        name: what the effort would be, as a user says it.
        factor: (n,) [Nm per unit of effort].
        gravity: 1 where gravity has to be added, else 0.
        order: (n,) where every joint's effort stands.
        choices: how many readings of its kind there are: one of many fits by chance more easily.
    """

    name: str
    factor: np.ndarray
    gravity: float
    order: np.ndarray
    choices: int = 1

    def torque(self, effort: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """Return the total joint torque (n,) [Nm] of an effort (n,) where gravity takes ``gravity`` (n,) [Nm]."""
        return np.asarray(self.factor * effort[self.order] + self.gravity * gravity)


def configured_reading(arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> Reading:
    """Return the reading that the sensor settings declare.

    Args:
        arm: the robot.
        sensors: settings.
        scale: (n,) [Nm per unit of effort].
    """
    sign = -1.0 if sensors.torque_meaning == "external" else 1.0
    added = 0.0 if sensors.torque_meaning == "total" else 1.0
    return Reading(f"{sensors.torque_unit}, {sensors.torque_meaning}", sign * scale, added, np.arange(arm.n))


def rival_readings(arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> list[Reading]:
    """Return every other reading that a mistake in wiring, driver or settings could have made, likely ones first.

    Args:
        arm: the robot.
        sensors: settings.
        scale: (n,) [Nm per unit of effort].
    """
    own = configured_reading(arm, sensors, scale)
    names, n, straight = arm.joint_names, arm.n, own.order
    gain = np.full(n, np.inf) if arm.motor.drive_gain is None else np.asarray(arm.motor.drive_gain)
    unit = "motor current [A]" if sensors.torque_unit == "Nm" else "torque [Nm]"
    current = gain / scale if sensors.torque_unit == "Nm" else 1.0 / scale
    # A unit first: numbers as small as currents also look like a torque without gravity.
    rivals = [Reading(unit, current * own.factor, own.gravity, straight)] if np.isfinite(current).all() else []
    if own.gravity:
        rivals.append(Reading("the total torque, gravity inside", scale, 0.0, straight))
    else:
        rivals.append(Reading("torque without gravity (gravity_compensated or external)", scale, 1.0, straight))
        rivals.append(Reading("external torque, gravity taken off and the sign turned", -scale, 1.0, straight))
    rivals.append(Reading("torque in mNm", 1e-3 * own.factor, own.gravity, straight))
    rivals.append(Reading("torque of the opposite sign", -own.factor, own.gravity, straight))
    for j, name in enumerate(names):
        turned = np.where(straight == j, -own.factor, own.factor)
        rivals.append(Reading(f"torque of the opposite sign on {name}", turned, own.gravity, straight, n))
    orders = [("in reverse joint order", straight[::-1])]
    orders += [("with every joint in its neighbour's place", np.roll(straight, k)) for k in (1, -1)]
    for i, j in itertools.combinations(range(n), 2):
        order = straight.copy()
        order[[i, j]] = j, i
        orders.append((f"with {names[i]} and {names[j]} exchanged", order))
    for name, order in orders:
        rivals.append(Reading(f"torque {name}", own.factor, own.gravity, order, len(orders)))
    return rivals
