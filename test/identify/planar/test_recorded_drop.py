"""Recorded drops: planted truth from a compliant world that shares no code, and faults that must be named."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from benchmark.adversary import planar as world
from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.identify.planar.contact_geometry import Impacts, Told
from contact_estimation.identify.planar.flights import Recording, find_impacts, fit_flights, measure_noise
from contact_estimation.identify.planar.recorded_drop import identify_recorded_drop
from contact_estimation.identify.planar.shapes import Ellipse, Polygon, square
from contact_estimation.identify.planar.stepping import gravity
from contact_estimation.studies.planar.table1 import BODIES, add_noise, random_drop

CORNERS = 0.5 * np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
BODY = world.Body(CORNERS, False, ratio=6.0, friction=0.4)
START = [0.0, 1.1, 0.3], [0.5, -1.0, 2.0]
TOLD = Told(square(1.0), 0.4)
NOISE = np.array([0.004, 0.004, 0.006])


@lru_cache
def fall(scale=1.0, flat=False, **world_changes):
    """Fine states of the body, or of one ``scale`` as large."""
    start = ([0.0, 1.0, 0.0], [0.0, -1.0, 0.0]) if flat else START
    return world.drop(replace(BODY, corners=scale * CORNERS, **world_changes), *start, 1.0)


def record(h=0.006, **how):
    """t, q, v of a drop with white noise."""
    rng = np.random.default_rng(0)
    t, q, v = world.sample(*fall(**how), h)
    return t, q + NOISE * rng.standard_normal(q.shape), v + 5.0 * NOISE * rng.standard_normal(v.shape)


@lru_cache
def identify(positions_only=False, **how):
    """Result of a drop that :func:`record` makes, told as it is."""
    t, q, v = record(**how)
    return identify_recorded_drop(TOLD, t, q, None if positions_only else v)


@pytest.mark.parametrize("h", [0.002, 0.006, 0.03])
@pytest.mark.parametrize("measured", ["q", "q and v"])
def test_a_compliant_bounce_sampled_at_any_rate_gives_m_over_i(h, measured):
    found = identify(positions_only=measured == "q", h=h)
    assert found.verdict.verdict == "good", found.verdict.reasons
    low, high = found.interval
    assert found.status == "local" and abs(found.m_over_i - 6.0) < 3.0 * (high - low) / 3.92
    assert high - low < (0.5 if h < 0.01 else 2.0)


def test_friction_told_wrong_does_not_move_m_over_i():
    right, wrong = identify(h=0.006), identify_recorded_drop(replace(TOLD, friction=0.7), *record(h=0.006))
    assert wrong.m_over_i == pytest.approx(right.m_over_i, rel=1e-2)


def test_an_impact_that_needs_more_friction_than_told_says_so():
    t, q, v = record()
    found = identify_recorded_drop(replace(TOLD, friction=0.02, friction_std=0.01), t, q, v)
    assert found.verdict.verdict == "doubtful"
    assert any("need a friction of" in reason for reason in found.verdict.reasons)


def test_an_impact_whose_slip_reverses_shows_that_friction_is_lower_than_told():
    """No impact slides the way it came, but the contact leaves with slip: more friction would have held it."""
    t, q, v = record(friction=0.15)
    right, wrong = (identify_recorded_drop(replace(TOLD, friction=mu), t, q, v) for mu in (0.15, 0.45))
    assert right.verdict.verdict == "good", right.verdict.reasons
    assert any("need a friction of 0.1" in reason for reason in wrong.verdict.reasons), wrong.verdict.reasons


def test_shaking_ground_is_named():
    found = identify(shake=(0.01, 7.0))
    assert any("do not agree on where" in reason for reason in found.verdict.reasons), found.verdict.reasons


def test_a_longer_impact_widens_the_interval():
    t, q, v = record(h=0.006)
    short, long = (identify_recorded_drop(TOLD, t, q, v, impact_duration=d) for d in (2e-3, 8e-3))
    assert np.ptp(long.interval) > 1.5 * np.ptp(short.interval)


def test_uneven_samples_are_as_good_as_even_ones():
    t, q, v = record(h=0.003)
    keep = np.random.default_rng(4).random(len(t)) < 0.5
    found = identify_recorded_drop(TOLD, t[keep], q[keep], v[keep])
    assert found.status == "local" and found.m_over_i == pytest.approx(6.0, rel=0.05)


def wrong_size(t, q, v):
    return replace(TOLD, shape=square(1.08)), t, q, v


def lifted(t, q, v):
    return TOLD, t, q + [0.0, 0.03, 0.0], v


def late_velocities(t, q, v):
    return TOLD, t, q, np.column_stack([np.interp(t - 8e-3, t, column) for column in v.T])


def scaled(t, q, v):
    return TOLD, t, q * [1.06, 1.06, 1.0], v * [1.06, 1.06, 1.0]


def frozen(t, q, v):
    q = q.copy()
    q[30:40] = q[30]
    return TOLD, t, q, v


def outlying(t, q, v):
    q = q.copy()
    q[::25] += 0.2
    return TOLD, t, q, v


def mirrored(t, q, v):
    return TOLD, t, q * [1.0, 1.0, -1.0], v * [1.0, 1.0, -1.0]


def tilted(t, q, v):
    g = 9.81 * np.sin(0.1)
    return TOLD, t, q + np.outer(0.5 * g * t**2, [1.0, 0.0, 0.0]), v + np.outer(g * t, [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "fault, words",
    [
        (wrong_size, "off the ground"),
        (lifted, "off the ground"),
        (late_velocities, "disagree by 8"),
        (scaled, "instead of 9.81"),
        (frozen, "frozen"),
        (outlying, "samples are far off"),
        (mirrored, "direction of the angle"),
        (tilted, "something else was hit"),
    ],
)
def test_a_fault_is_named(fault, words):
    found = identify_recorded_drop(*fault(*record()))
    assert found.verdict.verdict != "good" and found.status != "local"
    assert any(words in reason for reason in found.verdict.reasons), found.verdict.reasons
    assert np.ptp(found.interval_total) >= np.ptp(found.interval)


def test_an_unsure_size_is_found():
    assert identify(scale=1.05).status != "local"
    found = identify_recorded_drop(replace(TOLD, size_std=0.1), *record(scale=1.05))
    assert found.status == "local" and found.m_over_i == pytest.approx(6.0, rel=0.05)


def test_a_stepped_simulation_is_recognised():
    """Impacts of time stepping happen at samples, up to 40 mm above the ground at 10 ms."""
    body, rng = BODIES["square"], np.random.default_rng(5)
    run = random_drop(body, rng)
    q, v = add_noise(run, 40.0, rng)
    for positions, rates in ((q, v), (run.q, None)):
        found = identify_recorded_drop(Told(body.shape, 0.7), run.t, positions, rates)
        assert found.status == "local" and found.m_over_i == pytest.approx(6.0, rel=0.02)


def test_a_flat_landing_says_nothing():
    found = identify(flat=True)
    assert found.status == "undetermined" and found.verdict.exit_code == 3


def record_one_impact(offset):
    """t and q up to the second touch of a body whose centre is ``offset`` [m] along the ground off the middle."""
    t, q, _ = fall()
    lowest = q[:, 1] + square(1.0).levers(q[:, 2])[..., 1].min(axis=-1)
    angle = float(q[np.argmax(lowest < 0.0), 2])
    along_ground = np.array([np.cos(angle), -np.sin(angle)])  # in the body's axes
    body = replace(BODY, corners=CORNERS - offset * along_ground)
    t, q, _ = world.sample(*world.drop(body, *START, 0.45), 0.006)
    return t, q + NOISE * np.random.default_rng(0).standard_normal(q.shape)


def flagged(found):
    return [finding.test for finding in found.verdict.findings if finding.flagged]


def test_one_impact_alone_does_not_check_the_centre_of_mass():
    found = identify_recorded_drop(TOLD, *record_one_impact(0.06), None)
    assert found.interval[0] > 12.0  # the truth is 6
    assert flagged(found) == ["redundant"] and found.status == "doubtful"
    assert "one impact alone" in found.verdict.reasons[0] and "--centre-std" in found.verdict.reasons[0]
    assert found.interval_total[0] < 6.0 < found.interval_total[1]


def test_a_centre_of_mass_that_is_known_makes_one_impact_count_as_far():
    """The interval widens with the uncertainty; from 5 % of m/I on it is a doubt."""
    t, q = record_one_impact(0.0)
    exact, sure, unsure = (
        identify_recorded_drop(replace(TOLD, centre_std=share), t, q, None) for share in (0.0, 1e-3, 0.1)
    )
    assert exact.status == sure.status == "local" and exact.interval_total == pytest.approx(exact.interval, rel=1e-3)
    assert np.ptp(exact.interval) < np.ptp(sure.interval_total) < np.ptp(unsure.interval_total)
    assert unsure.status == "doubtful"


def test_the_derivatives_of_the_conditions_by_m_over_i_and_by_the_centre():
    t, q, v = record()
    recording = Recording(t, q, v)
    noise = measure_noise(recording)
    fit = find_impacts(recording, noise)

    def misses(offset, ratio, at):
        impacts = Impacts(recording, noise, fit, Told(Polygon(CORNERS - offset), 0.4))
        numbers = np.concatenate([at.values.ravel(), [1.0], impacts.durations, np.zeros(impacts.count)])
        return impacts._conditions(numbers, ratio)[0]

    impacts = Impacts(recording, noise, fit, TOLD)
    best = impacts.correct(6.0)
    best = best._replace(values=impacts.found)
    by_ratio, by_centre, _ = impacts.sensitivity(best, 6.0)
    numeric = (misses(np.zeros(2), 6.0 * np.exp(1e-6), best) - misses(np.zeros(2), 6.0 * np.exp(-1e-6), best)) / 2e-6
    np.testing.assert_allclose(by_ratio, numeric, atol=1e-6)
    for axis, step in enumerate(1e-6 * np.eye(2)):
        numeric = (misses(step, 6.0, best) - misses(-step, 6.0, best)) / 2e-6
        np.testing.assert_allclose(by_centre[:, axis], numeric, atol=2e-2)  # the angle turns a little in the impact


def test_many_optima_are_told_as_a_range():
    reasons = identify(flat=True).verdict.reasons
    assert any(" to " in reason and "equally well" in reason for reason in reasons)
    assert not any(reason.count(" and ") > 2 for reason in reasons if "equally well" in reason)


def test_impacts_are_timed_between_samples():
    t, q, v = record(h=0.01)
    at, _, _ = fall()
    touching = np.diff(at) < 1.01 * world.CONTACT_STEP
    first = float(at[np.argmax(touching)])
    fit = find_impacts(Recording(t, q, v), measure_noise(Recording(t, q, v)))
    assert fit.times[0] == pytest.approx(first + 5e-4, abs=1e-3)


def test_two_impacts_two_samples_apart_are_told_apart():
    t, rng = 0.005 * np.arange(120), np.random.default_rng(2)
    jumps = ((0.301, np.array([0.5, 2.5, -4.0])), (0.311, np.array([0.0, 2.5, 4.5])))
    q = np.array([0.0, 2.0, 0.0]) + np.outer(t, [0.5, -1.0, 2.0]) + np.outer(0.5 * t**2, gravity(0.0))
    q += sum(np.outer(np.maximum(t - at, 0.0), jump) for at, jump in jumps)
    recording = Recording(t, q + 1e-3 * rng.standard_normal(q.shape), None)
    fit = find_impacts(recording, measure_noise(recording))
    assert fit.times == pytest.approx([at for at, _ in jumps], abs=1e-3)
    assert fit.chi_square < 1.3 * fit.degrees


def test_the_rows_of_a_fit_are_its_derivative():
    """The change of the residual with the time of an impact, by differences."""
    t, q, _ = record()
    recording = Recording(t, q, None)
    noise = measure_noise(recording)
    fit = fit_flights(recording, noise, find_impacts(recording, noise).times)
    assert np.abs(fit.rows.T @ fit.residual.ravel()).max() < 1e-2 * np.abs(fit.rows).max() * np.sqrt(fit.chi_square)


@pytest.mark.parametrize("shape", [square(1.0), Ellipse(2.0, 1.0)])
def test_conditions_of_contact_against_finite_differences(shape):
    t, q, v = record()
    recording = Recording(t, q, v)
    noise = measure_noise(recording)
    impacts = Impacts(recording, noise, find_impacts(recording, noise), Told(shape, 0.4, size_std=0.01))
    numbers = np.concatenate([impacts.found.ravel(), [1.02], impacts.durations, np.full(impacts.count, 1e-3)])
    _, slope = impacts._conditions(numbers, 3.0)
    steps = 1e-6 * np.eye(len(numbers))
    numeric = [
        (impacts._conditions(numbers + d, 3.0)[0] - impacts._conditions(numbers - d, 3.0)[0]) / 2e-6 for d in steps
    ]
    np.testing.assert_allclose(slope, np.transpose(numeric), atol=1e-6)


def test_noise_is_measured_away_from_impacts():
    t, q, v = record(h=0.003)
    recording = Recording(t, q, v)
    noise = measure_noise(recording, find_impacts(recording, measure_noise(recording)).times)
    np.testing.assert_allclose(noise.sigma, [*NOISE, *(5.0 * NOISE)], rtol=0.3)


def test_bad_input():
    t, q, v = record()
    with pytest.raises(ConfigError, match="shape"):
        identify_recorded_drop(TOLD, t, q[:, :2], v)
    with pytest.raises(ConfigError, match="must not be negative"):
        identify_recorded_drop(replace(TOLD, friction=-0.1), t, q, v)
    with pytest.raises(ConfigError, match="longest impact"):
        identify_recorded_drop(TOLD, t, q, v, impact_duration=0.0)
    with pytest.raises(IdentificationError, match="at least 12"):
        identify_recorded_drop(TOLD, t[:5], q[:5], v[:5])
    with pytest.raises(IdentificationError, match="increase"):
        identify_recorded_drop(TOLD, t[::-1], q, v)
    with pytest.raises(IdentificationError, match="samples are 6 s apart: record faster, or give the times in s"):
        identify_recorded_drop(TOLD, 1e3 * t, q, None)
    with pytest.raises(IdentificationError, match="no impact"):
        identify_recorded_drop(TOLD, t[:30], q[:30], v[:30])
