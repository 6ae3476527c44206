"""Put noisy configurations back on the ground they touch (paper 5, section 7.1, figure 17)."""

from __future__ import annotations

import numpy as np

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.planar.shapes import Shape, contact_rows


def project_to_contact(shape: Shape, q, sigma, contact: int | None = None, tolerance: float = 1e-12) -> np.ndarray:
    """Nearest configuration (3,) to ``q`` with phi = 0 at ``contact`` (default: the lowest), distances counted in
    ``sigma`` (3,).

    Raises:
        IdentificationError: no convergence (a lever that turns over within the correction).
    """
    q = np.array(q, float)
    start, variance = q.copy(), np.asarray(sigma, float)**2
    if contact is None:
        contact = int(np.argmin(contact_rows(shape, q)[0]))
    for _ in range(50):
        phi, normal, _ = contact_rows(shape, q)
        row = normal[contact]
        if abs(phi[contact]) < tolerance:
            return q
        step = (row @ (start - q) + phi[contact]) / (row @ (variance * row))
        q = start - variance * row * step
    raise IdentificationError(
        f"projection of configuration {start} onto contact {contact} did not converge (phi {phi[contact]:.2g} m)")
