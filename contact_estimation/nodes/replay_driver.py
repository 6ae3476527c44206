"""Node ``replay_driver``: a recording on ``joint_states``, in real time or faster."""

from __future__ import annotations

from rclpy.node import Node

from contact_estimation.drivers.registry import make_backend
from contact_estimation.robot import load_arm
from contact_estimation.ros import parameters
from contact_estimation.ros.driver import SamplePublisher, start_pacer
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import ReplayParameters


class ReplayDriver(Node):
    """Publishes the samples of a recording; ends with it."""

    def __init__(self):
        super().__init__("replay_driver", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, ReplayParameters)
        arm = load_arm(settings.robot)
        backend = make_backend("replay", arm, recording=settings.recording, loop=settings.loop)
        self._pacer = start_pacer(self, backend, SamplePublisher(self, arm).publish, settings.wait_for_subscribers,
                                  settings.rate, settings.keep_stamps)

    def close(self) -> None:
        """Stop playing."""
        self._pacer.stop()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(ReplayDriver, args)
