"""Impacts whose states are not at the instant of impact, or of wrong scale: doubted, mended by ``dt``, or named.

The impacts come from an ellipse that obeys Newton's law with Coulomb friction, written without the estimator's code.
"""

import numpy as np
import pytest

from contact_estimation.exceptions import RecordingError
from contact_estimation.identify.planar.impacts import Impacts, identify_impacts, load_impacts

A, B, RATIO, FRICTION, RESTITUTION = 0.035, 0.0255, 2200.0, 0.2, 0.5


def _levers(angle):
    c, s = np.cos(angle), np.sin(angle)
    x, y = -s * A * A, -c * B * B
    length = np.hypot(A * s, B * c)
    return (c * x - s * y) / length, (s * x + c * y) / length


def _struck(v, rx, ry):
    """Rates after an impact at the lever (rx, ry)."""
    space = np.array([[1 + RATIO * ry * ry, -RATIO * rx * ry], [-RATIO * rx * ry, 1 + RATIO * rx * rx]])
    along, down = v[0] - ry * v[2], v[1] + rx * v[2]
    impulse = np.linalg.solve(space, [-along, -(1 + RESTITUTION) * down])
    if abs(impulse[0]) > FRICTION * impulse[1]:
        edge = np.array([-FRICTION * np.sign(along), 1.0])
        impulse = edge * (-(1 + RESTITUTION) * down / (space[1] @ edge))
    return v + np.array([*impulse, RATIO * (rx * impulse[1] - ry * impulse[0])])


def _world(seed, apart=0.0, count=250):
    """``pre``, ``post``, ``n``, ``d`` with the velocities ``apart`` [s], the impact in the middle."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < count:
        angle = rng.uniform(-3, 3)
        rx, ry = _levers(angle)
        v = np.array([rng.uniform(-1, 1), rng.uniform(-2, -0.6), rng.uniform(-20, 20)])
        if v[1] + rx * v[2] > -0.2:
            continue
        half, noise = np.array([0, -9.81 * apart / 2, 0]), np.array([0.01, 0.01, 0.3])
        before, after = v - half, _struck(v, rx, ry) + half
        pose = [0, -ry, angle]
        pre, post = ([*pose, *(rate + noise * rng.standard_normal(3))] for rate in (before, after))
        rows.append([*pre, *post, 0, 1, rx, 1, 0, -ry])
    parts = np.split(np.array(rows), [6, 12, 15], axis=1)
    return dict(zip(("pre", "post", "n", "d"), parts))


def _identify(arrays):
    return identify_impacts(Impacts(*arrays.values()), resamples=200)


def test_states_at_the_instant_are_good_and_the_scales_are_named():
    report = _identify(_world(1))
    assert report.verdict.verdict == "good" and report.interval_total[0] < RATIO < report.interval_total[1]
    assert "spin" in report.verdict.unchecked[0] and "levers" in report.verdict.unchecked[1]


@pytest.mark.parametrize("seed", range(3))
def test_states_some_milliseconds_apart_are_doubted(seed):
    verdict = _identify(_world(seed, apart=0.008)).verdict
    assert verdict.verdict == "doubtful" and "give 'dt'" in verdict.reasons[0]


@pytest.mark.parametrize("dt", [0.03, np.full(250, 0.03)])
def test_dt_takes_gravity_off(tmp_path, dt):
    arrays = _world(2, apart=0.03)
    assert _identify(arrays).model.m_over_i > 1.1 * RATIO
    np.savez(tmp_path / "i.npz", **arrays, dt=dt)
    report = identify_impacts(load_impacts(tmp_path / "i.npz")[0], resamples=200)
    assert report.verdict.verdict == "good" and report.interval_total[0] < RATIO < report.interval_total[1]
    assert report.model.restitution == pytest.approx(RESTITUTION, abs=0.02)


def test_a_scaled_vertical_speed_is_doubted():
    arrays = _world(3)
    for name in ("pre", "post"):
        arrays[name][:, 4] *= 0.93
    assert _identify(arrays).verdict.verdict == "doubtful"


@pytest.mark.parametrize("dt", [np.full(3, 0.01), np.full(250, -0.01)])
def test_a_wrong_dt_is_refused(tmp_path, dt):
    np.savez(tmp_path / "i.npz", **_world(1), dt=dt)
    with pytest.raises(RecordingError, match="expected a number or"):
        load_impacts(tmp_path / "i.npz")
