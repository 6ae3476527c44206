"""Timers of loops that command an arm or report on it: they run on although the computer's clock is set.

An ordinary timer of a node waits on the clock of its stamps. Set back by ten seconds, as NTP may do, it is silent for
ten seconds: the last equilibrium would stay in force, and the deadman would not be checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node


def steady_timer(node: Node, period: float, callback: Callable[[], None], simulated: bool = False) -> Any:
    """Return a timer on the monotonic clock.

    Args:
        node: that spins it.
        period: [s].
        callback: called every period.
        simulated: where the node has ``use_sim_time``, the timer follows ``/clock``.
    """
    follows = simulated and node.get_parameter("use_sim_time").value
    return node.create_timer(period, callback, clock=None if follows else Clock(clock_type=ClockType.STEADY_TIME))
