"""The stage: dynamics against the estimator's own step, derivatives against finite differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from mpc_tasks import START, arm, problem

from contact_estimation.control.mpc.stage import Stage
from contact_estimation.dynamics import CoupledStep

pytestmark = pytest.mark.filterwarnings("ignore::contact_estimation.codegen.CodegenWarning")


@pytest.fixture(scope="module")
def made():
    return problem()


@pytest.fixture(scope="module")
def point(made):
    rng = np.random.default_rng(0)
    x = np.concatenate([START, 0.2 * rng.standard_normal(7)])
    return x, np.array([3.0, -2.0, -9.0]), made.parameters[0].copy()


def central(function, z, step=1e-6):
    columns = [(function(z + step * e) - function(z - step * e)) / (2 * step) for e in np.eye(z.size)]
    return np.array(columns).T


def test_for_a_short_stage_it_is_the_coupled_step_of_the_estimator(made, point):
    """One model: with h -> 0 both have the acceleration of the arm under impedance, gravity and Coriolis
    compensated."""
    x, u, p = point
    p[made.columns("h")] = 1e-9
    stage = made.stage
    delta = ca.Function("delta", [stage.x, stage.u, made.p], [stage.modes[0].acceleration])(x, u, p).full().ravel()
    step = CoupledStep(arm(), made.contacts)
    accelerate = ca.Function("accelerate", [step.q, step.dq, step.p, step.phi, step.tau, step.h], [step.delta])
    q, dq = x[:7], x[7:]
    jacobian, (_, rotation) = arm().tcp_jacobian(q), arm().tcp_pose(q)
    gains = made.settings.impedance
    twist, stiffness = jacobian @ dq, np.array(gains.rotational_stiffness)
    wanted = p[made.columns("rotation")].reshape(3, 3, order="F")
    turn = 0.5 * sum(np.cross(rotation[:, i], wanted[:, i]) for i in range(3))
    force = u - gains.damping_factor * np.sqrt(gains.stiffness) * twist[:3]
    moment = stiffness * turn - gains.rotational_damping_factor * np.sqrt(stiffness) * twist[3:]
    tau = jacobian.T @ np.concatenate([force, moment]) + arm().gravity(q) + arm().coriolis(q, dq)
    expected = accelerate(q, dq, np.zeros(0), p[made.columns("phi")], tau, 1e-9).full().ravel()
    np.testing.assert_allclose(delta, expected, rtol=1e-6, atol=1e-6)


def test_it_stays_bounded_on_a_wall_a_hundred_times_stiffer(made, point):
    x, u, p = point
    p[made.columns("phi")][2] *= 100.0
    stage = made.stage
    step = ca.Function("step", [stage.x, stage.u, made.p], [stage.next])
    for _ in range(200):
        x = step(x, u, p).full().ravel()
    assert np.isfinite(x).all() and np.abs(x[7:]).max() < 1.0


def test_a_rest_that_moves_acts_with_its_place_at_the_end_of_the_stage(made, point):
    x, u, p = point
    stage, moving = made.stage, p.copy()
    step = ca.Function("step", [stage.x, stage.u, made.p], [stage.next])
    velocity = np.array([0.0, 0.0, 0.02])
    moving[made.columns("rest_velocity")] = velocity
    p[made.columns("phi")][3:6] += velocity * p[made.columns("h")]
    np.testing.assert_allclose(step(x, u, moving).full(), step(x, u, p).full(), rtol=1e-10)


def test_a_tool_that_slides_on_a_stiff_surface_has_the_force_of_short_stages(made, point):
    """Joints that turn on lead the tool along a curve: in 40 ms that is 0.8 N on 100 kN/m."""
    p, q = point[2], START
    jacobian, (x, rotation) = arm().tcp_jacobian(q), arm().tcp_pose(q)
    phi = np.concatenate([[0.0, 0.0, 1e5], x + rotation @ [0.0, 0.0, 0.1] + [0.0, 0.0, 1e-4], [0.0, 0.0, 0.1]])
    p[made.columns("phi")], p[made.columns("rotation")] = phi / made.contacts.scale, rotation.ravel(order="F")
    u = np.array([6.0, 0.0, -10.0])
    step = ca.Function("step", [made.stage.x, made.stage.u, made.p], [made.stage.next])
    force = ca.Function("force", [made.stage.x, made.p], [made.stage.modes[0].force[2]])

    def after(state, stages, length):
        p[made.columns("h")] = length
        for _ in range(stages):
            state = step(state, u, p).full().ravel()
        return state

    slid = after(np.concatenate([q, np.linalg.pinv(jacobian) @ [0.06, 0, 0, 0, 0, 0]]), 200, 1e-3)
    short, long = (float(force(after(slid, *stages), p)) for stages in ((40, 1e-3), (1, 0.04)))
    assert long == pytest.approx(short, abs=0.1)


def test_the_force_rate_is_the_derivative_of_the_force_by_time(made, point):
    x, _, p = point
    rest, velocity = made.columns("phi").start + 3, np.array([0.0, 0.0, 0.02])
    p[made.columns("rest_velocity")] = velocity
    mode = made.stage.modes[0]
    evaluate = ca.Function("force", [made.stage.x, made.p], [mode.force, mode.force_rate])

    def force_at(t: float) -> np.ndarray:
        state, later = x.copy(), p.copy()
        state[:7] += t * x[7:]
        later[rest : rest + 3] += t * velocity
        return evaluate(state, later)[0].full().ravel()

    numeric = (force_at(1e-6) - force_at(-1e-6)) / 2e-6
    np.testing.assert_allclose(evaluate(x, p)[1].full().ravel(), numeric, rtol=1e-6, atol=1e-6)


def test_derivatives_are_exact(made, point):
    x, u, p = point
    stage = made.stage
    f = ca.Function("f", [stage.z, made.p], [stage.next])
    jacobian = ca.Function("jacobian", [stage.z, made.p], [ca.horzcat(stage.A, stage.B)])
    z = np.concatenate([x, u])
    numeric = central(lambda v: f(v, p).full().ravel(), z)
    np.testing.assert_allclose(jacobian(z, p).full(), numeric, rtol=2e-6, atol=2e-8)


def test_modes_share_the_equilibrium_not_the_force():
    """Two modes in different places under one control: their springs differ by K (x_1 - x_2)."""
    made = problem(modes={"contact_1": ["contact_1"], "free": []})
    stage = made.stage
    springs = ca.Function(
        "springs", [stage.x, stage.u, made.p], [m.spring for m in stage.modes] + [m.x for m in stage.modes]
    )
    x = np.concatenate([START, np.zeros(7), START + 0.01, np.zeros(7)])
    first, second, x_1, x_2 = (v.full().ravel() for v in springs(x, [1.0, 2.0, -8.0], made.parameters[0]))
    np.testing.assert_allclose(first, [1.0, 2.0, -8.0])
    np.testing.assert_allclose(second - first, 700.0 * (x_1 - x_2), rtol=1e-9)


def test_orientation_adds_the_moment_as_control():
    made = problem(orientation=True)
    assert made.nu == 6 and made.ng == 2
    assert isinstance(made.stage, Stage)
