"""Names of an arm's frames on the graph, with one prefix per arm."""

from __future__ import annotations

from typing import NamedTuple

from rclpy.node import Node

from contact_estimation.robot import Arm


class Frames(NamedTuple):
    """Frame names in headers.

    Attributes:
        base: frame of poses, points and stiffness.
        tcp: frame of the wrench.
    """

    base: str
    tcp: str

    @staticmethod
    def of(arm: Arm, prefix: str) -> Frames:
        """Frames of ``arm`` behind the parameter ``tf_prefix``."""
        return Frames(prefix + arm.base_frame, prefix + arm.tcp_frame)


def status_name(node: Node, what: str = "") -> str:
    """Name of a diagnostic status: with the node's namespace, so that two arms differ."""
    return str(node.get_fully_qualified_name()).lstrip("/") + (f": {what}" if what else "")
