"""A closed contact in the papers' coordinates (paper 2, eq. 4-6)."""

import casadi as ca
import numpy as np
import pytest

from contact_estimation.contact.closed import from_stiffness_vector, same_side, same_sign
from contact_estimation.contact.registry import find_law
from contact_estimation.contact.spring import Spring

REST = np.array([0.1, -0.2, 0.3])


def force(stiffness, point):
    stretch = ca.SX(REST) - ca.SX(point)
    return from_stiffness_vector(Spring(), ca.SX(stiffness), stretch, ca.SX(0, 1), np.array([1.0, 2.0, 3.0])).force_base


def values(expression):
    return ca.DM(expression).full().ravel()


def test_the_force_is_that_of_a_spring_along_its_normal():
    stiffness = np.array([3.0, 4.0, 0.0]) * 1e3  # 5 kN/m along (0.6, 0.8, 0)
    point = (
        REST - 0.002 * np.array([0.6, 0.8, 0.0]) + 0.5 * np.array([-0.8, 0.6, 0.0])
    )  # 2 mm in, anywhere on the plane
    np.testing.assert_allclose(values(force(stiffness, point)), 10.0 * np.array([0.6, 0.8, 0.0]), rtol=1e-9)
    assert np.linalg.norm(values(force(stiffness, point))) == pytest.approx(10.0)


def test_at_rest_there_is_no_force():
    np.testing.assert_array_equal(values(force([0, 0, 1e4], REST)), 0.0)


def test_the_opposite_stiffness_is_the_same_contact():
    point = REST + [0.001, 0.002, -0.003]
    stiffness = np.array([1e3, -2e3, 5e3])
    np.testing.assert_allclose(values(force(stiffness, point)), values(force(-stiffness, point)))
    np.testing.assert_array_equal(same_sign(-stiffness, [0, 0, 1.0]), stiffness)
    np.testing.assert_array_equal(same_sign(stiffness, [0, 0, 1.0]), stiffness)


@pytest.mark.parametrize("name", ["spring", "sliding", "sticking", "mindlin"])
def test_the_contact_on_the_other_side_has_the_same_force_and_variance(name):
    law, reference = find_law(name), np.array([1.0, 2.0, 3.0])
    phi = ca.SX.sym("phi", 9 + len(law.parameters))
    stretch = phi[3:6] - ca.SX([0.1, -0.2, 0.29])
    expression = from_stiffness_vector(law, phi[:3], stretch, phi[9:], reference).force_base
    function = ca.Function("force", [phi], [expression, ca.jacobian(expression, phi)])
    rng = np.random.default_rng(0)
    parameters = np.concatenate([[-1e3, 2e3, -5e3], REST, np.zeros(3), rng.normal(size=phi.numel() - 9)])
    root = rng.normal(size=(phi.numel(), phi.numel()))
    other, covariance = same_side(law, parameters, root @ root.T, reference)
    np.testing.assert_array_equal(other[:9], [1e3, -2e3, 5e3, *REST, 0, 0, 0])
    found = [
        (force.full(), jacobian.full() @ spread @ jacobian.full().T)
        for (force, jacobian), spread in ((function(parameters), root @ root.T), (function(other), covariance))
    ]
    for mine, its in zip(*found):
        np.testing.assert_allclose(its, mine, rtol=1e-9)
    assert same_side(find_law("unilateral"), parameters, covariance, reference) == (parameters, covariance)


def test_force_and_derivative_stay_finite_at_zero_stiffness():
    stiffness = ca.SX.sym("K", 3)
    expression = force(stiffness, REST + 0.01)
    function = ca.Function("f", [stiffness], [expression, ca.jacobian(expression, stiffness)])
    value, jacobian = function([0, 0, 0])
    assert np.isfinite(value.full()).all() and np.isfinite(jacobian.full()).all() and not value.full().any()


@pytest.mark.parametrize("stiffness", [[0, 0, 2e4], [1e3, -2e3, 5e2], [10.0, 1.0, 0.0]])
def test_the_derivative_by_stiffness_matches_finite_differences(stiffness):
    symbol = ca.SX.sym("K", 3)
    expression = force(symbol, REST + [0.01, -0.02, 0.03])
    function = ca.Function("f", [symbol], [expression, ca.jacobian(expression, symbol)])
    at, h = np.array(stiffness), 1e-4 * np.linalg.norm(stiffness)
    numeric = np.column_stack(
        [(function(at + s)[0] - function(at - s)[0]).full().ravel() / (2 * h) for s in h * np.eye(3)]
    )
    np.testing.assert_allclose(function(at)[1].full(), numeric, atol=1e-8)
