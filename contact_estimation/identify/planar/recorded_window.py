"""A recorded window of one body, evenly sampled: eq. 18 with errors in variables, and a verdict on the answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.arrays import Array, Indices
from contact_estimation.identify.planar.errors_in_variables import StateNoise, judge, smooth_window
from contact_estimation.identify.planar.shapes import Shape
from contact_estimation.identify.planar.stepping import gravity
from contact_estimation.identify.planar.window import Slack, Step, body_step
from contact_estimation.identify.verdict import FAILED, Verdict, interval, total_std

_PENETRATION = 2e-4  # [m] that a body at rest may sink into the ground
_FAR = 10.0  # standard deviations by which noise may push a state off its constraint
_UNEVEN = 0.01  # share of the step by which an instant may be off the even grid


class RecordedWindow(NamedTuple):
    """Parameters and impulses of a recorded window; parameters and intervals are not a number where it failed."""

    values: dict[str, float]  # m_over_i [1/m^2]; with a known force also mass [kg] and inertia [kg m^2]
    intervals: dict[str, Array]  # 95 %, from the noise alone
    intervals_total: dict[str, Array]  # with the model error that was found
    normal: Array  # impulses (N, c) [N s], or per unit mass [m/s] without a known force
    tangent: Array  # impulses (N, c), the same
    status: str
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
    forces, fall = np.zeros((len(t) - 1, 3)) if external is None else external, gravity()

    def model(k: int | Indices, before: Array, rate: Array, after: Array) -> Step:
        return body_step(shape, (before, rate, after), h, friction, fall, forces[k])

    known = {} if forces.any() else {0: 1.0}
    farthest = _FAR * float(np.max(noise.position) + h * np.max(noise.velocity))
    lowest = float(np.min(q[:, 1] + shape.levers(q[:, 2])[..., 1].min(axis=-1)))
    if lowest > farthest:
        raise RecordingError(
            f"the body never touches the ground y = 0, its lowest point stays {lowest:.3g} m above: without contact "
            "nothing follows; expected m and rad, and a window with contact"
        )
    slack = Slack(_PENETRATION + farthest, _FAR * float(np.max(noise.velocity)))
    found = smooth_window(model, q, v, h, noise, slack, known)
    estimate, verdict = found.estimate, judge(found)
    wide = total_std(found.std, found.chi_square)
    # Where a solver that failed has stopped says nothing of the body.
    theta = np.full(2, np.nan) if verdict.verdict == FAILED else estimate.theta
    values = _values(theta, known)
    spread = [_deviations(theta, std, known) for std in (found.std, wide)]
    narrow, total = ({n: interval(np.array(values[n]), np.array(s)) for n, s in each.items()} for each in spread)
    return RecordedWindow(values, narrow, total, estimate.normal, estimate.tangent, estimate.status, verdict)


def _values(theta: Array, known: dict[int, float]) -> dict[str, float]:
    mass, inertia = (float(each) for each in theta)
    return {"m_over_i": mass / inertia} | ({} if known else {"mass": mass, "inertia": inertia})


def _deviations(theta: Array, std: Array, known: dict[int, float]) -> dict[str, float]:
    """Return standard deviations of :func:`_values`, to first order, mass and inertia taken as independent."""
    relative = std / theta
    ratio = {"m_over_i": float(theta[0] / theta[1] * np.hypot(*relative))}
    return ratio | ({} if known else {"mass": float(std[0]), "inertia": float(std[1])})
