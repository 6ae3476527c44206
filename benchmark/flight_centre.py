"""The centre of mass of a tossed cube in its tracked frame, from free flight alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.tosses import CLEAR, LONG_FLIGHT, gauge, prepare


class FlightCentre(NamedTuple):
    """The centre of mass that free flight tells."""

    centre: Array  # (3,) [m, axes as named] from the tracked origin
    error: Array  # standard error (3,) [m] by bootstrap over tosses
    flights: int


def centre_of_mass(
    tosses: list[Array], side: float, rate: float, turns: Array | None = None, seed: int = 0, resamples: int = 200
) -> FlightCentre:
    """X + R c moves on a parabola: c and one acceleration for all, start and velocity for each flight.

    Args:
        tosses: poses (N_i, 7), see ``load_tosses``.
        side: of the cube [m].
        rate: samples per second.
        turns: names of the axes of every toss (tosses, 3, 3), see ``FittedCube``; None: as recorded.
        seed: of the resampling.
        resamples: of the bootstrap.

    Raises:
        ConfigError, RecordingError: see ``gauge``.
        IdentificationError: no toss flies long enough.
    """
    scale, flights = gauge(tosses, side, rate).scale, 0
    turns = np.broadcast_to(np.eye(3), (len(tosses), 3, 3)) if turns is None else turns
    normals: list[tuple[Array, Array]] = []
    for poses, turn in zip(tosses, turns):
        toss, matrix, vector = prepare(poses, side, rate, scale), np.zeros((6, 6)), np.zeros(6)
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

    def solve(chosen: Iterable[int]) -> Array:
        matrices, vectors = zip(*(normals[i] for i in chosen))
        return np.asarray(np.linalg.lstsq(np.sum(matrices, axis=0), np.sum(vectors, axis=0), rcond=None)[0][:3])

    rng, count = np.random.default_rng(seed), len(normals)
    drawn = np.array([solve(rng.integers(count, size=count)) for _ in range(resamples)])
    return FlightCentre(solve(range(count)), drawn.std(axis=0), flights)
