"""Corrections at contact events: partial derivatives, the mismatch, and what they save."""

import numpy as np
import pytest

from contact_estimation.identify.batch import solver
from contact_estimation.identify.batch.estimate import estimate
from contact_estimation.identify.batch.newton_step import NewtonStep
from contact_estimation.studies.batch import finger


@pytest.fixture(scope="module")
def task(finger_recording):
    return finger.problem(finger_recording, grid=np.arange(0.2, 0.7, 0.005))


def at(task, shift=0.0):
    p = task.scene.parameters.nominal
    rng = np.random.default_rng(0)
    q = finger.start(task, p)
    return task.coordinates.add(q, shift * rng.standard_normal((len(q), task.coordinates.nv))), p + shift


def test_renewing_every_time_is_linearising_anew(task):
    here, (q, p) = task.linearise(*at(task)), at(task, 1e-5)
    task.renew(here, q, p, np.arange(len(q)), task.residuals(q, p))
    fresh = task.linearise(q, p)
    assert here.cost == pytest.approx(fresh.cost, rel=1e-12)
    for name in ("band", "border", "corner", "gradient_q", "gradient_p"):
        np.testing.assert_allclose(getattr(here.system, name), getattr(fresh.system, name), rtol=1e-9, atol=1e-9)


def test_renewing_some_times_leaves_the_derivatives_of_the_others(task):
    times = np.array([7, 8, 40])
    here, (q, p) = task.linearise(*at(task)), at(task, 1e-5)
    before, fresh = here._by_q.copy(), task.linearise(q, p)
    task.renew(here, q, p, times, task.residuals(q, p))
    others = np.setdiff1d(np.arange(len(q)), times)
    np.testing.assert_array_equal(here._by_q[others], before[others])
    np.testing.assert_allclose(here._by_q[times], fresh._by_q[times], rtol=1e-9, atol=1e-9)


def test_the_mismatch_is_of_second_order(task):
    (q, p), rng = at(task), np.random.default_rng(1)
    here, dq, dp = task.linearise(q, p), rng.standard_normal((len(q), task.coordinates.nv)), rng.standard_normal(len(p))
    sizes = []
    for h in (4e-8, 2e-8):
        residuals = task.residuals(task.coordinates.add(q, h * dq), p + h * dp)
        sizes.append(np.median(here.mismatch(residuals, h * dq, h * dp)))
        moved = np.median(here.mismatch(residuals, 0.0 * dq, 0.0 * dp))
    assert sizes[1] < 0.1 * sizes[0] and sizes[1] < 1e-3 * moved  # a square of squares: 16 times smaller


def test_corrections_save_iterations_and_change_no_result(finger_recording, monkeypatch):
    task = finger.problem(finger_recording, grid=np.arange(0.0, 1.5, 0.005))
    p = task.scene.parameters.vector({"friction": 0.9, "contact_stiffness": 1500.0, "spring_stiffness": 120.0})
    corrected = estimate(task, finger.start(task, p), p)
    monkeypatch.setattr(solver, "correct", lambda problem, here, before, after, damping, options: (*after, 0))
    plain = estimate(task, finger.start(task, p), p)
    assert sum(iteration.corrections for _, iteration in corrected.trace) > 0
    assert corrected.iterations < plain.iterations
    assert corrected.solution.cost == pytest.approx(plain.solution.cost, rel=2e-3)
    np.testing.assert_allclose(corrected.solution.p, plain.solution.p, atol=0.02)


def test_steps_that_give_nothing_end_at_a_corner_or_in_a_detour(finger_recording, monkeypatch):
    """At the minimum they end the run as converged; far from it, without the continuation, as stalled."""
    task = finger.problem(finger_recording, grid=np.arange(0.02, 0.22, 0.005))
    p = task.scene.parameters.nominal
    near = estimate(task, finger.start(task, p), p).solution
    assert near.converged
    monkeypatch.setattr(NewtonStep, "search", lambda step, cost: None)
    corner = solver.solve(task, near.q, near.p, solver.Options(tolerance=0.0))
    assert corner.converged and not corner.stalled and "a minimum at a contact event" in corner.reason
    assert corner.cost == near.cost and not corner.trace
    far = solver.solve(task, finger.start(task, p), p, solver.Options())
    assert not far.converged and far.stalled and "whatever the damping" in far.reason
