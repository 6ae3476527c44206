"""m/I from the impacts of fitted flights: the contact point on the outline, and the rotation by the impulse.

An impact at contact r(theta) obeys, at its instant,

    y + r_y = 0,    d omega = (m/I) (r_x dv_y - r_y dv_x)

for any friction and restitution. The flights give the five numbers (y, theta, dv_x, dv_y, d omega) of each impact with
their covariance. For every m/I these numbers get the smallest correction that fulfils both equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.flights import FlightFit, Noise, Recording
from contact_estimation.identify.planar.shapes import Shape, gyration_radii
from contact_estimation.identify.planar.stepping import gravity

_ROUNDS, _SETTLED = 8, 1e-6  # corrections per m/I: at most, and change that ends them


@dataclass(frozen=True)
class Told:
    """What is known beforehand.

    Attributes:
        shape: outline.
        friction: Coulomb coefficient.
        friction_std: its uncertainty.
        size_std: uncertainty of the outline's size, as a share of it.
        centre_std: standard deviation of the centre of mass along each axis, as a share of the outline's radius; None
            if it is not known. It does not move m/I; it says how far impacts that do not check the centre are trusted.
    """

    shape: Shape
    friction: float
    friction_std: float = 0.05
    size_std: float = 0.0
    centre_std: float | None = None


class Touch(NamedTuple):
    """One impact.

    Attributes:
        contact: which contact of the shape.
        double: a second contact may have taken part: nothing is said about m/I.
    """

    contact: int
    double: bool


class Correction(NamedTuple):
    """Least correction of the impacts' numbers for one m/I.

    Attributes:
        values: (J, 5) y, theta, dv_x, dv_y, d omega.
        misses: by what the uncorrected impacts miss their conditions (2 J,) [m, m/s]: heights, then arms.
        chi_square: of the correction.
        scores: misses over their standard deviations (2 J,); 0 where a condition is not used.
    """

    values: Array
    misses: Array
    chi_square: float
    scores: Array


class Impacts:
    """Impacts of a fitted path against an outline.

    A contact gives way: an impact lasts. The fitted path has a kink at the centre t_c of the normal impulse, which is
    after the first touch t_0. With the contact's approach speed v_n, the kink lies v_n (t_c - t_0) below the ground.
    Under a constant force the impact lasts d = 2 (t_c - t_0), and its mean angle is d omega d / 6 beyond the kink's.
    Friction that reverses within the impact moves the centre of its impulse; x and theta jump by s and -(m/I) r_y s.

    Args:
        recording: where the path comes from.
        noise: of its channels.
        fit: its flights.
        told: outline, friction and how well they are known.
    """

    def __init__(self, recording: Recording, noise: Noise, fit: FlightFit, told: Told) -> None:
        self.shape, self.count = told.shape, len(fit.times)
        self.found, slope = impact_numbers(recording, fit)
        self._velocities, self._velocity_spread = _approach(fit, gravity(recording.slope))
        self.approach_speeds = np.abs([self._approach_speed(j) for j in range(self.count)])  # [m/s]
        longest = 0.0 if recording.stepped else recording.impact_duration
        self.durations = np.full(self.count, 0.5 * longest)  # [s] uniform from 0 to the longest
        friction = float(np.hypot(told.friction, told.friction_std))
        self._jump_std = friction * np.abs(self.found[:, 3]) * longest / 12.0  # [m] up to mu dv_y d / 4 either way
        lasting = longest**2 / 12.0 * np.eye(self.count)
        known = block_diag(slope @ fit.covariance @ slope.T, told.size_std**2, lasting)
        self.gaps = np.zeros(self.count)  # [m] how far above the ground an impact may happen
        if recording.stepped:
            self.gaps = recording.interval * self.approach_speeds
        #: covariance (7 J + 1, 7 J + 1) of the impacts' numbers, the outline's scale, durations and jumps s
        self.spread = block_diag(known, np.zeros((self.count, self.count)))
        self.touches = [self._touch(j, recording.interval, recording.impact_duration) for j in range(self.count)]
        self._contacts = np.array([touch.contact for touch in self.touches])
        self._arms = np.flatnonzero([not touch.double for touch in self.touches])  # impacts that inform
        _, heights, _, rates = self.shape.levers_at(self.found[:, 1], self._contacts)
        self._rolling = rates * (self._velocities[:, 2] + 0.5 * self.found[:, 4])  # arm per jump s [1/s]
        self._slack = np.concatenate([self.gaps**2 / 12.0, [float(touch.double) for touch in self.touches]])
        self.spread += self._jump_spread(heights, position_responses(recording, noise, fit, slope))

    def _touch(self, j: int, step: float, duration: float) -> Touch:
        """Lowest contact of impact ``j``, and whether the next may have closed before the next sample."""
        levers = self.shape.levers(self.found[j, 1])
        order = np.argsort(levers[:, 1])
        if len(order) == 1:
            return Touch(0, False)
        _, _, vx, vy, turn = self.found[j]
        std = np.sqrt(self.spread[5 * j + 1, 5 * j + 1]) * np.ptp(levers[order[:2], 0])
        speed = np.hypot(vx, vy) + self.shape.radius * abs(turn)
        gap = levers[order[1], 1] - levers[order[0], 1]
        return Touch(int(order[0]), bool(gap < 4.0 * std + speed * (step + duration)))

    @property
    def informative(self) -> int:
        """Impacts that say something about m/I."""
        return len(self._arms)

    def correct(self, ratio: float) -> Correction:
        """Correct the impacts for one m/I, by Gauss-Newton on the constrained problem."""
        numbers, rest, std, chi_squares = (part[0] for part in self._corrections(np.array([ratio])))
        return Correction(numbers[: 5 * self.count].reshape(-1, 5), rest, float(chi_squares), rest / std)

    def chi_squares(self, ratios: Array) -> Array:
        """Chi-square (R,) of the correction for each m/I (R,) [1/m^2], all at once."""
        return self._corrections(ratios)[3]

    def _corrections(self, ratios: Array) -> tuple[Array, Array, Array, Array]:
        """Corrected numbers (R, 7 J + 1), misses (R, 2 J), their standard deviations (R, 2 J), chi-squares (R,)."""
        start = np.concatenate([self.found.ravel(), [1.0], self.durations, np.zeros(self.count)])
        numbers = np.tile(start, (len(ratios), 1))
        rests, stds = np.zeros((2, len(ratios), 2 * self.count))
        chi_squares, moving, slack = np.zeros(len(ratios)), np.arange(len(ratios)), np.diag(self._slack)
        for _ in range(_ROUNDS):
            last = numbers[moving]
            miss, slope = self._conditions(last, ratios[moving])
            carried = slope @ self.spread
            between = carried @ slope.swapaxes(-1, -2) + slack  # (R, 2 J, 2 J)
            rest = miss + (slope @ (start - last)[..., None])[..., 0]
            solved = np.linalg.solve(between, rest[..., None])
            new = start - (carried.swapaxes(-1, -2) @ solved)[..., 0]
            numbers[moving], rests[moving] = new, rest
            stds[moving] = np.sqrt(np.diagonal(between, axis1=-2, axis2=-1))
            chi_squares[moving] = (rest * solved[..., 0]).sum(axis=-1)
            moving = moving[~(np.abs(new - last).max(axis=-1) < _SETTLED)]
            if not len(moving):
                break
        return numbers, rests, stds, chi_squares

    def sensitivity(self, best: Correction, ratio: float) -> tuple[Array, Array, Array]:
        """Differentiate the conditions by m/I and by the place of the centre of mass.

        Args:
            best: the impacts' corrected numbers.
            ratio: m/I [1/m^2].

        Returns:
            derivative by ln(m/I) (2 J,) and by the centre's offset along the body's axes (2 J, 2) [1/m] of heights [m]
            and arms [m/s], and the conditions' covariance (2 J, 2 J).
        """
        count = self.count
        numbers = np.concatenate([best.values.ravel(), [1.0], self.durations, np.zeros(count)])
        _, slope = self._conditions(numbers, ratio)
        by_ratio, by_centre = np.zeros(2 * count), np.zeros((2 * count, 2))
        for j, touch in enumerate(self.touches):
            _, theta, vx, vy, turn = best.values[j]
            axes = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
            by_centre[j] = -axes[1]  # the lever is from the centre to the contact
            if not touch.double:
                by_ratio[count + j], by_centre[count + j] = turn / ratio, vx * axes[1] - vy * axes[0]
        return by_ratio, by_centre, slope @ self.spread @ slope.T + np.diag(self._slack)

    def _jump_spread(self, heights: Array, responses: tuple[Array, Array]) -> Array:
        """Return what the jumps add to ``spread``, at the m/I that is likeliest without them; ``heights`` r_y (J,)."""
        ratios = gyration_radii(self.shape) ** -2.0
        ratio = ratios[np.argmin(self.chi_squares(ratios))]
        along, turn = responses
        carried = np.zeros((7 * self.count + 1, self.count))
        carried[: 5 * self.count] = (ratio * heights * turn - along) * self._jump_std
        carried[6 * self.count + 1 :] = np.diag(self._jump_std)
        return np.asarray(carried @ carried.T)

    def _conditions(self, numbers: Array, ratio: float | Array) -> tuple[Array, Array]:
        """Heights (..., J) [m] and arms (..., J) [m/s] that should vanish, and their derivative (..., 2 J, 7 J + 1).

        ``numbers`` (..., 7 J + 1) belong to m/I of ``ratio`` (...).
        """
        count, at, arms = self.count, np.arange(self.count), self._arms
        leading = numbers.shape[:-1]
        miss, slope = np.zeros((*leading, 2 * count)), np.zeros((*leading, 2 * count, 7 * count + 1))
        impacts = numbers[..., : 5 * count].reshape(*leading, count, 5)
        scale, lasting = numbers[..., 5 * count, None], numbers[..., 5 * count + 1 : 6 * count + 1]
        _, ry, _, dry = (scale * part for part in self.shape.levers_at(impacts[..., 1], self._contacts))
        miss[..., :count] = impacts[..., 0] + ry + 0.5 * (self.approach_speeds * lasting - self.gaps)
        slope[..., at, 5 * at], slope[..., at, 5 * at + 1] = 1.0, dry
        slope[..., at, 5 * count], slope[..., at, 5 * count + 1 + at] = ry / scale, 0.5 * self.approach_speeds
        theta, vx, vy, turn = np.moveaxis(impacts[..., arms, 1:], -1, 0)
        duration, inverse, rolling = lasting[..., arms], 1.0 / np.asarray(ratio)[..., None], self._rolling[arms]
        angle = theta + turn * duration / 6.0
        rx, ry, drx, dry = (scale * part for part in self.shape.levers_at(angle, self._contacts[arms]))
        arm, swing = rx * vy - ry * vx, drx * vy - dry * vx
        miss[..., count + arms] = arm + rolling * numbers[..., 6 * count + 1 + arms] - turn * inverse
        columns = swing, -ry, rx, swing * duration / 6.0 - inverse
        for column, values in enumerate(columns, start=1):
            slope[..., count + arms, 5 * arms + column] = values
        slope[..., count + arms, 5 * count] = arm / scale
        slope[..., count + arms, 5 * count + 1 + arms] = swing * turn / 6.0
        slope[..., count + arms, 6 * count + 1 + arms] = rolling
        return miss, slope

    def _approach_speed(self, j: int) -> float:
        """Return the normal velocity of the lowest point before impact ``j`` [m/s]."""
        levers = self.shape.levers(self.found[j, 1])
        return float(self._velocities[j, 1] + levers[np.argmin(levers[:, 1]), 0] * self._velocities[j, 2])

    def slip(self, j: int) -> tuple[float, float]:
        """Tangential velocity of the contact before impact ``j``, and its standard deviation [m/s]."""
        ry = self.shape.levers(self.found[j, 1])[self.touches[j].contact, 1]
        along = np.array([1.0, 0.0, -ry])
        return float(along @ self._velocities[j]), float(np.sqrt(along @ self._velocity_spread[j] @ along))


def impact_numbers(recording: Recording, fit: FlightFit) -> tuple[Array, Array]:
    """Return (J, 5) y, theta, dv_x, dv_y, d omega of every impact and their derivative (5 J, 6 + 4 J) by the path."""
    count = len(fit.times)
    width, g = 2 + count, gravity(recording.slope)
    numbers, slope = np.zeros((count, 5)), np.zeros((count, 5, 3 * width + count))
    for j, time in enumerate(fit.times):
        for axis, column in ((1, 0), (2, 1)):
            lag = np.maximum(time - fit.times, 0.0)
            numbers[j, column] = fit.start[0, axis] + fit.start[1, axis] * time + 0.5 * g[axis] * time**2
            numbers[j, column] += lag @ fit.jumps[:, axis]
            slope[j, column, axis * width : axis * width + 2] = 1.0, time
            slope[j, column, axis * width + 2 : (axis + 1) * width] = lag
            before = fit.times < time
            slope[j, column, 3 * width :][before] -= fit.jumps[before, axis]
            slope[j, column, 3 * width + j] += fit.start[1, axis] + g[axis] * time + fit.jumps[before, axis].sum()
        for axis, column in ((0, 2), (1, 3), (2, 4)):
            numbers[j, column] = fit.jumps[j, axis]
            slope[j, column, axis * width + 2 + j] = 1.0
    return numbers, slope.reshape(5 * count, -1)


def position_responses(recording: Recording, noise: Noise, fit: FlightFit, slope: Array) -> tuple[Array, Array]:
    """Return by how much the impacts' numbers (5 J,) err where x, and where theta, jumps by 1 at an impact.

    Args:
        recording: where the path comes from.
        noise: of its channels.
        fit: its flights, which have no jumps of positions.
        slope: derivative of the numbers by the path's parameters (5 J, 6 + 4 J).

    Returns:
        two matrices (5 J, J): of jumps of x [1/m], of jumps of theta [1/rad].
    """
    used = np.isfinite(fit.residual)
    past = (recording.t[:, None] > fit.times).astype(float)  # (N, J)
    responses = []
    for axis in (0, 2):
        columns = np.zeros((*used.shape, len(fit.times)))
        columns[:, axis] = past / noise.sigma[axis]
        response = slope @ fit.covariance @ (fit.rows.T @ columns[used])
        if axis == 2:
            response[1::5] -= fit.times[:, None] > fit.times  # the angle after the jump, which the path has not
        responses.append(response)
    return responses[0], responses[1]


def _approach(fit: FlightFit, g: Array) -> tuple[Array, Array]:
    """Velocities before every impact (J, 3) and their covariance (J, 3, 3)."""
    count, width = len(fit.times), 2 + len(fit.times)
    rows, spread = np.zeros((count, 3)), np.zeros((count, 3, 3))
    for j, time in enumerate(fit.times):
        before, slope = fit.times < time, np.zeros((3, 3 * width + count))
        rows[j] = fit.start[1] + g * time + fit.jumps[before].sum(axis=0)
        for axis in range(3):
            slope[axis, axis * width + 1] = 1.0
            slope[axis, axis * width + 2 : (axis + 1) * width][before] = 1.0
        spread[j] = slope @ fit.covariance @ slope.T
    return rows, spread
