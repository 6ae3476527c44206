"""Where the centre of mass of a tossed cube is in its tracked frame, from free flight alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.planar.tosses import CLEAR, LONG_FLIGHT, cube_corners, gauge, prepare


@dataclass(frozen=True)
class FlightCentre:
    """Centre of mass (3,) [m, axes as named] from the tracked origin, its standard error (3,) [m] by bootstrap over
    tosses, and how many flights told it."""

    centre: np.ndarray
    error: np.ndarray
    flights: int


def centre_of_mass(tosses: list[np.ndarray], side: float, rate: float, turns: np.ndarray | None = None,
                   seed: int = 0, resamples: int = 200) -> FlightCentre:
    """x + R c moves on a parabola: c and one acceleration for all, start and velocity for each flight.

    Args:
        tosses: poses (N_i, 7), see :func:`tosses.load_tosses`. side: of the cube [m]. rate: samples per second.
        turns: how the axes of every toss are named (tosses, 3, 3), see :class:`cube.FittedCube`; None: as recorded.

    Raises:
        ConfigError, RecordingError: see :func:`tosses.gauge`.
        IdentificationError: no toss flies long enough.
    """
    scale, corners, normals, flights = gauge(tosses, side, rate).scale, cube_corners(side), [], 0
    turns = np.broadcast_to(np.eye(3), (len(tosses), 3, 3)) if turns is None else turns
    for poses, turn in zip(tosses, turns):
        toss, matrix, vector = prepare(poses, corners, rate, scale), np.zeros((6, 6)), np.zeros(6)
        for first, last in toss.long_flights(CLEAR * side):
            span = slice(first, last + 1)
            t = (np.arange(first, last + 1) - 0.5 * (first + last)) / rate
            basis = np.linalg.qr(np.stack([np.ones_like(t), t], axis=1))[0]
            free = np.eye(len(t)) - basis @ basis.T
            turned = -np.einsum("ts,sij->tij", free, toss.attitude.as_matrix()[span] @ turn)
            fallen = np.einsum("t,ij->tij", free @ (0.5 * t**2), np.eye(3))
            rows = np.concatenate([turned, fallen], axis=2).reshape(-1, 6)
            matrix, vector = matrix + rows.T @ rows, vector + rows.T @ (free @ toss.p[span]).ravel()
            flights += 1
        if matrix.any():
            normals.append((matrix, vector))
    if not normals:
        raise IdentificationError(f"none of {len(tosses)} tosses flies freely for {LONG_FLIGHT} samples or more")

    def solve(chosen):
        total = [sum(normals[i][part] for i in chosen) for part in (0, 1)]
        return np.linalg.lstsq(*total, rcond=None)[0][:3]

    rng, count = np.random.default_rng(seed), len(normals)
    drawn = np.array([solve(rng.integers(count, size=count)) for _ in range(resamples)])
    return FlightCentre(solve(range(count)), drawn.std(axis=0), flights)
