"""Which estimates may be acted on."""

from __future__ import annotations

import pytest
from contact_estimation.msg import ContactEstimate
from rclpy.serialization import serialize_message

from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, staleness
from contact_estimation.ros.staleness import EstimateRule

NOW = 1_800_000_000_000_000_000
ARM = load_arm("fr3")


def message(age: float = 0.01, base: str = "left_" + ARM.base_frame, **changes) -> ContactEstimate:
    head = convert.header(NOW - round(1e9 * age), base)
    given = {"header": head, "valid": True, "observer": "ekf", "joint_names": ARM.joint_names, **changes}
    return ContactEstimate(**given)


@pytest.fixture
def rule() -> EstimateRule:
    made = EstimateRule(ARM, "left_", 0.05)
    made.choose("ekf")
    return made


def test_a_fresh_estimate_counts_with_its_age(rule):
    age, problem = rule.judge(message(0.03, "left_" + ARM.base_frame), NOW)
    assert problem == "" and age == pytest.approx(0.03)


@pytest.mark.parametrize(
    "made, words",
    [
        (message(0.06, "left_" + ARM.base_frame), "stale: 60 ms old, at most 50 ms"),
        (message(-0.06, "left_" + ARM.base_frame), "stale"),
        (message(0.03, max_age=0.02), "stale: 30 ms old, at most 20 ms"),
        (message(base="right_" + ARM.base_frame), "correct the topic"),
        (message(base="left_" + ARM.base_frame, joint_names=ARM.joint_names[:-1]), "correct the topic"),
        (message(tcp_frame="left_tool_tcp"), "give the estimator and this node the same tool"),
        (message(base="left_" + ARM.base_frame, observer="momentum"), "one estimator per topic"),
        (message(base="left_" + ARM.base_frame, valid=False, reason="frozen"), "frozen"),
    ],
    ids=["old", "future", "beyond its own limit", "arm", "joints", "tool", "observer", "invalid"],
)
def test_what_does_not_count_says_why(rule, made, words):
    assert words in rule.judge(made, NOW).problem
    good = serialize_message(message())
    for raw, said in ((good, ""), (serialize_message(made), words), (good, "")):  # each after another kind
        assert said in rule.judge_serialized(raw, NOW)[0].problem
        assert bool(rule.judge_serialized(raw, NOW)[0].problem) == bool(said)


def test_serialised_estimates_of_the_same_words_are_not_decoded_again(rule, monkeypatch):
    first = rule.judge_serialized(serialize_message(message(0.01)), NOW)
    monkeypatch.setattr(staleness, "decode", None)
    second = rule.judge_serialized(serialize_message(message(0.03, position=[0.5] * ARM.n)), NOW)
    assert first[0].age == pytest.approx(0.01) and second[0].age == pytest.approx(0.03)
    assert first[1] == second[1] == "ekf" and not second[0].problem


@pytest.mark.parametrize("frame", ["", "left_" + ARM.tcp_frame])
def test_an_estimate_of_this_tcp_or_of_none_counts(rule, frame):
    assert rule.judge(message(tcp_frame=frame), NOW).problem == ""
    assert rule.judge_serialized(serialize_message(message(tcp_frame=frame)), NOW)[0].problem == ""


def test_without_a_choice_any_observer_counts(rule):
    rule.choose("")
    assert rule.judge(message(base="left_" + ARM.base_frame, observer="momentum"), NOW).problem == ""


def test_an_unknown_layout_is_decoded_in_the_ordinary_way():
    """Of a sender with another version of the message the words do not stand where they are expected."""
    raw = serialize_message(message())
    assert staleness._words_of(raw)
    assert staleness._words_of(raw[:60]) == () and staleness._words_of(raw[:70] + b"\xff" * 200) == ()


@pytest.mark.parametrize("cut", [0, 6, 40, 200], ids=["nothing", "no stamp", "no words", "half"])
def test_bytes_of_another_message_do_not_count_and_end_nothing(rule, cut):
    """A computer with an older version of the messages sends on the same topic."""
    good = serialize_message(message())
    verdict, observer = rule.judge_serialized(good[:cut], NOW)
    assert f"{cut} bytes are no ContactEstimate; install the same version" in verdict.problem and observer == ""
    assert rule.judge_serialized(good, NOW)[0].problem == ""
