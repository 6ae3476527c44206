"""When the guard beside the driver of a joint-torque arm acts, on a clock of its own."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from contact_estimation.control.safety import SafetySettings
from contact_estimation.drivers.backend import EquilibriumPose, Sample
from contact_estimation.robot import load_arm
from contact_estimation.ros.equilibrium_guard import EquilibriumGuard

UP = np.array([0.0, 0.0, 0.02])  # [m] 20 N at 1 kN/m


class Bench:
    """A guard on a clock of its own, and an arm that stands."""

    def __init__(self) -> None:
        self.now, self.sent, self.arm = 100.0, [], load_arm("fr3")
        self.guard = EquilibriumGuard(self.arm, SafetySettings(), 0.2, self.sent.append, lambda: self.now)
        self.q = np.array(self.arm.settings.ready)
        self.sample()

    def sample(self) -> None:
        self.guard.sample(Sample(0, self.q, np.zeros(7), np.zeros(7)))

    def at(self, offset, turn=0.0) -> EquilibriumPose:
        position, rotation = self.arm.tcp_pose(self.q)
        return EquilibriumPose(position + offset, rotation @ pin.exp3(np.array([turn, 0.0, 0.0])))

    def wait(self, seconds: float, samples: bool = True) -> str:
        """What the guard says meanwhile."""
        told = ""
        for _ in range(round(seconds / 0.05)):
            self.now += 0.05
            if samples:
                self.sample()
            told = self.guard.watch() or told
        return told


@pytest.mark.parametrize("pose", [{"offset": UP}, {"offset": 0.0 * UP, "turn": 0.1}])
def test_a_stretched_spring_of_a_silent_driver_is_released_once(pose):
    bench = Bench()
    bench.guard.equilibrium(bench.at(**pose))
    assert not bench.wait(bench.guard.silence - 0.1) and not bench.sent
    assert "left a stretched spring" in bench.wait(0.3)
    position, rotation = bench.arm.tcp_pose(bench.q)
    np.testing.assert_allclose(bench.sent[0].position, position)
    np.testing.assert_allclose(bench.sent[0].rotation, rotation)
    bench.guard.equilibrium(bench.sent[0])  # it hears itself
    bench.q = bench.q + 0.05  # a hand moves the arm: nobody commands it any more
    assert not bench.wait(5.0) and len(bench.sent) == 1
    bench.guard.equilibrium(bench.at(UP))  # another driver
    assert bench.wait(1.0) and len(bench.sent) == 2


def test_a_driver_that_released_the_arm_may_be_silent():
    bench = Bench()
    bench.guard.equilibrium(bench.at(UP))
    bench.guard.equilibrium(bench.at(0.0 * UP))
    bench.q = bench.q + 0.05  # the surface pushes it away
    assert not bench.guard.watches and not bench.wait(5.0) and not bench.sent


def test_a_driver_that_commands_is_left_alone():
    bench = Bench()
    for _ in range(50):
        bench.guard.equilibrium(bench.at(UP))
        assert not bench.wait(bench.guard.silence - 0.1)
    assert not bench.sent


def test_patient_limits_make_a_patient_guard():
    """A driver with such limits keeps an equilibrium for as long while it lives."""
    assert Bench().guard.silence == pytest.approx(0.6)
    limits = SafetySettings(stop_after=3.0)
    assert EquilibriumGuard(load_arm("fr3"), limits, 0.2, print).silence > 3.0


def test_without_a_sample_of_the_arm_it_says_that_it_cannot():
    bench = Bench()
    bench.guard.equilibrium(bench.at(UP))
    assert "nothing can be sent" in bench.wait(1.0, samples=False) and not bench.sent
    bench.sample()
    assert "is where the arm is" in bench.wait(0.1) and len(bench.sent) == 1
