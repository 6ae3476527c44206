"""The experiments and their scores, small."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2

from contact_estimation.identify.probing.excitation import (
    ExcitationSettings,
    command,
    first_rotation_end,
    planar_tilt,
    spatial_tilt,
)
from contact_estimation.settings import replace
from contact_estimation.studies.probing.ablation import SCENARIOS, VARIANTS
from contact_estimation.studies.probing.experiment import Experiment, run, scenario, simulate
from contact_estimation.studies.probing.score import score

WALKS = ("tip_walk", "angle_walk", "offset_walk", "stiffness_walk", "friction_walk")


@pytest.mark.parametrize("example, runs", [("planar", 12), ("spatial", 6)])
def test_runs_converge_by_the_first_rotation(example, runs):
    experiment = Experiment(example, runs, seed=3, seconds=5.5)
    data = simulate(experiment)
    forces = np.linalg.norm(data.recording.wrench[..., :3], axis=2)
    result = score(run(experiment, data), experiment.evaluated_at)
    assert forces.max() < 51.0  # 50 N and the sensor's noise
    assert result["converged_at_end_pct"] == 100.0 and result["non_physical_runs"] == 0
    assert result["tip_error_mm"] < 1.0 and result["friction_error"] < 2e-3
    assert result["nees_mean"] < 2.0 * result["nees_dof"]


def test_two_tips_are_told_apart():
    experiment = Experiment("spatial", 2, seed=3, seconds=5.5, tips=(-0.01, 0.01))
    result = score(run(experiment, simulate(experiment)), experiment.evaluated_at)
    assert result["nees_dof"] == 11 and result["converged_at_end_pct"] == 100.0


def test_a_clock_of_coarse_ticks_gives_the_mean_rate_or_none():
    """Some clocks of processor time tick every 10 ms: most updates take no time on them, and a few take it all."""
    experiment = Experiment("planar", 1, seed=3, seconds=2.0)
    (trace,) = run(experiment, simulate(experiment))
    ticks = np.where(np.cumsum(trace.used) % 10 == 0, 0.01 * trace.used, 0.0)
    result = score([dataclasses.replace(trace, seconds=ticks)], 2.0)
    assert result["updates_per_second"] == pytest.approx(1000.0, rel=0.1)
    assert np.isnan(score([dataclasses.replace(trace, seconds=0.0 * ticks)], 2.0)["updates_per_second"])


def test_time_triggered_updates_lose_the_friction():
    experiment = Experiment("planar", 4, seed=1, seconds=4.0)
    data = simulate(experiment)
    full, timed = (
        score(run(experiment, data, VARIANTS[name]), experiment.evaluated_at) for name in ("full", "time-triggered")
    )
    assert timed["friction_error"] > 3.0 * full["friction_error"] and timed["nees_mean"] > 10.0 * full["nees_mean"]


def test_the_merge_pays_where_the_sign_is_in_doubt():
    experiment = scenario("poor_velocity", Experiment("planar", 5, seed=1, seconds=4.0))
    data = simulate(experiment)
    full, single = (
        score(run(experiment, data, VARIANTS[name]), experiment.evaluated_at) for name in ("full", "UKF without GPB1")
    )
    assert single["nees_mean"] > 10.0 * full["nees_mean"] and single["tip_error_mm"] > full["tip_error_mm"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_are_valid_settings(name):
    assert scenario(name, Experiment()).settings.friction_start > 0.0


def test_same_seed_same_data():
    first, second = (simulate(Experiment("planar", 2, seed=4, seconds=1.0)).recording.wrench for _ in range(2))
    assert np.array_equal(first, second)


def test_excitation_does_what_section_iv_says():
    cfg = ExcitationSettings()
    times = np.arange(0.0, 8.0, 0.004)
    orders = [command(cfg, t) for t in times]
    speed, tilt = np.array([o.speed for o in orders]), np.array([planar_tilt(cfg, o)[0] for o in orders])
    assert speed.max() == -speed.min() == pytest.approx(cfg.speed)
    assert np.all(tilt[times < 2.49] == 0.0) and abs(tilt[times < first_rotation_end(cfg) + 0.01][-1]) == pytest.approx(
        cfg.tilt
    )
    leant = [o.blend == 1.0 and o.stroke >= cfg.first_tilted_stroke for o in orders]
    assert np.all((speed * tilt)[leant] >= 0.0) and np.any(
        (speed * tilt)[leant] > 0.0
    )  # positive lean is against positive sliding
    rates = np.array([planar_tilt(cfg, o)[1] for o in orders])
    assert np.allclose(np.gradient(tilt, times)[2:-2], rates[2:-2], atol=0.02)
    spatial = np.array([spatial_tilt(cfg, o) for o in orders])
    assert np.ptp(spatial[:, 0]) > 0.3 and np.ptp(spatial[:, 1]) > 0.3  # leans about both tangent axes


def test_the_rate_of_the_force_is_its_derivative_also_while_it_rises():
    cfg, step = ExcitationSettings(), 1e-6
    for t in (0.05, 0.15, 0.29, 0.4, 2.0):
        difference = (command(cfg, t + step).force - command(cfg, t - step).force) / (2.0 * step)
        assert command(cfg, t).force_rate == pytest.approx(difference, rel=1e-6)


def test_settling_time_is_the_last_entry():
    experiment = Experiment("planar", 1, seed=2, seconds=4.0)
    trace = run(experiment, simulate(experiment))[0]
    assert 0.5 < trace.settling_time() < 4.0


@pytest.mark.parametrize("example, runs", [("planar", 30), ("spatial", 20)])
def test_nees_is_consistent_where_the_simulated_contact_is_the_models(example, runs):
    """Coulomb friction, no presliding, a planted random walk: the mean NEES lies within its 99.9 % interval."""
    experiment = Experiment(example, runs, seed=11, seconds=5.0, presliding=1e6)
    traces = run(experiment, simulate(experiment))
    dof = traces[0].planted.shape[1]
    low, high = chi2.ppf([0.0005, 0.9995], runs * dof) / runs
    assert low < score(traces, experiment.evaluated_at)["nees_mean"] < high


@pytest.mark.parametrize("example", ["planar", "spatial"])
def test_simulated_parameters_follow_the_random_walk_of_the_settings(example):
    experiment = Experiment(example, 200, seed=2, seconds=2.4)
    planted = simulate(experiment).recording.planted
    drift = planted[-1] - planted[0]
    steps = 0.03 * 2.4 * 0.8 / experiment.settings.slide_step  # the share of a stroke at full speed, roughly
    expected = experiment.settings.tip_walk * np.sqrt(steps)
    assert 0.7 * expected < drift[:, 0].std() < 1.3 * expected
    still = dataclasses.replace(experiment, settings=replace(experiment.settings, **dict.fromkeys(WALKS, 0.0)))
    constant = simulate(still).recording.planted
    assert np.allclose(constant, constant[0], atol=1e-9)
