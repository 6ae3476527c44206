"""The topics of an estimator node: the whole estimate, its parts as standard messages, markers for visualisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from contact_estimation.filters.observer import Estimate
from contact_estimation.msg import ContactEstimate
from contact_estimation.robot import Arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.contact_frames import broadcaster, contact_transforms
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.markers import marker_array
from contact_estimation.ros.node_settings import EstimatorParameters
from contact_estimation.viz.markers import estimate_shapes


class EstimateOutputs:
    """Publishes estimates.

    ``~/contact_estimate`` tells of every sample, valid or not. The standard topics have no place for validity, so they
    are silent while the estimate is invalid: a consumer sees them go stale instead of a bad number.
    """

    def __init__(self, node: Node, arm: Arm, observer: str, parameters: EstimatorParameters) -> None:
        self._arm, self._observer, self.parameters = arm, observer, parameters
        self._frames = Frames.of(arm, parameters.tf_prefix)

        def publisher(kind: Any, topic: str, profile: QoSProfile = qos.SENSOR) -> Callable[[Any], None]:
            publish: Callable[[Any], None] = node.create_publisher(kind, f"~/{topic}", profile).publish
            return publish

        self._estimate = publisher(
            ContactEstimate, "contact_estimate", qos.COMPLETE if parameters.complete else qos.SENSOR
        )
        self._wrench = publisher(WrenchStamped, "external_wrench")
        self._torques = publisher(JointState, "external_joint_torques")
        self._point = publisher(PointStamped, "contact_point")
        self._stiffness = publisher(Vector3Stamped, "stiffness")
        self._state = publisher(String, "contact_state", qos.latched_for(2.5 / parameters.diagnostics_rate))
        self._markers = publisher(MarkerArray, "markers", qos.VISUALIZATION)
        self._last_state, self._heard = "", False
        self._drawn_ns = 0
        self._tf = broadcaster(node) if parameters.contact_frames else None

    def publish(self, estimate: Estimate, stamp_ns: int) -> None:
        """Publish the estimate of the sample stamped ``stamp_ns`` [ns]."""
        in_base = convert.header(stamp_ns, self._frames.base)
        self._estimate(
            convert.contact_estimate(estimate, in_base, self._frames.tcp, self._arm.joint_names, self._observer)
        )
        if estimate.valid:
            in_tcp = convert.header(stamp_ns, self._frames.tcp)
            self._wrench(convert.wrench_stamped(in_tcp, estimate.force_tcp, estimate.torque_tcp))
            self._torques(convert.joint_state(in_base, self._arm.joint_names, effort=estimate.tau_ext))
            for contact in estimate.contacts[:1]:
                if np.isfinite(contact.point_base).all():
                    self._point(convert.point_stamped(in_base, contact.point_base))
                if np.isfinite(contact.stiffness).all():
                    self._stiffness(convert.vector_stamped(in_base, contact.stiffness))
        state = estimate.mode if estimate.valid else "invalid"
        self._heard = True
        if state != self._last_state:
            self._tell_state(state)
        self._draw(estimate, stamp_ns)

    def repeat_state(self) -> None:
        """Tell the state again every diagnostics period, for it expires; ``stale`` where no sample came since."""
        self._tell_state(self._last_state if self._heard else "stale")
        self._heard = False

    def _tell_state(self, state: str) -> None:
        self._last_state = state
        self._state(String(data=state))

    def _draw(self, estimate: Estimate, stamp_ns: int) -> None:
        """Markers at the rate for people, measured in the samples' own time."""
        if 0 <= stamp_ns - self._drawn_ns < 1e9 / self.parameters.visualization_rate:
            return
        self._drawn_ns = stamp_ns
        shapes = estimate_shapes(
            estimate, *self._frames[::-1], self.parameters.arrow_scale, self.parameters.arrow_hide_below
        )
        self._markers(marker_array(shapes, stamp_ns))
        if self._tf is not None:
            prefix = self.parameters.tf_prefix
            self._tf.sendTransform(contact_transforms(estimate, self._frames.base, prefix, stamp_ns))
