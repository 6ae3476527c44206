"""Free flights joined by impacts at unknown times, fitted to recorded states without a contact model.

Between impacts the centre of mass falls and the body turns at a constant rate. A recorded path is therefore a parabola
with change points of its velocity:

    q(t) = q0 + v0 t + g t^2 / 2 + sum_j dv_j max(t - t_j, 0),    v(t) = dq/dt

An impact may happen anywhere between two samples, so t_j is an unknown. Velocities of the two samples next to an impact
are left out, because the impact may still act there. Differences that vanish in flight measure the noise; the residual
of a fit never does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from contact_estimation.identify.arrays import Array, Flags
from contact_estimation.identify.planar.stepping import gravity

IMPACT_DURATION = 2e-3  # [s] default of the longest impact
MOST_IMPACTS = 10  # impacts sought in one recording
_ROBUST = 1.4826  # standard deviation of a Gaussian over its median absolute value
_TRIM = 4.0  # differences beyond this many standard deviations are not noise
_NEAR = 3  # samples on either side of an impact whose differences are not noise
_SPLIT = 1.0  # [samples] how far from the middle two impacts that look like one are sought
_ITERATIONS = 30  # Gauss-Newton steps for the times of the impacts
_SMALLEST_STEP = 0.05  # [samples] a smaller step of the times is not tried
_BETTER = 1e-3  # a chi-square must fall by this much for another step
_SINGULAR = 1e-9  # of the largest pivot: a smaller one may be rounding
_NONE: Array = np.zeros(0)


@dataclass(frozen=True)
class Recording:
    """Noisy states of one free body over ground at y = 0.

    Attributes:
        t: instants (N,) [s], increasing.
        q: configurations (N, 3) [m, m, rad].
        v: velocities (N, 3) at the same instants; None where only q was measured.
        slope: angle [rad] by which the ground falls towards +x.
        delay: by how much velocities are later than they should be [s].
        stepped: the states come from a time-stepping simulation, q^{k+1} = q^k + h v^{k+1}: impacts happen at
            samples, up to a step above the ground, and velocities lag by half a step of gravity.
        impact_duration: longest impact [s]; velocities this near to one are left out.
    """

    t: Array
    q: Array
    v: Array | None
    slope: float = 0.0
    delay: float = 0.0
    stepped: bool = False
    impact_duration: float = IMPACT_DURATION

    @cached_property
    def interval(self) -> float:
        """Median time between samples [s]."""
        return float(np.median(np.diff(self.t)))

    def until(self, time: float) -> Recording:
        """Return the samples before an impact at ``time`` [s], less the last: it may already belong to it."""
        end: int = int(np.searchsorted(self.t, time - self.impact_duration)) - 1
        return replace(self, t=self.t[:end], q=self.q[:end], v=None if self.v is None else self.v[:end])

    @cached_property
    def channels(self) -> Array:
        """Measured numbers (N, 3) or (N, 6) less what gravity does to them."""
        t, g = self.t[:, None], gravity(self.slope)
        q = self.q - 0.5 * g * t**2
        late = self.delay + (0.5 * self.interval if self.stepped else 0.0)
        return q if self.v is None else np.hstack([q, self.v - g * (t - late)])


@dataclass(frozen=True)
class Noise:
    """Noise of the channels, and how well it is known.

    Attributes:
        sigma: standard deviations (3,) or (6,).
        samples: independent differences (3,) or (6,) behind each of them.
    """

    sigma: Array
    samples: Array


@dataclass(frozen=True)
class FlightFit:
    """Least-squares path.

    Attributes:
        start: q0 and v0 (2, 3).
        jumps: dv_j (J, 3).
        times: t_j (J,) [s].
        residual: over the noise (N, channels); NaN where a number was left out.
        rows: whitened derivative of the path (numbers used, 6 + 4 J).
        chi_square: sum of the squared residuals.
    """

    start: Array
    jumps: Array
    times: Array
    residual: Array
    rows: Array
    chi_square: float

    @cached_property
    def covariance(self) -> Array:
        """Covariance of [start and jumps by axis, times] (6 + 4 J, 6 + 4 J)."""
        return np.asarray(np.linalg.pinv(self.rows.T @ self.rows, hermitian=True))

    @cached_property
    def time_step(self) -> Array:
        """Gauss-Newton correction (J,) [s] of the times."""
        correction = self.covariance @ (self.rows.T @ self.residual[np.isfinite(self.residual)])
        return np.asarray(np.nan_to_num(correction[len(correction) - len(self.times) :]))

    @property
    def degrees(self) -> int:
        """Numbers used less parameters."""
        return int(self.rows.shape[0] - self.rows.shape[1])


def measure_noise(recording: Recording, times: Array | None = None) -> Noise:
    """Measure the noise by differences that vanish in flight, away from impacts at ``times`` [s].

    Positions by third differences of q on an even grid; velocities by second differences of v.
    """
    sigma, samples = [], []
    order = [(recording.q, 3)] + ([] if recording.v is None else [(recording.v, 2)])
    for rows, degree in order:
        differences, gain = _flight_differences(recording.t, rows - _fallen(recording, degree), degree)
        keep = _away(recording.t, degree, times)
        differences = differences[keep] if keep.sum() >= 4 else differences
        robust = _ROBUST * np.median(np.abs(differences), axis=0)
        inside = np.abs(differences) <= _TRIM * robust
        trimmed = np.sqrt(np.sum(np.where(inside, differences, 0.0) ** 2, axis=0) / np.maximum(inside.sum(axis=0), 1))
        floor = 1e-5 * np.ptp(rows, axis=0) + 1e-9
        sigma.append(np.maximum(trimmed, floor))
        samples.append(inside.sum(axis=0) / gain)
    return Noise(np.concatenate(sigma), np.concatenate(samples))


def _fallen(recording: Recording, degree: int) -> Array:
    """Return what gravity does to q (degree 3) or v (degree 2)."""
    t, g = recording.t[:, None], gravity(recording.slope)
    return np.asarray(0.5 * g * t**2 if degree == 3 else g * t)


def _flight_differences(t: Array, rows: Array, degree: int) -> tuple[Array, float]:
    """Divided differences (N - degree, 3) of unit noise gain, and numbers per independent one."""
    windows = np.stack([t[i : len(t) - degree + i] for i in range(degree + 1)], axis=-1)  # (N - degree, degree + 1)
    gaps = windows[:, :, None] - windows[:, None, :]
    np.einsum("nii->ni", gaps)[:] = 1.0
    weights = 1.0 / gaps.prod(axis=-1)
    weights /= np.linalg.norm(weights, axis=-1, keepdims=True)
    values = np.stack([rows[i : len(t) - degree + i] for i in range(degree + 1)], axis=1)  # (N - degree, degree + 1, 3)
    even = np.array([1.0, -3.0, 3.0, -1.0] if degree == 3 else [1.0, -2.0, 1.0])
    correlation = np.correlate(even, even, "full") / (even @ even)
    return np.einsum("nk,nkc->nc", weights, values), float(correlation @ correlation)


def _away(t: Array, degree: int, times: Array | None) -> Flags:
    """Differences (N - degree,) that touch no sample within ``_NEAR`` of an impact."""
    keep = np.ones(len(t) - degree, bool)
    for time in () if times is None else times:
        k = int(np.searchsorted(t, time))
        keep[max(k - degree - _NEAR + 1, 0) : k + _NEAR] = False
    return keep


def fit_flights(recording: Recording, noise: Noise, times: Array) -> FlightFit:
    """Fit the path with impacts near ``times`` (J,) [s]: Gauss-Newton over them, least squares over the rest.

    No time moves by more than a sample at once; a step that does not help is halved.
    """
    best, reach = _linear_fit(recording, noise, np.sort(np.asarray(times, float))), recording.interval
    tried, chi_square = best.times, best.chi_square
    for _ in range(_ITERATIONS if len(best.times) else 0):
        step = np.clip(best.time_step, -reach, reach)
        moved, trial = np.sort(np.clip(best.times + step, recording.t[0], recording.t[-1])), None
        if reach == recording.interval:  # most whole steps help
            trial = _linear_fit(recording, noise, moved)
            tried, chi_square = moved, trial.chi_square
        elif not np.array_equal(moved, tried):  # halving leaves a step that is within reach as it is
            tried, chi_square = moved, _chi_square(recording, noise, moved)
        if chi_square <= best.chi_square - _BETTER:
            best, reach = trial or _linear_fit(recording, noise, moved), recording.interval
        elif reach < _SMALLEST_STEP * recording.interval or chi_square <= best.chi_square:
            break
        else:
            reach *= 0.5
    return best


def _chi_square(recording: Recording, noise: Noise, times: Array) -> float:
    """Chi-square of :func:`_linear_fit` alone.

    The axes share their columns; only the noise differs. One QR of the columns beside the values serves all three.
    """
    lag, values, width = recording.t[:, None] - times, recording.channels, 2 + len(times)
    columns = np.ones((len(lag), width + 3))  # 1, t, ramps, values
    columns[:, 1], columns[:, 2:width], columns[:, width:] = recording.t, np.maximum(lag, 0.0), values[:, :3]
    parts = [np.linalg.qr(columns, mode="r") / noise.sigma[:3, None, None]]
    if recording.v is not None:
        used = _away_from(recording, times)
        columns = np.zeros((np.count_nonzero(used), width + 3))
        columns[:, 1], columns[:, 2:width], columns[:, width:] = 1.0, lag[used] > recording.delay, values[used, 3:]
        parts.append(np.linalg.qr(columns, mode="r") / noise.sigma[3:, None, None])
    triangles = np.concatenate(parts, axis=1)  # (3, rows, width + 3)
    own = np.stack([triangles[axis, :, [*range(width), width + axis]].T for axis in range(3)])  # one value per axis
    factors = np.linalg.qr(own, mode="r")
    pivots = np.abs(np.diagonal(factors, axis1=1, axis2=2))[:, :width]
    if (pivots.min(axis=1) > _SINGULAR * pivots.max(axis=1)).all():
        return float(np.sum(np.square(factors)[:, width, width]))
    return _linear_fit(recording, noise, times).chi_square


def _away_from(recording: Recording, times: Array) -> Flags:
    """Return the samples (N,) whose velocities are used: neither next to an impact nor within one."""
    t, late = recording.t, recording.delay
    used: Flags = np.asarray((np.abs(t[:, None] - times - late) >= recording.impact_duration).all(axis=1))
    after = np.searchsorted(t, times + late)
    used[np.maximum(after - 1, 0)] = used[np.minimum(after, len(t) - 1)] = False
    return used


def _linear_fit(recording: Recording, noise: Noise, times: Array) -> FlightFit:
    """Path with impacts at exactly ``times``."""
    t, values, sigma = recording.t, recording.channels, noise.sigma
    lag = t[:, None] - times
    past = (lag > 0.0).astype(float)
    q_basis = np.column_stack([np.ones(len(t)), t, np.maximum(lag, 0.0)])  # (N, 2 + J)
    v_basis = np.column_stack([np.zeros(len(t)), np.ones(len(t)), lag > recording.delay])
    used = np.ones(values.shape, bool)
    rates = _away_from(recording, times) if recording.v is not None else used[:, 0]
    used[:, 3:] = rates[:, None]
    used_basis, used_values = v_basis[rates], values[rates, 3:]
    count, width = len(times), 2 + len(times)
    rows, residual = np.zeros((*values.shape, 3 * width + count)), np.zeros(values.shape)
    coefficients = np.zeros((3, width))
    for axis in range(3):
        parts = [(axis, q_basis)]
        stacked, target = q_basis / sigma[axis], values[:, axis] / sigma[axis]
        if recording.v is not None:
            parts.append((axis + 3, v_basis))
            stacked = np.vstack([stacked, used_basis / sigma[axis + 3]])
            target = np.concatenate([target, used_values[:, axis] / sigma[axis + 3]])
        coefficients[axis] = np.linalg.lstsq(stacked, target, rcond=None)[0]
        for c, basis in parts:
            residual[:, c] = (values[:, c] - basis @ coefficients[axis]) / sigma[c]
            rows[:, c, axis * width : (axis + 1) * width] = basis / sigma[c]
        rows[:, axis, 3 * width :] = -past * coefficients[axis, 2:] / sigma[axis]
    chi_square = float(np.sum(np.where(used, residual, 0.0) ** 2))
    residual[~used] = np.nan
    every = rows.reshape(used.size, -1)
    jumps = coefficients[:, 2:].T
    return FlightFit(coefficients[:, :2].T, jumps, times, residual, every[used.ravel()], chi_square)


def find_impacts(recording: Recording, noise: Noise, times: Array = _NONE) -> FlightFit:
    """Find impacts beside ``times`` one at a time where they lower the chi-square most; drop those that do not.

    An impact must lower it by the description length of its three jumps, its time and the choice of its sample.
    """
    count = recording.channels.size
    price = 6.0 * np.log(count) + 2.0 * np.log(len(recording.t))
    fit = fit_flights(recording, noise, times)
    while len(fit.times) < MOST_IMPACTS:
        time, gain = _best_change(recording, noise, fit)
        longer = fit_flights(recording, noise, np.append(fit.times, time)) if gain >= price else fit
        if longer.chi_square > fit.chi_square - price and fit.chi_square - fit.degrees > price:
            longer = _split(recording, noise, fit)
        if longer.chi_square > fit.chi_square - price:
            break
        fit = longer
    return _prune(recording, noise, fit, price)


def _split(recording: Recording, noise: Noise, fit: FlightFit) -> FlightFit:
    """Put two impacts in the place of the one where that lowers the chi-square most.

    Two impacts a few samples apart look like one between them: no third one beside that one explains them.
    """
    apart = [_SPLIT * recording.interval * np.array([-1.0, 1.0]) + time for time in fit.times]
    others = [np.delete(fit.times, j) for j in range(len(fit.times))]
    splits = [fit_flights(recording, noise, np.append(rest, pair)) for rest, pair in zip(others, apart)]
    return min(splits, key=lambda split: split.chi_square, default=fit)


def _prune(recording: Recording, noise: Noise, fit: FlightFit, price: float) -> FlightFit:
    """Leave out impacts that the others have made superfluous."""
    j = 0
    while j < len(fit.times) and len(fit.times) > 1:
        fewer = fit_flights(recording, noise, np.delete(fit.times, j))
        if fewer.chi_square < fit.chi_square + price:
            fit, j = fewer, 0
        else:
            j += 1
    return fit


def _best_change(recording: Recording, noise: Noise, fit: FlightFit) -> tuple[float, float]:
    """Time [s] of the impact that would lower the chi-square most, and by how much to first order."""
    t = recording.t
    middles = 0.5 * (t[1:-2] + t[2:-1])
    lag = t[:, None] - middles
    past = (lag > 0.0).astype(float)
    gain, weight, shift = np.zeros(len(middles)), np.zeros(len(middles)), np.zeros(len(middles))
    for axis in range(3):
        channels = [axis] if recording.v is None else [axis, axis + 3]
        used = np.isfinite(fit.residual[:, channels])
        r = np.concatenate([fit.residual[used[:, i], c] for i, c in enumerate(channels)])
        parts = [(np.maximum(lag, 0.0), past), (past, np.zeros_like(past))]
        ramp, step = (
            np.vstack([parts[i][which][used[:, i]] / noise.sigma[c] for i, c in enumerate(channels)])
            for which in (0, 1)
        )
        known = _axis_rows(recording, noise, fit, axis, used)
        basis = np.linalg.qr(known)[0]
        ramp, step = (block - basis @ (basis.T @ block) for block in (ramp, step))
        size = np.maximum((ramp * ramp).sum(axis=0), 1e-12)
        share = (ramp * step).sum(axis=0) / size
        step = step - share * ramp
        rest = np.maximum((step * step).sum(axis=0), 1e-9)
        up, side = (r @ ramp) / size, (r @ step) / rest
        gain += up**2 * size + side**2 * rest
        slope = up - share * side
        weight += slope**2 * rest
        shift += slope * side * rest
    best = int(np.argmax(gain))
    half = 0.5 * float(t[best + 2] - t[best + 1])
    delay = -shift[best] / weight[best] if weight[best] > 0.0 else 0.0
    return float(middles[best] + np.clip(delay, -half, half)), float(gain[best])


def _axis_rows(recording: Recording, noise: Noise, fit: FlightFit, axis: int, used: Flags) -> Array:
    """Whitened columns of the known path of one axis."""
    lag = recording.t[:, None] - fit.times
    past = (lag > 0.0).astype(float)
    ones = np.ones(len(recording.t))
    q_rows = np.column_stack([ones, recording.t, np.maximum(lag, 0.0), past])
    v_rows = np.column_stack([0.0 * ones, ones, past, 0.0 * past])
    parts = [(axis, q_rows), (axis + 3, v_rows)][: used.shape[1]]
    return np.vstack([rows[used[:, i]] / noise.sigma[c] for i, (c, rows) in enumerate(parts)])
