"""Node ``simulated_driver``: a simulated arm that presses on a compliant block, truth beside the samples."""

from __future__ import annotations

from rclpy.node import Node

from contact_estimation.drivers.registry import make_backend
from contact_estimation.robot import load_arm
from contact_estimation.ros import parameters
from contact_estimation.ros.driver import SamplePublisher, start_pacer
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import SimulatedParameters


class SimulatedDriver(Node):
    """Publishes the samples of a simulated press; ends with it."""

    def __init__(self):
        super().__init__("simulated_driver", automatically_declare_parameters_from_overrides=True)
        settings = parameters.declare(self, SimulatedParameters)
        arm = load_arm(settings.robot)
        backend = make_backend("simulated", arm, duration=settings.duration, seed=settings.seed, engine=settings.engine)
        self._pacer = start_pacer(
            self, backend, SamplePublisher(self, arm).publish, settings.wait_for_subscribers, settings.rate
        )

    def close(self) -> None:
        """Stop simulating."""
        self._pacer.stop()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(SimulatedDriver, args)
