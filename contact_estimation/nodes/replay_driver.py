"""Node ``replay_driver``: a recording on ``joint_states``; the driver's node with ``driver: replay``.

Without the parameter ``robot`` it takes the robot and the tool that the recording names.
"""

from __future__ import annotations

from contact_estimation.nodes.driver import Driver
from contact_estimation.ros.executor import run


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    defaults = {"driver": "replay", "robot": "", "configure_at_start": True}
    return run(lambda: Driver("replay_driver", defaults), args)
