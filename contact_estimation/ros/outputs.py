"""The topics of an estimator node: the whole estimate, its parts as standard messages, markers for visualisation."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from visualization_msgs.msg import MarkerArray

from contact_estimation.filters.estimate_row import EstimateRow, arm_parts, first_contact, with_numbers
from contact_estimation.filters.observer import Estimate
from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import Arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.contact_frames import broadcaster, contact_transforms
from contact_estimation.ros.drawing import marker_array
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.node_settings import EstimatorParameters
from contact_estimation.ros.serialized import SerializedMessage
from contact_estimation.viz.markers import estimate_shapes

#: Serialised estimates that are kept, one per validity, reason and words: modes, links and sizes of regions differ.
_KEPT = 256


class _Kind(NamedTuple):
    """What estimates of the same words share: the message, and what the standard topics take of a row."""

    message: SerializedMessage
    mode: str
    parts: dict[str, slice]


class EstimateOutputs:
    """Publishes estimates.

    ``~/contact_estimate`` tells of every sample, valid or not. The standard topics have no place for validity, so they
    are silent while the estimate is invalid: a consumer sees them go stale instead of a bad number. A topic without
    subscribers costs nothing.
    """

    def __init__(self, node: Node, arm: Arm, observer: str, parameters: EstimatorParameters) -> None:
        self._arm, self._observer, self.parameters = arm, observer, parameters
        self._frames = Frames.of(arm, parameters.tf_prefix)

        def publisher(kind: Any, topic: str, profile: QoSProfile = qos.SENSOR) -> Any:
            return node.create_publisher(kind, f"~/{topic}", profile)

        self._estimate = publisher(
            ContactEstimate, "contact_estimate", qos.COMPLETE if parameters.complete else qos.SENSOR
        )
        in_base, in_tcp = convert.header(0, self._frames.base), convert.header(0, self._frames.tcp)
        names = arm.joint_names
        self._standard = {
            "wrench": (
                publisher(WrenchStamped, "external_wrench"),
                SerializedMessage(lambda v: convert.wrench_stamped(in_tcp, v[:3], v[3:]), 6),
            ),
            "torques": (
                publisher(JointState, "external_joint_torques"),
                SerializedMessage(lambda v: convert.joint_state(in_base, names, effort=v), arm.n),
            ),
            "point": (
                publisher(PointStamped, "contact_point"),
                SerializedMessage(lambda v: convert.point_stamped(in_base, v), 3),
            ),
            "stiffness": (
                publisher(Vector3Stamped, "stiffness"),
                SerializedMessage(lambda v: convert.vector_stamped(in_base, v), 3),
            ),
        }
        self._state = publisher(String, "contact_state", qos.latched_for(2.5 / parameters.diagnostics_rate))
        self._markers = publisher(MarkerArray, "markers", qos.VISUALIZATION)
        self._kinds: dict[Hashable, _Kind] = {}
        self._last_key: Hashable = None
        self._last_state, self._heard = "", False
        self._tf = broadcaster(node) if parameters.contact_frames else None

    def publish(self, row: EstimateRow, stamp_ns: int, build: Callable[[], Estimate]) -> None:
        """Publish an estimate.

        Args:
            row: the estimate.
            stamp_ns: stamp of its sample [ns].
            build: returns it as an object; called where no message of its words is there yet.
        """
        key = row.valid, row.reason, row.mismatch, row.words, self.parameters.max_age
        kind = self._kinds.get(key)
        if kind is None and (row.valid or key == self._last_key):
            kind = self._kinds[key] = self._kind(row, build())
        self._last_key = key
        if kind is None:  # the reason of an invalid estimate often has numbers, and comes once
            estimate = build().marked(1e-9 * stamp_ns, False, row.reason, row.mismatch)
            self._estimate.publish(self._message(estimate, convert.header(stamp_ns, self._frames.base)))
        elif self._estimate.get_subscription_count():
            self._estimate.publish(kind.message.with_numbers(stamp_ns, row.numbers))
        if kind is not None and row.valid:
            self._publish_parts(row, stamp_ns, kind.parts)
        state = kind.mode if kind is not None and row.valid else "invalid"
        self._heard = True
        if state != self._last_state:
            self._tell_state(state)

    def _publish_parts(self, row: EstimateRow, stamp_ns: int, parts: dict[str, slice]) -> None:
        """Publish what the standard topics take of a valid estimate, where it is known."""
        for name, where in parts.items():
            publisher, message = self._standard[name]
            if publisher.get_subscription_count() and np.isfinite(numbers := row.numbers[where]).all():
                publisher.publish(message.with_numbers(stamp_ns, numbers))

    def _kind(self, row: EstimateRow, estimate: Estimate) -> _Kind:
        """Return what all estimates of the words of ``row`` share."""
        if len(self._kinds) >= _KEPT:
            self._kinds.clear()
        estimate = estimate.marked(estimate.t, row.valid, row.reason, row.mismatch)
        head = convert.header(0, self._frames.base)
        message = SerializedMessage(
            lambda numbers: self._message(with_numbers(estimate, numbers), head), len(row.numbers)
        )
        arm = arm_parts(self._arm.n)
        parts = {"wrench": slice(arm["force_tcp"].start, arm["torque_tcp"].stop), "torques": arm["tau_ext"]}
        if estimate.contacts:
            first = first_contact(estimate)
            parts |= {"point": first["point_base"], "stiffness": first["stiffness"]}
        return _Kind(message, estimate.mode, parts)

    def _message(self, estimate: Estimate, head: Header) -> ContactEstimate:
        names, limit = self._arm.joint_names, 0.0 if self.parameters.complete else self.parameters.max_age
        return convert.contact_estimate(estimate, head, self._frames.tcp, names, self._observer, limit)

    def repeat_state(self) -> None:
        """Tell the state again every diagnostics period, for it expires; ``stale`` where no sample came since."""
        self._tell_state(self._last_state if self._heard else "stale")
        self._heard = False

    def _tell_state(self, state: str) -> None:
        self._last_state = state
        self._state.publish(String(data=state))

    @property
    def seen(self) -> bool:
        """Whether anybody looks at what :meth:`draw` publishes."""
        return self._tf is not None or self._markers.get_subscription_count() > 0

    def draw(self, estimate: Estimate, stamp_ns: int) -> None:
        """Publish markers and frames of an estimate, whose sample has the stamp ``stamp_ns`` [ns]."""
        shapes = estimate_shapes(
            estimate, *self._frames[::-1], self.parameters.arrow_scale, self.parameters.arrow_hide_below
        )
        self._markers.publish(marker_array(shapes, stamp_ns))
        if self._tf is not None:
            prefix = self.parameters.tf_prefix
            self._tf.sendTransform(contact_transforms(estimate, self._frames.base, prefix, stamp_ns))
