"""Readings of the effort signal: what it could mean, and the total joint torque that each meaning gives.

The configured reading is one of them. The others are the mistakes that are made: current for torque, millinewtonmetres,
gravity taken off, the external torque alone, another sign, another joint order, one joint dead or reversed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from contact_estimation.filters.settings import SensorSettings
from contact_estimation.robot import Arm


@dataclass(frozen=True)
class Reading:
    """An affine reading of the effort: total torque = ``matrix`` effort + ``gravity`` G(q).

    Attributes:
        name: what the effort would be, as a user says it.
        matrix: (n, n) from the effort as it comes to joint torque [Nm].
        gravity: 1 where gravity has to be added, else 0.
        choices: how many readings of its kind there are: one of many fits by chance more easily.
    """

    name: str
    matrix: np.ndarray
    gravity: float
    choices: int = 1


def configured_reading(arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> Reading:
    """Return the reading that the sensor settings declare; ``scale`` (n,) [Nm per unit of effort]."""
    sign = -1.0 if sensors.torque_meaning == "external" else 1.0
    added = 0.0 if sensors.torque_meaning == "total" else 1.0
    return Reading(f"{sensors.torque_unit}, {sensors.torque_meaning}", sign * np.diag(scale), added)


def rival_readings(arm: Arm, sensors: SensorSettings, scale: np.ndarray) -> list[Reading]:
    """Return every other reading that a mistake in wiring, driver or settings could have made, likely ones first."""
    own = configured_reading(arm, sensors, scale)
    diagonal, rivals = np.diag(scale), []
    gain = arm.motor.drive_gain
    if gain is not None:
        factor = gain / scale if sensors.torque_unit == "Nm" else 1.0 / scale
        unit = "motor current [A]" if sensors.torque_unit == "Nm" else "torque [Nm]"
        rivals.append(Reading(unit, np.diag(factor) @ own.matrix, own.gravity))
    # A unit first: numbers as small as currents also look like a torque without gravity.
    if own.gravity:
        rivals.append(Reading("the total torque, gravity inside", np.diag(scale), 0.0))
    else:
        rivals.append(Reading("torque without gravity (gravity_compensated or external)", diagonal, 1.0))
    rivals.append(Reading("torque in mNm", 1e-3 * own.matrix, own.gravity))
    rivals.append(Reading("torque of the opposite sign", -own.matrix, own.gravity))
    names, n = arm.joint_names, arm.n
    for j, name in enumerate(names):
        turned = np.where(np.arange(n) == j, -1.0, 1.0)
        matrix = turned[:, None] * own.matrix
        rivals.append(Reading(f"torque of the opposite sign on {name}", matrix, own.gravity, choices=n))
    orders = [("in reverse joint order", np.arange(n)[::-1])]
    for i, j in itertools.combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        orders.append((f"with {names[i]} and {names[j]} exchanged", order))
    for name, order in orders:
        rivals.append(Reading(f"torque {name}", own.matrix @ np.eye(n)[order], own.gravity, choices=len(orders)))
    return rivals
