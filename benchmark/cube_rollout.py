"""Where an identified cube will be some samples after it left a flight: rigid impacts, compared with the recording.

The cube has eight contact points, one per corner, on its blunt shape (``cube_shape``). A point that touches the
ground while it approaches gets an impulse in many parts: each bears Coulomb friction against the slip of its instant
(Routh), for the slip turns and may stop during an impact; the last part leaves Newton's restitution. One corner after
the other is treated, so that edges and faces hit by several small impulses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.planar.corner_impacts import corner_impacts, fit_flights
from contact_estimation.identify.planar.cube import CubeReport, FittedCube
from contact_estimation.identify.planar.cube_model import CubeModel, name_axes
from contact_estimation.identify.planar.cube_shape import cube_corners
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.planar.tosses import CLEAR, prepare

_STEP = 2.5e-4  # [s]
_BOUNCES = 0.1  # [m/s] slower touches do not bounce
_PARTS, _MOST = 20, 8  # parts of an impulse until the point is halted; as many halts at most
_FLIGHT, _FEWEST = 6, 4  # most and fewest samples of the flight that gives the start


class Starts(NamedTuple):
    """States (n) at the last sample of a flight; world axes, model axes of the cube."""

    p: Array  # centre of mass over the ground (n, 3) [m]
    v: Array  # (n, 3) [m/s]
    attitude: Array  # (n, 3, 3)
    w: Array  # (n, 3) [rad/s]
    later_p: Array  # recorded centre of mass of the samples after it (n, samples, 3)
    later_attitude: Array  # (n, samples, 3, 3)


def renamed(tosses: list[Array], fitted: FittedCube, rate: float) -> FittedCube:
    """Return the model of ``fitted`` with the names that the axes have in other tosses of the same recording."""
    model, frame = fitted.model, fitted.frame
    turns, _ = name_axes(corner_impacts(tosses, model.side, rate, frame), model, len(tosses))
    impacts = corner_impacts(tosses, model.side, rate, frame, turns @ model.centre)
    return replace(fitted, impacts=impacts, turns=name_axes(impacts, model, len(tosses))[0])


class RolloutErrors(NamedTuple):
    """Errors of predictions over all their samples."""

    position: Array  # rms (n,) [m]
    angle: Array  # rms (n,) [rad]


def flight_ends(tosses: list[Array], fitted: FittedCube, rate: float, samples: int) -> Starts:
    """Find every flight that a contact ends, with ``samples`` samples after it.

    Args:
        tosses: poses (N_i, 7), those of ``fitted`` or others whose axes are named alike.
        fitted: centre of mass, frame and names of the axes.
        rate: samples per second.
        samples: predicted.
    """
    found: list[tuple[Array, ...]] = []
    ground, clear = np.array([0.0, 0.0, fitted.frame.ground]), CLEAR * fitted.model.side
    for poses, turn in zip(tosses, fitted.turns):
        toss = prepare(poses, fitted.model.side, rate, fitted.frame.scale, turn @ fitted.model.centre)
        p = toss.p - ground
        low = p[:, 2] + toss.offsets[..., 2].min(axis=1)
        attitude = toss.attitude.as_matrix() @ turn
        for first, last in toss.flights():
            begin = max(first, last - _FLIGHT + 1)
            if last - begin + 1 < _FEWEST or last + samples >= len(p) or low[begin:last].min() < clear:
                continue
            flight = fit_flights(toss.p, toss.attitude, np.array([[begin, last]]), np.array([last]), rate)
            start = flight.attitude(np.zeros(1)).as_matrix()[0] @ turn
            after = slice(last + 1, last + 1 + samples)
            found.append((flight.p[0] - ground, flight.v[0], start, flight.w[0], p[after], attitude[after]))
    return Starts(*(np.array(column) for column in zip(*found)))


def predict(starts: Starts, model: CubeModel, report: CubeReport, rate: float) -> tuple[Array, Array]:
    """Simulate from the starts.

    Args:
        starts: states.
        model: m/I, centre of mass, shape.
        report: restitution and friction.
        rate: samples per second.

    Returns:
        centres of mass (n, samples, 3) [m] and attitudes (n, samples, 3, 3) at the samples.
    """
    p, v, turn, w = (part.copy() for part in starts[:4])
    signs = cube_corners(2.0)
    steps = round(1.0 / (rate * _STEP))
    step = 1.0 / (rate * steps)
    positions, attitudes = np.empty_like(starts.later_p), np.empty_like(starts.later_attitude)
    for sample in range(positions.shape[1]):
        for _ in range(steps):
            p = p + step * v
            p[:, 2] -= 0.5 * GRAVITY * step**2
            v[:, 2] -= GRAVITY * step
            turn = Rotation.from_rotvec(step * w).as_matrix() @ turn
            for sign in signs:
                v, w = _touch(p, v, turn, w, sign, model, report)
        positions[:, sample], attitudes[:, sample] = p, turn
    return positions, attitudes


def rollout_errors(starts: Starts, model: CubeModel, report: CubeReport, rate: float) -> RolloutErrors:
    """Compare :func:`predict` with what was recorded."""
    positions, attitudes = predict(starts, model, report, rate)
    off = np.sum((positions - starts.later_p) ** 2, axis=2)
    count, samples = off.shape
    relative = np.einsum("nkji,nkjl->nkil", attitudes, starts.later_attitude).reshape(-1, 3, 3)
    angles = Rotation.from_matrix(relative).magnitude().reshape(count, samples)
    return RolloutErrors(np.sqrt(np.mean(off, axis=1)), np.sqrt(np.mean(angles**2, axis=1)))


def _touch(
    p: Array, v: Array, turn: Array, w: Array, sign: Array, model: CubeModel, report: CubeReport
) -> tuple[Array, Array]:
    """Velocities after the impulses on the corner ``sign``, of the cubes on which it touches."""
    r = np.einsum("nij,nj->ni", turn, _corner(-turn[:, 2], sign, model) - model.centre)
    approach = -(v[:, 2] + np.cross(w, r)[:, 2])
    hit = np.flatnonzero((approach > 0.0) & (p[:, 2] + r[:, 2] < -model.compression * np.maximum(approach, 0.0)))
    if not hit.size:
        return v, w
    r, ratio = r[hit], float(np.mean(model.ratio))
    u = v[hit] + np.cross(w[hit], r)
    impulse = impulse_at(u, r, ratio, np.where(-u[:, 2] > _BOUNCES, report.restitution, 0.0), report.friction)
    v, w = v.copy(), w.copy()
    v[hit] += impulse
    w[hit] += ratio * np.cross(r, impulse)
    return v, w


def _corner(down: Array, sign: Array, model: CubeModel) -> Array:
    """Contact point (n, 3) [m, from the middle] of one corner for the direction ``down`` (n, 3) in model axes."""
    size = np.abs(down)
    largest, smallest = np.eye(3)[size.argmax(axis=1)], np.eye(3)[size.argmin(axis=1)]
    rounded, cut, chamfer = model.lengths
    return np.asarray(sign * (0.5 * model.side + rounded * (size - 1.0) + cut * (largest - 1.0) - chamfer * smallest))


def impulse_at(u: Array, r: Array, ratio: float, restitution: Array, friction: float) -> Array:
    """Return the impulse per mass (n, 3) [m/s] of impacts on one point each.

    Args:
        u: velocities of the points (n, 3) [m/s], the ground's normal last.
        r: from the centre of mass to the points (n, 3) [m].
        ratio: m/I [1/m^2].
        restitution: Newton's coefficients (n,).
        friction: Coulomb coefficient.
    """
    square = np.sum(r**2, axis=1)[:, None, None]
    mobility = np.eye(3) + ratio * (square * np.eye(3) - r[:, :, None] * r[:, None, :])  # (n, 3, 3)
    normal = -u[:, 2] / mobility[:, 2, 2] / _PARTS  # impulse of a part (n,)
    impulse, u, leaving = np.zeros_like(u), u.copy(), -restitution * u[:, 2]
    for _ in range(_MOST * _PARTS):
        acts = u[:, 2] < leaving
        if not acts.any():
            break
        slip = np.linalg.norm(u[:, :2], axis=1)
        along = -u[:, :2] / np.maximum(slip, 1e-12)[:, None]
        yields = np.einsum("ni,nij,nj->n", along, mobility[:, :2, :2], along)
        stops = slip / np.maximum(yields, 1.0)  # impulse that ends the slip; a point yields at least as the mass does
        part = np.column_stack([along * np.minimum(friction * normal, stops)[:, None], normal]) * acts[:, None]
        u += np.einsum("nij,nj->ni", mobility, part)
        impulse += part
    return impulse
