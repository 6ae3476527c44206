"""Node ``combined``: a driver and an estimator in one process; samples reach the observer without a DDS hop."""

from __future__ import annotations

from contact_estimation.drivers.registry import make_backend
from contact_estimation.nodes.estimator import Estimator
from contact_estimation.ros.driver import SamplePublisher, start_pacer
from contact_estimation.ros.executor import run
from contact_estimation.ros.node_settings import CombinedParameters


class Combined(Estimator):
    """An estimator fed by a backend of its own; the samples are published too, for whoever watches."""

    def __init__(self):
        super().__init__("estimator", cls=CombinedParameters, subscribe=False)
        settings, arm = self.settings, self.stream.arm
        publisher = SamplePublisher(self, arm)

        def deliver(sample, stamp_ns):
            self.take(stamp_ns, sample.q, sample.dq, sample.tau)
            publisher.publish(sample, stamp_ns)

        backend = make_backend(settings.driver, arm, recording=settings.recording, loop=settings.loop,
                               duration=settings.duration, seed=settings.seed, engine=settings.engine)
        self._pacer = start_pacer(
            self, backend, deliver, settings.wait_for_subscribers, settings.rate, settings.keep_stamps
        )

    def close(self) -> None:
        """Stop the driver."""
        self._pacer.stop()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(Combined, args)
