"""What a supervised controller knows at a tick, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.control.mpc.solver import Solution


@dataclass
class Situation:
    """The arm and its contact at the time of the command.

    Attributes:
        t: time of the command [s].
        elapsed: time [s] of the task, without what was spent holding.
        q: (n,) joint positions [rad].
        dq: (n,) joint velocities [rad/s].
        x: (3,) TCP position [m], base frame.
        dx: (3,) TCP velocity [m/s] measured at the sample, base frame.
        force: (3,) contact force [N] ON the robot, base axes.
        stiffness: of the contact along the wanted force [N/m].
        disturbance: (3,) what else pulls at the TCP [N], base axes.
        mass: effective mass [kg] that a sudden contact along the wanted force meets.
        extra: what is needed along the push beyond the contact's force [N]; follows faster than ``disturbance``.
        rest: where the equilibrium rests along the push [m] while the force error is within the dead band, else None.
        doubt: by what a second force, of another source, is larger along the wanted one [N]; 0 where there is none.
    """

    t: float
    elapsed: float
    q: np.ndarray
    dq: np.ndarray
    x: np.ndarray
    dx: np.ndarray
    force: np.ndarray
    stiffness: float
    disturbance: np.ndarray
    mass: float
    extra: float
    rest: float | None
    doubt: float


@dataclass(frozen=True)
class Plan:
    """What a controller asks for.

    Attributes:
        position: (3,) of the equilibrium [m], base frame.
        rotation: (3, 3) of it, base frame.
        solution: behind it, None where nothing is solved.
        problem: why there is no plan; empty where there is one.
    """

    position: np.ndarray
    rotation: np.ndarray
    solution: Solution | None = None
    problem: str = ""
