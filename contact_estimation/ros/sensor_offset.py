"""Tell a backend whose own control law follows its wrist sensor the offset of that sensor, from the estimates."""

from __future__ import annotations

import dataclasses
import threading

from contact_estimation.drivers.backend import Backend, Sample
from contact_estimation.exceptions import RecordingError
from contact_estimation.filters.wrist_sensor import WristForce
from contact_estimation.msg import ContactEstimate
from contact_estimation.ros import convert
from contact_estimation.ros.serialized import decode

#: [s] An offset changes slowly, and to decode an estimate costs: one is looked at per this time.
PERIOD = 0.04
#: [s] Most that the samples of reading and estimate may be apart.
APART = 0.02


class SensorOffset:
    """Learns the offset of a backend's wrist sensor as a contact controller does.

    Args:
        backend: that takes it as ``force_offset``.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend, self._wrist = backend, WristForce()
        self._lock = threading.Lock()  # samples come from another thread than estimates
        self.reset()

    def reset(self) -> None:
        """Begin with an unknown offset."""
        with self._lock:
            self._wrist.reset()
            self._latest: tuple[float, Sample] | None = None
            self._next = 0.0
            self._tell()

    def sample(self, sample: Sample, stamp_ns: int) -> None:
        """Take every sample of the arm.

        Args:
            sample: with the wrench of the sensor, or without one, which changes nothing.
            stamp_ns: its time [ns].
        """
        if sample.wrench_tcp is None:
            return
        t = 1e-9 * stamp_ns
        with self._lock:
            if self._latest is not None and t < self._latest[0]:
                self._next = 0.0  # the clock was set back
            self._latest = t, sample
            self._wrist.add(t, sample.wrench_tcp[:3])

    def estimate(self, raw: bytes) -> None:
        """Take a valid estimate, serialised; most of them are not looked at."""
        if self._latest is None or self._latest[0] < self._next:
            return
        try:
            message = decode(raw, ContactEstimate, "an estimate")
        except RecordingError:  # whoever judges estimates tells it
            return
        t = 1e-9 * convert.stamp_ns(message.header.stamp)
        with self._lock:
            read_at, sample = self._latest
            self._next = read_at + PERIOD
            if sample.wrench_tcp is None or abs(read_at - t) > APART:
                return
            # Where the arm is the sample says: a message of another estimator may have no positions.
            estimate = dataclasses.replace(convert.from_contact_estimate(message), q=sample.q)
            self._wrist.update(t, read_at, sample.wrench_tcp, estimate)
            if self._wrist.learnt:
                self._tell()

    def _tell(self) -> None:
        self._backend.force_offset = self._wrist.offset.copy()  # type: ignore[attr-defined]
