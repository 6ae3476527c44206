"""Small MPC problems for the tests."""

from __future__ import annotations

import functools

import numpy as np

from contact_estimation.control.mpc import MpcProblem, load_mpc_settings
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace

START = np.array([0.1, -0.7, 0.05, -2.2, 0.02, 1.6, 0.7])


@functools.lru_cache(maxsize=1)
def arm():
    return load_arm("fr3")


def problem(horizon: int = 8, extra=(), **changes) -> MpcProblem:
    """The planar task at START, its contact where the finger is."""
    made = MpcProblem(arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=horizon, **changes), extra)
    position, rotation = arm().tcp_pose(START)
    tip = position + rotation @ np.array([0.0, 0.0, 0.10])
    made.set("rotation", rotation.ravel(order="F"))
    made.set("position_target", position + [0.02, 0.0, 0.0])
    made.set_contacts(np.ravel([[*c.stiffness, *tip, *c.point] for c in made.settings.contacts]))
    return made


def state(made: MpcProblem) -> np.ndarray:
    return made.stack(START, np.zeros(arm().n))
