"""Vectors and functions with named parts."""

import casadi as ca
import numpy as np

from contact_estimation.codegen import Parts, named_function, symbols


def test_parts_follow_each_other_in_their_order():
    parts = Parts(position=3, noise=1, torque=2)
    assert parts.size == 6
    assert (parts["position"], parts["noise"], parts["torque"]) == (slice(0, 3), slice(3, 4), slice(4, 6))


def test_parts_of_an_array_are_views():
    parts, array = Parts(a=2, b=1), np.zeros(3)
    parts.split(array).b[:] = 5.0
    np.testing.assert_array_equal(array, [0, 0, 5])


def test_joining_is_the_inverse_of_splitting():
    parts, vector = Parts(a=2, none=0, b=3), ca.SX.sym("v", 5)
    joined = ca.Function("joined", [vector], [parts.join(parts.split(vector))])
    np.testing.assert_array_equal(np.array(joined(np.arange(5.0))).ravel(), np.arange(5.0))


def test_a_named_function_has_dense_results_and_all_names():
    s = symbols(a=(2, 2), b=1)
    function = named_function("f", s, {"sparse": ca.SX(2, 2), "scaled": s.a * s.b})
    assert (function.name_in(), function.name_out()) == (["a", "b"], ["sparse", "scaled"])
    assert function.nnz_out(0) == 4
    np.testing.assert_array_equal(function(np.eye(2), 3.0)[1], 3.0 * np.eye(2))
