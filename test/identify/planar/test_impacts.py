"""Impacts: planted truth with either handedness, the real ellipse, files that are not what they should be."""

import numpy as np
import pytest
from shared import shared_file

from contact_estimation.exceptions import IdentificationError, RecordingError
from contact_estimation.identify.planar.impact_laws import complementary_newton
from contact_estimation.identify.planar.impacts import (
    Handedness,
    Impacts,
    identify_impacts,
    least_absolute_ratio,
    load_impacts,
)


def planted(count, signs, noise=0.0, m_over_i=1200.0, seed=0, rebound=(0.5, 0.0, 0.0)):
    rng = np.random.default_rng(seed)
    pre = np.hstack([rng.uniform(-0.1, 0.1, (count, 3)), rng.uniform([-1, -3, -10], [1, -2, 10], (count, 3))])
    zero, one = np.zeros(count), np.ones(count)
    rows = [
        np.column_stack([zero, one, rng.uniform(-0.03, 0.03, count)]),
        np.column_stack([one, zero, rng.uniform(0.025, 0.05, count)]),
    ]
    impacts = Impacts(pre, pre.copy(), *rows)
    handed = Handedness(*signs, 1.0)
    along = np.abs(pre[:, 3] + signs[1] * rows[1][:, 2] * pre[:, 5])
    towards = -pre[:, 4] - signs[0] * rows[0][:, 2] * pre[:, 5]
    restitution = rebound[0] + rebound[1] * along + rebound[2] * towards
    impulse = complementary_newton(impacts.contact_space(m_over_i, handed), restitution, 0.2)
    turn = m_over_i * (signs[0] * rows[0][:, 2] * impulse[:, 1] + signs[1] * rows[1][:, 2] * impulse[:, 0])
    post = pre.copy()
    post[:, 3:] += np.column_stack([impulse, turn]) + noise * rng.standard_normal((count, 3)) * [1, 1, 30]
    return Impacts(pre, post, *rows)


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_planted_model_comes_back_with_its_handedness(signs):
    report = identify_impacts(planted(300, signs, noise=0.02), resamples=200)
    handed = report.model.handedness
    assert (handed.normal, handed.tangent) == signs and handed.margin > 1.5
    assert report.model.m_over_i == pytest.approx(1200.0, rel=0.02)
    assert report.interval[0] < 1200.0 < report.interval[1]
    assert report.model.restitution == pytest.approx(0.5, abs=0.03)
    assert report.model.friction == pytest.approx(0.2, abs=0.03)
    assert report.impulse_error_pct < 4.0


def test_restitution_may_depend_on_speed():
    report = identify_impacts(planted(300, (1, -1), noise=0.005, rebound=(0.9, -0.1, -0.1)), resamples=50)
    np.testing.assert_allclose(report.model.rebound, [0.9, -0.1, -0.1], atol=0.02)
    assert report.impulse_error_pct < 2.0


def test_prediction_is_exact_without_noise():
    assert identify_impacts(planted(60, (1, 1)), resamples=50).impulse_error_pct < 1.0


def test_wild_impacts_do_not_move_the_answer():
    impacts = planted(300, (1, -1), noise=0.02)
    impacts.post[:30, 5] += 200.0
    assert identify_impacts(impacts, resamples=50).model.m_over_i == pytest.approx(1200.0, rel=0.05)


def test_weighted_median_is_the_least_absolute_deviation():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(41), rng.standard_normal(41)
    grid = np.linspace(-3, 3, 60001)
    costs = np.abs(y - grid[:, None] * x).sum(axis=1)
    assert np.abs(y - least_absolute_ratio(x, y) * x).sum() <= costs.min() + 1e-9


def test_real_ellipse():
    impacts, left_out = load_impacts(shared_file("data/ellipse_impacts/ellipse_impacts_odd.npz"))
    assert len(impacts) == 862 and left_out == 138
    report = identify_impacts(impacts, left_out, resamples=300)
    assert not report.model.handedness.consistent and report.model.handedness.margin > 2.0
    assert report.model.m_over_i == pytest.approx(2704.0, rel=0.05)
    assert report.interval[0] < 2704.0 < report.interval[1]
    assert report.impulse_error_pct < 5.0 and report.model.restitution == pytest.approx(0.54, abs=0.02)


def test_halves_of_the_real_ellipse_agree():
    impacts, _ = load_impacts(shared_file("data/ellipse_impacts/ellipse_impacts_odd.npz"))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        assert identify_impacts(impacts.take(half), resamples=50).model.m_over_i == pytest.approx(2704.0, rel=0.05)


def test_files_that_cannot_be_used(tmp_path):
    impacts = planted(20, (1, 1))
    good = {"pre": impacts.pre, "post": impacts.post, "n": impacts.normal, "d": impacts.tangent}
    for name, change, message in (
        ("lacks", {"d": None}, "lacks d"),
        ("shape", {"post": impacts.post[:5]}, "post has shape"),
        ("flags", {"flags": np.ones((20, 6))}, "free of flags"),
        ("rows", {"flags": np.zeros((3, 6))}, "flags has shape"),
    ):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{k: v for k, v in {**good, **change}.items() if v is not None})
        with pytest.raises(RecordingError, match=message):
            load_impacts(path)
    with pytest.raises(RecordingError, match="no such"):
        load_impacts(tmp_path / "absent.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(RecordingError, match="cannot be read as an"):
        load_impacts(tmp_path / "text.npz")


def test_flags_are_optional_and_too_few_impacts_are_refused(tmp_path):
    impacts = planted(6, (1, 1))
    np.savez(tmp_path / "few.npz", pre=impacts.pre, post=impacts.post, n=impacts.normal, d=impacts.tangent)
    few, left_out = load_impacts(tmp_path / "few.npz")
    assert left_out == 0
    with pytest.raises(IdentificationError, match="at least"):
        identify_impacts(few)


def measured_badly(impacts, seed, lever=0.0, velocity=0.0, centre=0.0):
    """The impacts with noise on levers [m] and velocities [m/s], seen at a point ``centre`` [m] off the body's."""
    rng = np.random.default_rng(seed)
    pre, post, normal, tangent = (part.copy() for part in (impacts.pre, impacts.post, impacts.normal, impacts.tangent))
    offset = centre * np.column_stack([np.cos(pre[:, 2]), np.sin(pre[:, 2])])
    for states in (pre, post):
        states[:, 3:5] += states[:, 5:] * np.column_stack([-offset[:, 1], offset[:, 0]])
        states[:, 3:5] += velocity * rng.standard_normal((len(pre), 2))
    normal[:, 2] += lever * rng.standard_normal(len(pre)) - offset[:, 0]
    tangent[:, 2] += lever * rng.standard_normal(len(pre)) + offset[:, 1]
    return Impacts(pre, post, normal, tangent)


def turned(seed):
    """Planted impacts at any angle of the body."""
    impacts = planted(200, (1, 1), noise=0.01, seed=seed)
    angle = np.random.default_rng(seed).uniform(-np.pi, np.pi, len(impacts))
    for states in (impacts.pre, impacts.post):
        states[:, 2] = angle
    return impacts


@pytest.mark.parametrize("errors", [{"lever": 0.002}, {"velocity": 0.1}])
def test_interval_total_contains_the_truth_where_errors_attenuate_the_ratio(errors):
    reports = [identify_impacts(measured_badly(turned(k), k, **errors), resamples=200) for k in range(4)]
    assert sum(r.interval[0] < 1200.0 < r.interval[1] for r in reports) < 4
    assert all(r.interval_total[0] < 1200.0 < r.interval_total[1] for r in reports)


def test_a_wrong_centre_of_mass_is_doubted():
    verdict = identify_impacts(measured_badly(turned(0), 0, centre=0.008), resamples=50).verdict
    assert verdict.verdict == "doubtful" and any("centre of mass" in reason for reason in verdict.reasons)


def test_impacts_of_two_bodies_are_doubted():
    one, other = planted(100, (1, 1), noise=0.02), planted(100, (1, 1), noise=0.02, m_over_i=2400.0, seed=1)
    parts = (np.vstack(pair) for pair in zip(vars(one).values(), vars(other).values()))
    verdict = identify_impacts(Impacts(*parts), resamples=50).verdict
    assert verdict.verdict == "doubtful" and "different bodies" in verdict.reasons[0]
