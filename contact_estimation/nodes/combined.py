"""Node ``combined``: a driver and an estimator in one process; samples reach the observer without a DDS hop."""

from __future__ import annotations

from typing import cast

from contact_estimation.drivers.backend import Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.exceptions import ConfigError
from contact_estimation.nodes.estimator import Estimator
from contact_estimation.ros.driver import SamplePublisher, start_pacer
from contact_estimation.ros.executor import run
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.node_settings import CombinedParameters


class Combined(Estimator):
    """An estimator fed by a backend of its own; the samples are published, too."""

    def __init__(self) -> None:
        super().__init__("estimator", cls=CombinedParameters, subscribe=False)
        settings, arm = cast("CombinedParameters", self.settings), self.stream.arm
        publisher = SamplePublisher(self, arm, Frames.of(arm, settings.tf_prefix), settings.complete, settings.clock)

        def deliver(sample: Sample, stamp_ns: int) -> None:
            self.take(stamp_ns, sample.q, sample.dq, sample.tau)
            publisher.publish(sample, stamp_ns)

        backend = make_backend(settings.driver, arm, settings.backend_options(), shared=settings.shared())
        if getattr(backend, "live", False):
            raise ConfigError(
                f"node combined runs drivers without hardware behind them; start node driver for '{settings.driver}'"
            )
        self._pacer = start_pacer(self, backend, deliver, settings, publisher.drain)

    def close(self) -> None:
        """Stop the driver."""
        self._pacer.stop()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Combined, args)
