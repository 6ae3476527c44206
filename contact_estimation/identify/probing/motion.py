"""White-noise-jerk motion of the probe (paper 4, eq. 8) for any number of pose axes."""

from __future__ import annotations

import functools

import numpy as np


@functools.lru_cache(maxsize=64)
def transition(dt: float, jerk: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return F and Q (3m, 3m) of [position; velocity; acceleration] for m axes; Q is the exact integral of white jerk.

    Args:
        dt: time step [s].
        jerk: root spectral density (m,) of the jerk of each axis.
    """
    eye = np.eye(len(jerk))
    f = np.kron(np.array([[1.0, dt, 0.5 * dt**2], [0.0, 1.0, dt], [0.0, 0.0, 1.0]]), eye)
    q = np.array(
        [
            [dt**5 / 20.0, dt**4 / 8.0, dt**3 / 6.0],
            [dt**4 / 8.0, dt**3 / 3.0, dt**2 / 2.0],
            [dt**3 / 6.0, dt**2 / 2.0, dt],
        ]
    )
    return f, np.kron(q, np.diag(np.square(jerk)))
