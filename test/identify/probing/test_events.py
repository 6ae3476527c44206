"""Algorithm 1's triggers."""

import numpy as np

from contact_estimation.identify.probing.events import SlideEvents


def test_parameters_may_change_once_per_step_in_either_direction():
    events = SlideEvents(step=0.005, speed_min=0.006, distance_min=0.0)
    changes = 0
    for k in range(100):
        events.record(np.array([0.03 if k < 50 else -0.03]), 0.04)
        changes += events.parameters_may_change()
    assert changes == 20  # every fifth sample of 1.2 mm exceeds 5 mm


def test_forces_count_only_while_sliding_and_after_presliding():
    events = SlideEvents(step=1.0, speed_min=0.006, distance_min=0.003)
    assert not events.record(np.array([0.005]), 1.0)  # too slow, however far
    used = [events.record(np.array([0.03]), 0.04) for _ in range(4)]
    assert used == [False, False, True, True]
    assert not events.record(np.array([-0.03]), 0.04)  # reversed without a stop seen


def test_a_gentle_turn_in_space_is_no_reversal():
    events = SlideEvents(step=1.0, speed_min=0.006, distance_min=0.001)
    events.record(np.array([0.03, 0.0, 0.0]), 0.04)
    assert events.record(np.array([0.02, 0.02, 0.0]), 0.04)
    assert not events.record(np.array([-0.02, 0.001, 0.0]), 0.01)
