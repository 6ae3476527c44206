"""What the effort is, told by gravity and motion: mistakes are named, contacts are not taken for mistakes."""

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation import load_arm
from contact_estimation.filters.plausibility.explanation import FREE
from contact_estimation.filters.plausibility.torque_readings import (
    BLOCK,
    MOTION_TIME,
    PROOF_TIME,
    REST_TIME,
    SETTLE_TIME,
    TorqueReadings,
)
from contact_estimation.filters.settings import SensorSettings

Q = np.array([0.2, -1.0, 1.2, -1.8, -1.5, 0.3])
FRICTION = np.array([1.0, -6.0, 3.0, 2.0, 0.5, -0.5])


@pytest.fixture(scope="module")
def arm():
    return load_arm("ur16e")


def readings_of(arm, **sensors):
    settings = SensorSettings(**sensors)
    scale = np.ones(6) if settings.torque_unit == "Nm" else arm.motor.drive_gain
    return TorqueReadings(arm, settings, scale)


def rest(readings, effort, seconds, q=Q):
    """A still arm."""
    for _ in range(round(seconds / BLOCK)):
        readings.add_block(BLOCK, q, np.zeros(6), np.zeros(6), effort)


def sweep(readings, arm, effort_of, seconds, speed=0.3):
    """An arm that turns its shoulder and elbow slowly; ``effort_of`` the total torque."""
    dq = speed * np.array([0.0, 1.0, -1.0, 0.0, 0.0, 0.0])
    for k in range(round(seconds / BLOCK)):
        q = Q + dq * k * BLOCK
        readings.add_block(BLOCK, q, dq, np.zeros(6), effort_of(arm.gravity(q), q))


MISTAKES = {
    "motor current": lambda arm, total, gravity: total / arm.motor.drive_gain,
    "without gravity": lambda arm, total, gravity: total - gravity,
    "opposite sign": lambda arm, total, gravity: -total,
    "shoulder_lift_joint and wrist_1_joint exchanged": lambda arm, total, gravity: total[[0, 3, 2, 1, 4, 5]],
    "reverse joint order": lambda arm, total, gravity: total[::-1],
    "common factor": lambda arm, total, gravity: 2.5 * total,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_doubted_at_once_and_named_after_a_rest(arm, name):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    effort = MISTAKES[name](arm, gravity + 0.3 * FRICTION, gravity)
    rest(readings, effort, 2 * BLOCK)
    assert readings.problem
    rest(readings, effort, REST_TIME)
    assert "looks like" in readings.problem and name in readings.problem


def test_a_new_stream_does_not_go_on_with_what_rivals_told_in_the_last(arm):
    """Gravity is so small here that the current passes as friction, until it has told for a tenth of a second."""
    readings, q = readings_of(arm), np.array([0.6, -1.7, -0.2, -3.2, -0.6, 1.5])
    current = arm.gravity(q) / arm.motor.drive_gain
    for _ in range(2):
        rest(readings, current, BLOCK, q)
        assert not readings.problem
        rest(readings, current, 7 * BLOCK, q)
        assert "motor current" in readings.problem
        readings.reset()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_soon_in_motion(arm, name):
    readings = readings_of(arm)
    sweep(readings, arm, lambda g, q: MISTAKES[name](arm, g + 0.3 * FRICTION, g), MOTION_TIME + 3 * BLOCK)
    assert "looks like" in readings.problem and name in readings.problem


def test_a_torque_with_gravity_where_none_is_configured(arm):
    readings = readings_of(arm, torque_meaning="gravity_compensated")
    rest(readings, arm.gravity(Q) + FRICTION, REST_TIME + BLOCK)
    assert "the total torque, gravity inside" in readings.problem


def test_a_torque_where_a_current_is_configured(arm):
    readings = readings_of(arm, torque_unit="A")
    rest(readings, arm.gravity(Q) + 0.3 * FRICTION, REST_TIME + BLOCK)
    assert "torque [Nm]" in readings.problem


@pytest.mark.parametrize("push", [[0, 0, 100.0], [60.0, 0, 0], [0, -60.0, 0], [0, 0, -80.0]])
def test_a_proven_stream_is_not_impressed_by_any_contact(arm, push):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity + 0.3 * FRICTION, 2 * PROOF_TIME)
    torque = arm.tcp_jacobian(Q)[:3].T @ push
    for share in np.linspace(0, 2, 40):
        rest(readings, gravity - share * torque, 0.2)
        assert readings.problem == ""


@pytest.mark.parametrize("share", [0.0, 0.4, 1.7])
def test_a_proven_stream_believes_in_a_contact_also_in_motion(arm, share):
    """A push may follow gravity's torque for two seconds. Without a jump it does not change what the effort means."""
    readings = readings_of(arm)
    sweep(readings, arm, lambda gravity, q: gravity + 0.3 * FRICTION, 1.0)
    sweep(readings, arm, lambda gravity, q: share * gravity + 0.3 * FRICTION, 2.0)
    assert readings.problem == ""


def test_after_a_jump_of_the_effort_a_proven_stream_asks_again(arm):
    readings = readings_of(arm)
    total = arm.gravity(Q) + 0.3 * FRICTION
    sweep(readings, arm, lambda gravity, q: gravity + 0.3 * FRICTION, 1.0)
    readings.add_step(1.0, Q, total, 1.7 * total, total, np.full(6, 0.01))
    sweep(readings, arm, lambda gravity, q: 1.7 * gravity + 0.3 * FRICTION, 2.0)
    assert "common factor" in readings.problem and "or name the payload with --tool" in readings.problem


def test_a_contact_that_cancels_gravity_is_doubted_before_proof_and_cleared_by_its_change(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    jacobian = arm.tcp_jacobian(Q)[:3]
    force = np.linalg.lstsq(jacobian.T, gravity, rcond=None)[0]
    near = gravity - jacobian.T @ force  # as small as a contact can make it
    if np.max(np.abs(near)) < 5:
        rest(readings, near, 0.5)
        assert "a contact happens" in readings.problem and readings.suspects
    rest(readings, gravity - 0.5 * jacobian.T @ force, 0.1)
    assert readings.problem == ""


#: Here shoulder lift and elbow carry torques that an exchange of the two hardly changes.
ALIKE = np.array([0.2, -1.6, 1.9, -1.8, -1.5, 0.3])


def exchanged_torque(arm):
    """What a free arm at ALIKE gives where the signals of shoulder lift and elbow are exchanged."""
    order = [0, 2, 1, 3, 4, 5]
    return arm.gravity(ALIKE[order])[order]


def push_in(readings, before, after, seconds=0.3):
    """The torque of an arm that stands goes over into another one, and stays."""
    for share in np.linspace(0, 1, round(seconds / BLOCK)):
        rest(readings, (1 - share) * before + share * after, BLOCK, ALIKE)
        assert readings.problem == ""
    rest(readings, after, 2 * REST_TIME, ALIKE)


def test_a_push_at_rest_is_no_other_reading_whatever_it_looks_like(arm):
    """A reading does not change at rest, so a torque that was free before and changes is a force."""
    readings = readings_of(arm)
    rest(readings, arm.gravity(ALIKE), 1.0, ALIKE)
    assert not readings.proven[readings.rivals.index("signals with shoulder_lift_joint and elbow_joint exchanged")]
    push_in(readings, arm.gravity(ALIKE), exchanged_torque(arm))
    assert readings.problem == ""


@pytest.mark.parametrize("how", ["from the first sample", "behind a gap", "behind a step", "in another posture"])
def test_a_torque_that_did_not_change_at_rest_may_be_another_reading(arm, how):
    readings, gravity, wrong = readings_of(arm), arm.gravity(ALIKE), exchanged_torque(arm)
    if how != "from the first sample":
        rest(readings, gravity, 1.0, ALIKE)
    if how == "behind a gap":
        readings.restart()
    if how == "behind a step":
        readings.add_step(0.0, ALIKE, gravity, wrong, gravity, 0.2 * np.ones(6))
    if how == "in another posture":
        rest(readings, arm.gravity(ALIKE + 0.03), BLOCK, ALIKE + 0.03)
    rest(readings, wrong, 2 * REST_TIME, ALIKE)
    assert "looks like" in readings.problem


def test_a_wrist_whose_torque_goes_wrong_alone_at_rest_is_doubted(arm):
    """A force that loads a wrist only is rare, and its sensor may fail at rest, too."""
    readings, drift = readings_of(arm), np.zeros(6)
    rest(readings, arm.gravity(ALIKE), 1.0, ALIKE)
    for drift[4] in np.linspace(0, 40.0, 6):
        rest(readings, arm.gravity(ALIKE) + drift, BLOCK, ALIKE)
    rest(readings, arm.gravity(ALIKE) + drift, 2 * REST_TIME, ALIKE)
    assert "wrong on wrist_2_joint alone" in readings.problem


def test_a_contact_does_not_clear_a_unit_under_which_the_effort_hardly_changes(arm):
    """A push of 60 N in amperes: motor current no longer explains a free arm, a torque without gravity still does."""
    readings, gravity = readings_of(arm), arm.gravity(Q)
    push = arm.tcp_jacobian(Q).T @ [0, 0, 60.0, 0, 0, 0]
    rest(readings, gravity / arm.motor.drive_gain, 10 * BLOCK)
    rest(readings, (gravity - push) / arm.motor.drive_gain, 10 * BLOCK)
    assert readings.problem


def test_noise_does_not_clear_a_mistake(arm):
    readings, gravity, rng = readings_of(arm), arm.gravity(Q), np.random.default_rng(1)
    for _ in range(round(2.0 / BLOCK)):
        rest(readings, (gravity + rng.normal(0, 0.4 * np.abs(FRICTION)))[::-1], BLOCK)
        assert "reverse joint order" in readings.problem


def test_friction_that_changes_before_a_joint_is_seen_to_move_does_not_clear_a_mistake(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    friction, speed = np.array([0, 8.0, 0, 0, 0, 0]), np.array([0, 0.02, 0, 0, 0, 0])
    rest(readings, 2.0 * gravity, 0.5)
    rest(readings, 2.0 * (gravity + friction), 2 * BLOCK)
    for _ in range(20):
        readings.add_block(BLOCK, Q, speed, np.zeros(6), 2.0 * (gravity + friction))
        assert readings.problem


def test_what_was_proven_holds_over_a_restart(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity, 2 * PROOF_TIME)
    readings.restart()
    rest(readings, 0.05 * gravity, 1.0)
    assert readings.problem == ""


@pytest.mark.parametrize("doubted", [True, False])
def test_a_push_behind_a_short_gap_is_no_other_torque(arm, doubted):
    """Behind a long one it may be: a driver was started anew. A push that lifts the tool looks like a scale."""
    readings = readings_of(arm)
    sweep(readings, arm, lambda total, _: total, 1.0)
    assert readings.proven[readings.rivals.index("torque scaled by a common factor")]
    readings.restart(doubted)
    sweep(readings, arm, lambda total, _: 2.5 * total, 1.0)
    assert ("scaled by a common factor" in readings.problem) == doubted
    assert doubted or not readings.problem


def test_a_payload_that_an_observer_has_found_is_no_other_torque(arm):
    """Twelve kilograms at the flange look like a scale. Once they are known they explain the torque."""
    readings = readings_of(arm)

    def loaded(total, q):
        readings.load[:] = known * (load := arm.tcp_jacobian(q)[:3].T @ [0.0, 0.0, -120.0])
        return total - load

    known = 0.0
    sweep(readings, arm, loaded, 1.0)
    assert "scaled by a common factor" in readings.problem
    known = 1.0
    sweep(readings, arm, loaded, 1.0)
    assert not readings.problem
    sweep(readings, arm, lambda total, q: 2.5 * loaded(total, q), 1.0)
    assert not readings.problem, "what was proven is not asked again"


def step(readings, before, after, returns=False):
    """One step of the effort between two samples, and what follows until it is judged."""
    readings.add_step(0.0, Q, before, after, before, 0.2 * np.ones(6))
    readings.settle(SETTLE_TIME, Q, before if returns else after)


@pytest.mark.parametrize("name", [*MISTAKES, "wrong on elbow_joint alone"])
def test_a_change_of_meaning_in_mid_run_is_named_by_its_step(arm, name):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    total = gravity + 0.3 * FRICTION
    rest(readings, total, 2 * PROOF_TIME)
    other = MISTAKES.get(name, lambda arm, total, gravity: total + 40.0 * np.eye(6)[2])(arm, total, gravity)
    step(readings, total, other)
    assert name in readings.problem


def test_a_verdict_ends_when_the_torque_is_right_again(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity, 2 * PROOF_TIME)
    step(readings, gravity, -gravity)
    rest(readings, -gravity, 1.0)
    assert readings.problem
    rest(readings, gravity, 2 * PROOF_TIME)
    assert readings.problem == ""


def test_a_spike_is_no_step(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity, 2 * PROOF_TIME)
    step(readings, gravity, gravity + 80 * np.eye(6)[1], returns=True)
    assert readings.problem == ""


def test_where_gravity_is_not_felt_nothing_is_claimed(arm):
    upright, readings = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0]), readings_of(arm, torque_unit="A")
    rest(readings, np.zeros(6), 2 * REST_TIME, q=upright)
    assert readings.problem == ""


def wall(arm, q):
    """Gravity torque of the arm on a wall, by Pinocchio."""
    model = arm.model.copy()
    model.gravity.linear = np.array([9.81, 0.0, 0.0])
    return pin.computeGeneralizedGravity(model, model.createData(), q)


def test_an_arm_that_is_mounted_otherwise_is_named(arm):
    readings = readings_of(arm)
    sweep(readings, arm, lambda g, q: wall(arm, q) + 0.3 * FRICTION, 3.0)
    assert "mounted otherwise" in readings.problem


def test_a_torque_that_neither_a_free_arm_nor_a_force_at_the_tool_explains_is_doubted(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity + np.array([90.0, -70.0, 60.0, 50.0, -40.0, 30.0]), 0.1)
    assert "neither a free arm nor a force at the tool" in readings.problem


@pytest.mark.parametrize("push", [[0, 0, 90.0], [40.0, 0, 50], [0, -50.0, 0]])
def test_a_stream_that_begins_in_a_contact_at_the_tool_is_not_doubted(arm, push):
    readings = readings_of(arm)
    rest(readings, arm.gravity(Q) - arm.tcp_jacobian(Q)[:3].T @ push + 0.3 * FRICTION, 1.0)
    assert "neither" not in readings.problem


def test_a_step_that_stays_is_doubted_whatever_it_is(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity, 2 * PROOF_TIME)
    step(readings, gravity, gravity + np.array([60.0, -70.0, 60.0, 50.0, -40.0, 30.0]))
    assert "stepped" in readings.problem
    rest(readings, gravity, 6 * PROOF_TIME)
    assert readings.problem == ""


def test_half_a_torque_is_doubted_although_friction_might_explain_it(arm):
    upright = np.array([0.2, -1.35, 0.3, -1.8, -1.5, 0.3])  # gravity is small here
    readings, gravity = readings_of(arm), arm.gravity(upright)
    rest(readings, 0.4 * gravity, 0.2, upright)
    assert readings._misfit[0] < FREE and "common factor" in readings.problem


def test_whole_samples_with_exchanged_joints_are_named(arm):
    readings, order = readings_of(arm), np.array([0, 2, 1, 3, 4, 5])
    dq = 0.3 * np.array([0.0, 1.0, -1.0, 0.5, 0.0, 0.0])
    for k in range(100):
        q = Q + dq * k * BLOCK
        readings.add_block(BLOCK, q[order], dq[order], np.zeros(6), (arm.gravity(q) + 0.1 * FRICTION)[order])
    assert "shoulder_lift_joint and elbow_joint exchanged" in readings.problem


def test_one_joint_far_off_is_doubted_even_after_proof(arm):
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity + 0.1 * FRICTION, 2 * PROOF_TIME)
    assert readings.problem == ""
    rest(readings, gravity + [0, 0, 0, 30.0, 0, 0], 0.2)
    assert "wrist_1_joint alone" in readings.problem
    rest(readings, gravity + 0.1 * FRICTION, 0.2)
    assert readings.problem == ""


def test_a_push_that_loads_one_joint_most_is_believed_after_proof(arm):
    """A push on a link loads the joints before it, too: they are no longer free."""
    readings, gravity = readings_of(arm), arm.gravity(Q)
    rest(readings, gravity + 0.1 * FRICTION, 2 * PROOF_TIME)
    rest(readings, gravity + np.array([0, 3.0, 0, 11.0, 0, 0]) / readings.per_friction, 0.4)
    assert readings.problem == ""
