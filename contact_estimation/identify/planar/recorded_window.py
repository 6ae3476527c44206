"""A recorded window of one body, evenly sampled: eq. 18 with errors in variables, and a verdict on the answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.discretisation import MIDPOINT, TIME_STEPPING, Scheme
from contact_estimation.identify.planar.errors_in_variables import (
    Options,
    SmoothedWindow,
    StateNoise,
    judge,
    smooth_window,
)
from contact_estimation.identify.planar.force_errors import ForceVerdict, force_error_columns, judge_force
from contact_estimation.identify.planar.shapes import Shape
from contact_estimation.identify.planar.stepping import GRAVITY, gravity
from contact_estimation.identify.planar.window import Slack, Step, body_step
from contact_estimation.identify.verdict import FAILED, Finding, Verdict, interval, total_std

_PENETRATION = 2e-4  # [m] that a body at rest may sink into the ground
_FAR = 10.0  # standard deviations by which noise may push a state off its constraint
_NEAR = 5.0  # the same for smoothed states, whose noise is smaller
_DECIDED = 10.0  # of Akaike's criterion, from which the worse discretisation is out of the question
_FEWEST = 40  # steps for a fit to every second sample
_IMPACT = 4.0  # weights that a step's normal impulse carries, from which it is an impact
_APART = 4.0  # standard deviations by which that fit may be off
_UNEVEN = 0.01  # share of the step by which an instant may be off the even grid


class RecordedWindow(NamedTuple):
    """Parameters and impulses of a recorded window; parameters and intervals are not a number where it failed."""

    values: dict[str, float]  # m_over_i [1/m^2]; with a known force also mass [kg] and inertia [kg m^2]
    intervals: dict[str, Array]  # 95 %, from the noise alone
    intervals_total: dict[str, Array]  # with the model error that was found
    normal: Array  # impulses (N, c) [N s], or per unit mass [m/s] without a known force
    tangent: Array  # impulses (N, c), the same
    status: str
    scheme: str  # discretisation that explains the states: "time stepping" or "midpoint"
    verdict: Verdict


def identify_recorded_window(
    shape: Shape, friction: float, t: Array, q: Array, v: Array, noise: StateNoise, external: Array | None = None
) -> RecordedWindow:
    """Identify a body on level ground from its states.

    Args:
        shape: outline.
        friction: Coulomb coefficient.
        t: instants (N+1,) [s], evenly spaced.
        q: configurations (N+1, 3) = x, y, theta with the ground at y = 0.
        v: their rates (N+1, 3).
        noise: of both.
        external: known forces (N, 3) or (N+1, 3) [N, N, Nm] besides gravity; None if there are none.

    Raises:
        ConfigError: a standard deviation of the noise is not above 0.
        RecordingError: uneven instants, forces of another length, or a body that never touches the ground.
    """
    h = float(np.median(np.diff(t)))
    if np.max(np.abs(np.diff(t) - h)) > _UNEVEN * h:
        raise RecordingError(
            f"the instants are uneven (steps {np.diff(t).min():.4g} to {np.diff(t).max():.4g} s); resample them, or "
            "use --drop, which takes uneven samples"
        )
    if external is not None and external[: len(t) - 1].shape != (len(t) - 1, 3):
        raise RecordingError(f"force has shape {external.shape}, expected ({len(t) - 1}, 3) or ({len(t)}, 3)")
    forces = np.zeros((len(t) - 1, 3)) if external is None else external[: len(t) - 1]
    known = {} if forces.any() else {0: 1.0}
    farthest = _FAR * float(np.max(noise.position) + h * np.max(noise.velocity))
    lowest = float(np.min(q[:, 1] + shape.levers(q[:, 2])[..., 1].min(axis=-1)))
    if lowest > farthest:
        raise RecordingError(
            f"the body never touches the ground y = 0, its lowest point stays {lowest:.3g} m above: without contact "
            "nothing follows; expected m and rad, and a window with contact"
        )
    window = _Samples(shape, friction, h, q, v, noise, forces, known)
    found = _choose_scheme(window)
    estimate, theta = found.smoothed.estimate, found.smoothed.estimate.theta
    force = ForceVerdict([], [], [])
    if not known and estimate.status != "failed":
        force = judge_force(found.smoothed.errors, theta, found.smoothed.std, shape.radius)
    verdict = judge(found.smoothed, [*found.findings, *force.findings], force.unchecked)
    wide = total_std(found.smoothed.std, found.smoothed.chi_square, shifts=[*found.shifts, *force.shifts])
    # Where a solver that failed has stopped says nothing of the body.
    theta = np.full(2, np.nan) if verdict.verdict == FAILED else theta
    values = _values(theta, known)
    spread = [_deviations(theta, std, known) for std in (found.smoothed.std, wide)]
    narrow, total = ({n: interval(np.array(values[n]), np.array(s)) for n, s in each.items()} for each in spread)
    return RecordedWindow(
        values, narrow, total, estimate.normal, estimate.tangent, estimate.status, found.scheme.name, verdict
    )


class _Samples(NamedTuple):
    """Evenly spaced states of a body and the force on it."""

    shape: Shape
    friction: float
    h: float  # step [s]
    q: Array  # (N+1, 3)
    v: Array  # (N+1, 3)
    noise: StateNoise
    forces: Array  # over each step (N, 3)
    known: dict[int, float]

    def every_second(self) -> _Samples:
        """Return every second state, with the mean force between two of them."""
        steps = len(self.forces) // 2
        forces = self.forces[: 2 * steps].reshape(steps, 2, 3).mean(axis=1)
        used = slice(0, 2 * steps + 1, 2)
        return self._replace(h=2.0 * self.h, q=self.q[used], v=self.v[used], forces=forces)

    def smooth(self, scheme: Scheme) -> SmoothedWindow:
        """Fit states, parameters and impulses with a discretisation."""
        position, velocity, h = *self.noise, self.h

        def model(k: int | Indices, before: Array, rate: Array, after: Array) -> Step:
            return body_step(self.shape, (before, rate, after), h, self.friction, gravity(), self.forces[k])

        farthest = _FAR * float(np.max(position) + h * np.max(velocity))
        slack = Slack(_PENETRATION + farthest, _FAR * float(np.max(velocity)))
        along, height, angle = range(3)
        apart = np.hypot(position[height], self.shape.radius * position[angle])
        slip = np.hypot(velocity[along], self.shape.radius * velocity[angle])
        narrow = Slack(_PENETRATION + _NEAR * float(apart), _NEAR * float(slip))
        options = Options(scheme, narrow, force_error_columns(self.forces, h) if self.forces.any() else None)
        return smooth_window(model, self.q, self.v, h, self.noise, slack, self.known, options)


class _Chosen(NamedTuple):
    """A fit with the discretisation that explains the states better."""

    scheme: Scheme
    smoothed: SmoothedWindow
    findings: list[Finding]
    shifts: list[Array]  # by which theta (r,) differs with another discretisation or step


def _choose_scheme(samples: _Samples) -> _Chosen:
    """Fit with both discretisations, choose by Akaike's criterion, and measure what the step leaves of an error.

    A scheme that is not clearly worse counts by its distance. So does time stepping where the midpoint rule meets
    impacts: within a step with an impact both are of first order. The midpoint rule is an approximation, so a fit to
    every second sample counts by its distance too. States that obey time stepping do not obey it at twice the step.
    """
    fits = {scheme: samples.smooth(scheme) for scheme in (TIME_STEPPING, MIDPOINT)}
    merit = {s: _merit(fit) for s, fit in fits.items()}
    scheme = min(fits, key=lambda each: merit[each])
    other = MIDPOINT if scheme is TIME_STEPPING else TIME_STEPPING
    best, findings, shifts = fits[scheme], list[Finding](), list[Array]()
    if best.estimate.status != "local":
        return _Chosen(scheme, best, findings, shifts)
    if merit[other] - merit[scheme] < _DECIDED or (scheme is MIDPOINT and _has_impacts(samples, best)):
        shifts.append(fits[other].estimate.theta - best.estimate.theta)
    if scheme is MIDPOINT and len(samples.forces) >= _FEWEST:
        coarse = samples.every_second().smooth(MIDPOINT)
        shift = coarse.estimate.theta - best.estimate.theta
        if coarse.estimate.status == "local":
            shifts.append(shift)
        free = [i for i in range(len(shift)) if i not in samples.known]
        apart = float(np.max(np.abs(shift[free]) / np.maximum(coarse.std[free], 1e-300)))
        message = (
            "every second sample gives another result: the samples are too far apart for this motion, or impacts "
            "happen between them; record faster, or use --drop for bounces"
        )
        findings.append(Finding("step", apart if coarse.estimate.status == "local" else np.nan, _APART, message))
    return _Chosen(scheme, best, findings, shifts)


def _has_impacts(samples: _Samples, fit: SmoothedWindow) -> bool:
    """Return whether a step's normal impulse is several times what carries the weight."""
    carried = samples.h * GRAVITY * fit.estimate.theta[0]
    return bool(np.max(fit.estimate.normal.sum(axis=1)) > _IMPACT * carried)


def _merit(fit: SmoothedWindow) -> float:
    """Return Akaike's criterion up to a constant; infinite without a result."""
    return float(np.sum(fit.residuals**2)) - 2.0 * fit.freedom if fit.estimate.status == "local" else np.inf


def _values(theta: Array, known: dict[int, float]) -> dict[str, float]:
    mass, inertia = (float(each) for each in theta)
    return {"m_over_i": mass / inertia} | ({} if known else {"mass": mass, "inertia": inertia})


def _deviations(theta: Array, std: Array, known: dict[int, float]) -> dict[str, float]:
    """Return standard deviations of :func:`_values`, to first order, mass and inertia taken as independent."""
    relative = std / theta
    ratio = {"m_over_i": float(theta[0] / theta[1] * np.hypot(*relative))}
    return ratio | ({} if known else {"mass": float(std[0]), "inertia": float(std[1])})
