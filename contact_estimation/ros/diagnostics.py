"""A node's DiagnosticArray: validity with its reason, counters, rate, cost and age of the samples."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from contact_estimation.ros.convert import header


class StreamHealth:
    """Collects, sample by sample, the report of one diagnostic period."""

    def __init__(self, name: str, hardware: str) -> None:
        self._name, self._hardware = name, hardware
        self._valid, self._reason, self._last_bad = False, "no sample yet", ""
        self._lost = 0  # samples until the last report
        self._begin()

    def _begin(self) -> None:
        self._since = time.monotonic()
        self._costs: list[float] = []
        self._ages: list[int] = []
        self._invalid = 0

    @property
    def seconds(self) -> float:
        """Time since the last report [s]."""
        return time.monotonic() - self._since

    def add(self, valid: bool, reason: str, cost: float, age_ns: int | None) -> bool:
        """Note a processed sample.

        Args:
            valid: of its estimate.
            reason: why it is not.
            cost: time in the node [s].
            age_ns: from its stamp to now [ns]; None for a recorded one.

        Returns:
            Whether the validity changed.
        """
        changed = valid != self._valid or (not valid and reason != self._reason)
        self._valid, self._reason = valid, reason
        self._costs.append(cost)
        if age_ns is not None:
            self._ages.append(age_ns)
        if not valid:
            self._invalid += 1
            self._last_bad = reason
        return changed

    def report(self, now_ns: int, counters: Counter[str], facts: dict[str, str]) -> DiagnosticArray:
        """Write the message of the period that ends now and begin the next one.

        Args:
            now_ns: its stamp [ns].
            counters: since the node's start; those ``lost`` in this period are a warning.
            facts: further lines.
        """
        seconds = max(self.seconds, 1e-9)
        values = {
            "valid": str(self._valid),
            "reason": self._reason,
            "last refusal": self._last_bad,
            "rate [Hz]": f"{len(self._costs) / seconds:.1f}",
            **_spread("cost [ms]", self._costs, 1e3),
            **_spread("age [ms]", self._ages, 1e-6),
            **facts,
            **{key: str(n) for key, n in sorted(counters.items())},
        }
        level, message = self._verdict(counters["lost"] - self._lost)
        self._lost = counters["lost"]
        status = DiagnosticStatus(
            level=level,
            name=self._name,
            message=message,
            hardware_id=self._hardware,
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        self._begin()
        return DiagnosticArray(header=header(now_ns, ""), status=[status])

    def _verdict(self, lost: int) -> tuple[bytes, str]:
        if not self._costs:
            return DiagnosticStatus.STALE, f"no sample in this period (before: {self._reason or 'valid'})"
        if not self._valid:
            return DiagnosticStatus.ERROR, self._reason
        if self._invalid:
            return (
                DiagnosticStatus.WARN,
                f"{self._invalid} of {len(self._costs)} samples not usable; last: {self._last_bad}",
            )
        if lost:
            return DiagnosticStatus.WARN, f"{lost} samples were lost before this node: it or the machine is too slow"
        return DiagnosticStatus.OK, "valid"


def _spread(name: str, values: list[float] | list[int], factor: float) -> dict[str, str]:
    if not values:
        return {}
    p50, p99, worst = np.percentile(np.array(values, float) * factor, [50, 99, 100])
    return {f"{name} p50": f"{p50:.3f}", f"{name} p99": f"{p99:.3f}", f"{name} max": f"{worst:.3f}"}
