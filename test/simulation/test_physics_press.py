"""The press on the physics engine offers what the demonstration's press offers."""

import dataclasses

import numpy as np

from contact_estimation.robot import load_arm
from contact_estimation.simulation.physics_press import PhysicsPress
from contact_estimation.simulation.press import PressSample


def test_same_interface_and_a_press_in_it():
    press = PhysicsPress(load_arm("ur16e"), seed=1)
    samples = [press.step() for _ in range(1250)]
    assert press.period == 0.002 and samples[-1].stamp_ns == 2_500_000_000
    assert {field.name for field in dataclasses.fields(PressSample)} <= set(vars(samples[0]))
    assert not samples[0].in_contact and samples[-1].in_contact
    assert samples[-1].force_tcp[2] < -10 and np.allclose(samples[-1].stiffness, [0, 0, 26000])
