"""Measurement update with a nonlinear wrench equation: expectations by cubature or by linearisation (paper 4, eq. 16-21).

The wrench depends on a few linear combinations c = C x of the state: the parameters, and the directions in which noise of
pose and twist reaches it. The expectations are integrals over c alone, and x follows c by regression, which for a Gaussian x is no
approximation; that is why a degree-7 rule is affordable at 1 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from contact_estimation.identify.probing.cubature import rule


@dataclass(frozen=True)
class Prediction:
    """Predicted measurement of one mode: mean (w,), covariance without noise (w, w), cross-covariance with x (n, w)."""

    mean: np.ndarray
    covariance: np.ndarray
    cross: np.ndarray


def cubature_predictions(function, mean_c, selector, covariance, degree):
    """Predictions of every mode by the integration rule of ``degree``, eq. 16-18.

    Args:
        function: maps points (k, N) of c to one array (w, N) per mode.
        mean_c: mean (k,) of c.
        selector: C (k, n).
        covariance: P (n, n) of the state.
        degree: 3, 5 or 7.
    """
    cross_c = covariance @ selector.T
    root = cholesky(selector @ cross_c)
    points, weights = rule(len(mean_c), degree)
    regression = solve_triangular(root, cross_c.T, lower=True, check_finite=False).T
    out = []
    for values in function(mean_c[:, None] + root @ points):
        mean = values @ weights
        values -= mean[:, None]
        weighted = (values * weights).T
        out.append(Prediction(mean, values @ weighted, regression @ (points @ weighted)))
    return out


def linear_predictions(function, mean_c, selector, covariance):
    """The same by the Jacobian at the mean (central differences), as an extended Kalman filter has them."""
    cross_c = covariance @ selector.T
    steps = 1e-4 * np.sqrt(np.diag(selector @ cross_c))
    k = len(mean_c)
    points = mean_c[:, None] + np.hstack([np.zeros((k, 1)), np.diag(steps), -np.diag(steps)])
    out = []
    for values in function(points):
        jacobian = (values[:, 1:k + 1] - values[:, k + 1:]) / (2.0 * steps)
        cross = cross_c @ jacobian.T
        out.append(Prediction(values[:, 0], jacobian @ selector @ cross, cross))
    return out


def correct(prediction, z, noise, covariance):
    """Kalman step of one mode, eq. 19-21.

    Returns:
        state increment (n,), covariance (n, n), log-likelihood of z, normalised innovation squared.
    """
    innovation = z - prediction.mean
    root = cholesky(prediction.covariance + noise)
    whitened = solve_triangular(root, np.column_stack([innovation, prediction.cross.T]), lower=True, check_finite=False)
    nis = float(whitened[:, 0] @ whitened[:, 0])
    gain_part = whitened[:, 1:]
    log_likelihood = -0.5 * (nis + len(z) * np.log(2.0 * np.pi)) - np.sum(np.log(np.diag(root)))
    return gain_part.T @ whitened[:, 0], covariance - gain_part.T @ gain_part, log_likelihood, nis


def cholesky(matrix):
    """Lower Cholesky factor; a matrix that rounding or negative weights made indefinite is lifted to the nearest usable one."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        floor = 1e-12 * max(values[-1], 1e-300)
        return np.linalg.cholesky((vectors * np.maximum(values, floor)) @ vectors.T + floor * np.eye(len(matrix)))
