"""Windows sampled from a body in continuous time: the discretisation is chosen, errors of the force are found or named.

The body has soft contacts and moves in steps of 50 us; nothing here is code of the estimator.
"""

import numpy as np
import pytest

from contact_estimation.identify.planar.errors_in_variables import StateNoise
from contact_estimation.identify.planar.recorded_window import identify_recorded_window
from contact_estimation.identify.planar.shapes import Ellipse, square
from contact_estimation.identify.planar.stepping import FallingBody, simulate

G, MASS, FRICTION, FINE, EVERY = 9.81, 2.0, 0.45, 5e-5, 100
WEIGHT = MASS * G
NOISE = StateNoise(np.array([8e-4, 8e-4, 4e-3]), np.array([0.02, 0.02, 0.08]))
AXES, HALF = (0.2, 0.12), 0.15


def _ellipse_point(c, s):
    x, y = -s * AXES[0] ** 2, -c * AXES[1] ** 2
    length = np.hypot(AXES[0] * s, AXES[1] * c)
    return [((c * x - s * y) / length, (s * x + c * y) / length)]


def _corners(c, s):
    return [(c * x - s * y, s * x + c * y) for x in (HALF, -HALF) for y in (HALF, -HALF)]


def _move(points, ratio, push, q, v, steps):
    """States (steps + 1, 6) and mean forces (steps, 3) of a body on a soft ground."""
    rows, forces = [[*q, *v]], []
    (x, y, angle), (vx, vy, spin) = q, v
    for k in range(steps):
        total = np.zeros(3)
        for i in range(EVERY):
            fx, fy, moment = force = push((k * EVERY + i) * FINE)
            total += force
            fy -= WEIGHT
            for rx, ry in points(np.cos(angle), np.sin(angle)):
                if y + ry < 0.0:
                    normal = max(-4e5 * (y + ry) - 400.0 * (vy + rx * spin), 0.0)
                    drag = -FRICTION * normal * np.tanh((vx - ry * spin) / 2e-3)
                    fx, fy, moment = fx + drag, fy + normal, moment + rx * normal - ry * drag
            vx, vy, spin = vx + FINE * fx / MASS, vy + FINE * fy / MASS, spin + FINE * moment * ratio / MASS
            x, y, angle = x + FINE * vx, y + FINE * vy, angle + FINE * spin
        rows.append([x, y, angle, vx, vy, spin])
        forces.append(total / EVERY)
    return np.array(rows), np.array(forces)


@pytest.fixture(scope="module")
def rolling():
    """A rolling ellipse, its force and m/I."""
    ratio = 4.0 / (AXES[0] ** 2 + AXES[1] ** 2)

    def push(t):
        return np.array([0.3 * WEIGHT * np.sin(6 * t + 1), 0.0, 0.04 * WEIGHT * np.sin(4 * t + 2)])

    return *_move(_ellipse_point, ratio, push, [0, 0.12, 0], [0.5, 0, -2.0], 240), ratio


@pytest.fixture(scope="module")
def tipping():
    """A square that tips from corner to corner, its force and m/I."""

    def push(t):
        return np.array([0.8 * WEIGHT * np.sin(7 * t + 2), 0.0, 0.09 * WEIGHT * np.sin(4 * t)])

    height = HALF * (np.sin(0.5) + np.cos(0.5))
    return *_move(_corners, 80.0, push, [0, height, 0.5], [0, 0, 0], 240), 80.0


def _identify(shape, states, force, seed):
    rng, t = np.random.default_rng(seed), EVERY * FINE * np.arange(len(states))
    noisy = states + np.hstack(NOISE) * rng.standard_normal(states.shape)
    return identify_recorded_window(shape, FRICTION, t, noisy[:, :3], noisy[:, 3:], NOISE, force)


def _holds(found, ratio):
    low, high = found.intervals_total["m_over_i"]
    return low < ratio < high


@pytest.mark.parametrize("seed", range(2))
def test_a_rolling_body_is_fitted_with_the_midpoint_rule(rolling, seed):
    states, force, ratio = rolling
    found = _identify(Ellipse(*AXES), states, force, seed)
    assert found.scheme == "midpoint" and found.verdict.verdict == "good", found.verdict.reasons
    assert found.values["m_over_i"] == pytest.approx(ratio, rel=0.02) and _holds(found, ratio)


@pytest.mark.parametrize("seed", range(2))
def test_a_tipping_body_lies_inside_the_interval_or_is_doubted(tipping, seed):
    states, force, ratio = tipping
    found = _identify(square(2 * HALF), states, force, seed)
    assert _holds(found, ratio) or found.verdict.verdict == "doubtful"
    assert found.values["m_over_i"] == pytest.approx(ratio, rel=0.08)


def test_time_stepping_states_are_fitted_with_time_stepping():
    body = FallingBody(square(0.3), 60.0, MASS, FRICTION, 0.4)
    run = simulate(body, [0, 0.35, 0.5], [0.5, 0, 2.0], 0.005, 120)
    found = identify_recorded_window(square(0.3), FRICTION, run.t, run.q, run.v, NOISE)
    assert found.scheme == "time stepping" and found.values["m_over_i"] == pytest.approx(60.0, rel=1e-3)


def _turned(force, angle):
    c, s = np.cos(angle), np.sin(angle)
    return force @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def test_a_turned_force_is_named(rolling):
    states, force, _ = rolling
    verdict = _identify(Ellipse(*AXES), states, _turned(force, np.radians(8)), 0).verdict
    assert verdict.verdict == "doubtful" and "degrees of rotation" in " ".join(verdict.reasons)


def test_an_offset_of_the_force_is_found_or_its_size_is_named(rolling):
    states, force, _ = rolling
    verdict = _identify(Ellipse(*AXES), states, force + np.array([0, 0.1 * WEIGHT, 0]), 0).verdict
    assert "of offset along y" in " ".join(verdict.reasons) or "offset along y" in " ".join(verdict.unchecked)


def test_the_scale_of_the_force_is_named(rolling):
    states, force, ratio = rolling
    found = _identify(Ellipse(*AXES), states, 1.1 * force, 0)
    assert _holds(found, ratio) and found.values["mass"] == pytest.approx(1.1 * MASS, rel=0.02)
    assert "scale of 'force'" in found.verdict.unchecked[0]
