"""Bad input at the door: every sample that cannot be used is refused, named, counted, and never becomes a valid
estimate."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from stream_feed import PERIOD, T0, Feed, Notes, Q

from contact_estimation.exceptions import ConfigError
from contact_estimation.filters.observer import Estimate, Observer
from contact_estimation.filters.registry import open_stream
from contact_estimation.filters.settings import SensorSettings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm


def test_the_notes_are_an_observer_and_good_samples_are_valid(feed):
    assert isinstance(feed.observer, Observer)
    estimate = feed()
    assert estimate.valid and estimate.reason == "" and estimate.t == pytest.approx(feed.stamp * 1e-9, abs=1e-9)
    assert len(feed.observer.resets) == 1 and len(feed.observer.steps) == 10
    assert feed.stream.counters == {"samples": 11, "used": 11}


def test_before_the_first_good_sample_every_number_is_nan(arm):
    feed = Feed(arm, good=0)
    for estimate in (feed.stream.estimate(), feed(q=np.full(6, np.nan))):
        assert not estimate.valid and estimate.reason
        for number in (estimate.force_tcp, estimate.q, estimate.force_covariance):
            assert np.isnan(number).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("key, word", [("q", "position"), ("dq", "velocity"), ("tau", "torque")])
def test_not_finite_is_refused_and_names_the_joint(feed, key, word, value):
    bad = getattr(feed, key).copy()
    bad[2] = value
    estimate = feed(**{key: bad})
    assert not estimate.valid and f"not finite: {word} of elbow_joint" in estimate.reason
    assert feed.stream.counters["not_finite"] == 1 and len(feed.observer.steps) == 9
    assert np.isfinite(estimate.force_tcp).all()  # the last good one, marked
    assert feed().valid


def test_infinities_of_both_signs_do_not_hide_each_other(feed):
    bad = feed.q.copy()
    bad[0], bad[1] = np.inf, -np.inf
    assert not feed(q=bad).valid


@pytest.mark.parametrize("wrong", [np.zeros(5), np.zeros(7), [], None, "words"], ids=["5", "7", "none", "None", "text"])
def test_wrong_number_of_joints(feed, wrong):
    estimate = feed(q=wrong)
    assert not estimate.valid and "'ur16e' has 6 joints" in estimate.reason
    assert feed.stream.counters["wrong_size"] == 1
    assert feed().valid


def test_a_scalar_is_no_joint_vector(feed):
    """numpy would spread one number over all joints."""
    estimate = feed(tau=1.0)
    assert not estimate.valid and feed.stream.counters["wrong_size"] == 1


def test_a_torque_beyond_every_limit(feed):
    bad = feed.tau.copy()
    bad[3] = 3.1 * feed.arm.effort_limit[3]
    estimate = feed(tau=bad)
    assert not estimate.valid and "beyond 3 times the joint's limit: torque of wrist_1_joint" in estimate.reason
    assert feed().valid


def test_a_position_that_jumps(feed):
    estimate = feed(q=feed.q + [0, 0, 0, 0, 0.5, 0])
    assert not estimate.valid and "position of wrist_2_joint" in estimate.reason
    assert feed.stream.counters["position_jump"] == 1
    # the lost interval was integrated in two steps
    assert feed().valid and feed.observer.steps[-1][0] == pytest.approx(0.002)
    assert feed.stream.counters["interpolated"] == 1


def test_a_joint_without_limit_goes_on_where_its_position_is_told_within_one_turn(arm):
    turning = copy.copy(arm)
    turning.unlimited = np.array([5])
    feed = Feed(turning)
    last = Q[5]
    for k in range(1, 3500):  # at 1 rad/s beyond 2 pi
        q = Q + [0.0, 0.0, 0.0, 0.0, 0.0, 0.002 * k]
        q[5] = (q[5] + np.pi) % (2 * np.pi) - np.pi
        feed(q=q, dq=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
        assert feed.observer.steps[-1][1][5] - last == pytest.approx(0.002)
        last = feed.observer.steps[-1][1][5]
    assert not feed.stream.counters["position_jump"]
    assert len(feed.observer.resets) == 1


def test_the_same_stamp_twice_is_not_processed_twice(feed):
    steps = len(feed.observer.steps)
    estimate = feed(periods=0)
    assert not estimate.valid and "stamp" in estimate.reason
    assert feed.stream.counters["duplicate"] == 1 and len(feed.observer.steps) == steps
    assert feed().valid


def test_a_step_back_in_time_restarts(feed):
    feed(periods=-5)
    estimate = feed()
    assert not estimate.valid and "went back by 0.008 s" in estimate.reason
    assert len(feed.observer.resets) == 2 and feed.observer.resets[-1][0] == pytest.approx(feed.stamp * 1e-9)
    assert feed().reason.endswith("it settles") and feed.stream.counters["backward"] == 1
    assert [feed() for _ in range(100)][-1].valid


def test_one_sample_out_of_order_is_refused_and_restarts_nothing(feed):
    estimate = feed(periods=-1)
    assert not estimate.valid and "out of order" in estimate.reason
    assert feed.stream.counters["out_of_order"] == 1 and len(feed.observer.resets) == 1
    assert feed(periods=2).valid
    feed(periods=-1)  # a good one came since: this is again the first of its kind
    assert feed(periods=2).valid and feed.stream.counters["backward"] == 0


def test_a_clock_set_back_by_more_than_a_gap_restarts_at_once(feed):
    assert "went back by 0.200 s" in feed(periods=-100).reason and len(feed.observer.resets) == 2


def test_an_observer_that_is_restarted_on_request_settles_before_it_counts(feed):
    """It takes the arm for free, and a controller that presses would push harder."""
    assert feed().valid  # the first start: nobody presses yet
    feed.stream.restart(settle=True)
    settling = feed()
    assert not settling.valid and settling.reason == "the observer restarted: it settles"
    for _ in range(round(feed.stream.sensors.plausibility.settling * 500)):
        after = feed()
    assert after.valid and len(feed.stream.observer.resets) == 2
    feed.stream.restart()  # who knows that the arm is free need not wait
    assert feed().valid


def test_an_observer_that_diverges_is_marked(feed):
    feed.observer.value = np.nan
    estimate = feed()
    assert not estimate.valid and "diverged" in estimate.reason and feed.stream.counters["diverged"] == 1
    again = feed.stream.estimate()
    assert not again.valid and again.reason == estimate.reason
    feed.observer.value, resets = 1.0, len(feed.observer.resets)
    assert not feed().valid and len(feed.observer.resets) == resets + 1  # it settles: the arm may be in contact
    assert [feed() for _ in range(100)][-1].valid


def test_an_observer_that_declares_itself_invalid_is_believed(feed):
    plain = feed.observer.estimate()
    feed.observer.estimate = lambda: dataclasses.replace(plain, valid=False, reason="singular posture")
    assert (feed().valid, feed().reason) == (False, "singular posture")


def test_current_becomes_torque(arm):
    feed = Feed(arm, torque_unit="A", good=0)
    feed.tau = arm.gravity(Q) / arm.motor.drive_gain
    feed(), feed()
    np.testing.assert_allclose(feed.observer.steps[-1][3], arm.gravity(Q), atol=1e-12)


def test_scale_and_meaning_are_applied_before_the_observer(arm):
    for meaning, measured in (
        ("total", arm.gravity(Q) - 2.0),
        ("gravity_compensated", np.full(6, -2.0)),
        ("external", np.full(6, 2.0)),
    ):
        feed = Feed(arm, good=0, torque_meaning=meaning, torque_scale=[2.0] * 6, check_torque_unit=False)
        feed.tau = measured / 2.0
        feed(), feed()
        np.testing.assert_allclose(feed.observer.steps[-1][3], arm.gravity(Q) - 2.0, atol=1e-12, err_msg=meaning)


def test_settings_that_do_not_fit_the_robot(arm):
    with pytest.raises(ConfigError, match="torque_scale has 2 entries, robot 'ur16e' has 6 joints"):
        SampleStream(Notes(), arm, SensorSettings(torque_scale=[1.0, 1.0]))
    with pytest.raises(ConfigError, match="'fr3' has no torque_constant"):
        SampleStream(Notes(), load_arm("fr3"), SensorSettings(torque_unit="A"))


def test_warming_up_leaves_no_trace(arm):
    stream = open_stream(arm, "momentum", "joint_torque")
    stream.warm_up()
    assert not stream.counters and not stream.valid and stream.reason == "no sample yet"
    assert stream.push(T0, Q, np.zeros(6), arm.gravity(Q)).valid
    np.testing.assert_array_equal(stream.observer.estimate().tau_ext, np.zeros(6))


class Motion:
    """All joints turn at 0.5 rad/s, after a start of 0.2 s, with the noise that sensors have."""

    def __init__(self, arm):
        self.feed, self._rng, self._speed = Feed(arm, good=0), np.random.default_rng(0), 0.0
        self.q = Q.copy()

    def __call__(self, samples: int, velocity_share: float = 1.0) -> list[Estimate]:
        estimates = []
        for _ in range(samples):
            before, self._speed = self._speed, min(self._speed + 0.005, 0.5)
            self.q = self.q + 0.5 * (before + self._speed) * 1e-9 * PERIOD
            noise = self._rng.normal(0, 1, (3, 6))
            dq = velocity_share * self._speed + 1e-4 * noise[1]
            tau = self.feed.arm.gravity(self.q) + 0.1 * noise[2]
            estimates.append(self.feed(q=self.q + 1e-5 * noise[0], dq=dq, tau=tau))
        return estimates


def test_a_motion_is_judged_from_sample_to_sample_however_far_it_leads(arm):
    for estimate in Motion(arm)(1000):
        assert estimate.valid, estimate.reason


def test_signals_that_contradict_each_other_are_invalid_until_they_agree(arm):
    motion = Motion(arm)
    motion(300)
    wrong = motion(100, velocity_share=0.0)[-1]
    assert not wrong.valid and "velocity" in wrong.reason and motion.feed.stream.counters["implausible"]
    assert motion(3000)[-1].valid and motion.feed.stream.counters["recovered"] == 1


@pytest.mark.parametrize("suspected, kept", [(True, 1), (False, 0)])
def test_only_after_a_suspicion_that_proved_wrong_is_something_kept_of_before(arm, monkeypatch, suspected, kept):
    """Of signals that contradicted each other nothing is, also where the last doubt is only a suspicion."""
    motion = Motion(arm)
    motion(300)
    resumed, told, monitor = [], [], motion.feed.stream.monitor
    monkeypatch.setattr(motion.feed.stream.observer, "resume", lambda *_: resumed.append(1), raising=False)
    monkeypatch.setattr(type(monitor), "suspects", property(lambda _: suspected or len(told) > 50))
    for _ in range(100):
        told += motion(1, velocity_share=0.0)
    assert not told[-1].valid
    assert motion(3000)[-1].valid and motion.feed.stream.counters["recovered"] == 1
    assert len(resumed) == kept


@pytest.mark.parametrize(
    ("wrong", "found"),
    [(np.zeros((6, 1)), "q (6, 1), dq (6,)"), (np.zeros(5), "q (5,)"), (["a"] * 6, "q that is no numbers")],
)
def test_wrong_shapes_are_told(feed, wrong, found):
    assert found in feed(q=wrong).reason


@pytest.mark.parametrize("stamp", [float("nan"), float("inf"), None, "now", np.array([1, 2])], ids=str)
def test_a_stamp_that_is_no_number_is_refused(feed, stamp):
    estimate = feed.stream.push(stamp, feed.q, feed.dq, feed.tau)
    assert not estimate.valid and "expected whole nanoseconds" in estimate.reason
    assert feed.stream.counters["not_finite"] == 1 and np.isfinite(estimate.t)
    assert feed().valid


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e-3], ids=["s", "ms", "us"])
def test_stamps_in_another_unit_are_called_so(arm, unit):
    stream = SampleStream(Notes(), arm, SensorSettings())
    dq = np.full(6, 0.3)
    for k in range(100):
        q = Q + dq * k * 1e-9 * PERIOD
        estimate = stream.push(k * PERIOD * unit, q, dq, arm.gravity(q))
    assert not estimate.valid and "ns apart: stamp_ns is in nanoseconds" in estimate.reason


def test_samples_that_come_far_too_seldom_are_invalid(feed):
    assert all(feed(periods=5).valid for _ in range(40))
    estimates = [feed(periods=20) for _ in range(40)]
    told = "samples come every 40 ms, the sensor set takes at most 12 ms"
    assert not estimates[-1].valid and told in estimates[-1].reason and told in estimates[-1].mismatch
    assert feed.stream.counters["gap"] == 0
    for _ in range(200):
        feed()
    assert feed().valid, feed.stream.reason


@pytest.mark.parametrize("lost, valid", [(20, True), (45, False)])
def test_bursts_of_lost_samples_are_told_where_hardly_any_is_left(arm, lost, valid):
    """Between samples nothing is known: with nine of ten lost the IMM filter was 20 N wrong, as valid."""
    feed = Feed(arm)
    for _ in range(25):
        [feed() for _ in range(5 if lost > 40 else 20)]
        estimate = feed(periods=lost + 1)
    assert estimate.valid == valid and (valid or f"samples come every {2 * lost + 2} ms" in estimate.mismatch)


def test_a_sensor_set_may_allow_a_low_rate(arm):
    feed = Feed(arm, max_periods=30)
    assert all(feed(periods=20).valid for _ in range(40))


def test_a_name_instead_of_a_thing_names_its_loader(arm):
    with pytest.raises(ConfigError, match=r"sensors is the name 'joint_torque'; give load_sensor_settings\('joint_"):
        SampleStream(Notes(), arm, "joint_torque")
    with pytest.raises(ConfigError, match=r"arm is the name 'ur16e'; give load_arm\('ur16e'\)"):
        SampleStream(Notes(), "ur16e", SensorSettings())


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (None, "estimate\\(\\) returned None; return an Estimate"),
        (
            dataclasses.replace(Notes().estimate(), tau_ext=np.zeros(3)),
            "tau_ext of its estimate has shape \\(3,\\), exp",
        ),
        (dataclasses.replace(Notes().estimate(), force_covariance=np.zeros(9)), "force_covariance .* \\(9,\\), exp"),
    ],
    ids=["None", "tau_ext", "covariance"],
)
def test_an_observer_that_gives_no_estimate_is_named(arm, told, message):
    observer = Notes()
    observer.estimate = lambda: told
    stream = SampleStream(observer, arm, SensorSettings())
    with pytest.raises(ConfigError, match=f"observer 'notes': {message}"):
        stream.push(T0, Q, np.zeros(6), arm.gravity(Q))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_is_not_copied(feed, copied):
    with pytest.raises(TypeError, match=r"cannot be copied or pickled; open another one there with open_stream"):
        copied(feed.stream)
