"""Tests of residuals: their false alarms on noise, and what each must find."""

from __future__ import annotations

import numpy as np
import pytest

from contact_estimation.identify import verdict as v

ALARM = 0.01


def noise(seed: int, n: int = 120, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, channels))


TESTS = {
    "chi_square": lambda z: v.chi_square(z, 6, ALARM),
    "whiteness": lambda z: v.whiteness(z, ALARM),
    "segment_means": lambda z: v.segment_means(np.array_split(z, 6), ALARM),
    "outliers": lambda z: v.outliers(z, ALARM),
}


@pytest.mark.parametrize("name", TESTS)
def test_white_noise_is_flagged_as_rarely_as_asked(name):
    flagged = sum(TESTS[name](noise(seed)).flagged for seed in range(400))
    assert flagged <= 12  # 4 expected, 12 and more in 1 of 2000


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("chi_square", lambda z: 1.3 * z),
        ("whiteness", lambda z: z + np.sin(0.3 * np.arange(len(z)))[:, None]),
        ("segment_means", lambda z: z + 1.2 * (np.arange(len(z)) < 20)[:, None]),
        ("outliers", lambda z: np.where(np.arange(len(z))[:, None] % 40 == 3, z + 8.0, z)),
    ],
)
def test_what_is_not_noise_is_flagged(name, spoil):
    assert sum(TESTS[name](spoil(noise(seed))).flagged for seed in range(20)) >= 19


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("spoilt", [np.nan, np.inf])
def test_a_residual_that_is_not_finite_is_flagged(name, spoilt):
    found = TESTS[name](np.where(np.arange(120)[:, None] == 60, spoilt, noise(0)))
    assert found.flagged and "not finite" in found.message


@pytest.mark.parametrize("name", TESTS)
def test_no_residuals_are_not_a_test_that_passes(name):
    assert TESTS[name](np.zeros((0, 3))).flagged
    assert v.segment_means([], ALARM).flagged


def test_the_clock_is_recovered_and_named_though_a_parameter_follows_it():
    rng, t = np.random.default_rng(3), np.arange(400) * 0.01
    columns = np.column_stack([np.sin(3.0 * t), np.ones_like(t)]) / 0.05
    slope = 3.0 * np.cos(3.0 * t) / 0.05
    lag = columns @ [0.3, 0.1] - 0.008 * slope + rng.standard_normal(len(t))
    estimate, std = v.score_test(lag, columns, -slope)
    assert abs(estimate - 0.008) < 4.0 * std < 0.006
    found = v.delay(estimate, std, "force", "pose")
    assert found.flagged
    assert "force and pose disagree by" in found.message and "force is late" in found.message


def test_a_nuisance_that_the_parameters_take_up_is_unknown():
    column = np.random.default_rng(0).standard_normal((50, 1))
    assert v.score_test(np.ones(50), column, 2.0 * column[:, 0])[1] == np.inf


def test_a_sensor_at_its_limit_is_seen():
    force = np.random.default_rng(1).standard_normal(100)
    assert v.repeated(force) == 0
    assert v.repeated(np.where((np.arange(100) > 40) & (np.arange(100) < 50), 5.0, force)) == 9


def test_halves_that_agree_pass_and_halves_that_do_not_are_flagged():
    one, two = (np.array([1.0, 2.0]), np.eye(2)), (np.array([1.5, 2.5]), np.eye(2))
    assert not v.split(one, two, ALARM).flagged
    assert v.split(one, (two[0] + 5.0, two[1]), ALARM).flagged


def test_equally_good_optima_apart_are_fatal_and_a_worse_one_is_not():
    far = [np.zeros(2), np.array([0.0, 5.0])]
    assert v.conclude([v.different_optima([10.0, 12.0], far, np.ones(2))]).verdict == v.FAILED
    assert not v.different_optima([10.0, 40.0], far, np.ones(2)).flagged


def test_an_optimum_that_is_not_finite_is_flagged_and_one_without_a_merit_is_none():
    parameters = [np.zeros(2), np.array([0.0, np.nan]), np.array([0.0, 5.0])]
    assert v.different_optima([10.0, 11.0], parameters[:2], np.ones(2)).flagged
    assert not v.different_optima([np.nan, 10.0], parameters[1::-1], np.ones(2)).flagged
    assert not v.different_optima([10.0, np.nan], parameters[::2], np.ones(2)).flagged
    assert v.different_optima([np.nan, np.nan], parameters[::2], np.ones(2)).flagged


def test_the_verdict_follows_the_gravest_finding():
    fine, flagged = v.Finding("a", 1.0, 2.0, "fine"), v.Finding("b", 3.0, 2.0, "bad")
    broken = v.Finding("c", float("nan"), 2.0, "broken", fatal=True)
    assert v.conclude([fine]).verdict == v.GOOD
    assert v.conclude([fine, flagged]).reasons == ("bad",)
    assert v.conclude([fine, flagged]).exit_code == 0
    assert v.conclude([flagged, broken]).reasons == ("broken", "bad")
    assert v.conclude([flagged, broken]).exit_code == v.EXIT_FAILED
    assert v.conclude([fine], ["did not converge"]).verdict == v.FAILED
    assert v.conclude([flagged]).as_json()["tests"]["b"] == {"statistic": 3.0, "threshold": 2.0}


def test_what_is_unchecked_is_told_once_and_leaves_the_verdict():
    part = v.conclude([], unchecked=["scale"])
    whole = v.merge({"one": part, "two": part})
    assert whole.verdict == v.GOOD and whole.unchecked == ("scale",) and not whole.reasons
    assert whole.as_json()["unchecked"] == ["scale"] and "scale" in whole.as_text()


def test_model_error_widens_intervals_and_never_narrows_them():
    std = np.array([1.0, 2.0])
    np.testing.assert_allclose(v.total_std(std, 0.3), std)
    np.testing.assert_allclose(v.total_std(std, 4.0, 0.6), 4.0 * std)
    np.testing.assert_allclose(v.total_std(std, 1.0, shifts=[np.array([0.0, 1.5])]), [1.0, 2.5])
