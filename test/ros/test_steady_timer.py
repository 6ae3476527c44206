"""Timers of loops that command."""

from __future__ import annotations

import pytest
import rclpy
from rclpy.clock import ClockType
from rclpy.parameter import Parameter

from contact_estimation.ros.steady_timer import steady_timer


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("use_sim_time", [False, True])
def test_they_wait_on_the_monotonic_clock_or_on_a_simulation(simulated, use_sim_time):
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        given = [Parameter("use_sim_time", value=use_sim_time)]
        node = rclpy.create_node("timers", context=context, parameter_overrides=given)
        timer = steady_timer(node, 0.01, lambda: None, simulated)
        follows = simulated and use_sim_time
        assert timer.clock.clock_type is (ClockType.ROS_TIME if follows else ClockType.STEADY_TIME)
        node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)
