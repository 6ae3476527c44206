"""The wrist sensor of a contact controller: newest wrench in, force without the sensor's offset out.

The sensorless estimate tells the offset, best in free space, and contradicts a sensor at fault
(:mod:`contact_estimation.filters.wrist_sensor`). The filter therefore also runs before the task begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node

from contact_estimation.control.controller import Observation
from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.wrist_sensor import WristForce
from contact_estimation.robot import Arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.serialized import decode


class WristSensor:
    """Replaces the force of observations by that of a wrist sensor.

    Args:
        node: that subscribes.
        topic: of the sensor's ``WrenchStamped``, of the environment ON the robot in the TCP frame.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._node, self._topic = node, topic
        self._wrist = WristForce()
        self._latest: WrenchStamped | None = None
        self._unread = f"nothing on '{topic}' yet"  # why there is no newest message
        node.create_subscription(WrenchStamped, topic, self._on_wrench, qos.SENSOR, raw=True)

    def configure(self, arm: Arm, tf_prefix: str, max_age: float) -> None:
        """Begin with an unknown offset.

        Args:
            arm: the robot.
            tf_prefix: in front of its frames.
            max_age: largest time [s] between the samples of sensor and estimate.
        """
        self._arm, self._frame, self._max_age = arm, Frames.of(arm, tf_prefix).tcp, max_age
        self._wrist.reset()

    def corrected(self, observation: Observation, estimate: Estimate, stamp_ns: int) -> Observation:
        """Return the observation with the sensor's force, or an invalid one that says why there is none.

        Args:
            observation: a valid one.
            estimate: that it was made of.
            stamp_ns: stamp of the estimate's sample [ns].
        """
        message = self._latest
        if message is None:
            return replace(observation, valid=False, reason=f"wrist sensor: {self._unread}")
        sensed = convert.xyz(message.wrench.force)
        problem = self._problem(message, sensed, stamp_ns)
        if problem:
            self._wrist.interrupt()
            return replace(observation, valid=False, reason=f"wrist sensor: {problem}")
        wrench = np.concatenate([sensed, convert.xyz(message.wrench.torque)])
        read_at = 1e-9 * convert.stamp_ns(message.header.stamp)
        reading = self._wrist.update(1e-9 * stamp_ns, read_at, wrench, estimate)
        if reading.note:
            self._node.get_logger().warning(f"'{self._topic}' {reading.note}")
        if reading.problem:
            return replace(observation, valid=False, reason=f"wrist sensor: '{self._topic}' {reading.problem}")
        _, rotation = self._arm.tcp_pose(estimate.q)
        return observation.with_sensor(rotation @ reading.force, reading.drift)

    def _problem(self, message: WrenchStamped, sensed: np.ndarray, stamp_ns: int) -> str:
        if message.header.frame_id != self._frame:
            return (
                f"'{self._topic}' is in frame '{message.header.frame_id}', expected '{self._frame}'; "
                "transform it, or correct the parameter 'wrench'"
            )
        if not np.isfinite(sensed).all():
            return f"'{self._topic}' is not finite"
        apart = 1e-9 * abs(convert.stamp_ns(message.header.stamp) - stamp_ns)
        if apart > self._max_age:
            return f"{1e3 * apart:.0f} ms from the estimate's sample, at most {1e3 * self._max_age:.0f} ms"
        return ""

    def _on_wrench(self, raw: bytes) -> None:
        try:
            self._latest = message = decode(raw, WrenchStamped, f"'{self._topic}'")
        except RecordingError as error:
            self._latest, self._unread = None, str(error)
            return
        force = convert.xyz(message.wrench.force)
        if np.isfinite(force).all():
            self._wrist.add(1e-9 * convert.stamp_ns(message.header.stamp), force)
