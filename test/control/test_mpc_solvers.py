"""The solvers on one problem: they find IPOPT's optimum, meet the limit, and say when they fail."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from mpc_tasks import START, problem, state

from contact_estimation.codegen.native import generate
from contact_estimation.control.mpc import make_solver
from contact_estimation.control.mpc.icem import Icem
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.control.mpc.sqp import stage_function
from contact_estimation.exceptions import ConfigError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmark"))
from mpc_reference import MxIpoptSolver


@pytest.fixture(scope="module")
def made():
    return problem()


@pytest.fixture(scope="module")
def rti(made):
    return make_solver(made, "rti")


@pytest.fixture(scope="module")
def sqp(made):
    return make_solver(made, "sqp")


def test_it_converges_to_the_optimum_of_ipopt(made, sqp):
    """With the force limit active: 15 N wanted at once, the plan starts on the limit."""
    made.set("force_target", [0.0, 0.0, 15.0])
    x, ipopt = state(made), MxIpoptSolver(made, "exact", tol=1e-8)
    sqp.reset(x)
    ipopt.reset(x)
    fast, slow = sqp.solve(x), ipopt.solve(x)
    made.set("force_target", made.settings.force)
    assert fast.ok and slow.ok
    assert np.linalg.norm(slow.controls[0]) == pytest.approx(made.get("max_force")[0, 0], rel=1e-3)
    assert fast.cost == pytest.approx(slow.cost, rel=1e-6)
    np.testing.assert_allclose(fast.controls, slow.controls, atol=1e-3)


def test_a_converged_plan_needs_one_more_iteration_only(made, sqp):
    x = state(made)
    sqp.reset(x)
    first, again = sqp.solve(x), sqp.solve(x)
    assert 1 < first.iterations < 8 and again.iterations == 1


def test_a_solver_that_does_not_exist_is_refused_by_name(made):
    with pytest.raises(ConfigError, match="no MPC solver 'fatrop'; choose one of: rti, sqp"):
        make_solver(made, "fatrop")


def test_a_plan_is_what_the_dynamics_do(made, rti):
    x = state(made)
    rti.reset(x)
    for _ in range(4):
        plan = rti.solve(x)
    states, cost = Rollout(made)(x, plan.controls)
    np.testing.assert_allclose(plan.states, states, atol=1e-6)
    assert plan.cost == pytest.approx(cost, rel=1e-5)


@pytest.mark.parametrize("wanted", [2.0, 15.0, 200.0])
def test_no_control_of_the_first_iteration_exceeds_the_limit(made, rti, wanted):
    made.set("force_target", [0.0, wanted, wanted])
    x = state(made)
    rti.reset(x)
    for _ in range(3):
        plan = rti.solve(x)
        assert np.linalg.norm(plan.controls, axis=1).max() <= made.get("max_force")[0, 0] * (1 + 1e-12)
    made.set("force_target", made.settings.force)


def test_a_limit_that_is_just_reached_hardly_changes_the_plan(made, rti):
    x, limit = state(made), made.get("max_force")[0, 0]
    made.set("max_force", 10 * limit)
    rti.reset(x)
    free = rti.solve(x).controls
    largest = np.linalg.norm(free, axis=1).max()
    assert largest < 10 * limit
    made.set("max_force", (1 - 1e-4) * largest)
    rti.reset(x)
    limited = rti.solve(x).controls
    made.set("max_force", limit)
    assert np.linalg.norm(limited, axis=1).max() < largest
    np.testing.assert_allclose(limited, free, atol=1e-3 * largest)


@pytest.mark.parametrize("name", ["rti", "sqp"])
def test_an_input_that_is_not_finite_is_a_failure_and_forgotten(made, name, request):
    solver, x = request.getfixturevalue(name), state(made)
    solver.reset(x)
    bad = x.copy()
    bad[3] = np.nan
    assert not solver.solve(bad).ok
    good = solver.solve(x)
    assert good.ok and np.isfinite(good.controls).all()


def test_a_state_outside_its_bounds_is_planned_from_and_leads_back():
    made = problem()
    made.upper[1] = START[1] - 0.02
    made.set("joint_upper", made.upper[:7])
    solver, x = make_solver(made, "rti"), state(made)
    solver.reset(x)
    plan = solver.solve(x)
    assert plan.ok and (np.diff(plan.states[:, 1]) <= 1e-9).all() and plan.states[-1, 1] < START[1] - 1e-3


def test_joint_torque_near_its_limit_makes_the_tool_push_less():
    made = problem(6)
    made.set("force_target", [0.0, 0.0, 15.0])
    solver, x, arm = make_solver(made, "rti"), state(made), made.arm
    gravity = arm.gravity(START)
    made.set("gravity", gravity)

    def torque() -> np.ndarray:
        solver.reset(x)
        for _ in range(4):
            plan = solver.solve(x)
        assert plan.ok
        pushes = [arm.tcp_jacobian(q)[:3].T @ u for q, u in zip(plan.states[:-1, :7], plan.controls)]
        return np.abs(np.array(pushes) + gravity).max(axis=0)

    free = torque()
    joint = int(np.argmax(np.abs(free - np.abs(gravity))))
    share = made.settings.torque_share
    limit = 0.97 * free[joint] / share  # the plan would use 3 % more than the share of it
    made.set("per_effort", np.eye(7)[joint] / limit)
    assert torque()[joint] < 1.003 * share * limit
    made.set("joint_torque_weight", 0.0)
    assert torque()[joint] == pytest.approx(free[joint], rel=1e-6)


def test_every_horizon_has_the_same_model_of_a_stage():
    """It is most of what is compiled."""
    short, long = (generate([stage_function(problem(horizon))]) for horizon in (3, 8))
    assert short == long


def test_two_modes_are_planned_for_together():
    made = problem(6, modes={"contact_1": ["contact_1"], "free": []})
    solver, x = make_solver(made, "rti"), state(made)
    pushes = {}
    for probability in (1.0, 0.5):
        made.set_mode_probabilities({"contact_1": probability, "free": 1.0 - probability})
        solver.reset(x)
        for _ in range(4):
            plan = solver.solve(x)
        assert plan.ok
        pushes[probability] = -plan.controls[0, 2]
    assert 0.0 < pushes[0.5] < pushes[1.0]  # less sure of the contact, less eager to push


def test_orientation_plans_moments_within_their_limit():
    made = problem(6, orientation=True)
    solver, x = make_solver(made, "rti"), state(made)
    turned = made.get("rotation")[0].reshape(3, 3, order="F")
    made.set("rotation", (pin.exp3(np.array([0.0, 0.0, 0.3])) @ turned).ravel(order="F"))
    solver.reset(x)
    plan = solver.solve(x)
    assert plan.ok and plan.controls[0, 5] > 0.1  # towards the wanted turn about z
    assert np.linalg.norm(plan.controls[:, 3:], axis=1).max() <= made.get("max_moment")[0, 0] * (1 + 1e-12)


def test_sampling_comes_near_the_optimum_and_is_seeded(made, rti):
    x = state(made)
    rti.reset(x)
    for _ in range(4):
        best = rti.solve(x)
    found = [Icem(made, np.random.default_rng(3)).search(x) for _ in range(2)]
    assert found[0][1] == found[1][1]
    assert np.linalg.norm(found[0][0], axis=1).max() <= made.get("max_force")[0, 0] * (1 + 1e-12)
    nothing = Icem(made, np.random.default_rng(3)).cost(x, np.zeros((1, made.horizon, 3)))[0]
    assert best.cost <= found[0][1] < best.cost + 0.2 * (nothing - best.cost)
    rti.guess(found[0][0])
    assert rti.solve(x).ok
