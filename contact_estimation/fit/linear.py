"""The joints' friction in the fit of a contact: coefficients that enter linearly, joint by joint, with a prior."""

from __future__ import annotations

import numpy as np

from contact_estimation.fit.calibration.regression import huber_weights

#: Prior standard deviations of the joints' bias [Nm], viscous [Nms/rad] and Coulomb friction [Nm]. At the mrad/s of a
#: press the viscous slope is far steeper than at the speeds of a calibration (Stribeck). A free bias would let the
#: contact be closed all the time.
FRICTION_STD = np.array([5.0, 300.0, 10.0])


def coefficients(
    columns: np.ndarray, y: np.ndarray, sigma: np.ndarray | None, time: np.ndarray, outlier: float
) -> np.ndarray:
    """Return coefficients (n, k) by robust least squares, joint by joint, with friction's prior.

    Args:
        columns: (T, n, k).
        y: (T, n).
        sigma: (n,) standard deviations; None for plain least squares.
        time: (n,) autocorrelation time [blocks].
        outlier: Huber's threshold.
    """
    n, k = columns.shape[1:]
    out = np.zeros((n, k))
    if not k:
        return out
    weight = np.ones_like(y)
    for _ in range(1 if sigma is None else 3):
        for j in range(n):
            weighted = columns[:, j] * weight[:, j, None]
            ridge = np.diag((1.0 if sigma is None else sigma[j] ** 2) * time[j] / FRICTION_STD[:k] ** 2)
            out[j] = np.linalg.solve(weighted.T @ columns[:, j] + ridge, weighted.T @ y[:, j])
        if sigma is not None:
            weight = huber_weights(y - np.sum(columns * out, axis=2), sigma, outlier)
    return out


def project(columns: np.ndarray, jacobian: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the part of ``jacobian`` (T, n, P) that friction does not explain.

    That is weighted least squares on the joints' ``columns`` (T, n, k), with friction's prior.
    """
    if not columns.shape[2]:
        return jacobian
    out = np.empty_like(jacobian)
    for j in range(jacobian.shape[1]):
        c, w = columns[:, j], weight[:, j, None]
        ridge = np.diag(FRICTION_STD[: c.shape[1]] ** -2.0)
        out[:, j] = jacobian[:, j] - c @ np.linalg.solve(c.T @ (w * c) + ridge, c.T @ (w * jacobian[:, j]))
    return out
