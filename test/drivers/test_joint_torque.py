"""Joint-torque arms: what effort means is stated, and nonsense is refused."""

import numpy as np
import pytest

from contact_estimation.drivers.backend import EquilibriumPose
from contact_estimation.drivers.joint_torque import JointTorqueBackend, JointTorqueSettings, total_torque
from contact_estimation.exceptions import ConfigError, DriverError, StaleSampleError
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping

Q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


@pytest.fixture(scope="module")
def arm():
    return load_arm("fr3")


def make(arm, meaning="total", send=None, **changes):
    settings = from_mapping(JointTorqueSettings, {"torque_meaning": meaning, "timeout": 0.05, **changes}, "test")
    backend = JointTorqueBackend(arm, settings, send)
    backend.connect()
    return backend


@pytest.mark.parametrize("meaning", ["total", "gravity_compensated", "external"])
def test_every_meaning_becomes_total_torque(arm, meaning):
    contact = arm.tcp_jacobian(Q)[:3].T @ [0.0, 0.0, 10.0]
    total = arm.gravity(Q) - contact
    effort = {"total": total, "gravity_compensated": -contact, "external": contact}[meaning]
    backend = make(arm, meaning)
    backend.feed(1, arm.joint_names, Q, np.zeros(7), effort)
    assert np.allclose(backend.read().tau, total)


def test_joints_come_by_name(arm):
    backend = make(arm)
    order = list(reversed(arm.joint_names)) + ["finger"]
    backend.feed(1, order, np.r_[Q[::-1], 9.0], np.zeros(8), np.r_[np.arange(7.0)[::-1], 9.0])
    sample = backend.read()
    assert np.array_equal(sample.q, Q) and np.array_equal(sample.tau, np.arange(7.0))


@pytest.mark.parametrize(
    "names, q, effort, words",
    [
        (["a", "b"], [0, 0], [0, 0], "lack fr3_joint1"),
        (None, Q, np.full(7, np.nan), "not finite"),
        (None, Q, [], "numbers of effort"),
    ],
)
def test_nonsense_is_refused_with_its_reason(arm, names, q, effort, words):
    backend = make(arm)
    names = arm.joint_names if names is None else names
    backend.feed(1, names, q, np.zeros(len(q)), effort)
    assert words in backend.problem
    with pytest.raises(DriverError, match=words):
        backend.read()


def test_commands_go_out_only_while_the_state_is_known(arm):
    sent = []
    backend = make(arm, send=sent.append)
    pose = EquilibriumPose(np.zeros(3), np.eye(3))
    with pytest.raises(DriverError, match="no sample"):
        backend.command(pose)
    backend.feed(1, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
    backend.command(pose)
    assert sent == [pose]
    backend.feed(2, arm.joint_names, Q * np.nan, np.zeros(7), arm.gravity(Q))
    with pytest.raises(DriverError, match="not finite"):
        backend.command(pose)
    with pytest.raises(DriverError, match="no way to command"):
        make(arm).command(pose)


def test_a_jump_of_a_position_is_no_sample_and_nothing_is_commanded_there(arm):
    """Zeros with good stamps, as of a driver that has lost its arm."""
    sent, period = [], 2_000_000
    backend = make(arm, send=sent.append)
    for k in range(3):
        backend.feed(1 + k * period, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
    for k in range(3, 100):
        backend.feed(1 + k * period, arm.joint_names, np.zeros(7), np.zeros(7), np.zeros(7))
        assert "fr3_joint4 jumped by 2.36 rad" in backend.problem
    with pytest.raises(DriverError, match=r"jumped by 2\.36 rad"):
        backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    assert not sent and all(np.array_equal(backend.read().q, Q) for _ in range(3))
    backend.feed(1 + 100 * period, arm.joint_names, Q + 0.05, np.zeros(7), arm.gravity(Q))
    assert backend.problem == ""


def test_a_gripper_on_the_same_topic_stops_no_command(arm):
    """Its messages come between those of the arm, with stamps of their own."""
    sent = []
    backend = make(arm, send=sent.append)
    backend.feed(1, ["finger"], [0.0], [], [])
    assert "lack fr3_joint1" in backend.problem  # so far it may be the wrong topic
    for k in range(3):
        backend.feed(2 + 2 * k, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
        backend.feed(1 + 2 * k, ["finger"], [0.0], [], [], age=5.0)
        backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    assert len(sent) == 3 and backend.problem == "" and backend.counters["refused"] == 1
    backend.feed(9, arm.joint_names, Q * np.nan, np.zeros(7), arm.gravity(Q))
    backend.feed(10, ["finger"], [0.0], [], [])
    with pytest.raises(DriverError, match="not finite"):  # it is no excuse for the arm
        backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))


def test_fast_motion_at_a_low_rate_or_with_samples_left_out_is_no_jump(arm):
    backend = make(arm)
    for k in range(20):  # at the velocity limit, 30 Hz
        q = Q + np.sign(-Q) * arm.velocity_limit * 0.033 * (k % 2)
        backend.feed(1 + k * 33_000_000, arm.joint_names, q, np.zeros(7), arm.gravity(q))
        assert backend.problem == ""


def test_meaning_must_be_stated(arm):
    with pytest.raises(ConfigError, match="torque_meaning"):
        from_mapping(JointTorqueSettings, {}, "test")
    with pytest.raises(DriverError, match="unknown"):
        total_torque(arm, "guess", Q, Q)


def test_a_repeated_stamp_is_no_second_sample(arm):
    backend = make(arm)
    for stamp in (1, 1, 2):
        backend.feed(stamp, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
    assert [backend.read().stamp_ns for _ in range(2)] == [1, 2]


def test_a_new_connection_begins_without_the_samples_and_the_end_of_the_last_one(arm):
    backend = make(arm)
    backend.feed(1, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
    backend.close()
    backend.connect()
    with pytest.raises(DriverError, match="no sample yet"):
        backend.read()
    backend.feed(1, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
    assert backend.read().stamp_ns == 1


def test_a_late_sample_and_one_of_the_future_are_refused_and_nothing_is_commanded(arm):
    sent = []
    backend = make(arm, send=sent.append)
    feed = arm.joint_names, Q, np.zeros(7), arm.gravity(Q)
    for stamp, age in ((1, 0.4), (2, -0.4)):
        backend.feed(stamp, *feed, age)
        assert "0.40 s" in backend.problem and "max_sample_age 0.2 s" in backend.problem
        with pytest.raises(StaleSampleError, match="max_sample_age"):
            backend.command(EquilibriumPose(np.zeros(3), np.eye(3)))
    assert backend.counters["refused"] == 2 and not sent
    backend.feed(3, *feed, 0.1)
    assert backend.read().stamp_ns == 3 and not backend.problem


def test_a_sample_that_waited_for_its_reader_is_dropped_and_counted(arm):
    backend = make(arm)
    now = 10.0
    backend._now = lambda: now
    feed = arm.joint_names, Q, np.zeros(7), arm.gravity(Q)
    backend.feed(1, *feed, 0.15)
    now += 0.1
    backend.feed(2, *feed, 0.15)
    assert backend.read().stamp_ns == 2 and backend.counters["dropped: waited too long"] == 1


def test_a_stamp_that_runs_back_is_refused_and_one_behind_it_is_taken(arm):
    """A sample that was overtaken; where a clock was set back, the next sample goes on from there."""
    backend = make(arm)
    for stamp in (100, 300, 200, 201):
        backend.feed(stamp, arm.joint_names, Q, np.zeros(7), arm.gravity(Q))
        assert ("before the one before" in backend.problem) == (stamp == 200)
    assert [backend.read().stamp_ns for _ in range(3)] == [100, 300, 201]
