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

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.flights import IMPACT_DURATION, FlightFit, Recording
from contact_estimation.identify.planar.shapes import SMALLEST_GYRATION, Shape
from contact_estimation.identify.planar.stepping import gravity

HEIGHT_STD = 3e-3  # of the outline's radius: how exactly ground and outline meet (a contact gives way)
#: Of the outline's radius: how exactly an impact's place on it is known. Where the contact gives way by a depth, the
#: impulse acts at depths from zero to that one, which is on average half of it.
PLACE_STD = 0.5 * HEIGHT_STD
_ROUNDS, _SETTLED = 8, 1e-6  # corrections per m/I: at most, and change that ends them
_COARSE, _FINE = 60, 61  # radii of gyration scanned: over their range, and around the best


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


@dataclass(frozen=True)
class Scan:
    """Posterior of m/I, all radii of gyration that the outline allows being equally likely beforehand.

    Attributes:
        ratio: median [1/m^2].
        interval: 95 % interval.
        minima: m/I of the likelihood's local optima, best first, and their chi-squares (n, 2).
        flat: share of the radii within 95 % of the best.
    """

    ratio: float
    interval: tuple[float, float]
    minima: Array
    flat: float


class Impacts:
    """Impacts of a fitted path against an outline.

    Args:
        recording: where the path comes from.
        fit: its flights.
        shape: outline.
        count: how many impacts from the first one are used.
        size_std: uncertainty of the outline's size, as a share of it.
    """

    def __init__(self, recording: Recording, fit: FlightFit, shape: Shape, count: int, size_std: float = 0.0) -> None:
        self.shape, self.count = shape, count
        self.found, spread = impact_numbers(recording, fit)
        self.found, spread = self.found[:count], spread[: 5 * count, : 5 * count]
        self.spread = np.zeros((5 * count + 1, 5 * count + 1))  # the last one is the scale of the outline
        self.spread[:-1, :-1], self.spread[-1, -1] = spread, size_std**2
        self._velocities, self._velocity_spread = _approach(fit, gravity(recording.slope))
        self.gaps = np.zeros(count)  # [m] how far above the ground an impact may happen
        if recording.stepped:
            self.gaps = recording.interval * np.abs([self._approach_speed(j) for j in range(count)])
        self.touches = [self._touch(j, recording.interval) for j in range(count)]

    def _touch(self, j: int, step: float) -> Touch:
        """Lowest contact of impact ``j``, and whether the next may have closed before the next sample."""
        levers = self.shape.levers(self.found[j, 1])
        order = np.argsort(levers[:, 1])
        if len(order) == 1:
            return Touch(0, False)
        _, _, vx, vy, turn = self.found[j]
        std = np.sqrt(self.spread[5 * j + 1, 5 * j + 1]) * np.ptp(levers[order[:2], 0])
        speed = np.hypot(vx, vy) + self.shape.radius * abs(turn)
        gap = levers[order[1], 1] - levers[order[0], 1]
        return Touch(int(order[0]), bool(gap < 4.0 * std + speed * (step + IMPACT_DURATION)))

    @property
    def informative(self) -> int:
        """Impacts that say something about m/I."""
        return sum(not touch.double for touch in self.touches)

    def correct(self, ratio: float) -> Correction:
        """Correct the impacts for one m/I, by Gauss-Newton on the constrained problem."""
        numbers = np.append(self.found.ravel(), 1.0)
        start = numbers.copy()
        for _ in range(_ROUNDS):
            miss, slope = self._conditions(numbers, ratio)
            carried = slope @ self.spread
            between = carried @ slope.T + np.diag(self._slack(numbers))
            rest = miss + slope @ (start - numbers)
            solved = np.linalg.solve(between, rest)
            last, numbers = numbers, start - carried.T @ solved
            if np.abs(numbers - last).max() < _SETTLED:
                break
        chi_square = float(rest @ solved)
        scores = rest / np.sqrt(np.diag(between))
        return Correction(numbers[:-1].reshape(-1, 5), rest, chi_square, scores)

    def _conditions(self, numbers: Array, ratio: float) -> tuple[Array, Array]:
        """Heights (J,) [m] and arms (J,) [m/s] that should vanish, and their derivative (2 J, 5 J + 1)."""
        miss, slope = np.zeros(2 * self.count), np.zeros((2 * self.count, len(numbers)))
        scale = numbers[-1]
        for j, touch in enumerate(self.touches):
            y, theta, vx, vy, turn = numbers[5 * j : 5 * j + 5]
            rx, ry, drx, dry = (scale * part for part in self.shape.lever(float(theta), touch.contact))
            here = slice(5 * j, 5 * j + 5)
            miss[j], slope[j, here] = y + ry - 0.5 * self.gaps[j], [1.0, dry, 0.0, 0.0, 0.0]
            slope[j, -1] = ry / scale
            if not touch.double:
                arm = rx * vy - ry * vx
                miss[self.count + j] = arm - turn / ratio
                slope[self.count + j, here] = [0.0, drx * vy - dry * vx, -ry, rx, -1.0 / ratio]
                slope[self.count + j, -1] = arm / scale
        return miss, slope

    def _slack(self, numbers: Array) -> Array:
        """Variance (2 J,) that the conditions have of themselves."""
        impulses = numbers[:-1].reshape(-1, 5)[:, 2:4]
        arms = PLACE_STD**2 * np.maximum((impulses**2).sum(axis=1), 1e-6)
        heights = self.gaps**2 / 12.0 + (HEIGHT_STD * self.shape.radius) ** 2
        return np.concatenate([heights, self.shape.radius**2 * arms])

    def _approach_speed(self, j: int) -> float:
        """Return the normal velocity of the lowest point before impact ``j`` [m/s]."""
        levers = self.shape.levers(self.found[j, 1])
        return float(self._velocities[j, 1] + levers[np.argmin(levers[:, 1]), 0] * self._velocities[j, 2])

    def slip(self, j: int) -> tuple[float, float, float]:
        """Tangential velocity of the contact before and after impact ``j``, and its standard deviation [m/s]."""
        row, variance = self._velocities[j], self._velocity_spread[j]
        ry = self.shape.levers(self.found[j, 1])[self.touches[j].contact, 1]
        along = np.array([1.0, 0.0, -ry])
        jump = self.found[j, 2:]
        return float(along @ row), float(along @ (row + jump)), float(np.sqrt(along @ variance @ along))

    def scan(self) -> Scan:
        """Scan the likelihood over the radii of gyration, finely where it is highest."""
        radius, low = self.shape.radius, SMALLEST_GYRATION
        coarse = radius * (low + (1.0 - low) * (np.arange(_COARSE) + 0.5) / _COARSE)
        costs = np.array([self.correct(r**-2.0).chi_square for r in coarse])
        minima = self._minima(coarse, costs)
        best = minima[0, 0] ** -0.5
        step = 1e-3 * best
        around = [self.correct((best + d) ** -2.0).chi_square for d in (-step, step)]
        curvature = max((around[0] + around[1] - 2.0 * minima[0, 1]) / step**2, 1e-12)
        reach = min(6.0 * np.sqrt(2.0 / curvature), radius)
        fine = best + reach * np.linspace(-1.0, 1.0, _FINE)
        fine = fine[(fine > low * radius) & (fine < radius)]
        radii = np.concatenate([coarse, fine])
        costs = np.concatenate([costs, [self.correct(r**-2.0).chi_square for r in fine]])
        order = np.argsort(radii)
        return _posterior(radii[order], costs[order], minima, float(np.mean(costs[:_COARSE] < costs.min() + 3.84)))

    def _minima(self, radii: Array, costs: Array) -> Array:
        """Local optima (n, 2) of m/I and chi-square, best first."""
        padded = np.concatenate([[np.inf], costs, [np.inf]])
        at = np.flatnonzero((costs <= padded[:-2]) & (costs <= padded[2:]))
        found = []
        spacing = radii[1] - radii[0]
        for i in at:
            low, high = max(radii[i] - spacing, radii[0]), min(radii[i] + spacing, radii[-1])
            for _ in range(24):
                a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
                if self.correct(a**-2.0).chi_square < self.correct(b**-2.0).chi_square:
                    high = b
                else:
                    low = a
            ratio = (0.5 * (low + high)) ** -2.0
            found.append([ratio, self.correct(ratio).chi_square])
        return np.array(sorted(found, key=lambda row: row[1]))


def _posterior(radii: Array, costs: Array, minima: Array, flat: float) -> Scan:
    """Median and 95 % interval of m/I = 1 / radius^2 with density exp(-chi_square / 2) over the radii."""
    density = np.exp(-0.5 * (costs - costs.min()))
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(radii))])
    low, middle, high = 1.0 / np.interp([0.975, 0.5, 0.025], cumulative / cumulative[-1], radii) ** 2
    return Scan(float(middle), (float(low), float(high)), minima, flat)


def impact_numbers(recording: Recording, fit: FlightFit) -> tuple[Array, Array]:
    """Return (J, 5) y, theta, dv_x, dv_y, d omega of every impact and their covariance (5 J, 5 J)."""
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
    flat = slope.reshape(5 * count, -1)
    return numbers, flat @ fit.covariance @ flat.T


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
