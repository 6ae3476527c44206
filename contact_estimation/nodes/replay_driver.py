"""Node ``replay_driver``: a recording on ``joint_states``; the driver's node with ``driver: replay``."""

from __future__ import annotations

from contact_estimation.nodes.driver import Driver
from contact_estimation.ros.executor import run


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(lambda: Driver("replay_driver", {"driver": "replay", "configure_at_start": True}), args)
