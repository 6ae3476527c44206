"""Steps follow one another by their end conditions, and failures go to the fallback."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.sequence import (
    SequenceController,
    SequenceSettings,
    StepSettings,
    load_sequence,
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


def drive(arm, steps, force_at, seconds: float) -> SequenceController:
    """Run steps on an arm that stands, with an estimated force (3,) [N] of the time, on a clock that began long ago."""
    controller, q = SequenceController(arm, sequence(*steps)), ready_posture(arm)

    def seen(t: float) -> Observation:
        return Observation(q, np.zeros(arm.n), force=np.array(force_at(t)), probabilities={"contact_1": 1.0})

    controller.activate(seen(0.0))
    for k in range(1, round(100 * seconds)):
        controller.update(1e6 + 0.01 * k, seen(0.01 * k))
    return controller


def test_steps_end_when_touched_settled_and_arrived_and_the_task_then_holds(arm):
    touched = drive(arm, [APPROACH, PRESS, RETRACT], lambda t: [0.0, 0.0, 10.0 if t > 0.2 else 0.0], 2.0)
    assert [name for name, _ in touched.ended] == ["approach", "press", "retract"]
    assert touched.over and touched.state is ControllerState.HOLDING


@pytest.mark.parametrize(
    "steps",
    [[APPROACH, PRESS, RETRACT], [dataclasses.replace(PRESS, fallback="")]],
    ids=["in a step", "after the last"],
)
def test_deactivated_it_leaves_the_equilibrium_at_the_arm(arm, steps):
    ended = drive(arm, steps, lambda t: [0.0, 0.0, 0.0] if len(steps) > 1 else [0.0, 0.0, 10.0], 0.9)
    assert ended.over == (len(steps) == 1)
    last = ended.deactivate()
    assert np.allclose(last.position, arm.tcp_pose(ready_posture(arm))[0], atol=1e-9)
    assert ended.update(2e6, Observation(ready_posture(arm), np.zeros(arm.n), force=np.zeros(3))) is None


def test_a_step_that_does_not_end_in_time_goes_to_its_fallback(arm):
    missed = drive(arm, [APPROACH, PRESS, RETRACT], lambda t: [0.0, 0.0, 0.0], 2.0)
    assert [name for name, _ in missed.ended] == ["approach", "retract"]
    assert "not touched within 1 s" in missed.ended[0][1]


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
