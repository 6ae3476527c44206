"""Behind a gap: friction is known from before, so that a push which began in it is felt, and none is made up."""

import sys
from pathlib import Path

import numpy as np
import pytest
from drawn_worlds import estimates_of

from contact_estimation.filters.imm.kept_friction import predict_friction
from contact_estimation.filters.kalman import pack_array
from contact_estimation.filters.registry import open_stream

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmark"))
import gaps
from rigid_body_recording import RATE


@pytest.fixture(scope="module")
def layout():
    return open_stream("ur16e", "contact_imm", "ur16e_driver").observer.layout


@pytest.fixture
def state(layout):
    """A state off its prior, with correlations."""
    rng = np.random.default_rng(1)
    root = 0.1 * rng.normal(size=(layout.size, layout.size))
    return layout.mean + rng.normal(size=layout.size), root @ root.T


def test_known_presliding_states_leave_the_prediction_alone(layout, state):
    x, p = state
    kept = predict_friction(layout, x, pack_array(p), 2.0, np.zeros(layout.n))
    decay, noise, _ = layout.drift(2.0)
    transition = np.diag(decay)
    expected = transition @ p @ transition + np.diag(noise)
    np.testing.assert_allclose(kept.mean, (layout.mean + decay * (x - layout.mean))[kept.where])
    np.testing.assert_allclose(kept.covariance, expected[np.ix_(kept.where, kept.where)])


def test_a_joint_at_rest_may_have_any_friction_within_its_coulomb_friction(layout, state):
    x, p = state
    n, packed, share = layout.n, pack_array(p), np.linspace(0.0, 1.0, layout.n)
    known, unknown = (predict_friction(layout, x, packed, 1.0, s).covariance for s in (np.zeros(n), share))
    second_moment = x[layout.parts["coulomb"]] ** 2 + np.diagonal(p)[layout.parts["coulomb"]]
    expected = np.zeros(len(known))
    expected[2 * n : 3 * n] = share**2 * second_moment
    np.testing.assert_allclose(unknown - known, np.diag(expected), atol=1e-12)


def test_long_after_it_the_disturbance_has_its_prior(layout, state):
    kept = predict_friction(layout, state[0], pack_array(state[1]), 1e4, np.zeros(layout.n))
    disturbance = slice(2 * layout.n, 3 * layout.n)
    where = kept.where[disturbance]
    np.testing.assert_allclose(kept.mean[disturbance], layout.mean[where], atol=1e-9)
    np.testing.assert_allclose(np.diagonal(kept.covariance)[disturbance], layout.variance[where])


@pytest.mark.parametrize("row, most", [("push begins in 0.5 s", 9.0), ("push lasts through 0.5 s", 13.0)])
def test_a_push_behind_a_gap_is_felt(row, most):
    """With the friction's prior it was `free` and 0 N for seconds: up to 41 N wrong, as valid."""
    error, largest, _, valid, free = gaps.run("ur16e", "contact_imm", gaps.ROWS[row], 51)
    assert error < 0.7 * most and largest < most and valid > 95.0 and free == 0.0


def test_a_push_behind_a_gap_has_one_wrench_while_the_arm_moves():
    """Torque along J^T F without any error had no wrench at the next posture: 37 N wrong for a block."""
    error, largest, *_ = gaps.run("fr3", "contact_imm", gaps.ROWS["push begins in 0.5 s"], 51)
    assert error < 2.0 and largest < 4.0


@pytest.mark.parametrize("row", ["push ends in 0.5 s", "nothing pushes, 2 s"])
def test_nothing_behind_a_gap_is_nothing(row):
    error, largest, _, valid, _ = gaps.run("ur16e", "contact_imm", gaps.ROWS[row], 51)
    assert error < 0.5 and largest < 2.0 and valid > 95.0


def test_a_press_through_a_gap_does_not_blind_a_healthy_arm():
    """The torque of the press was called neither a free arm's nor a force's, for the rest of the press."""
    error, _, _, valid, _ = gaps.run("ur16e", "contact_imm", gaps.ROWS["presses through 0.5 s"], 52)
    assert valid > 95.0 and error < 8.0


def test_a_push_through_a_gap_does_not_become_a_floor():
    """The configured floor took it from the first sample, with friction: 85 N wrong for the rest of the push."""
    made, found = estimates_of(5038, 11.5)
    behind = [(e, made.force[k]) for k, e in found if k >= 8 * RATE]  # the gap ends at 7.9 s
    assert {e.mode for e, _ in behind} == {"unknown"}
    assert np.mean([np.linalg.norm(e.force_tcp - force) for e, force in behind]) < 0.3 * 54.0


def test_a_state_that_is_not_finite_is_forgotten():
    stream = open_stream("ur16e", "contact_imm", "ur16e_driver")
    observer, q = stream.observer, np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])
    observer.reset(0.0, q)
    observer.filters.x[:] = np.nan
    observer.resume(1.0, q, np.zeros(6), 1.0)
    assert np.isfinite(observer.filters.x).all()
