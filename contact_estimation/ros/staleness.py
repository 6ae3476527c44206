"""Which estimates are current: one rule for the driver's deadman and for the MPC.

The age of an estimate is the age of its sample, not of its arrival. A message may carry a shorter limit of its own. It
must come from this robot, with the same tool, and from the same observer as the estimates before. A valid estimate from
the past, of another arm or of a second estimator on the same topic does not reset the deadman.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from contact_estimation.exceptions import RecordingError
from contact_estimation.io.cdr import Cursor
from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import Arm
from contact_estimation.ros import convert
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.serialized import decode, stamp_ns


class Judgement(NamedTuple):
    """Verdict on an estimate.

    Attributes:
        age: of its sample [s].
        problem: why it must not be used, an empty string if it may be.
    """

    age: float
    problem: str


class _Words(NamedTuple):
    """What the words of an estimate say: validity, reason, limit of its age, frames, joints, observer.

    Attributes:
        parts: offset [bytes] and content of the words that decide.
        observer: whose estimate it is.
        problem: why such an estimate must not be used, an empty string if it may be.
        max_age: [s] the message's own limit, 0 for none.
    """

    parts: tuple[tuple[int, bytes], ...]
    observer: str
    problem: str
    max_age: float

    def stand_in(self, raw: bytes) -> bool:
        """Whether a serialised message has the same words."""
        return all(raw.startswith(content, at) for at, content in self.parts)


class EstimateRule:
    """Judges estimates of one robot.

    Args:
        arm: the robot.
        tf_prefix: in front of its frames.
        max_age: [s] age beyond which an estimate is stale; the same into the future, because clocks may differ.

    Attributes:
        observer: whose estimates count: the one that :meth:`choose` was given; an empty string: anybody's.
    """

    def __init__(self, arm: Arm, tf_prefix: str, max_age: float) -> None:
        self._joints = {tuple(arm.joint_names), tuple(tf_prefix + name for name in arm.joint_names)}
        self._robot, self._frames = arm.name, Frames.of(arm, tf_prefix)
        self._max_age = max_age
        self._words = _Words((), "", "", 0.0)
        self.observer = ""

    def choose(self, observer: str) -> None:
        """Accept this observer only from now on; an empty string: any observer."""
        self.observer = observer

    def judge(self, message: ContactEstimate, now_ns: int) -> Judgement:
        """Judge a message.

        Args:
            message: the estimate.
            now_ns: the present on the clock of the samples' stamps [ns].
        """
        age = 1e-9 * (now_ns - convert.stamp_ns(message.header.stamp))
        return self._judgement(age, message.observer, self._problem(message), message.max_age)

    def judge_serialized(self, raw: bytes, now_ns: int) -> tuple[Judgement, str]:
        """Judge a serialised message; return the judgement and the name of its observer.

        Estimates of the same words differ in stamp and numbers only, and only the first of them is decoded.
        """
        if not self._words.parts or not self._words.stand_in(raw):
            try:
                message = decode(raw, ContactEstimate, "of the estimates")
            except RecordingError as error:
                return Judgement(0.0, str(error)), ""
            self._words = _Words(_words_of(raw), message.observer, self._problem(message), message.max_age)
        words = self._words
        age = 1e-9 * (now_ns - stamp_ns(raw))
        return self._judgement(age, words.observer, words.problem, words.max_age), words.observer

    def _judgement(self, age: float, observer: str, problem: str, max_age: float) -> Judgement:
        """Judge an estimate whose words have a ``problem`` or none, and a limit ``max_age`` [s] or 0."""
        if not problem and self.observer and observer != self.observer:
            problem = (
                f"the estimate is of observer '{observer}', the ones before were of '{self.observer}': "
                "one estimator per topic"
            )
        limit = min(self._max_age, max_age) if max_age > 0 else self._max_age
        if not problem and not abs(age) <= limit:
            problem = f"stale: {1e3 * age:.0f} ms old, at most {1e3 * limit:.0f} ms"
        return Judgement(age, problem)

    def _problem(self, message: ContactEstimate) -> str:
        """Say what is wrong with an estimate's words."""
        if not message.valid:
            return message.reason or "marked as not valid"
        base, tcp = self._frames.base, self._frames.tcp
        if message.header.frame_id != base or tuple(message.joint_names) not in self._joints:
            return (
                f"the estimate is in frame '{message.header.frame_id}' with joints {', '.join(message.joint_names)}; "
                f"robot '{self._robot}' has '{base}': correct the topic of the estimates, or tf_prefix"
            )
        if message.tcp_frame not in ("", tcp):  # an estimator of one's own may leave it out
            return (
                f"the estimate is of the TCP '{message.tcp_frame}', here the TCP is '{tcp}': "
                "give the estimator and this node the same tool"
            )
        return ""


def _words_of(raw: bytes) -> tuple[tuple[int, bytes], ...]:
    """Return offset and content of what decides: frame, observer, validity, reason, age limit, TCP frame, joints.

    Nothing is returned where they are not found: in big-endian messages, and those of another version of the message.
    """
    try:
        return _spans(raw) if raw[1] == 1 else ()
    except (UnicodeDecodeError, struct.error, IndexError):
        return ()


def _spans(raw: bytes) -> tuple[tuple[int, bytes], ...]:
    cursor = Cursor(raw)
    begin = cursor.at
    cursor.string()  # frame_id
    cursor.string()  # observer
    cursor.at += 1  # valid
    cursor.string()  # reason
    cursor.doubles(1)  # max_age
    spans = [(begin, cursor.at)]
    cursor.doubles(3)
    cursor.align(4)
    begin = cursor.at
    cursor.string()  # tcp_frame
    spans.append((begin, cursor.at))
    cursor.doubles(6 + 9)
    cursor.align(4)
    begin = cursor.at
    for _ in range(cursor.uint32()):
        cursor.string()
    spans.append((begin, cursor.at))
    edges = [edge for gap in cursor.gaps for edge in gap]  # the bytes of padding are arbitrary
    cuts = ([begin, *(edge for edge in edges if begin <= edge <= end), end] for begin, end in spans)
    return tuple((a, raw[a:b]) for cut in cuts for a, b in zip(cut[::2], cut[1::2]))
