"""Signal plausibility, in front of every observer: what a sample claims is compared with what physics allows."""

from contact_estimation.filters.plausibility.monitor import SignalMonitor

__all__ = ["SignalMonitor"]
