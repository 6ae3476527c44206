"""Process noise of filters over the coupled state [q; dq; p], converted from settings to internal units."""

from __future__ import annotations

import numpy as np

from contact_estimation.contact import ParallelContacts
from contact_estimation.contact.parallel import STIFFNESS_UNIT
from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.settings import ProcessNoise
from contact_estimation.robot import Arm


def state_intensity(arm: Arm, contacts: ParallelContacts, noise: ProcessNoise) -> np.ndarray:
    """Return the intensity (N,) of white noise on every entry of the state, in internal units per second.

    Args:
        arm: the robot.
        contacts: its contacts.
        noise: settings.
    """
    of = {"stiffness": noise.stiffness / STIFFNESS_UNIT**2, "rest": noise.rest, "point": noise.point}
    parameters = np.array([of.get(entry.kind, entry.intensity) for entry in contacts.entries])[contacts.estimated]
    return np.concatenate([np.full(arm.n, noise.position), np.full(arm.n, noise.velocity), parameters])


def torque_intensity(arm: Arm, noise: ProcessNoise) -> np.ndarray | None:
    """Return the intensity 2 sigma^2 T (n,) [Nm^2 s] of white noise that stands for unknown torque; None without it.

    The noise is as strong at low frequencies as the torque. sigma is a constant plus a share of the joint's effort
    limit: gear friction grows with the joint, seals and cables do not.

    Args:
        arm: the robot.
        noise: settings.

    Raises:
        ConfigError: a share is asked for, but the robot's description has no effort limits.
    """
    if noise.unknown_torque == 0 and noise.unknown_torque_share == 0:
        return None
    if noise.unknown_torque_share > 0 and not (arm.effort_limit > 0).all():
        raise ConfigError(
            "process_noise.unknown_torque_share is a share of the effort limits, but the description of "
            f"robot '{arm.name}' has joints without one; add them to the URDF (limit effort), or use "
            f"unknown_torque alone"
        )
    sigma = noise.unknown_torque + noise.unknown_torque_share * arm.effort_limit
    return 2 * sigma**2 * noise.unknown_torque_time
