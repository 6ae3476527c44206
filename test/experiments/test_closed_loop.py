"""The controller with the real estimator in simulation: what paper 2 shows, and four things that go wrong and end
safely."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from contact_estimation.control.mpc.controller import MpcState
from contact_estimation.experiments.closed_loop import ClosedLoop, LoopRecord, force_limit_ok, load_loop_settings


@functools.lru_cache(maxsize=None)
def run(task: str, error: float, adapt: bool, seconds: float = 4.0) -> LoopRecord:
    return ClosedLoop(load_loop_settings(task, "fr3"), seed=5, height_error=error, adapt=adapt).run(seconds)


@pytest.mark.parametrize("error", [0.02, -0.02])
def test_plane_two_centimetres_off(error):
    estimating, fixed = run("plane", error, True), run("plane", error, False)
    assert estimating.force_rmse() <= 1.0
    assert estimating.force_rmse() <= 0.25 * fixed.force_rmse()
    assert not estimating.reasons
    assert force_limit_ok(estimating) and force_limit_ok(fixed)


def test_pivot_three_centimetres_off():
    estimating, fixed = run("pivot", 0.03, True), run("pivot", 0.03, False)
    assert np.abs(estimating.steady_error()[estimating.axes]).max() <= 1.0
    assert np.abs(fixed.steady_error()[fixed.axes]).max() > 3.0
    assert force_limit_ok(estimating) and force_limit_ok(fixed)


def test_no_ground_truth_reaches_the_controller(monkeypatch):
    """The same seed with the truth of every sample spoilt gives the same commands, bit by bit."""
    clean = run("plane", 0.02, True, 4.0)
    loop = ClosedLoop(load_loop_settings("plane", "fr3"), seed=5, height_error=0.02)
    plant = loop.simulation.plant
    monkeypatch.setattr(type(plant), "truth", lambda self: {"rest": np.full(3, 1e9)})
    spoilt = loop.run(0.5)
    np.testing.assert_array_equal(spoilt.x0, clean.x0[: spoilt.x0.shape[0]])


def faulty(disturb=None, alive=lambda t: True, seconds: float = 3.0) -> LoopRecord:
    loop = ClosedLoop(load_loop_settings("plane", "fr3"), seed=1, height_error=0.0)
    record = loop.run(seconds, disturb, alive)
    assert force_limit_ok(record), f"impedance force {record.max_spring:.2f} N, limit {record.force_limit} N"
    assert np.isfinite(record.x0).all()
    return record


def speed(record: LoopRecord) -> np.ndarray:
    return np.linalg.norm(np.diff(record.x, axis=0), axis=1) / np.diff(record.t)


def test_a_lost_contact_ends_in_hold_before_the_arm_went_far():
    def lose(t, simulation):
        if t >= 1.0:
            simulation.plant.surfaces[0].depth = 0.0

    record = faulty(lose, seconds=5.0)
    assert record.state[-1] == MpcState.HOLD.value and "TCP" in record.reasons[-1]
    travelled = np.linalg.norm(record.x - record.x[0], axis=1)
    assert travelled.max() < 0.32 and speed(record).max() < 0.45
    assert speed(record)[-250:].max() < 0.02  # it stands


def test_a_wall_that_moves_five_millimetres_is_followed():
    def move(t, simulation):
        if t >= 1.5 and simulation.plant.surfaces[0].name != "moved":
            simulation.plant.surfaces[0].name = "moved"
            simulation.plant.surfaces[0].point[2] += 0.005

    record = faulty(move)
    assert not record.reasons
    assert record.force[:, 2].max() < 20.0
    assert abs(record.force[record.t > 2.3][:, 2].mean() - 10.0) < 1.0


def test_a_stiffness_that_jumps_tenfold_stays_within_the_limit():
    def stiffen(t, simulation):
        if t >= 1.5:
            simulation.plant.surfaces[0].stiffness = 10_000.0

    record = faulty(stiffen)
    # The surface is now pressed by what ten times the stiffness makes of the old depth: it throws the arm back, once.
    later = record.force[record.t > 2.3][:, 2]
    assert abs(later.mean() - 10.0) < 1.5 and later.std() < 1.0


def test_an_estimator_that_dies_hands_over_to_hold():
    record = faulty(alive=lambda t: t < 1.0)
    assert record.state[-1] == MpcState.HOLD.value and "stale" in record.reasons[-1]
    first = record.t[np.flatnonzero(record.state == MpcState.HOLD.value)[0]]
    assert first < 1.0 + 0.05 + 3 * 0.01
    assert speed(record)[-250:].max() < 0.02


def test_the_same_seed_gives_the_same_run():
    again = ClosedLoop(load_loop_settings("plane", "fr3"), seed=5, height_error=0.02).run(1.0)
    np.testing.assert_array_equal(again.force, run("plane", 0.02, True).force[: len(again.force)])
