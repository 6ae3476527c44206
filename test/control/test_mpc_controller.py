"""Fallback: what a failed, late or non-finite solve and a bad estimate lead to."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from mpc_tasks import START, arm

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc import load_mpc_settings
from contact_estimation.control.mpc.controller import ContactModelWarning, MpcController
from contact_estimation.control.path import path_share
from contact_estimation.control.registry import CONTROLLERS, make_controller
from contact_estimation.control.situation import Plan
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import replace

TICK = 0.01


def observation(**changes) -> Observation:
    position, rotation = arm().tcp_pose(START)
    tip = position + rotation @ np.array([0.0, 0.0, 0.10])
    phi = np.array([0.0, 0.0, 1000.0, *tip, 0.0, 0.0, 0.10])
    return dataclasses.replace(Observation(START, np.zeros(7), {"contact_1": phi}), **changes)


@pytest.fixture()
def controller():
    made = MpcController(arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8), deadline=10.0)
    made.activate(observation())
    return made


def spring(command) -> float:
    position, _ = arm().tcp_pose(START)
    return float(np.linalg.norm(700.0 * (command.position - position)))


def test_it_begins_without_a_jump_and_then_pushes_within_the_limit(controller):
    first = controller.activate(observation())
    assert spring(first) == pytest.approx(0.0, abs=1e-9)
    command = controller.update(0.0, observation())
    assert command.state is ControllerState.ACTIVE and command.reason == ""
    assert 1.0 < spring(command) <= 20.0
    assert command.position[2] < first.position[2]  # the plane is pressed


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("felt, pushed", [(6.0, 6.0), (-3.0, 0.0), (30.0, 10.0)])
def test_a_task_that_begins_in_a_press_goes_on_from_it(name, felt, pushed):
    """The node knows no equilibrium; one at the TCP would let go. More than is wanted never counts."""
    made = make_controller(name, arm(), load_mpc_settings("mpc_plane_fr3"), deadline=10.0)
    seen = observation(force=np.array([2.0, 0.0, felt]))
    assert spring(made.activate(seen)) == pytest.approx(pushed)
    if felt == 6.0:
        assert spring(made.update(0.0, seen)) > 4.0


@pytest.mark.parametrize("horizon", [1, 2])
def test_a_bad_tick_follows_a_plan_of_any_length(horizon):
    """A plan of one stage has no second one to go to: its equilibrium stays, and the task goes on."""
    made = MpcController(arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=horizon), deadline=10.0)
    made.activate(observation())
    planned = made.update(0.0, observation())
    for k in (1, 2):
        command = made.update(k * TICK, observation(valid=False, reason="a test says so"))
        assert command.state is ControllerState.SHORTENED, command.reason
    np.testing.assert_allclose(command.position, planned.position, atol=5e-3)
    assert made.update(3 * TICK, observation()).state is ControllerState.ACTIVE


def test_the_weight_of_the_arm_counts_against_the_limits_of_its_torque(controller):
    controller.update(0.0, observation())
    gravity = controller.problem.get("gravity")
    np.testing.assert_allclose(gravity, np.tile(arm().gravity(START), (len(gravity), 1)), atol=1e-3)


@pytest.mark.parametrize("age", [0.04, 0.06])
def test_an_arm_that_stays_where_it_was_measured_is_pushed_within_the_limit(controller, age):
    """A late estimate is predicted forward; the spring of an arm that is jammed must hold its limit, too."""
    for k in range(20):
        command = controller.update(k * TICK, observation(age=age, force=np.zeros(3)))
        assert 1.0 < spring(command) <= 20.0 and command.state is ControllerState.ACTIVE
    for k in range(20, 23):
        command = controller.update(k * TICK, observation(valid=False))
    assert command.state is ControllerState.HOLDING and spring(command) == pytest.approx(0.0, abs=1e-6)


BAD = {
    "invalid": ({"valid": False, "reason": "a gap"}, "not valid: a gap"),
    "stale": ({"age": 0.2}, "stale: 200 ms"),
    "from the future": ({"age": -0.1}, "stale"),
    "not finite": ({"q": np.full(7, np.nan)}, "not finite"),
    "no positions": ({"q": np.zeros(0)}, "0 joint positions and 7 velocities, the robot 7 joints"),
    "no velocities": ({"dq": np.zeros(0)}, "7 joint positions and 0 velocities, the robot 7 joints"),
    "contact not finite": ({"contacts": {"contact_1": np.full(9, np.inf)}}, "not finite"),
    "a probability": ({"probabilities": {"contact_1": np.nan}}, "not finite"),
    "a mode": ({"mode_probabilities": {"contact": np.nan, "free": np.nan}}, "not finite"),
    "a parameter": ({"laws": {"contact_1": ("sliding", {"friction": np.inf})}}, "not finite"),
    "no stiffness": ({"contacts": {"contact_1": np.zeros(9)}}, "stiffness of contact_1 is zero"),
    "no contact": ({"contacts": {"other": np.zeros(9)}}, "no contact contact_1; it has other"),
}


@pytest.mark.parametrize("bad", BAD)
def test_two_bad_estimates_follow_the_plan_a_third_holds_and_good_ones_go_on(controller, bad):
    changes, words = BAD[bad]
    good = controller.update(0.0, observation())
    for k in (1, 2):
        late = controller.update(k * TICK, observation(**changes))
        assert late.state is ControllerState.SHORTENED and words in late.reason
        assert np.linalg.norm(late.position - good.position) < 2e-3 and spring(late) > 1.0  # it still presses
    over = controller.update(3 * TICK, observation(**changes))
    assert over.state is ControllerState.HOLDING and words in over.reason
    assert spring(over) == pytest.approx(0.0, abs=1e-6)  # it no longer pushes
    for k in range(4, 54):
        assert controller.update(k * TICK, observation(**changes)).state is ControllerState.HOLDING
    first = controller.update(54 * TICK, observation())
    assert first.state is ControllerState.HOLDING  # one good estimate is not enough
    for k in range(55, 66):
        back = controller.update(k * TICK, observation())
    assert back.state is ControllerState.ACTIVE and 1.0 < spring(back) <= 20.0


def test_a_long_outage_holds_until_activated_again(controller):
    controller.update(0.0, observation())
    for k in range(1, 230):
        over = controller.update(k * TICK, observation(valid=False, reason="unplugged"))
    assert over.state is ControllerState.HOLDING and "until activated again" in over.reason
    for k in range(230, 260):
        assert controller.update(k * TICK, observation()).state is ControllerState.HOLDING
    assert controller.activate(observation()).state is ControllerState.ACTIVE


@pytest.mark.parametrize("on_loss", ["search", "retract"])
def test_single_bad_estimates_do_not_add_up_while_a_lost_contact_is_answered(on_loss):
    """Nothing is planned meanwhile: that estimates are good again shows by them alone."""
    task = load_mpc_settings("mpc_plane_fr3")
    limits = {"on_loss": on_loss, "search_speed": 0.02, "retract_distance": 0.2}
    task = dataclasses.replace(task, safety=dataclasses.replace(task.safety, **limits))
    gone = {"force": np.zeros(3), "probabilities": {"contact_1": 0.0}}
    made = make_controller("feedforward", arm(), task)
    made.activate(observation(force=np.array([0.0, 0.0, 8.0])))
    for k in range(10):
        made.update(k * TICK, observation(force=np.array([0.0, 0.0, 8.0])))
    states = [
        made.update(k * TICK, observation(**gone, valid=k < 50 or k % 60 > 0, reason="a gap")).state
        for k in range(10, 400)
    ]
    answered = ControllerState.SEARCHING if on_loss == "search" else ControllerState.RETRACTING
    assert set(states[40:]) == {answered}


def dragged(q: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Return the posture (7,) [rad] whose TCP is ``way`` (3,) [m] from that of ``q``."""
    goal = arm().tcp_pose(q)[0] + way
    for _ in range(10):
        q = q + np.linalg.pinv(arm().tcp_jacobian(q)[:3]) @ (goal - arm().tcp_pose(q)[0])
    return q


def after_an_outage(made, way: np.ndarray):
    """Return the last command of a task that pressed, had no estimates for 0.3 s, and found the tool elsewhere."""
    made.activate(observation(force=np.zeros(3)))
    for k in range(20):
        made.update(k * TICK, observation(force=np.zeros(3)))
    for k in range(20, 50):
        made.update(k * TICK, observation(valid=False))
    for k in range(50, 80):
        command = made.update(k * TICK, observation(q=dragged(START, way), force=np.zeros(3)))
    return command


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_tool_that_was_dragged_aside_in_an_outage_is_not_led_back(name):
    made = make_controller(name, arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8), deadline=10.0)
    aside = np.array([0.0, 0.142, 0.0])
    command = after_an_outage(made, aside)
    assert command.state is ControllerState.HOLDING
    assert "until activated again: the tool was moved by 142 mm while it held, at most 10 mm" in command.reason
    np.testing.assert_allclose(command.position, arm().tcp_pose(START)[0] + aside, atol=1e-6)


def test_a_tool_that_gave_way_when_its_push_ended_goes_on(controller):
    """On a soft surface the relaxed spring lets the tool rise, by less than the spring was long."""
    controller.activate(observation(force=np.zeros(3)))
    pushed = [controller.update(k * TICK, observation(force=np.zeros(3))) for k in range(20)][-1]
    give = arm().tcp_pose(START)[0] - pushed.position
    assert give[2] > 0.01
    assert after_an_outage(controller, 0.9 * give).state is ControllerState.ACTIVE
    assert after_an_outage(controller, -give).state is ControllerState.HOLDING


def test_the_equilibrium_follows_an_arm_that_is_dragged_while_it_holds(controller):
    controller.update(0.0, observation())
    for k in range(1, 230):  # longer than max_outage
        controller.update(k * TICK, observation(valid=False))
    for k in range(230, 280):
        way = np.array([0.0, 4e-3 * (k - 229), 0.0])
        command = controller.update(k * TICK, observation(q=dragged(START, way)))
    here = arm().tcp_pose(START)[0] + way
    assert command.state is ControllerState.HOLDING
    assert np.linalg.norm(700.0 * (command.position - here)) <= 20.0
    held = controller.update(2.8, observation(valid=False, q=START))  # an estimate nobody may use moves nothing
    np.testing.assert_array_equal(held.position, command.position)


def test_a_felt_contact_keeps_its_stiffness_where_the_estimate_explains_too_little_force(controller):
    """An observer that was restarted on a contact has its prior stiffness and no force; a wrist sensor feels 10 N."""
    felt = np.array([0.0, 0.0, 10.0])

    def planned(stiffness: float, depth: float) -> float:
        phi = observation().contacts["contact_1"].copy()
        phi[2], phi[5] = stiffness, phi[5] + depth
        controller.update(0.0, observation(contacts={"contact_1": phi}, force=felt))
        columns = controller.problem.columns("phi")
        return float((controller.problem.parameters[0, columns] * controller.problem.contacts.scale)[2])

    assert planned(5000.0, 2e-3) == pytest.approx(5000.0)
    assert planned(1000.0, 0.0) == pytest.approx(5000.0)
    assert planned(1000.0, 10e-3) == pytest.approx(1000.0)


def test_a_prediction_on_a_rising_surface_holds_the_wanted_force(controller):
    """The plan rises with the surface; its forces are those of where the surface then is."""
    speed, depth = 0.01, 0.005
    for k in range(50):
        phi = observation().contacts["contact_1"] + (depth + speed * k * TICK) * np.eye(9)[5]
        command = controller.update(k * TICK, observation(contacts={"contact_1": phi}))
    positions, forces = controller.prediction(command.solution)
    assert np.diff(positions[4:, 2]) / controller.settings.dt == pytest.approx(speed, rel=0.1)
    assert forces[4:, 2] == pytest.approx(10.0, abs=0.5)


@pytest.mark.parametrize("tilt", [-0.16, 0.16])
def test_friction_on_a_normal_that_is_estimated_wrongly_leaves_no_error_of_the_force(tilt):
    """Along the wrong normal a part of the friction looks like pressure."""
    felt = np.array([4.0, 0.0, 10.0])  # as wanted, on a level plane: no reason to push more or less
    phi = observation().contacts["contact_1"].copy()
    phi[:3] = 1000.0 * np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    given = observation(contacts={"contact_1": phi}, force=felt)
    task = replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8, path=[0.0, 0.0, 0.0])
    controller = MpcController(arm(), task, deadline=10.0)
    controller.activate(observation())
    commands = [controller.update(k * TICK, given) for k in range(200)]
    assert abs(commands[-1].position[2] - commands[-51].position[2]) < 2e-5
    assert controller.prediction(commands[-1].solution)[1][:, 2] == pytest.approx(10.0, abs=0.05)


def test_the_weight_of_the_spring_costs_no_force(controller):
    """A contact that is taken for soft rises slowly: a weight on its whole spring would leave it below its force."""
    controller.problem.set("spring_weight", 1e-2)
    for k in range(50):
        phi = observation().contacts["contact_1"] + 0.1 * np.eye(9)[5]
        phi[2] = 100.0  # 10 N, as wanted
        command = controller.update(k * TICK, observation(contacts={"contact_1": phi}))
    assert command.solution.controls[:, 2] == pytest.approx(-10.0, abs=0.01)
    assert controller.prediction(command.solution)[1][:, 2] == pytest.approx(10.0, abs=0.05)


def test_a_late_solve_is_not_used(controller, monkeypatch):
    controller.update(0.0, observation())
    solve = controller.solver.solve

    def slow(x):
        plan = solve(x)
        return dataclasses.replace(plan, seconds=plan.seconds + 20.0)

    monkeypatch.setattr(controller.solver, "solve", slow)
    for k in (1, 2):
        late = controller.update(k * TICK, observation())
        assert late.state is ControllerState.SHORTENED and "solve late" in late.reason
    assert controller.update(3 * TICK, observation()).state is ControllerState.HOLDING


def test_a_solver_that_meets_something_not_finite_is_a_failure(controller):
    controller.update(0.0, observation())
    controller.problem.set("velocity_weight", np.nan)
    for expected in 2 * [ControllerState.SHORTENED] + [ControllerState.HOLDING]:
        command = controller.update(TICK, observation())
        assert command.state is expected and "not finite" in command.reason
        assert np.isfinite(command.position).all() and spring(command) <= 20.0


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_defect_ends_the_push_and_is_told(name, monkeypatch):
    """Whatever goes wrong in a tick: an exception would leave the last equilibrium in force."""
    made = make_controller(name, arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8), deadline=10.0)
    made.activate(observation())
    assert spring(made.update(0.0, observation(force=np.zeros(3)))) > 1.0

    def defect(now):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(made, "_plan", defect)
    command = made.update(TICK, observation())
    assert command.state is ControllerState.HOLDING and spring(command) == pytest.approx(0.0, abs=1e-6)
    assert command.reason == "holding until activated again: ZeroDivisionError: a defect"
    monkeypatch.undo()
    assert made.update(2 * TICK, observation()).state is ControllerState.HOLDING


def test_an_equilibrium_that_is_not_finite_is_never_commanded(controller, monkeypatch):
    controller.update(0.0, observation())
    nowhere = Plan(np.full(3, np.nan), np.full((3, 3), np.nan))
    monkeypatch.setattr(controller, "_plan", lambda now: nowhere)
    command = controller.update(TICK, observation())
    assert command.state is ControllerState.HOLDING and "not finite" in command.reason
    assert spring(command) == pytest.approx(0.0, abs=1e-6)
    assert command.rotation == pytest.approx(arm().tcp_pose(START)[1])


def test_a_fast_or_far_arm_is_handed_over_at_once(controller):
    jacobian = arm().tcp_jacobian(START)
    fast = np.linalg.pinv(jacobian) @ np.array([0.0, 0.0, -0.5, 0.0, 0.0, 0.0])
    command = controller.update(0.0, observation(dq=fast))
    assert command.state is ControllerState.HOLDING and "0.50 m/s" in command.reason
    controller.activate(observation())
    far = START.copy()
    far[1] += 0.8
    command = controller.update(0.0, observation(q=far))
    assert command.state is ControllerState.HOLDING and "contact lost?" in command.reason


def test_a_task_that_wants_more_than_its_spring_may_push_is_refused():
    with pytest.raises(ConfigError, match=r"50 N are wanted.*with 20 N at most"):
        replace(load_mpc_settings("mpc_plane_fr3"), "test", force=[0.0, 30.0, 40.0])


def test_it_cannot_be_activated_on_a_bad_estimate(controller):
    with pytest.raises(ConfigError, match="cannot be activated"):
        controller.activate(observation(valid=False, reason="diverged"))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_it_cannot_be_activated_on_an_estimate_of_another_contact(name):
    """A misspelt name: the force is published, but stiffness, normal and probability are of a contact nobody names."""
    made = make_controller(name, arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8))
    other = {"tip": observation().contacts["contact_1"]}
    with pytest.raises(ConfigError, match="no contact 'contact_1'; it has tip; name the contacts"):
        made.activate(observation(contacts=other, force=np.zeros(3)))
    assert made.state is ControllerState.INACTIVE


def test_it_cannot_be_activated_on_an_estimate_of_other_modes():
    modes = {"contact_1": ["contact_1"], "free": []}
    made = make_controller("mpc", arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8, modes=modes))
    with pytest.raises(ConfigError, match="no mode 'free'; it has contact_1, unknown"):
        made.activate(observation(mode_probabilities={"contact_1": 0.5, "unknown": 0.5}))
    made.activate(observation(mode_probabilities={"contact_1": 1.0, "free": 0.0}))


def test_deactivated_it_leaves_the_equilibrium_at_the_arm_and_commands_nothing(controller):
    pressing = [controller.update(k * TICK, observation()) for k in range(20)][-1]
    here = arm().tcp_pose(START)[0]
    assert np.linalg.norm(pressing.position - here) > 1e-3
    last = controller.deactivate()
    assert last.state is ControllerState.INACTIVE and np.allclose(last.position, here, atol=1e-9)
    assert controller.update(1.0, observation()) is None and controller.deactivate() is None


def test_a_tick_is_fast_enough_for_its_rate(controller):
    """Ten times the period of processor time: only a defect (compiling, allocating) fails it."""
    controller.update(0.0, observation())
    start = time.process_time()
    for k in range(20):
        controller.update((k + 1) * TICK, observation())
    assert time.process_time() - start < 20 * 10 * TICK


def test_a_sampled_start_is_searched_where_the_contact_changed_and_counts_as_time():
    made = MpcController(
        arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8, warm_start="icem"), deadline=10.0
    )
    made.activate(observation())
    first = made.update(0.0, observation())
    assert first.state is ControllerState.ACTIVE
    phi = observation().contacts["contact_1"] + 0.05 * np.eye(9)[5]  # the wall is elsewhere now
    made.deadline = 1e-9
    late = made.update(TICK, observation(contacts={"contact_1": phi}))
    assert late.state is ControllerState.SHORTENED and "solve late" in late.reason


def test_every_activation_tells_that_the_plan_has_another_contact_than_the_estimate(controller):
    tilted = observation().contacts["contact_1"].copy()
    tilted[:3] = [800.0, 0.0, 600.0]
    for _ in range(2):
        with pytest.warns(ContactModelWarning, match=r"normal \[0.8, 0.0, 0.6\]"):
            first = controller.activate(observation(contacts={"contact_1": tilted}))
        assert len(first.warnings) == 1 and "but planned with stiffness" in first.warnings[0]
    assert controller.activate(observation()).warnings == ()


def test_a_jump_of_the_cost_is_measured_from_that_of_the_plan(monkeypatch):
    """What the solver tells is the cost of the plan before: after a jump it hides the next one."""
    made = MpcController(arm(), replace(load_mpc_settings("mpc_plane_fr3"), "test", horizon=8, warm_start="icem"))
    made.deadline, told, costs = 10.0, [], []
    monkeypatch.setattr(made._icem, "improve", lambda x, last, cost: told.append(cost))
    made.activate(observation())
    for k in range(4):
        made.problem.set("force_target", [0.0, 0.0, 10.0 if k < 2 else 15.0])
        solution = made.update(k * TICK, observation()).solution
        costs.append(made._rollout(solution.states[0], solution.controls)[1])
    assert told == pytest.approx([np.inf, *costs[:-1]], rel=1e-6)


def test_the_path_goes_there_and_back_smoothly():
    passes = np.linspace(0.0, 2.0, 2001)
    share = path_share(passes)
    assert share[0] == 0.0 and share[1000] == pytest.approx(1.0) and share[-1] == pytest.approx(0.0)
    assert np.abs(np.diff(share, 2)).max() < 1e-5
