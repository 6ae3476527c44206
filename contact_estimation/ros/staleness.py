"""Which estimates are current: one rule for the driver's deadman and for the MPC.

The age of an estimate is the age of its sample, not of its arrival. It must come from this robot and from the same
observer as the estimates before. A valid estimate from the past, of another arm or of a second estimator on the same
topic does not reset the deadman.
"""

from __future__ import annotations

from typing import NamedTuple

from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import Arm
from contact_estimation.ros import convert
from contact_estimation.ros.frames import Frames


class Judgement(NamedTuple):
    """Verdict on an estimate.

    Attributes:
        age: of its sample [s].
        problem: why it must not be used, an empty string if it may be.
    """

    age: float
    problem: str


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
        self._robot, self._base = arm.name, Frames.of(arm, tf_prefix).base
        self._max_age = max_age
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
        return Judgement(age, self._problem(message, age))

    def _problem(self, message: ContactEstimate, age: float) -> str:
        if not message.valid:
            return message.reason or "marked as not valid"
        if message.header.frame_id != self._base or tuple(message.joint_names) not in self._joints:
            return (
                f"the estimate is in frame '{message.header.frame_id}' with joints {', '.join(message.joint_names)}; "
                f"robot '{self._robot}' has '{self._base}': correct the topic of the estimates, or tf_prefix"
            )
        if self.observer and message.observer != self.observer:
            return (
                f"the estimate is of observer '{message.observer}', the ones before were of '{self.observer}': "
                "one estimator per topic"
            )
        if not abs(age) <= self._max_age:
            return f"stale: {1e3 * age:.0f} ms old, at most {1e3 * self._max_age:.0f} ms"
        return ""
