"""An estimate of force that stays too low does not drive the spring to its limit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, load_loop_settings


@pytest.mark.parametrize("controller", ["mpc", "pi", "admittance"])
def test_a_force_that_is_stuck_too_low(controller):
    made = ClosedLoop(load_loop_settings("plane", "fr3"), LoopOptions(stiffness=5e3, seed=31, controller=controller))
    update, stuck = made.controller.update, np.array([0.0, 0.0, 6.0])
    made.controller.update = lambda t, o: update(t, dataclasses.replace(o, force=stuck) if t >= 1.0 else o)
    record = made.run(2.5)
    assert record.force[record.t > 1.0][:, 2].max() < 16.0
    assert record.force[record.t > 2.0][:, 2].mean() < 14.0
