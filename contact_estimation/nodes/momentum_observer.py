"""Node ``momentum_observer``: the model-free baseline; the node of the estimator with another observer."""

from __future__ import annotations

from contact_estimation.nodes.estimator import Estimator
from contact_estimation.ros.executor import run


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run(lambda: Estimator("momentum_observer", {"observer": "momentum_manufacturer"}), args)
