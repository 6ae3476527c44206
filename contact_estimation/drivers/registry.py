"""Backends by name: one word selects where the samples come from."""

from __future__ import annotations

import difflib

from contact_estimation.drivers.backend import Backend
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.settings import from_mapping

KINDS = ("sim", "rtde", "joint_torque", "replay", "franka", "simulated")


def make_backend(
    kind: str,
    arm: Arm,
    *,
    recording: str = "",
    loop: bool = False,
    duration: float = 10.0,
    seed: int = 0,
    scenario: str = "linear_contact",
    imperfections: str = "",
    engine: str = "coupled",
    host: str = "127.0.0.1",
    options: dict | None = None,
) -> Backend:
    """The backend ``kind`` for ``arm``; each takes the arguments it knows.

    Args:
        recording, loop: of ``replay``. duration [s], seed, scenario, imperfections: of ``sim`` (0: as long as the
            motion; empty: the robot's own). engine: of ``simulated``. host: of ``rtde`` and ``franka``.
        options: of ``sim``: stiffness and admittance_damping with which commands are followed
            (:class:`~contact_estimation.drivers.sim.SimulationBackend`); further settings of ``rtde``
            (:class:`~contact_estimation.drivers.rtde.RtdeSettings`) or
            ``joint_torque`` (:class:`~contact_estimation.drivers.joint_torque.JointTorqueSettings`).

    Raises:
        ConfigError: unknown kind (the nearest known one is named), or bad options.
    """
    if kind == "replay":
        from contact_estimation.drivers.replay import ReplayBackend

        return ReplayBackend(arm, recording, loop)
    if kind == "simulated":
        from contact_estimation.drivers.simulated import SimulatedBackend

        return SimulatedBackend(arm, duration, seed, engine)
    if kind == "sim":
        from contact_estimation.drivers.sim import SimulationBackend

        return SimulationBackend(arm, scenario, duration, seed, imperfections, **(options or {}))
    if kind == "rtde":
        from contact_estimation.drivers.rtde import RtdeBackend, RtdeSettings

        return RtdeBackend(arm, from_mapping(RtdeSettings, {"host": host, **(options or {})}, "driver rtde"))
    if kind == "joint_torque":
        from contact_estimation.drivers.joint_torque import JointTorqueBackend, JointTorqueSettings

        return JointTorqueBackend(arm, from_mapping(JointTorqueSettings, options or {}, "driver joint_torque"))
    if kind == "franka":
        from contact_estimation.drivers.franka import FrankaBackend

        return FrankaBackend(arm, host)
    raise ConfigError(
        f"there is no driver '{kind}' (nearest: '{difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.0)[0]}'); "
        f"known: {', '.join(KINDS)}"
    )
