"""What the middleware tells of a message beside its content: its number at its publisher, and how long it has waited.

The message information of this rclpy (7.1) has no identity of the publisher: two time stamps and the number. Every
publisher numbers its own messages: where two of them publish, some number is not above the one before, or further above
it than one publisher can have come meanwhile. ``test/ros/test_arrival.py`` fails where another version tells the
publisher.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

#: No publisher sends faster [Hz], nor more ahead of its time where messages were delayed.
_MOST_RATE, _MOST_AHEAD = 2000.0, 10
#: [s] A publisher that is silent for so much longer than the topic is forgotten, and all but so many.
_FORGET_AFTER, _MOST_PUBLISHERS = 5.0, 16


class Arrival(NamedTuple):
    """How a message came.

    Attributes:
        number: of the message among those of its publisher, from 1; 0 where the middleware does not count.
        waited: time since this process received it [s].
        sent: when it was published [s], by the publisher's clock; 0 where the middleware does not tell.
    """

    number: int = 0
    waited: float = 0.0
    sent: float = 0.0


#: Of what came by no message.
JUST_NOW = Arrival()


def subscribe(
    node: Node, cls: type, topic: str, callback: Callable[[Any, Arrival], None], profile: QoSProfile, raw: bool = False
) -> Subscription:
    """Subscribe with a callback that also gets the arrival of each message.

    The events executor of this rclpy hands message and information over as one argument, its other executors as two.
    It does so where the private ``_callback_type`` says it; ``test/ros/test_arrival.py`` fails where another version
    does not.

    Args:
        node: that spins the subscription.
        cls: type of the messages.
        topic: name of the topic.
        callback: called with the message, or with its bytes, and with its arrival.
        profile: quality of service.
        raw: hand over serialised messages.
    """

    def take(*given: Any) -> None:
        message, information = given[0] if len(given) == 1 else given
        received = information["received_timestamp"]
        waited = 1e-9 * (time.time_ns() - received) if received else 0.0
        number, sent = information["publication_sequence_number"] or 0, 1e-9 * information["source_timestamp"]
        callback(message, Arrival(number, max(waited, 0.0), sent))

    subscription = node.create_subscription(cls, topic, take, profile, raw=raw)
    subscription._callback_type = Subscription.CallbackType.WithMessageInfo
    return subscription


class OnePublisher:
    """Follows one publisher of a topic; another one takes over when it has fallen silent.

    A number that repeats, or that was passed over, shows that two publish whose numbers do not tell them apart. Neither
    is followed then, until for as long as such a silence only one of them was heard.

    Args:
        silence: time without a message after which it has [s].
    """

    def __init__(self, silence: float) -> None:
        self._silence = silence
        self._number, self._heard, self._others = 0, -math.inf, 0
        self._passed_over, self._skipped = 0, -math.inf  # number before those passed over last, and when [s]
        self._mixed = -math.inf  # when two were heard that cannot be told apart [s]

    def follows(self, number: int, t: float) -> bool:
        """Return whether a message is of the publisher that is followed.

        Args:
            number: of the message, as :class:`Arrival` has it.
            t: when it came [s], on any clock that only advances.
        """
        passed = t - self._heard
        most = self._number + _MOST_AHEAD + _MOST_RATE * max(passed, 0.0)
        anew = not number or passed > self._silence
        if anew or self._number < number <= most:
            if anew:
                self._mixed = self._skipped = -math.inf
            elif number > self._number + 1:
                self._passed_over, self._skipped = self._number, t
            self._number, self._heard = number, t
            mixed = self.mixed
        else:
            recent = t - self._skipped <= self._silence
            if self.mixed or number == self._number or (recent and self._passed_over < number < self._number):
                self._mixed, self._number, self._heard = t, number, t
            mixed = True
        self._others += mixed
        return not mixed

    @property
    def mixed(self) -> bool:
        """Whether two publish whose numbers do not tell them apart."""
        return self._heard - self._mixed <= self._silence

    def others(self) -> int:
        """Return how many messages were not followed since the last call."""
        count, self._others = self._others, 0
        return count


class LostMessages:
    """Counts the messages of a publisher that never came, by their numbers.

    A publisher may send other messages on the topic, as an arm's driver the joints of a gripper. They have numbers of
    the same sequence. Those of another publisher are told by not following.
    """

    def __init__(self) -> None:
        self._number = 0

    def skip(self, number: int) -> None:
        """Take the number of a message that is of no use, and perhaps of another publisher."""
        if number == self._number + 1:
            self._number = number

    def before(self, number: int) -> int:
        """Return how many are missing between the last message and the one with this number, 0 where it has none."""
        missing = number - self._number - 1 if 0 < self._number < number else 0
        self._number = number
        return missing


class _Publisher(NamedTuple):
    """What is known of one publisher of a topic.

    Attributes:
        number: of its last message.
        sent: when that was published [s], by its clock.
        heard: when that came [s].
        gap: number of the first message that was lost last.
        missing: how many were lost there.
    """

    number: int
    sent: float
    heard: float
    gap: int = 0
    missing: int = 0

    def may_send(self, number: int, sent: float) -> bool:
        """Return whether a number that is published at ``sent`` [s] may be of this publisher."""
        most = self.number + _MOST_AHEAD + _MOST_RATE * max(sent - self.sent, 0.0)
        return self.number < number <= most


class TopicLosses:
    """Counts the messages of a topic that never came, also where several publishers send on it.

    A message continues the publisher whose last number is the nearest below its own, if one publisher can have sent so
    many meanwhile; else it is the first one of another publisher. Where the next message of the continued publisher
    comes after all, nothing was lost: the two are told apart from then on. What is lost last shows when another message
    comes.

    Attributes:
        lost: messages that never came.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._publishers: list[_Publisher] = []  # the last one that was heard at the end
        self._heard = -math.inf

    @property
    def publishers(self) -> int:
        """Number of publishers that were heard lately."""
        return len(self._publishers)

    def add(self, arrival: Arrival, t: float) -> None:
        """Take the next message.

        Args:
            arrival: of the message.
            t: when it came [s], on any clock that only advances.
        """
        number, sent = arrival.number, arrival.sent
        if not number:
            return
        known = [p for p in self._publishers[-_MOST_PUBLISHERS:] if p.heard >= self._heard - _FORGET_AFTER]
        self._publishers, self._heard = known, t
        before = max((p for p in known if p.may_send(number, sent)), default=None)
        missing = 0 if before is None else number - before.number - 1
        if before is None or missing:
            for k, other in enumerate(known):
                if other.missing and other.gap == number:  # it is of the publisher whose place the other one took
                    self.lost -= other.missing
                    known[k], before, missing = other._replace(missing=0), None, 0
        if before is None:
            known.append(_Publisher(number, sent, t))
            return
        known.remove(before)
        gap = (before.number + 1, missing) if missing else (before.gap, before.missing)
        known.append(_Publisher(number, sent, t, *gap))
        self.lost += missing
