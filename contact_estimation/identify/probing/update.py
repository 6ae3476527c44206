"""Measurement update with a nonlinear wrench equation, by cubature or linearisation (paper 4, eq. 16-21).

The cubature update is written as the identical statistical linear regression: slope = P_zc P_cc^-1 and residual
covariance P_zz - slope P_cc slope^T. The residual of the regression acts as measurement noise. It has two parts:

- The part from uncertain parameters is not white: the next sample of the same stroke has nearly the same residual.
  Treated as white, it makes the filter overconfident within half a second of a rough start. Its variance can therefore
  be multiplied (``residual_colour``).
- The part from noise of pose and twist is white and is not multiplied. The rule gives it with the parameters at their
  mean.

The wrench depends on a few linear combinations c = C x of the state: the parameters, and the directions in which noise
of pose and twist enters it. The expectations are integrals over c alone. x follows from c by regression, which is exact
for a Gaussian x. A degree-7 rule is therefore affordable at 1 kHz.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from contact_estimation.identify.probing.cubature import rule

#: Maps points (k, N) of c to one array (w, N) of wrenches per mode.
WrenchFunction = Callable[[np.ndarray], list[np.ndarray]]


@dataclass(frozen=True)
class Linearisation:
    """Wrench around a density of c: z = mean + slope (c - centre) + e, with e ~ (0, residual).

    Attributes:
        centre: (k,).
        mean: (w,).
        slope: (w, k).
        residual: (w, w), covariance of the regression's residual.
        white: (w, w), its part from noise of pose and twist; None if it was not separated.
    """

    centre: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    white: np.ndarray | None = None

    def noise(self, colour: float) -> np.ndarray:
        """Return the residual's covariance (w, w) as a measurement noise, its repeating share times ``colour``."""
        if colour == 1.0 or self.white is None:
            return colour * self.residual
        return self.white + colour * _positive(self.residual - self.white)


@dataclass(frozen=True)
class Correction:
    """Result of one mode.

    Attributes:
        increment: state increment (n,).
        covariance: of the state (n, n) after it.
        log_likelihood: of the measured wrench.
        nis: normalised innovation squared.
        whitened: innovation (w,) in standard deviations.
    """

    increment: np.ndarray
    covariance: np.ndarray
    log_likelihood: float
    nis: float
    whitened: np.ndarray


def regress(
    function: WrenchFunction, mean_c: np.ndarray, covariance_c: np.ndarray, degree: int, parameters: int | None = None
) -> list[Linearisation]:
    """Regress the wrench of every mode on c, statistically and linearly, eq. 16-18.

    Args:
        function: wrench of every mode.
        mean_c: mean (k,) of c.
        covariance_c: its covariance (k, k).
        degree: degree of the integration rule: 3, 5 or 7.
        parameters: number of leading entries of c that are parameters, the rest being noise of pose and twist; given,
            the white share of the residuals is separated.

    Returns:
        one linearisation per mode.
    """
    root = cholesky(covariance_c)
    points, weights = rule(len(mean_c), degree)
    out = []
    for values in function(mean_c[:, None] + root @ points):
        mean = values @ weights
        values -= mean[:, None]
        weighted = (values * weights).T
        half = points @ weighted
        slope = solve_triangular(root, half, lower=True, trans="T", check_finite=False).T
        out.append(Linearisation(mean_c, mean, slope, _positive(values @ weighted - half.T @ half)))
    if parameters is None:
        return out
    noisy, at_mean = slice(parameters, None), mean_c[:parameters, None]

    def with_noise(noise: np.ndarray) -> list[np.ndarray]:
        return function(np.vstack([np.repeat(at_mean, noise.shape[1], axis=1), noise]))

    white = regress(with_noise, mean_c[noisy], covariance_c[noisy, noisy], degree)
    return [replace(line, white=part.residual) for line, part in zip(out, white)]


def differentiate(function: WrenchFunction, mean_c: np.ndarray, covariance_c: np.ndarray) -> list[Linearisation]:
    """Linearise every mode by its Jacobian at the mean, as an extended Kalman filter does.

    Central differences over 1e-4 standard deviations: their error of third order is far below the rule's residual.
    """
    steps = 1e-4 * np.sqrt(np.diag(covariance_c))
    k = len(mean_c)
    points = mean_c[:, None] + np.hstack([np.zeros((k, 1)), np.diag(steps), -np.diag(steps)])
    return [
        Linearisation(
            mean_c,
            values[:, 0],
            (values[:, 1 : k + 1] - values[:, k + 1 :]) / (2.0 * steps),
            np.zeros((len(values), len(values))),
        )
        for values in function(points)
    ]


def correct(
    line: Linearisation,
    z: np.ndarray,
    noise: np.ndarray,
    mean_c: np.ndarray,
    jacobian: np.ndarray,
    covariance: np.ndarray,
    colour: float = 1.0,
) -> Correction:
    """Make the Kalman step of one mode with a linearised wrench, eq. 19-21.

    Args:
        line: the linearisation.
        z: measured wrench (w,), less any part that is known.
        noise: its covariance (w, w).
        mean_c: predicted c (k,); the linearisation may lie elsewhere.
        jacobian: H (w, n), ``line.slope`` times C and whatever else is linear in the state.
        covariance: P (n, n) predicted.
        colour: factor on the covariance of the residual that repeats.

    Returns:
        the step.
    """
    innovation = z - line.mean - line.slope @ (mean_c - line.centre)
    cross = covariance @ jacobian.T
    root = cholesky(jacobian @ cross + noise + line.noise(colour))
    whitened = solve_triangular(root, np.column_stack([innovation, cross.T]), lower=True, check_finite=False)
    nis = float(whitened[:, 0] @ whitened[:, 0])
    log_det = np.sum(np.log(np.diag(root)))
    spread = whitened[:, 1:]
    return Correction(
        spread.T @ whitened[:, 0],
        covariance - spread.T @ spread,
        -0.5 * (nis + len(z) * np.log(2.0 * np.pi)) - log_det,
        nis,
        whitened[:, 0],
    )


def _positive(matrix: np.ndarray) -> np.ndarray:
    """Project on the positive semidefinite matrices; a rule with negative weights can miss it where a contact opens."""
    values, vectors = np.linalg.eigh(matrix)
    return matrix if values[0] >= 0.0 else np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor.

    A matrix that rounding or negative weights made indefinite is lifted to the nearest usable one.
    """
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        floor = 1e-12 * max(values[-1], 1e-300)
        return np.linalg.cholesky((vectors * np.maximum(values, floor)) @ vectors.T + floor * np.eye(len(matrix)))
