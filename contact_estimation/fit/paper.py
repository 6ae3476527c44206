"""The papers' offline fit (paper 1, eq. 16; paper 2, eq. 15): expectation and maximisation in turns, with IPOPT.

    phi = argmin  sum_t ( ||mu_t+1 - f(mu_t, tau_t, phi)|| + w ||x_t - x_rest|| ) + beta_K ||K||_1 + beta_x ||x_tcp||

over about 2000 equally spaced pairs of filtered states. Norms are not squared, as printed; a square root of a small
constant keeps them differentiable. The objective mixes rad, rad/s and m without weights and is not a likelihood. It
serves as a baseline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from contact_estimation.contact import ContactSettings, find_law
from contact_estimation.contact.closed import from_stiffness_vector, same_sign
from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.settings import EkfSettings, SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.features import StepFeatures, step_features
from contact_estimation.fit.start import start_problem
from contact_estimation.fit.states import FilteredStates, filtered_states
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm

#: Units of [K, x_rest - mean TCP position, x_tcp] in which IPOPT sees a well-scaled problem.
_SCALE = np.repeat([1e4, 1e-2, 1e-1], 3)
_SMOOTH = 1e-12


@dataclass(frozen=True)
class PaperWeights:
    """Weights rest (w), stiffness (beta_K) [m/N] and point (beta_x) [1/m] of the objective, as printed."""

    rest: float = 0.5
    stiffness: float = 1e-9
    point: float = 5.0


@dataclass(frozen=True)
class PaperFit:
    """What was found.

    Attributes:
        stiffness: (3,) [N/m], base axes.
        rest: (3,) [m], base frame.
        point: (3,) [m], TCP frame.
        objective: per pair.
        passes: stiffness norm [N/m] after each pass.
    """

    stiffness: np.ndarray
    rest: np.ndarray
    point: np.ndarray
    objective: float
    passes: list[float]


def fit_paper(
    arm: Arm,
    settings: EkfSettings,
    sensors: SensorSettings,
    recording: Recording,
    weights: PaperWeights = PaperWeights(),
    passes: int = 2,
    pairs: int = 2000,
    progress: Callable[[int], None] | None = None,
) -> PaperFit:
    """Fit stiffness, rest and point of one contact to a recording.

    Args:
        arm: the robot.
        settings: EKF that estimates the states; its contact is the start of the fit.
        sensors: how the torque is read.
        recording: free motion and contact.
        weights: of the objective.
        passes: turns of filtering and optimising.
        pairs: number of state pairs.
        progress: called with the number of passes done.

    Raises:
        ConfigError: the settings are of another observer, or have not exactly one contact.
        IdentificationError: IPOPT found no minimum.
        RecordingError: the recording has samples that cannot be used.
    """
    if problem := start_problem(settings, one=True):
        raise ConfigError(f"{problem}; try load_observer_settings('paper_online')")
    contact = dataclasses.replace(settings.contacts[0], estimate=[])
    history, value = [], float("nan")
    for turn in range(passes):
        observer = Ekf(arm, dataclasses.replace(settings, contacts=[contact]))
        states = filtered_states(SampleStream(observer, arm, sensors), recording)
        phi, value = _maximise(_features(arm, states, pairs), contact, weights)
        stiffness = same_sign(phi[:3], np.asarray(contact.stiffness))
        contact = dataclasses.replace(
            contact, stiffness=stiffness.tolist(), rest=phi[3:6].tolist(), point=phi[6:].tolist()
        )
        history.append(float(np.linalg.norm(stiffness)))
        if progress is not None:
            progress(turn + 1)
    return PaperFit(np.array(contact.stiffness), np.array(contact.rest), np.array(contact.point), value, history)


def _features(arm: Arm, states: FilteredStates, pairs: int) -> StepFeatures:
    rows = np.unique(np.linspace(0, len(states.q) - 2, pairs).astype(int))
    return step_features(
        arm, states.h, states.q[rows], states.dq[rows], states.tau[rows], states.q[rows + 1], states.dq[rows + 1]
    )


def _maximise(features: StepFeatures, contact: ContactSettings, weights: PaperWeights) -> tuple[np.ndarray, float]:
    """Minimise with IPOPT and exact second derivatives; return phi (9,) in SI and the objective per pair."""
    count, n = features.error_dq.shape
    offset = np.concatenate([np.zeros(3), features.position.mean(0), np.zeros(3)])
    scaled = ca.SX.sym("phi", 9)
    inverse, position, rotation = ca.SX.sym("S", n, n), ca.SX.sym("p", 3), ca.SX.sym("R", 3, 3)
    error_dq, error_q, jacobian = ca.SX.sym("e_dq", n), ca.SX.sym("e_q", n), ca.SX.sym("J", 6, n)
    phi = scaled * _SCALE + offset
    lever = rotation @ phi[6:]
    own = ca.DM([mean for _, mean, _ in contact.law_prior])
    stretch, reference = phi[3:6] - position - lever, np.asarray(contact.stiffness)
    force = from_stiffness_vector(find_law(contact.law), phi[:3], stretch, own, reference).force_base
    acceleration = inverse @ (jacobian[:3, :].T @ force + jacobian[3:, :].T @ ca.cross(lever, force))
    step = ca.vertcat(error_q - features.h**2 * acceleration, error_dq - features.h * acceleration)
    term = _norm(step) + weights.rest * _norm(position + lever - phi[3:6])
    each = ca.Function("term", [scaled, inverse, error_dq, error_q, position, rotation, jacobian], [term]).map(count)
    z = ca.MX.sym("z", 9)
    columns = [features.error_dq.T, features.error_q.T, features.position.T]
    total = ca.sum2(
        each(
            z,
            _side_by_side(features.inverse),
            *columns,
            _side_by_side(features.rotation),
            _side_by_side(features.jacobian),
        )
    )
    small = ca.sum1(ca.fabs(z[:3]) * _SCALE[0]) * weights.stiffness + weights.point * _norm(z[6:] * _SCALE[8])
    solver = ca.nlpsol(
        "fit",
        "ipopt",
        {"x": z, "f": total + small},
        {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "ipopt.max_iter": 300},
    )
    rest = features.position.mean(0) if isinstance(contact.rest, str) else np.asarray(contact.rest)
    start = (np.concatenate([contact.stiffness, rest, contact.point]) - offset) / _SCALE
    found = solver(x0=start)
    if not solver.stats()["success"]:
        raise IdentificationError(
            f"IPOPT found no minimum of the papers' objective "
            f"({solver.stats()['return_status']}); start from a stiffness of the right order "
            f"(configuration key contacts[0].stiffness), or use "
            "--objective unbiased"
        )
    return np.array(found["x"]).ravel() * _SCALE + offset, float(found["f"]) / count


def _norm(vector: ca.SX) -> ca.SX:
    return ca.sqrt(ca.sumsqr(vector) + _SMOOTH)


def _side_by_side(matrices: np.ndarray) -> np.ndarray:
    """(T, r, c) -> (r, T c), the layout of a mapped casadi.Function."""
    return np.asarray(matrices.transpose(1, 0, 2).reshape(matrices.shape[1], -1))
