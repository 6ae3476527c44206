"""The coupled semi-implicit step and its exact linearisation (paper 2, eq. 8-14)."""

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.dynamics import CoupledStep, symmetric
from contact_estimation.filters.process_noise import state_intensity
from contact_estimation.filters.settings import ProcessNoise
from contact_estimation.robot import load_arm

H = 0.002
CONTACTS = {
    "none": [],
    "stiffness": [ContactSettings(stiffness=[1e3, -2e3, 2e4], point=[0.01, 0.02, 0.05], estimate=["stiffness"])],
    "all of two": [
        ContactSettings(name="a", stiffness=[1e3, -2e3, 2e4], estimate=["stiffness", "rest", "point"]),
        ContactSettings(name="b", stiffness=[9e3, 0, 1e3], point=[0, 0.1, 0], estimate=["rest", "point"]),
    ],
    "sliding": [ContactSettings(stiffness=[1e3, -2e3, 2e4], law="sliding", estimate=["stiffness", "tangential"])],
}


class Case:
    """Numbers of one arm, one set of contacts, one state with the contacts loaded."""

    def __init__(self, robot, contacts):
        self.arm = arm = load_arm(robot)
        self.contacts = ParallelContacts(arm, CONTACTS[contacts])
        self.step = s = CoupledStep(arm, self.contacts)
        self.covariance = ca.SX.sym("P", s.xi.numel(), s.xi.numel())
        outputs = [s.next, s.jacobian, s.delta, s.tau_e, s.propagate(self.covariance)]
        self.function = ca.Function(
            "step", [s.xi, s.phi, s.tau, s.h, self.covariance], [ca.densify(o) for o in outputs]
        )
        rng = np.random.default_rng(1)
        self.q = rng.uniform(0.6 * arm.lower + 0.4 * arm.upper, 0.4 * arm.lower + 0.6 * arm.upper)
        self.dq, self.tau = 0.5 * rng.normal(size=arm.n), 20 * rng.normal(size=arm.n)
        self.phi = self.contacts.initial(self.q)[0]
        self.phi[3::9] += 0.003
        self.phi[5::9] -= 0.002
        self.xi = np.concatenate([self.q, self.dq, self.phi[self.contacts.estimated]])

    def __call__(self, xi=None, covariance=None):
        size = len(self.xi)
        covariance = np.zeros((size, size)) if covariance is None else covariance
        return [v.full() for v in self.function(self.xi if xi is None else xi, self.phi, self.tau, H, covariance)]


@pytest.fixture(scope="module", params=[(r, c) for r in ("ur16e", "fr3") for c in CONTACTS], ids="-".join)
def case(request):
    return Case(*request.param)


def test_the_step_solves_the_equation_of_motion(case):
    """(M + h B) delta = tau - C - G - B dq + tau_e, with M, C and G from Pinocchio."""
    after, _, delta, tau_e, _ = (v.squeeze() for v in case())
    arm, q, dq = case.arm, case.q, case.dq
    data = arm.model.createData()
    inertial = pin.rnea(arm.model, data, q, dq, delta) + arm.motor.armature * delta
    damping = arm.motor.viscous * (dq + H * delta)
    np.testing.assert_allclose(inertial + damping, case.tau + tau_e, atol=1e-8)
    n = arm.n
    np.testing.assert_allclose(after[n : 2 * n], dq + H * delta, atol=1e-14)
    np.testing.assert_allclose(after[:n], q + H * after[n : 2 * n], atol=1e-14)
    np.testing.assert_array_equal(after[2 * n :], case.xi[2 * n :])
    assert bool(np.any(tau_e)) == bool(case.contacts.size)


def test_the_jacobian_matches_finite_differences(case):
    jacobian, h = case()[1], 1e-6
    numeric = np.column_stack(
        [(case(case.xi + s)[0] - case(case.xi - s)[0]).ravel() / (2 * h) for s in h * np.eye(len(case.xi))]
    )
    np.testing.assert_allclose(jacobian, numeric, rtol=2e-6, atol=2e-7)


def test_the_jacobian_equals_differentiating_through_the_solve(case):
    s = case.step
    direct = ca.Function("direct", [s.xi, s.phi, s.tau, s.h], [ca.densify(ca.jacobian(s.next, s.xi))])
    np.testing.assert_allclose(case()[1], direct(case.xi, case.phi, case.tau, H).full(), rtol=1e-10, atol=1e-12)


def test_propagate_is_a_p_a_transposed(case):
    rng = np.random.default_rng(5)
    root = rng.normal(size=(len(case.xi), len(case.xi)))
    covariance = root @ root.T
    _, jacobian, _, _, propagated = case(covariance=covariance)
    expected = jacobian @ covariance @ jacobian.T
    np.testing.assert_allclose(propagated, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_array_equal(propagated, propagated.T)


def test_a_parameter_with_a_time_constant_forgets_its_deviation_and_keeps_its_spread():
    """An unexcited friction coefficient has the law's prior at last: mean 0, standard deviation 0.1."""
    case = Case("ur16e", "sliding")
    friction = case.contacts.laws[0].parameters[0]
    xi = case.xi.copy()
    xi[-2:] = 0.2
    np.testing.assert_allclose(case(xi)[0][-2:, 0], 0.2 * np.exp(-H / friction.time_constant), rtol=1e-12)
    noise = ProcessNoise(position=0.0, velocity=0.0)
    intensity = np.diag(state_intensity(case.arm, case.contacts, noise))
    covariance = np.diag(np.append(np.zeros(len(xi) - 2), [0.01, 0.09]))
    for _ in range(2000):
        covariance = case.function(xi, case.phi, case.tau, H, covariance)[4].full() + H * intensity
        covariance[:-2, :] = covariance[:, :-2] = 0.0
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)[-2:]), friction.std, rtol=0.01)


def test_the_step_converges_to_the_continuous_motion_with_order_one():
    """Free swing of the UR16e: halving the step halves the error."""
    case = Case("ur16e", "none")
    n = case.arm.n

    def swing(h, seconds=0.064):
        xi = np.concatenate([case.q, np.zeros(n)])
        empty = np.zeros((2 * n, 2 * n))
        for _ in range(round(seconds / h)):
            xi = case.function(xi, case.phi, np.zeros(n), h, empty)[0].full().ravel()
        return xi

    fine = swing(0.00025)
    errors = [np.linalg.norm(swing(h) - fine) for h in (0.008, 0.004, 0.002)]
    assert errors[0] / errors[1] == pytest.approx(2.07, abs=0.25) and errors[1] / errors[2] == pytest.approx(
        2.14, abs=0.25
    )


def test_symmetric_reads_the_upper_triangle_alone():
    a = ca.SX.sym("a", 3, 3)
    value = ca.Function("s", [a], [symmetric(a)])(np.arange(9.0).reshape(3, 3)).full()
    np.testing.assert_array_equal(value, [[0, 1, 2], [1, 4, 5], [2, 5, 8]])
