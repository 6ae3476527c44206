"""Node ``simulated_driver``: a simulated arm, with its truth; the driver's node with ``driver: simulated``."""

from __future__ import annotations

from contact_estimation.nodes.driver import Driver
from contact_estimation.ros.executor import run


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(lambda: Driver("simulated_driver", {"driver": "simulated", "configure_at_start": True}), args)
