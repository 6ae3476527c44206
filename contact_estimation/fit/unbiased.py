"""Offline fit of contact parameters without the bias of the papers' objective.

Expectation and maximisation in turns, as in papers 1 and 2: a filter with the present parameters gives the states; then

    phi, nuisance = argmin sum_t sum_j rho( (y_tj - tau_e,j(q_t, phi) + b_j + v_j dq_tj + c_j s_tj) / sigma_j )

with the external torque y = (M + h B) (dq+ - dq) / h - (tau - C - G - B dq) of every transition. It differs from eq. 16
as printed: residuals are torques, squared, weighted by their noise and autocorrelation, and robust against spikes (rho
is Huber's); a contact cannot pull; joint friction (bias, viscous, Coulomb with presliding) is fitted together with the
contact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from contact_estimation.contact import find_law
from contact_estimation.contact.closed import same_side
from contact_estimation.contact.settings import CONTACT_PARAMETERS, ContactSettings
from contact_estimation.exceptions import ConfigError, IdentificationError, RecordingError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.settings import EkfSettings, SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.blocks import MAX_TIME, Blocks, block_means, noise_of
from contact_estimation.fit.calibration.regression import huber_weights, long_run_covariance
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.fit.gravity_check import gravity_doubts
from contact_estimation.fit.linear import coefficients, project
from contact_estimation.fit.start import search, start_problem
from contact_estimation.fit.states import filtered_states
from contact_estimation.fit.stiffness_tests import Optimum, stiffness_doubts
from contact_estimation.fit.unknowns import Unknowns
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

_ITERATIONS = 60
#: Blocks of a recording: fewer do not tell friction and contact apart, or make the regression singular.
_FEWEST_BLOCKS = 10
#: [m] No surface gives way that far: 10 N on 0.3 kN/m are 3 cm.
_DEEP = 0.1
#: [N] Joint torque does not show a press that stays weaker.
_WEAK = 2.0


@dataclass(frozen=True)
class UnbiasedSettings:
    """How the fit is made.

    Attributes:
        estimate: which of stiffness, rest, point, tangential and law; the last two are the contact law's parameters
            that act sideways, and its others. Of a spring, tangential holds the point by a tangential spring.
        friction: fit the joints' friction beside the contacts.
        presliding: breakaway length [rad].
        block: torques are averaged over it [s].
        outlier: Huber's threshold.
        priors: standard deviations of stiffness [N/m], rest and point [m] about their start, wide but for directions
            that nothing else determines.
        passes: turns at most.
        least_significance: stiffness over its standard deviation below which there is no contact. The search tries many
            heights of the surface: free motion of a UR16e reaches 2.9, of an FR3 6.8, where depth and force make the
            fit doubtful (``python benchmark/fit_truth.py --free 10``).
    """

    estimate: tuple[str, ...] = CONTACT_PARAMETERS
    friction: bool = True
    presliding: float = 2e-4
    block: float = 0.02
    outlier: float = 2.0
    priors: tuple[float, float, float] = (5e4, 2e-3, 5e-2)
    passes: int = 4
    least_significance: float = 3.0


@dataclass(frozen=True)
class ContactFit:
    """One fitted contact.

    Attributes:
        contact: with the fitted values and the last recording's rest.
        std: (9,) of [K; rest; point] in SI, from the residual and its autocorrelation; zero where kept.
        rests: (R, 3) [m] one per recording, base frame.
        stiffness: norm of K [N/m].
        stiffness_std: its standard deviation [N/m].
        law_parameters: values [SI] of the law's own parameters by name.
        law_std: their standard deviations.
    """

    contact: ContactSettings
    std: np.ndarray
    rests: np.ndarray
    stiffness: float
    stiffness_std: float
    law_parameters: dict[str, float]
    law_std: dict[str, float]

    @property
    def tangential(self) -> float:
        """Tangential over normal stiffness of a point that is held, 0 where the law has none."""
        return self.law_parameters.get("share", 0.0)


@dataclass(frozen=True)
class UnbiasedFit:
    """What was found.

    Attributes:
        contacts: one per contact of the configuration.
        residual: (n,) torque that is left, RMS [Nm].
        passes: stiffness norms [N/m] of the contacts after each pass.
        friction: (R, n, 3) per recording: bias [Nm], viscous [Nms/rad] and Coulomb friction [Nm].
        doubts: sentences on what contradicts the robot, empty if nothing does.
    """

    contacts: list[ContactFit]
    residual: np.ndarray
    passes: list[list[float]]
    friction: np.ndarray
    doubts: list[str] = dataclasses.field(default_factory=list)

    def known(self, recording: int) -> list[ContactSettings]:
        """Return the fitted contacts with their rests in one recording, counted from 0."""
        return [dataclasses.replace(c.contact, rest=c.rests[recording].tolist()) for c in self.contacts]


def fit_unbiased(
    arm: Arm,
    settings: EkfSettings,
    sensors: SensorSettings,
    recordings: Sequence[Recording],
    options: UnbiasedSettings = UnbiasedSettings(),
    progress: Callable[[int], None] | None = None,
) -> UnbiasedFit:
    """Fit contacts to recordings.

    Stiffness, point and law parameters are shared; every recording has its own rests and friction.

    Args:
        arm: the robot.
        settings: EKF that estimates the states; its contacts are the start.
        sensors: how the torque is read.
        recordings: of the same contacts.
        options: how the fit is made.
        progress: called with the number of passes done.

    Raises:
        IdentificationError: the recordings never load a contact enough to determine its stiffness.
        ConfigError: the settings are of another observer, or have no contact.
        RecordingError: there is none, or one has samples that cannot be used, or too few of them.
    """
    if problem := start_problem(settings):
        raise ConfigError(f"{problem}; try load_observer_settings('ekf')")
    if not recordings:
        raise RecordingError("no recording was given; a fit needs at least one")
    start = [dataclasses.replace(contact, estimate=[]) for contact in settings.contacts]
    fitted = [FitContact(arm, contact, options.estimate) for contact in start]
    unknowns = Unknowns(fitted, len(recordings), options.estimate, options.priors)
    history: list[list[float]] = []
    theta: np.ndarray | None = None
    found: UnbiasedFit | None = None
    for turn in range(options.passes):
        blocks = []
        for k, recording in enumerate(recordings):
            observer = Ekf(arm, dataclasses.replace(settings, contacts=start if found is None else found.known(k)))
            states = filtered_states(SampleStream(observer, arm, sensors), recording)
            if (len(states.q) - 1) * states.h < _FEWEST_BLOCKS * options.block:
                raise RecordingError(
                    f"{recording.source}: {len(recording)} samples in {recording.duration:.2g} s are too few for a "
                    f"fit, which takes {_FEWEST_BLOCKS * options.block:.2g} s at least; record a whole press"
                )
            blocks.append(block_means(arm, states, options.block, options.presliding, options.friction))
        if theta is None:
            theta = search(unknowns, blocks, options)
        theta, found, optimum = _maximise(blocks, theta, unknowns, options)
        history.append([f.stiffness for f in found.contacts])
        if progress is not None:
            progress(turn + 1)
        if turn and np.allclose(history[-1], history[-2], rtol=0.005):
            break
    if found is None:
        raise IdentificationError(f"a fit needs at least one pass, found passes={options.passes}")
    doubts = []
    if options.friction:  # a fit without it is a comparison: friction is in its stiffness
        doubts = gravity_doubts(arm, recordings, found.friction[:, :, 0])
        doubts += _depth_doubts(found.contacts, blocks, recordings)
        doubts += _gap_doubts(recordings, sensors.max_gap)
        if "stiffness" in options.estimate:
            _refuse_unloaded(found.contacts, options.least_significance)
            doubts += stiffness_doubts(unknowns, blocks, [recording.source for recording in recordings], optimum)
    return dataclasses.replace(found, passes=history, doubts=doubts)


def _refuse_unloaded(contacts: Sequence[ContactFit], least: float) -> None:
    """Refuse stiffnesses of less than ``least`` standard deviations, which free motion gives, too."""
    for c, fit in enumerate(contacts):
        if fit.stiffness < least * fit.stiffness_std:
            raise _unloaded(fit.contact.name, fit.stiffness, fit.stiffness_std, c)


def _gap_doubts(recordings: Sequence[Recording], max_gap: float) -> list[str]:
    """Say where samples are missing for longer than ``max_gap`` [s]: how the joints moved there, friction remembers."""
    found = [(recording.source, recording.problems(max_gap)) for recording in recordings]
    return [f"{source}: {'; '.join(problems)}; cut the recording there" for source, problems in found if problems]


def _depth_doubts(
    contacts: Sequence[ContactFit], blocks: Sequence[Blocks], recordings: Sequence[Recording]
) -> list[str]:
    """Say where a surface is none, too deep or hardly pressed: the model's errors in free motion look like that."""
    doubts = []
    for fit in contacts:
        normal = np.asarray(fit.contact.stiffness) / fit.stiffness
        for b, rest, recording in zip(blocks, fit.rests, recordings):
            points = b.position + b.rotation @ np.asarray(fit.contact.point)
            depth = max(float(np.max((rest - points) @ normal)), 0.0)
            force = fit.stiffness * depth
            if depth > _DEEP or force < _WEAK:
                doubts.append(
                    f"{recording.source}: the tool would be {100 * depth:.2g} cm deep in '{fit.contact.name}', pressed "
                    f"by {force:.2g} N: free motion, or a surface that moves"
                )
    return doubts


def _unloaded(name: str, stiffness: float, std: float, index: int) -> IdentificationError:
    return IdentificationError(
        f"the recordings do not determine the stiffness of '{name}': {stiffness:.0f} +- "
        f"{std:.0f} N/m. The contact is never or barely loaded; record a press, or give a "
        f"better start (configuration key contacts[{index}])"
    )


def _maximise(
    blocks: list[Blocks], theta: np.ndarray, unknowns: Unknowns, options: UnbiasedSettings
) -> tuple[np.ndarray, UnbiasedFit, Optimum]:
    """Robust Levenberg-Marquardt over contacts and friction of all recordings; returns theta, the fit and the rest."""
    n, count = blocks[0].y.shape[1], len(blocks)
    k = blocks[0].nuisance.shape[2]
    scale, free, z = unknowns.scale, unknowns.free, theta / unknowns.scale
    mean, prior = unknowns.prior(theta)
    nuisance = np.zeros((count, n, k))
    damping, last, sigma, time = 1e-3, np.inf, None, np.full(n, MAX_TIME * blocks[0].rate)
    for _ in range(_ITERATIONS):
        residual, jacobians = _residuals(blocks, z * scale, unknowns)
        for r, b in enumerate(blocks):  # friction is linear: its best values at these contact parameters
            nuisance[r] = coefficients(b.nuisance, residual[r], sigma, time, options.outlier)
            residual[r] = residual[r] - np.sum(b.nuisance * nuisance[r], axis=2)
        if sigma is None:
            sigma, time = noise_of(residual, blocks)
        cost = sum(_huber(r / sigma, options.outlier) @ (1 / time) for r in residual)
        cost += 0.5 * (z - mean) @ prior @ (z - mean)
        if cost < last:
            improvement, last, best, damping = last - cost, cost, z.copy(), max(damping / 5, 1e-9)
            weight = [huber_weights(r, sigma, options.outlier) / (sigma**2 * time) for r in residual]
            # Friction's columns are projected out, so that a step accounts for their adjustment.
            projected = [project(b.nuisance, jac, w) for b, jac, w in zip(blocks, jacobians, weight)]
            scores = [np.matmul((w * r)[:, None, :], p)[:, 0] for p, w, r in zip(projected, weight, residual)]
            hessian = prior + sum(_gram(p, w) for p, w in zip(projected, weight))
            gradient = prior @ (mean - z) + sum(rows.sum(axis=0) for rows in scores)
            kept = residual, nuisance.copy(), jacobians
            if improvement < 1e-6 * (1 + last):
                sharper, slower = noise_of(residual, blocks)
                if np.allclose(sharper, sigma, rtol=0.02):
                    break
                sigma, time, last, damping = sharper, slower, np.inf, 1e-3
                continue
        else:
            damping *= 10
            if damping > 1e9:
                break
        a = hessian + damping * np.diag(np.diag(hessian) + 1e-12)
        step = np.zeros(unknowns.size)
        step[free] = np.linalg.solve(a[np.ix_(free, free)], gradient[free])
        z = best + np.clip(step, -3.0, 3.0)
        z = np.maximum(z, unknowns.lower / scale)
    residual, nuisance, jacobians = kept
    lags = int(np.ceil(5 * time.max()))
    middle = long_run_covariance([s[:, free] for s in scores], lags) + prior[np.ix_(free, free)]
    bread = np.linalg.inv(hessian[np.ix_(free, free)])
    covariance = np.zeros((unknowns.size, unknowns.size))
    covariance[np.ix_(free, free)] = bread @ middle @ bread
    covariance *= np.outer(scale, scale)
    rms = np.sqrt(np.mean(np.concatenate(residual) ** 2, axis=0))
    theta = best * scale
    fitted = [_read(theta, covariance, unknowns, c, options) for c in range(len(unknowns.contacts))]
    return theta, UnbiasedFit(fitted, rms, [], nuisance), Optimum(theta, residual, jacobians, prior, options.outlier)


def _residuals(
    blocks: list[Blocks], theta: np.ndarray, unknowns: Unknowns
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Residual (T, n) and its derivative's negative (T, n, P) per recording, friction not yet taken off."""
    residual, jacobians = [], []
    for r, b in enumerate(blocks):
        left, jacobian = b.y.copy(), np.zeros((*b.y.shape, unknowns.size))
        for c, contact in enumerate(unknowns.contacts):
            places = unknowns.places(c, r)
            torque, slope = contact.evaluate(theta[places], b.inputs)
            left -= torque
            jacobian[:, :, places] = slope
        residual.append(left)
        jacobians.append(jacobian * unknowns.scale)
    return residual, jacobians


def _gram(jacobian: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sum over samples and joints of weight x outer product: (P, P)."""
    flat = jacobian.reshape(-1, jacobian.shape[2])
    return np.asarray(flat.T @ (flat * weight.reshape(-1, 1)))


def _huber(x: np.ndarray, threshold: float) -> np.ndarray:
    """Sum over samples of Huber's loss, per joint."""
    size = np.abs(x)
    return np.asarray(np.where(size <= threshold, 0.5 * size**2, threshold * (size - 0.5 * threshold)).sum(axis=0))


def _read(
    theta: np.ndarray, covariance: np.ndarray, unknowns: Unknowns, c: int, options: UnbiasedSettings
) -> ContactFit:
    """One contact of theta (size,) with its covariance, in SI."""
    contact, own = unknowns.contacts[c].settings, [p.name for p, *_ in unknowns.contacts[c].prior]
    last = unknowns.places(c, unknowns.recordings - 1)
    phi, std = theta[last], np.sqrt(np.diag(covariance)[last])
    phi, _ = same_side(find_law(contact.law), phi, covariance[np.ix_(last, last)], np.asarray(contact.stiffness))
    norm = float(np.linalg.norm(phi[:3]))
    direction = phi[:3] / norm
    spread = float(np.sqrt(direction @ covariance[np.ix_(last[:3], last[:3])] @ direction))
    if "stiffness" in options.estimate and spread > norm:
        raise _unloaded(contact.name, norm, spread, c)
    rests = np.array([theta[unknowns.places(c, r)[3:6]] for r in range(unknowns.recordings)])
    values = dict(zip(own, phi[9:].tolist()))
    fitted = dataclasses.replace(
        contact,
        stiffness=phi[:3].tolist(),
        rest=phi[3:6].tolist(),
        point=phi[6:9].tolist(),
        law_parameters={p.name: values[p.name] for p, *_ in contact.law_prior},
    )
    return ContactFit(fitted, std[:9], rests, norm, spread, values, dict(zip(own, std[9:].tolist())))
