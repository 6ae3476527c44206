"""Steps follow one another by their end conditions, and failures go to the fallback."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pinocchio as pin
import pytest
import yaml

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.force_balance import ForceBalance
from contact_estimation.control.mpc.controller import MpcController
from contact_estimation.control.mpc.settings import load_mpc_settings
from contact_estimation.control.sequence import (
    SequenceController,
    SequenceSettings,
    StepSettings,
    load_sequence,
    make_task_controller,
    step_settings,
)
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import load_arm
from contact_estimation.robot.posture import ready_posture

APPROACH = StepSettings(
    name="approach", controller="feedforward", path=[0.0, 0.0, -0.02], until="touched", limit=1.0, fallback="retract"
)
PRESS = StepSettings(
    name="press", controller="pi", force=[0.0, 0.0, 10.0], until="settled", limit=2.0, fallback="retract"
)
RETRACT = StepSettings(name="retract", controller="feedforward", path=[0.0, 0.0, 0.02], path_time=0.5, until="arrived")


def sequence(*steps: StepSettings) -> SequenceSettings:
    return SequenceSettings(task="mpc_plane_fr3", steps=list(steps))


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def followed(arm, q, position) -> np.ndarray:
    """Return the posture (n,) [rad] near ``q`` whose TCP is at ``position`` (3,) [m]."""
    return q + np.linalg.pinv(arm.tcp_jacobian(q)[:3]) @ (position - arm.tcp_pose(q)[0])


def drive(arm, steps, force_at, seconds: float, blocked: bool = False) -> SequenceController:
    """Run steps with an estimated force (3,) [N] of the time, on a clock that began long ago.

    The arm goes where it is told while no force is felt, and stands where one is, or where it is blocked.
    """
    controller, q = SequenceController(arm, sequence(*steps)), ready_posture(arm)

    def seen(t: float) -> Observation:
        return Observation(q, np.zeros(arm.n), force=np.array(force_at(t)), probabilities={"contact_1": 1.0})

    controller.activate(seen(0.0))
    for k in range(1, round(100 * seconds)):
        command = controller.update(1e6 + 0.01 * k, seen(0.01 * k))
        if not blocked and not any(force_at(0.01 * k)):
            q = followed(arm, q, command.position)
    return controller


def test_steps_end_when_touched_settled_and_arrived_and_the_task_then_holds(arm):
    touched = drive(arm, [APPROACH, PRESS, RETRACT], lambda t: [0.0, 0.0, 10.0 if 0.2 < t < 0.6 else 0.0], 2.0)
    assert [name for name, _ in touched.ended] == ["approach", "press", "retract"]
    assert touched.over and touched.state is ControllerState.HOLDING


@pytest.mark.parametrize(
    "steps",
    [[APPROACH, PRESS, RETRACT], [dataclasses.replace(PRESS, fallback="")]],
    ids=["in a step", "after the last"],
)
def test_deactivated_it_leaves_the_equilibrium_at_the_arm(arm, steps):
    ended = drive(arm, steps, lambda t: [0.0, 0.0, 0.0] if len(steps) > 1 else [0.0, 0.0, 10.0], 0.9, True)
    assert ended.over == (len(steps) == 1)
    last = ended.deactivate()
    assert np.allclose(last.position, arm.tcp_pose(ready_posture(arm))[0], atol=1e-9)
    assert ended.update(2e6, Observation(ready_posture(arm), np.zeros(arm.n), force=np.zeros(3))) is None


def test_a_step_that_does_not_end_in_time_goes_to_its_fallback(arm):
    missed = drive(arm, [APPROACH, PRESS, RETRACT], lambda t: [0.0, 0.0, 0.0], 2.0)
    assert [name for name, _ in missed.ended] == ["approach", "retract"]
    assert "not touched within 1 s" in missed.ended[0][1]


def test_a_step_that_is_blocked_has_not_arrived(arm):
    blocked = dataclasses.replace(RETRACT, name="insert", limit=1.0, fallback="retract")
    ended = drive(arm, [blocked, RETRACT], lambda t: [0.0, 0.0, 0.0], 1.2, blocked=True).ended
    assert ended == [("insert", "not arrived within 1 s: 20 mm from the end of its way")]


@pytest.mark.parametrize("name", ["feedforward", "mpc"])
def test_a_step_stays_at_the_end_of_its_way(arm, name, monkeypatch):
    """It would turn back otherwise, and never arrive where it is late."""
    waits = dataclasses.replace(APPROACH, controller=name, path_time=0.5, limit=5.0)
    made, q = SequenceController(arm, sequence(waits, RETRACT), deadline=10.0), ready_posture(arm)
    seen = Observation(q, np.zeros(arm.n), force=np.zeros(3))
    made.activate(seen)
    monkeypatch.setattr(ForceBalance, "update", lambda *_: None)  # the arm stands, whatever pulls
    for k in range(100):
        command = made.update(0.01 * k, seen)
    goal = arm.tcp_pose(q)[0] + waits.path
    if isinstance(controller := made._controllers[0], MpcController):
        np.testing.assert_allclose(controller.problem.get("position_target"), np.tile(goal, (16, 1)))
    else:
        np.testing.assert_allclose(command.position, goal)


@pytest.mark.parametrize("controller", ["feedforward", "mpc"])
@pytest.mark.parametrize(("most", "ends_at"), [(5.0, 5.0), (None, 12.0)])
def test_a_felt_force_ends_a_step_that_wants_none_and_the_push_with_it(arm, controller, most, ends_at):
    insert = dataclasses.replace(RETRACT, controller=controller, until="arrived", max_force=most)
    made, q = SequenceController(arm, sequence(insert), deadline=10.0), ready_posture(arm)
    made.activate(Observation(q, np.zeros(arm.n), force=np.zeros(3)))
    for k in range(300):
        force = 0.1 * k
        command = made.update(0.01 * k, Observation(q, np.zeros(arm.n), force=np.array([0.0, 0.0, force])))
        if made.over:
            break
    assert force == pytest.approx(ends_at, abs=0.2) and f"at most {ends_at:g} N" in made.ended[0][1]
    np.testing.assert_allclose(command.position, arm.tcp_pose(q)[0], atol=1e-9)


def test_a_step_that_begins_in_contact_may_leave_it(arm):
    """The force that it takes over is larger than what it may feel, and becomes smaller."""
    leave = dataclasses.replace(RETRACT, max_force=5.0)

    def fading(t: float) -> list[float]:
        return [0.0, 0.0, max(10.0 - 50.0 * t, 0.0)]

    assert drive(arm, [leave], fading, 1.5).ended == [("retract", "arrived")]
    grown = drive(arm, [leave], lambda t: [0.0, 0.0, 10.0 + 10.0 * t], 1.5).ended
    assert grown[0][0] == "retract" and "are felt, at most 5 N" in grown[0][1]


def test_a_force_across_the_wanted_one_ends_a_step(arm):
    beside = drive(arm, [PRESS, RETRACT], lambda t: [15.0 if t > 0.2 else 0.0, 0.0, 5.0], 0.4).ended
    assert beside == [("press", "15.0 N are felt beside the wanted 10 N, at most 12 N")]


def test_after_its_end_the_equilibrium_follows_an_arm_that_is_dragged(arm):
    ended, q = (
        drive(arm, [dataclasses.replace(PRESS, fallback="")], lambda t: [0.0, 0.0, 10.0], 0.9),
        ready_posture(arm),
    )
    assert ended.over
    for k in range(50):
        q = followed(arm, q, arm.tcp_pose(q)[0] + np.array([0.0, 0.002, 0.0]))
        command = ended.update(2e6 + 0.01 * k, Observation(q, np.zeros(arm.n), force=np.zeros(3)))
    assert np.linalg.norm(700.0 * (command.position - arm.tcp_pose(q)[0])) <= 20.0


@pytest.mark.parametrize("executed", [True, False])
def test_after_its_end_the_last_command_and_an_arm_without_commands_are_where_the_arm_is(arm, executed):
    press, q = dataclasses.replace(PRESS, fallback=""), ready_posture(arm)
    ended = drive(arm, [press], lambda t: [0.0, 0.0, 10.0], 0.9)
    assert ended.over
    for k in range(50):
        q = followed(arm, q, arm.tcp_pose(q)[0] + np.array([0.0, 0.002, 0.0]))
        seen = Observation(q, np.zeros(arm.n), force=np.zeros(3), executed=executed)
        command = ended.update(2e6 + 0.01 * k, seen)
    ended.update(2e6 + 0.6, Observation(np.zeros(0), np.zeros(0), valid=False))
    if not executed:
        np.testing.assert_allclose(command.position, arm.tcp_pose(q)[0], atol=1e-9)
    np.testing.assert_allclose(ended.deactivate().position, arm.tcp_pose(q)[0], atol=1e-9)


@pytest.mark.parametrize("pause", [{"executed": False}, {"valid": False}], ids=["not executed", "invalid"])
def test_a_pause_is_no_time_of_a_step(arm, pause):
    """Neither of its limit, nor of the time that its force must be held."""
    press = dataclasses.replace(PRESS, limit=1.0)
    made, q = SequenceController(arm, sequence(press, RETRACT)), ready_posture(arm)
    made.activate(Observation(q, np.zeros(arm.n), force=np.zeros(3)))
    settled = 0
    for k in range(400):
        near, paused = k >= 20, 40 <= k < 180 or k == 210
        seen = Observation(q, np.zeros(arm.n), force=np.array([0.0, 0.0, 10.0 if near else 8.0]))
        command = made.update(0.01 * k, dataclasses.replace(seen, **pause) if paused else seen)
        settled = settled + 1 if near and not paused and command.state is ControllerState.ACTIVE else 0
        if made.ended:
            break
    assert made.ended[0][0] == "press" and "settled after 0." in made.ended[0][1]
    assert 30 <= settled <= 32  # [10 ms] without a break


def test_a_step_whose_path_is_in_millimetres_is_refused_by_name(arm):
    with pytest.raises(ConfigError, match=r"step 'approach': path: \[0, 0, -40\] m is 40 m long"):
        SequenceController(arm, sequence(dataclasses.replace(APPROACH, path=[0.0, 0.0, -40.0]), RETRACT))


def test_a_lost_contact_ends_the_step_that_waits_for_it(arm):
    slide = dataclasses.replace(PRESS, name="slide", until="lost", limit=5.0)
    lost = drive(arm, [slide, RETRACT], lambda t: [0.0, 0.0, 10.0 if t < 0.5 else 0.0], 2.0)
    assert lost.ended[0][0] == "slide" and "contact lost" in lost.ended[0][1]


def test_a_fault_ends_the_task_where_the_arm_stands(arm):
    controller, q = SequenceController(arm, sequence(PRESS, RETRACT)), ready_posture(arm)
    good = Observation(q, np.zeros(arm.n), force=np.array([0.0, 0.0, 5.0]), probabilities={"contact_1": 1.0})
    controller.activate(good)
    for k in range(400):
        bad = 10 < k < 250  # [10 ms] longer than max_outage
        command = controller.update(0.01 * k, dataclasses.replace(good, valid=not bad))
    assert controller.over and [name for name, _ in controller.ended] == ["press"]
    np.testing.assert_allclose(command.position, arm.tcp_pose(q)[0], atol=1e-9)


def test_directions_with_a_force_are_force_controlled_and_the_others_follow_the_path(arm):
    task = SequenceController(arm, sequence(PRESS, RETRACT)).settings
    assert np.flatnonzero(task.weights.force).tolist() == [2]
    assert np.flatnonzero(task.weights.position).tolist() == [0, 1]
    assert not any(step_settings(task, APPROACH).weights.force)


def test_a_fallback_that_is_no_later_step_is_refused():
    with pytest.raises(ConfigError, match="no later step"):
        sequence(dataclasses.replace(RETRACT, fallback="approach"))


def test_a_step_that_waits_for_a_force_must_want_one():
    with pytest.raises(ConfigError, match="wants no force"):
        sequence(dataclasses.replace(RETRACT, until="settled"))


def test_the_shipped_sequence_ends_with_a_retreat():
    shipped = load_sequence("sequence_block_fr3")
    assert shipped.steps[-1].name == "retract" and {step.until for step in shipped.steps} == {
        "touched",
        "settled",
        "lost",
        "arrived",
    }


@pytest.mark.parametrize("reason", ["contact lost: of the cable", "waits until activated again"])
def test_the_words_of_an_estimate_end_no_step(arm, reason):
    """A step ends by what the controller decides. What an observer calls its problem is another matter."""
    made, q = SequenceController(arm, sequence(dataclasses.replace(PRESS, fallback=""))), ready_posture(arm)
    seen = Observation(q, np.zeros(arm.n), force=np.array([0.0, 0.0, 5.0]), probabilities={"contact_1": 1.0})
    made.activate(seen)
    for k in range(20):
        made.update(0.01 * k, dataclasses.replace(seen, valid=k < 5, reason=reason))
    assert made.state is ControllerState.HOLDING and not made.ended and not made.over


@pytest.mark.parametrize(
    "changes", [{"valid": False}, {"age": 0.2}, {"q": np.zeros(0)}], ids=["invalid", "old", "no q"]
)
@pytest.mark.parametrize(
    "step", [APPROACH, dataclasses.replace(RETRACT, name="lift", path_time=0.1)], ids=["touched", "arrived"]
)
def test_an_estimate_that_does_not_count_ends_no_step(arm, step, changes):
    """The remaining plan is followed meanwhile, with a force and a place that nobody may believe."""
    made, q = SequenceController(arm, sequence(step, RETRACT)), ready_posture(arm)
    goal = followed(arm, q, arm.tcp_pose(q)[0] + np.array(step.path))
    good = Observation(q, np.zeros(arm.n), force=np.zeros(3), probabilities={"contact_1": 1.0})
    told = dataclasses.replace(good, q=goal, force=np.array([0.0, 0.0, 8.0]))
    made.activate(good)
    for k in range(12):
        made.update(0.01 * k, good)
    for k in (12, 13):
        made.update(0.01 * k, dataclasses.replace(told, **changes))
    assert not made.ended and not made.over
    made.update(0.14, dataclasses.replace(told, force=told.force if step is APPROACH else np.zeros(3)))
    assert [name for name, _ in made.ended] == [step.name]  # the same, believed


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"path": [0.003, 0.0, 0.0]}, "way of step 'slide' is 3 mm, and it has arrived within 5 mm"),
        ({"path": [0.003, 0.0, 0.05], "force": [0.0, 0.0, 10.0]}, "way of step 'slide' is 3 mm"),
        ({"path": [0.05, 0.0, 0.0], "path_time": 12.0}, "'slide' ends when arrived, after path_time 12 s, .* is 10 s"),
    ],
)
def test_a_way_that_is_gone_before_it_begins_or_never_is_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        sequence(StepSettings(name="slide", until="arrived", **changes))
    sequence(StepSettings(name="wait", until="arrived"), StepSettings(name="touch", until="touched", path_time=12.0))


def turned_by(command, rotation) -> float:
    """Return the angle [rad] between the commanded attitude and another one."""
    return float(np.linalg.norm(pin.log3(rotation.T @ command.rotation)))


@pytest.mark.parametrize("fails", [False, True])
def test_the_attitude_of_a_sound_step_is_handed_on(arm, fails):
    """A contact turns the tool a little; ten steps that each take over what they find would add up to a lean."""
    controller = SequenceController(arm, sequence(PRESS, RETRACT))
    q = ready_posture(arm)
    leaning = q + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.0])
    upright, lean = arm.tcp_pose(q)[1], arm.tcp_pose(leaning)[1]
    controller.activate(Observation(q, np.zeros(arm.n), force=np.array([0.0, 0.0, 8.0])))
    for k in range(1, 60):
        force = np.array([40.0 if fails and k > 10 else 0.0, 0.0, 10.0])
        seen = Observation(leaning, np.zeros(arm.n), force=force, probabilities={"contact_1": 1.0})
        command = controller.update(0.01 * k, seen)
    assert controller.step is RETRACT and command.state is ControllerState.ACTIVE
    assert turned_by(command, lean if fails else upright) < 1e-6


def test_a_step_does_not_turn_the_tool_as_the_shared_task_would(arm):
    task = dataclasses.replace(load_mpc_settings("mpc_plane_fr3"), turn=[0.0, 0.0, 0.5])
    assert step_settings(task, PRESS).turn == [0.0, 0.0, 0.0]


def test_the_tasks_of_a_robots_own_folder_come_first(arm, tmp_path):
    """The driver is launched with the impedance of that task: the steps must not have the one of a shipped namesake."""
    profile = tmp_path / "my_arm"
    shutil.copytree(arm.settings.folder, profile)
    task = yaml.safe_load((profile / "tasks" / "mpc_edge_fr3.yaml").read_text())
    task["impedance"]["stiffness"] = [300.0, 300.0, 300.0]
    (profile / "tasks" / "mpc_edge_fr3.yaml").write_text(yaml.safe_dump(task))
    steps = yaml.safe_load((profile / "tasks" / "sequence_block_fr3.yaml").read_text())
    for name in ("mpc_edge_fr3", "mpc_mine"):
        (profile / "tasks" / f"{name}.yaml").write_text(yaml.safe_dump(task))
        mine = {**steps, "task": name, "steps": [steps["steps"][0] | {"fallback": ""}]}
        (profile / "tasks" / "sequence_mine.yaml").write_text(yaml.safe_dump(mine))
        made = make_task_controller("sequence_mine", "mpc", load_arm(str(profile)))
        assert made.settings.impedance.stiffness == [300.0, 300.0, 300.0]
    assert make_task_controller("mpc_mine", "pi", load_arm(str(profile))).settings.impedance.stiffness[0] == 300.0
