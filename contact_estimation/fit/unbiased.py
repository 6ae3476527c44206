"""Offline fit of contact parameters without the bias of the papers' objective.

Expectation and maximisation in turns, as in papers 1 and 2: a filter with the present parameters gives the states; then

    phi, nuisance = argmin sum_t sum_j rho( (y_tj - tau_e,j(q_t, phi) + b_j + v_j dq_tj + c_j s_tj) / sigma_j )

with the external torque y = (M + h B) (dq+ - dq) / h - (tau - C - G - B dq) of every transition. Against eq. 16 as
printed: residuals are torques, squared, weighted by their own noise and colour and robust against spikes (rho is
Huber's); the contact cannot pull; what the joints' friction leaves (bias, viscous, Coulomb with presliding) is fitted
beside it instead of being taken for contact.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from contact_estimation.contact.primitive import same_sign
from contact_estimation.contact.settings import KINDS, ContactSettings
from contact_estimation.exceptions import IdentificationError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.settings import EkfSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.blocks import Blocks, block_means, evaluate, unilateral_torque
from contact_estimation.fit.calibration.regression import (
    huber_weights,
    integrated_time,
    long_run_covariance,
    robust_scale,
)
from contact_estimation.fit.states import filtered_states
from contact_estimation.robot import Arm

#: Internal units of [K, rest, point].
_SCALE = np.repeat([1e4, 1e-3, 1e-2], 3)
#: Prior standard deviations of the joints' bias [Nm], viscous [Nms/rad] and Coulomb friction [Nm]. At the mrad/s of a
#: press the viscous slope is far steeper than at the speeds of a calibration (Stribeck). A free bias would let the
#: contact be closed all the time.
_FRICTION_STD = np.array([5.0, 300.0, 10.0])
_ITERATIONS = 60
_MAX_TIME = 3.0  # [s] longest autocorrelation time looked for


@dataclass(frozen=True)
class UnbiasedSettings:
    """How the fit is made.

    ``estimate``: which of stiffness, rest, point. ``friction``: fit the joints' friction beside the contact.
    ``presliding``: breakaway length [rad]. ``block`` [s]: torques are averaged over it. ``outlier``: Huber's threshold.
    ``priors``: standard deviations of stiffness [N/m], rest and point [m] about their start, wide but for directions
    that nothing else determines. ``passes``: turns at most.
    """

    estimate: tuple[str, ...] = KINDS
    friction: bool = True
    presliding: float = 2e-4
    block: float = 0.02
    outlier: float = 2.0
    priors: tuple[float, float, float] = (5e4, 2e-3, 5e-2)
    passes: int = 4


@dataclass(frozen=True)
class UnbiasedFit:
    """What was found.

    ``contact`` with the fitted values; ``std`` (9,) of [K; rest; point] in SI from the residual's own colour, zero
    where kept; ``rests`` (R, 3) one per recording [m]; ``stiffness_std`` of the norm [N/m]; ``residual`` (n,) torque
    RMS [Nm];
    ``passes``: stiffness norm after each; ``friction`` (R, n, 3): bias [Nm], viscous [Nms/rad] and Coulomb friction
    [Nm].
    """

    contact: ContactSettings
    std: np.ndarray
    rests: np.ndarray
    stiffness_std: float
    residual: np.ndarray
    passes: list[float]
    friction: np.ndarray


def fit_unbiased(arm: Arm, settings: EkfSettings, sensors, recordings, options: UnbiasedSettings = UnbiasedSettings(),
                 progress=None) -> UnbiasedFit:
    """Fit the one contact of ``settings`` to recordings; stiffness and point are shared, every recording has its own
    rest and friction.

    Args:
        settings: EKF that estimates the states; its contact is the start. progress: called with the number of passes
            done.

    Raises:
        IdentificationError: not exactly one contact, or the recordings never load it enough to determine a stiffness.
        RecordingError: a recording has samples that cannot be used.
    """
    if len(settings.contacts) != 1:
        raise IdentificationError(f"this fit is for one contact, the configuration has {len(settings.contacts)}")
    contact = dataclasses.replace(settings.contacts[0], estimate=[])
    torque = unilateral_torque(arm)
    history, theta, found = [], None, None
    for turn in range(options.passes):
        blocks, starts = [], []
        for k, recording in enumerate(recordings):
            own = contact if found is None else dataclasses.replace(contact, rest=found.rests[k].tolist())
            observer = Ekf(arm, dataclasses.replace(settings, contacts=[own]))
            states = filtered_states(SampleStream(observer, arm, sensors), recording)
            blocks.append(block_means(arm, states, options.block, options.presliding, options.friction))
            starts.append(observer.contacts.initial(recording.q[0])[0][3:6])
        if theta is None:
            theta = _start(arm, torque, contact, starts, blocks, options)
        found = _maximise(arm, torque, blocks, theta, contact, options)
        theta = np.concatenate([np.array(found.contact.stiffness), np.array(found.contact.point), found.rests.ravel()])
        contact = found.contact
        history.append(float(np.linalg.norm(found.contact.stiffness)))
        if progress is not None:
            progress(turn + 1)
        if turn and abs(history[-1] / history[-2] - 1) < 0.005:
            break
    return dataclasses.replace(found, passes=history)


def _start(arm: Arm, run, contact: ContactSettings, starts, blocks, options: UnbiasedSettings) -> np.ndarray:
    """[K; point; rest of every recording]: along the configured normal, the rest and the stiffness that explain most of
    the torque.

    The cost over the rest has a second minimum, where the contact is always closed and its preload looks like a torque
    bias; hence a search over heights, with stiffness and friction at their best (linear) for each.
    """
    stiffness, point = np.asarray(contact.stiffness, float), np.asarray(contact.point, float)
    normal = stiffness / np.linalg.norm(stiffness)
    rests, factors = [], []
    for start, b in zip(starts, blocks):
        lever = b.inputs[:, 3:12].reshape(-1, 3, 3).transpose(0, 2, 1) @ point
        height = (b.inputs[:, :3] + lever) @ normal
        sigma, best = robust_scale(b.y - np.median(b.y, axis=0)), (np.inf, start, 1.0)
        heights = np.linspace(height.min(), height.max(), 25)[1:] if "rest" in options.estimate else [normal @ start]
        for level in heights:
            rest = start + normal * (level - normal @ start)
            torque, _ = evaluate(run, np.concatenate([stiffness, rest, point]), b.inputs, arm.n)
            ones = np.ones_like(torque)
            y, shape = (
                _project(b.nuisance, b.y[:, :, None], ones)[:, :, 0] / sigma,
                _project(b.nuisance, torque[:, :, None], ones)[:, :, 0] / sigma,
            )
            factor = float(np.sum(shape * y) / max(np.sum(shape**2), 1e-12))
            cost = float(np.sum((y - factor * shape) ** 2))
            if factor > 0 and cost < best[0]:
                best = (cost, rest, factor)
        rests.append(best[1])
        factors.append(best[2])
    if "stiffness" in options.estimate:
        stiffness = stiffness * float(np.median(factors))
    return np.concatenate([stiffness, point, *rests])


def _maximise(arm: Arm, run, blocks: list[Blocks], theta: np.ndarray, contact: ContactSettings,
              options: UnbiasedSettings) -> UnbiasedFit:
    """Robust Levenberg-Marquardt over contact and friction of all recordings."""
    n, count = arm.n, len(blocks)
    k = blocks[0].nuisance.shape[2]
    scale = np.concatenate([_SCALE[:3], _SCALE[6:], np.tile(_SCALE[3:6], count)])
    kinds = np.concatenate([np.zeros(3, int), np.full(3, 2), np.ones(3 * count, int)])
    free = np.array([KINDS[kind] in options.estimate for kind in kinds])
    prior = np.where(free, (scale / np.array(options.priors)[kinds]) ** 2, 0.0)
    size = len(theta)
    z, mean = theta / scale, theta / scale
    nuisance = np.zeros((count, n, k))
    damping, last, sigma, time = 1e-3, np.inf, None, np.full(n, _MAX_TIME * blocks[0].rate)
    for _ in range(_ITERATIONS):
        residual, jacobians = _residuals(run, blocks, z * scale, scale, n)
        for r, b in zip(range(count), blocks):  # friction is linear: its best values at these contact parameters
            nuisance[r] = _linear(b.nuisance, residual[r], sigma, time, options.outlier)
            residual[r] = residual[r] - np.sum(b.nuisance * nuisance[r], axis=2)
        if sigma is None:
            sigma = robust_scale(np.concatenate(residual))
            time = np.max(
                [[integrated_time(c, int(_MAX_TIME * b.rate)) for c in r.T] for r, b in zip(residual, blocks)], axis=0
            )
        cost = sum(_huber(r / sigma, options.outlier) @ (1 / time) for r in residual) + 0.5 * prior @ (z - mean) ** 2
        if cost < last:
            improvement, last, best, damping = last - cost, cost, z.copy(), max(damping / 5, 1e-9)
            weight = [huber_weights(r, sigma, options.outlier) / (sigma**2 * time) for r in residual]
            # Friction's columns are projected out, so that a step accounts for their adjustment.
            projected = [_project(b.nuisance, jac, w) for b, jac, w in zip(blocks, jacobians, weight)]
            scores = [np.matmul((w * r)[:, None, :], p)[:, 0] for p, w, r in zip(projected, weight, residual)]
            hessian = np.diag(prior) + sum(_gram(p, w) for p, w in zip(projected, weight))
            gradient = prior * (mean - z) + sum(rows.sum(axis=0) for rows in scores)
            kept = residual, nuisance.copy()
            if improvement < 1e-6 * (1 + last):
                sharper = robust_scale(np.concatenate(residual))
                if np.allclose(sharper, sigma, rtol=0.02):
                    break
                sigma, last, damping = sharper, np.inf, 1e-3
                time = np.max(
                    [[integrated_time(c, int(_MAX_TIME * b.rate)) for c in r.T] for r, b in zip(residual, blocks)],
                    axis=0,
                )
                continue
        else:
            damping *= 10
            if damping > 1e9:
                break
        a = hessian + damping * np.diag(np.diag(hessian) + 1e-12)
        step = np.zeros(size)
        step[free] = np.linalg.solve(a[np.ix_(free, free)], gradient[free])
        z = best + np.clip(step, -3.0, 3.0)
    residual, nuisance = kept
    lags = int(np.ceil(5 * time.max()))
    middle = long_run_covariance([s[:, free] for s in scores], lags) + np.diag(prior[free])
    bread = np.linalg.inv(hessian[np.ix_(free, free)])
    covariance = np.zeros((size, size))
    covariance[np.ix_(free, free)] = bread @ middle @ bread
    return _result(arm, best * scale, covariance * np.outer(scale, scale), contact, residual, nuisance, options)


def _residuals(run, blocks, theta, scale, n):
    """Residual (T, n) and its derivative's negative (T, n, P) per recording, friction not yet taken off."""
    residual, jacobians = [], []
    for r, b in enumerate(blocks):
        rest = slice(6 + 3 * r, 9 + 3 * r)
        torque, slope = evaluate(run, np.concatenate([theta[:3], theta[rest], theta[3:6]]), b.inputs, n)
        jacobian = np.zeros((*torque.shape, len(theta)))
        jacobian[:, :, :3], jacobian[:, :, 3:6], jacobian[:, :, rest] = (
            slope[:, :, :3],
            slope[:, :, 6:],
            slope[:, :, 3:6],
        )
        residual.append(b.y - torque)
        jacobians.append(jacobian * scale)
    return residual, jacobians


def _linear(columns: np.ndarray, y: np.ndarray, sigma, time: np.ndarray, outlier: float) -> np.ndarray:
    """Robust least squares joint by joint: coefficients (n, k) of columns (T, n, k) for y (T, n), with friction's
    prior."""
    n, k = columns.shape[1:]
    out = np.zeros((n, k))
    if not k:
        return out
    weight = np.ones_like(y)
    for _ in range(1 if sigma is None else 3):
        for j in range(n):
            weighted = columns[:, j] * weight[:, j, None]
            ridge = np.diag((1.0 if sigma is None else sigma[j] ** 2) * time[j] / _FRICTION_STD[:k] ** 2)
            out[j] = np.linalg.solve(weighted.T @ columns[:, j] + ridge, weighted.T @ y[:, j])
        if sigma is not None:
            weight = huber_weights(y - np.sum(columns * out, axis=2), sigma, outlier)
    return out


def _project(columns: np.ndarray, jacobian: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The part of ``jacobian`` (T, n, P) that weighted least squares on the joints' ``columns`` (T, n, k) does not
    explain."""
    if not columns.shape[2]:
        return jacobian
    out = np.empty_like(jacobian)
    for j in range(jacobian.shape[1]):
        c, w = columns[:, j], weight[:, j, None]
        ridge = np.diag(_FRICTION_STD[:c.shape[1]] ** -2.0)
        out[:, j] = jacobian[:, j] - c @ np.linalg.solve(c.T @ (w * c) + ridge, c.T @ (w * jacobian[:, j]))
    return out


def _gram(jacobian: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sum over samples and joints of weight x outer product: (P, P)."""
    flat = jacobian.reshape(-1, jacobian.shape[2])
    return flat.T @ (flat * weight.reshape(-1, 1))


def _huber(x: np.ndarray, threshold: float) -> np.ndarray:
    """Sum over samples of Huber's loss, per joint."""
    size = np.abs(x)
    return np.where(size <= threshold, 0.5 * size**2, threshold * (size - 0.5 * threshold)).sum(axis=0)


def _result(arm, theta, covariance, contact, residual, nuisance, options) -> UnbiasedFit:
    stiffness = same_sign(theta[:3], np.asarray(contact.stiffness))
    rests, norm = theta[6:].reshape(-1, 3), float(np.linalg.norm(stiffness))
    direction = stiffness / norm
    std = np.sqrt(np.diag(covariance))
    spread = float(np.sqrt(direction @ covariance[:3, :3] @ direction))
    if "stiffness" in options.estimate and spread > norm:
        raise IdentificationError(f"the recordings do not determine the stiffness: {norm:.0f} +- {spread:.0f} N/m. The "
                                  "contact is never or barely loaded; record a press, or give a better start "
                                  "(configuration key contacts[0])")
    fitted = dataclasses.replace(
        contact, stiffness=stiffness.tolist(), rest=rests[-1].tolist(), point=theta[3:6].tolist()
    )
    rms = np.sqrt(np.mean(np.concatenate(residual) ** 2, axis=0))
    return UnbiasedFit(fitted, np.concatenate([std[:3], std[-3:], std[3:6]]), rests, spread, rms, [], nuisance)
