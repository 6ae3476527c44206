"""The damped pseudo-inverse: exact where the posture determines the force, finite and honest where it does not."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.dynamics import wrench

PRIOR = np.full(3, 100.0)
#: A lever of 0.5 m along x, 0.3 m along y, and what the third joint has along z.
LEVERS = np.diag([0.5, 0.3, 0.0])


def damped_inverse(*given) -> np.ndarray:
    return wrench.damped_inverse(*map(ca.DM, given)).full()


def wrench_covariance(*given) -> np.ndarray:
    return wrench.wrench_covariance(*map(ca.DM, given)).full()


def test_a_force_is_recovered_where_levers_are_long():
    jacobian = np.diag([0.5, 0.3, 0.4])
    found = damped_inverse(jacobian, PRIOR, 1.0) @ (jacobian.T @ [10.0, -20.0, 30.0])
    np.testing.assert_allclose(found, [10.0, -20.0, 30.0], rtol=2e-3)


def test_no_force_is_made_up_where_no_joint_has_a_lever():
    inverse = damped_inverse(LEVERS, PRIOR, 1.0)
    np.testing.assert_allclose(inverse @ [5.0, 3.0, 50.0], [10.0, 10.0, 0.0], rtol=2e-3)
    spread = wrench_covariance(inverse, LEVERS, PRIOR, np.ones(3))
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), [2.0, 3.33, 100.0], rtol=5e-3)


def test_no_lever_amplifies_beyond_half_of_prior_over_error():
    """1 Nm of friction is 50 N at most, at a lever of 1 cm; the plain pseudo-inverse makes any force of it."""
    short = np.geomspace(1e-9, 1.0, 200)
    forces = [damped_inverse(np.diag([0.5, 0.3, lever]), PRIOR, 1.0)[2, 2] for lever in short]
    assert max(forces) == pytest.approx(50.0, rel=1e-2)


@pytest.mark.parametrize("joints", [2, 3, 6, 7])
def test_the_covariance_is_that_of_drawn_forces_and_torques(joints):
    rng = np.random.default_rng(joints)
    jacobian, variance = rng.normal(0.0, 0.1, (3, joints)), rng.uniform(0.5, 2.0, joints)
    forces = 100.0 * rng.standard_normal((20_000, 3))
    inverse = damped_inverse(jacobian, PRIOR, 1.0)
    torque = forces @ jacobian + np.sqrt(variance) * rng.standard_normal((20_000, joints))
    expected = wrench_covariance(inverse, jacobian, PRIOR, variance)
    np.testing.assert_allclose(np.cov((torque @ inverse.T - forces).T), expected, atol=0.03 * np.abs(expected).max())
