"""What the middleware tells of a message, over real DDS: whose it is, and how long it waited."""

import time

import pytest
from rclpy.subscription import Subscription
from std_msgs.msg import String

from contact_estimation.ros import qos
from contact_estimation.ros.arrival import OnePublisher, subscribe


@pytest.mark.parametrize("raw", [False, True])
def test_a_message_tells_its_number_at_its_publisher_and_how_long_it_waited(graph, raw):
    heard = []
    topic = f"/told_{raw}"
    subscription = subscribe(graph.node, String, topic, lambda m, a: heard.append((m, a)), qos.SENSOR, raw)
    one, other = (graph.node.create_publisher(String, topic, qos.SENSOR) for _ in range(2))
    assert graph.spin(lambda: min(p.get_subscription_count() for p in (one, other)) == 1)
    for words in ("first", "second"):
        one.publish(String(data=words))
    other.publish(String(data="of another"))
    time.sleep(0.3)
    assert graph.spin(lambda: len(heard) == 3)
    assert sorted(arrival.number for _, arrival in heard) == [1, 1, 2]
    assert all(0.3 <= arrival.waited < 60.0 for _, arrival in heard)
    assert isinstance(heard[0][0], bytes if raw else String)
    for made in (one, other):
        graph.node.destroy_publisher(made)
    graph.node.destroy_subscription(subscription)


def test_message_information_does_not_tell_the_publisher(graph):
    """Fails where this rclpy tells it: then ``OnePublisher`` can follow the identity instead of message numbers."""
    heard = []
    take = lambda *given: heard.append((given[0] if len(given) == 1 else given)[1])  # noqa: E731
    subscription = graph.node.create_subscription(String, "/information", take, qos.SENSOR)
    subscription._callback_type = Subscription.CallbackType.WithMessageInfo
    publisher = graph.node.create_publisher(String, "/information", qos.SENSOR)
    assert graph.spin(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String(data="one"))
    assert graph.spin(lambda: heard)
    known = {"source_timestamp", "received_timestamp", "publication_sequence_number", "reception_sequence_number"}
    assert set(heard[0]) == known
    graph.node.destroy_publisher(publisher)
    graph.node.destroy_subscription(subscription)


def test_of_a_backlog_only_the_newest_message_is_left(graph):
    heard = []
    subscription = subscribe(graph.node, String, "/backlog", lambda m, _: heard.append(m.data), qos.NEWEST)
    publisher = graph.node.create_publisher(String, "/backlog", qos.SENSOR)
    assert graph.spin(lambda: publisher.get_subscription_count() == 1)
    for k in range(10):
        publisher.publish(String(data=str(k)))
    time.sleep(0.1)
    assert graph.spin(lambda: heard)
    graph.spin(timeout=0.2)
    assert heard == ["9"]
    graph.node.destroy_publisher(publisher)
    graph.node.destroy_subscription(subscription)


def test_one_of_two_publishers_is_followed_until_it_is_silent():
    rule = OnePublisher(0.3)
    mine = [rule.follows(100 + k, 0.01 * k) for k in range(5)]
    theirs = [rule.follows(1 + k, 0.01 * k) for k in range(5)]
    assert all(mine) and not any(theirs) and rule.others() == 5
    assert rule.follows(6, 0.35) and not rule.others()


def test_a_second_publisher_with_higher_numbers_waits_until_the_first_is_silent():
    rule = OnePublisher(0.3)
    for k in range(20):
        order = [rule.follows(number + k, 0.01 * k) for number in (50, 10_000)]
        assert order == [True, False]
    assert rule.others() == 20
    assert rule.follows(10_020, 0.5) and not rule.others()


def test_a_publisher_whose_messages_were_lost_meanwhile_is_still_followed():
    """At 1 kHz, the highest rate of samples: of a stall of a quarter second the last message is left."""
    rule = OnePublisher(0.5)
    assert all(rule.follows(number, t) for number, t in ((1, 0.0), (2, 0.001), (252, 0.251), (255, 0.251)))


@pytest.mark.parametrize("ahead", [0, 1, 5, 12])
@pytest.mark.parametrize("order", ["first", "second", "swapping"])
def test_of_two_with_nearly_the_same_numbers_never_both_are_followed(ahead, order):
    rule, followed = OnePublisher(0.3), set()
    for k in range(1, 100):
        pair = [("first", k), ("second", k + ahead)]
        if order == "second" or (order == "swapping" and k % 2):
            pair.reverse()
        for late, (who, number) in enumerate(pair):
            if rule.follows(number, 0.01 * k + 0.002 * late) and k > 2:
                followed.add(who)
    assert len(followed) <= 1 and rule.others() >= 97
    if ahead == 0 or (order == "swapping" and ahead == 1):
        assert not followed and rule.mixed


def test_two_whose_numbers_interleave_are_told_by_one_that_was_passed_over():
    """Where a slow reader hears one message of each only, no number repeats."""
    rule, heard = OnePublisher(0.3), [1, 3, 2, 5, 6, 7, 8, 9, 10]
    followed = [rule.follows(number, 0.01 * k) for k, number in enumerate(heard)]
    assert followed == [True, True, *[False] * 7] and rule.mixed


def test_of_two_that_cannot_be_told_apart_one_is_followed_once_the_other_is_silent():
    rule = OnePublisher(0.3)
    for k in range(1, 100):
        assert not any([rule.follows(k, 0.01 * k), rule.follows(k, 0.01 * k + 0.005)]) or k == 1
    alone = [rule.follows(100 + k, 1.0 + 0.01 * k) for k in range(60)]
    assert not any(alone[:28]) and all(alone[32:]) and not rule.mixed


def test_a_second_one_far_behind_leaves_the_first_alone_although_some_of_its_messages_are_lost():
    rule = OnePublisher(0.3)
    for k in range(200):
        order = [rule.follows(3 * k + 100, 0.03 * k), rule.follows(k + 1, 0.03 * k + 0.01)]
        assert order == [True, False]
    assert not rule.mixed


def test_a_middleware_that_does_not_count_refuses_nothing():
    rule = OnePublisher(0.3)
    assert all(rule.follows(0, 0.01 * k) for k in range(5)) and not rule.others()
