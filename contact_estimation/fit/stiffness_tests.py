"""Tests of one stiffness for all recordings and all depths, in what a fit leaves.

A recording with another stiffness and a force that is no straight line of the depth are added variables: the contact's
torque tau in that recording alone, and tau log(d / d_0), the derivative by p of a force in proportion to d^p at p = 1.
Rests, point, stiffness and friction are free beside them (score test, Rao 1948; the columns are projected off as by
Frisch and Waugh 1933). The covariance is the sandwich of the coloured scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact_estimation.fit.blocks import Blocks, noise_of
from contact_estimation.fit.calibration.regression import fixed_bandwidth_factor, huber_weights, long_run_covariance
from contact_estimation.fit.linear import project
from contact_estimation.fit.unknowns import Unknowns

#: A stiffness differs from here on, relative to that of the fit, and a power of the depth from 1; either beyond so many
#: standard deviations.
_LEAST_STIFFNESS, _LEAST_POWER, _SIGMAS = 0.1, 0.1, 4.0
#: [m] Least depth that has a logarithm.
_SHALLOW = 1e-6
#: Window of the scores [longest autocorrelation time].
_LAGS = 5.0
#: Reweighted so many times by what the added variables leave.
_PASSES = 3


class Optimum(NamedTuple):
    """What a fit leaves at its solution.

    Attributes:
        theta: (size,) [SI].
        residual: (T, n) [Nm] of each recording.
        jacobians: (T, n, size) of the torque of each, by theta in internal units.
        prior: (size, size) precision of theta in internal units.
        outlier: Huber's threshold.
    """

    theta: np.ndarray
    residual: list[np.ndarray]
    jacobians: list[np.ndarray]
    prior: np.ndarray
    outlier: float


class _Estimate(NamedTuple):
    """Coefficients (p,) of the added variables and their covariance (p, p)."""

    values: np.ndarray
    covariance: np.ndarray


def stiffness_doubts(
    unknowns: Unknowns, blocks: Sequence[Blocks], sources: Sequence[str], optimum: Optimum
) -> list[str]:
    """Say where recordings have different stiffnesses, or where no stiffness describes a contact.

    Args:
        unknowns: of the fit.
        blocks: of each recording.
        sources: names of the recordings.
        optimum: of the fit.
    """
    doubts, count = [], len(blocks)
    columns = [_columns(unknowns, c, blocks, optimum.theta) for c in range(len(unknowns.contacts))]
    width = count  # of a contact: the recordings but the first, then the power
    found = _estimate(unknowns, blocks, optimum, [np.concatenate(parts, axis=2) for parts in zip(*columns)])
    for c, contact in enumerate(unknowns.contacts):
        places = slice(c * width, (c + 1) * width)
        values, covariance = found.values[places], found.covariance[places, places]
        name = contact.settings.name
        stiffness = float(np.linalg.norm(optimum.theta[unknowns.places(c, 0)[:3]]))
        if told := _different(name, stiffness, sources, values[:-1], covariance[:-1, :-1]):
            doubts.append(told)
            continue  # two stiffnesses look like a power, too
        power, std = float(values[-1]), float(np.sqrt(covariance[-1, -1]))
        if abs(power) > max(_LEAST_POWER, _SIGMAS * std):
            doubts.append(
                f"the force of '{name}' grows {'faster' if power > 0 else 'slower'} than depth (power "
                f"{1 + power:.2f} +- {std:.1g} to first order, instead of 1): no single stiffness describes it. The "
                "interval does not hold that of a deeper or lighter press. Fit recordings of the depth that counts"
            )
    return doubts


def _columns(unknowns: Unknowns, c: int, blocks: Sequence[Blocks], theta: np.ndarray) -> list[np.ndarray]:
    """Return the added variables (T, n, R) of one contact, for each recording."""
    out, contact, count = [], unknowns.contacts[c], len(blocks)
    depths = []
    for r, b in enumerate(blocks):
        phi = theta[unknowns.places(c, r)]
        normal = phi[:3] / np.linalg.norm(phi[:3])
        depths.append(np.maximum((phi[3:6] - b.position - b.rotation @ phi[6:9]) @ normal, _SHALLOW))
    largest = max(float(d.max()) for d in depths)
    for r, (b, depth) in enumerate(zip(blocks, depths)):
        torque, _ = contact.evaluate(theta[unknowns.places(c, r)], b.inputs)
        columns = np.zeros((*torque.shape, count))
        if r:
            columns[:, :, r - 1] = torque
        columns[:, :, -1] = torque * np.log(depth / largest)[:, None]
        out.append(columns)
    return out


def _estimate(
    unknowns: Unknowns, blocks: Sequence[Blocks], optimum: Optimum, columns: Sequence[np.ndarray]
) -> _Estimate:
    """Regress the residual on added variables beside all that is free, reweighted by what they leave."""
    free, added = np.flatnonzero(unknowns.free), columns[0].shape[2]
    prior = np.zeros((len(free) + added,) * 2)
    prior[: len(free), : len(free)] = optimum.prior[np.ix_(free, free)]
    prior[len(free) :, len(free) :] = np.eye(added)  # a stiffness or a power changes by its own size at most
    left = optimum.residual
    for _ in range(_PASSES):
        sigma, time = noise_of(left, blocks)
        weight = [huber_weights(r, sigma, optimum.outlier) / (sigma**2 * time) for r in left]
        both = [
            project(b.nuisance, np.concatenate([jac[:, :, free], new], axis=2), w)
            for b, jac, new, w in zip(blocks, optimum.jacobians, columns, weight)
        ]
        flat = [p.reshape(-1, p.shape[2]) for p in both]
        normal = prior + sum(f.T @ (f * w.reshape(-1, 1)) for f, w in zip(flat, weight))
        pull = sum(f.T @ (w * r).ravel() for f, w, r in zip(flat, weight, optimum.residual))
        inverse = np.linalg.inv(normal)
        values = inverse @ pull
        left = [r - p @ values for r, p in zip(optimum.residual, both)]
    scores = [np.einsum("tjp,tj->tp", p, w * r) for p, w, r in zip(both, weight, left)]
    lags, samples = int(np.ceil(_LAGS * time.max())), sum(len(s) for s in scores)
    influence = inverse[:, len(free) :]
    middle = long_run_covariance([s @ influence for s in scores], lags) * fixed_bandwidth_factor(lags, samples) ** 2
    return _Estimate(values[len(free) :], middle + influence.T @ prior @ influence)


def _different(
    name: str, stiffness: float, sources: Sequence[str], relative: np.ndarray, covariance: np.ndarray
) -> str:
    """Say which recording has another stiffness than the others, from that of all but the first, over the fit's."""
    count = len(sources)
    values, full = np.append(0.0, relative), np.zeros((count, count))
    full[1:, 1:] = covariance
    told, largest = "", _LEAST_STIFFNESS
    for r in range(1 if count == 2 else 0, count if count > 1 else 0):
        contrast = np.full(count, -1.0 / (count - 1))
        contrast[r] = 1.0
        apart, std = float(contrast @ values), float(np.sqrt(contrast @ full @ contrast))
        if abs(apart) > max(largest, _SIGMAS * std):
            largest = abs(apart)
            others = sources[0] if count == 2 else "the others"
            told = (
                f"'{name}' is {stiffness * abs(apart):.0f} +- {stiffness * std:.1g} N/m "
                f"{'stiffer' if apart > 0 else 'softer'} in {sources[r]} than in {others}: another surface, place or "
                "tool. Fit the recordings one by one (without --also)"
            )
    return told
