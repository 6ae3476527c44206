"""Added variables: columns that the model does not have, beside its own parameters in one weighted regression.

What a calibration leaves, r = X b + Z c + e, is regressed on the columns X that are known and on the added Z together.
The covariance of c is the sandwich of the coloured scores, as of the calibration itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.fit.calibration.estimate import correlation_times, score_covariance
from contact_estimation.fit.calibration.identify import Identified
from contact_estimation.fit.calibration.model import evaluate
from contact_estimation.fit.calibration.regression import huber_weights, robust_scale
from contact_estimation.fit.calibration.settings import CalibrationSettings


class Rows(NamedTuple):
    """All samples of all recordings, N together.

    Attributes:
        jacobian: (N, n, P) of the predicted torque.
        residual: (N, n) [measured Nm].
        weight: (N, n) of its square.
        late: (N, n) change of the rigid torque [Nm/s], which a delay [s] leaves.
        links: (N, n, 10 n) change with the links' inertial parameters.
        counts: samples of each recording.
        time: (n,) autocorrelation time of the residual [samples].
        rate: [Hz] of the samples.
    """

    jacobian: np.ndarray
    residual: np.ndarray
    weight: np.ndarray
    late: np.ndarray
    links: np.ndarray
    counts: list[int]
    time: np.ndarray
    rate: float


class Columns(NamedTuple):
    """Columns (N, n, p) of a regression, and the precision (p,) of the priors of their coefficients about zero."""

    values: np.ndarray
    precision: np.ndarray

    def beside(self, *others: Columns) -> Columns:
        """Return these columns and then those of ``others``."""
        both = [self, *others]
        return Columns(np.concatenate([c.values for c in both], axis=2), np.concatenate([c.precision for c in both]))


class Regression(NamedTuple):
    """Coefficients (p,), what they leave (N, n), and the inverse (p, p) of the normal equations."""

    values: np.ndarray
    left: np.ndarray
    inverse: np.ndarray


def rows_of(found: Identified, settings: CalibrationSettings) -> Rows:
    """Return the samples of a calibration.

    Args:
        found: the calibration.
        settings: with which it was found.
    """
    parts = []
    time = found.correlation_time * found.designs[0].motion.rate
    for d in found.designs:
        m = d.motion
        torque, jacobian = evaluate(found.layout, found.theta, d)
        residual = m.tau - torque
        # of a sample that is independent of the others: the variance, times the autocorrelation time in samples
        weight = huber_weights(residual, found.std_residual, settings.outlier) / (found.std_residual**2 * time)
        # Without friction: how fast it turns over is not known well enough to tell a delay.
        gain, load = found.value("gain"), found.value("payload")
        rigid = gain * (d.rigid + d.payload @ load) + found.value("armature") * m.ddq
        late = -np.gradient(rigid, 1 / m.rate, axis=0)
        parts.append((jacobian, residual, weight, late, gain[:, None] * d.links))
    counts = [len(part[0]) for part in parts]
    jacobian, residual, weight, late, links = (np.concatenate(values) for values in zip(*parts))
    return Rows(jacobian, residual, weight, late, links, counts, time, found.designs[0].motion.rate)


def regress(rows: Rows, columns: Columns) -> Regression:
    """Regress the residuals on columns by weighted least squares.

    Args:
        rows: all samples.
        columns: of the regression.
    """
    flat = columns.values.reshape(-1, columns.values.shape[2])
    weighted = flat * rows.weight.reshape(-1, 1)
    inverse = np.linalg.inv(weighted.T @ flat + np.diag(columns.precision))
    values = inverse @ (weighted.T @ rows.residual.ravel())
    return Regression(values, rows.residual - columns.values @ values, inverse)


def reweighted(rows: Rows, left: np.ndarray, outlier: float) -> Rows:
    """Return the samples with the weights that a smaller residual asks for.

    Args:
        rows: all samples.
        left: (N, n) residual of a regression that explains more.
        outlier: Huber's threshold [standard deviations].
    """
    scale, ends = robust_scale(left), np.cumsum(rows.counts)[:-1]
    time = np.max([correlation_times(part, rows.rate) for part in np.split(left, ends)], axis=0)
    return rows._replace(weight=huber_weights(left, scale, outlier) / (scale**2 * time), time=time)


def covariance_of(
    rows: Rows, columns: Columns, regression: Regression, places: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Return the covariance of coefficients, with the residual's own autocorrelation.

    Args:
        rows: all samples.
        columns: (N, n, p) of the regression.
        regression: its result.
        places: of the coefficients among the p; all by default.
    """
    influence = regression.inverse[:, places]
    scores = np.einsum("tjp,tj->tp", columns.values, rows.weight * regression.left) @ influence
    pieces = np.split(scores, np.cumsum(rows.counts)[:-1])
    prior = influence.T @ (columns.precision[:, None] * influence)
    return np.asarray(score_covariance(pieces, rows.time, columns.values.shape[2]) + prior)
