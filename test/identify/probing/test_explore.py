"""Autonomous exploration."""

from dataclasses import replace

import numpy as np
import pytest

from contact_estimation.exceptions import IdentificationError
from contact_estimation.identify.probing.active import Stroke, candidates
from contact_estimation.identify.probing.excitation import ExcitationSettings
from contact_estimation.identify.probing.explore import Explorer, ExploreSettings
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.identify.probing.spatial import homogeneous
from contact_estimation.robot import load_arm
from contact_estimation.studies.probing.exploration import ArmTool, SimulatedTool, explore_many, explore_one
from contact_estimation.studies.probing.sensorless import ARMS
from contact_estimation.studies.probing.simulated_probe import SpatialProbe


def test_an_arm_explores_until_every_interval_is_below_target():
    result = explore_many(ProbingSettings(), 2, seed=5)
    assert result["reached_pct"] == 100.0 and result["within_pct"] == 100.0
    assert result["max_force"] < 55.0 and result["seconds_max"] < 15.0


def test_what_was_found_is_a_compliant_contact():
    probe, rng, posture = SpatialProbe(ProbingSettings()), np.random.default_rng(0), ARMS["ur16e"].posture
    truth, guess = probe.draw(1, np.random.default_rng(5))
    result = explore_one(load_arm("ur16e"), posture, truth, guess, 0, probe, ExploreSettings(), rng)
    assert np.linalg.norm(result.contact.stiffness) == pytest.approx(truth.stiffness[0], abs=500.0)
    assert result.contact.stiffness @ truth.normal[0] / np.linalg.norm(result.contact.stiffness) > np.cos(0.01)


def test_tighter_targets_take_longer():
    rough = explore_many(
        ProbingSettings(), 1, seed=5, goal=ExploreSettings(tip=3e-3, friction=1e-2, stiffness=600.0, offset=4e-3)
    )
    tight = explore_many(ProbingSettings(), 1, seed=5, goal=ExploreSettings(tip=5e-4, offset=1e-3))
    assert tight["strokes"] > rough["strokes"]


class WoundUp(SimulatedTool):
    """An arm whose tool follows sideways only after 8 mm, as a compliant one does whose probe sticks."""

    asked = done = np.zeros(2)

    def move(self, twist, dt):
        self.asked = self.asked + dt * twist[:2]
        gap = self.asked - self.done
        moved = gap * max(1.0 - 8e-3 / max(np.linalg.norm(gap), 1e-12), 0.0)
        self.done = self.done + moved
        return super().move(np.concatenate([moved / dt, twist[2:]]), dt)


@pytest.mark.parametrize(("gain", "least", "most"), [(8.0, 0.8, 1.2), (0.0, 0.0, 0.7)])
def test_a_stroke_keeps_its_length_where_friction_winds_up_the_arm(gain, least, most):
    probe, arm, posture = SpatialProbe(ProbingSettings()), load_arm("ur16e"), ARMS["ur16e"].posture
    truth, guess = probe.draw(1, np.random.default_rng(5))
    tool = WoundUp(arm, posture, guess.pose(0), truth, probe, np.random.default_rng(0))
    explorer = Explorer(tool, guess.tips[0, 0], guess.surface[0], ProbingSettings(), ExploreSettings(lag_gain=gain))
    explorer.touch()
    for heading in (0.0, np.pi):
        before = explorer._place()
        explorer._perform(Stroke(heading, np.zeros(3)))
    length = ExcitationSettings().speed * (ExcitationSettings().stroke_time - 0.24)
    assert least * length < np.linalg.norm(explorer._place() - before) < most * length


class Stiffening(SimulatedTool):
    """A surface that becomes 1.7 times as stiff after 2 s: a filter that does not notice is confidently wrong."""

    elapsed = 0.0

    def sense(self, twist, dt):
        before, self.elapsed = self.elapsed, self.elapsed + dt
        if before < 2.0 <= self.elapsed:
            self._truth = replace(self._truth, stiffness=1.7 * self._truth.stiffness)
        return super().sense(twist, dt)


def test_an_exploration_whose_predictions_fail_begins_anew():
    probe, arm, posture = SpatialProbe(ProbingSettings()), load_arm("ur16e"), ARMS["ur16e"].posture
    truth, guess = probe.draw(1, np.random.default_rng(5))
    tool = Stiffening(arm, posture, guess.pose(0), truth, probe, np.random.default_rng(0))
    result = Explorer(tool, guess.tips[0, 0], guess.surface[0], ProbingSettings()).run()
    assert result.restarts >= 1 and result.reached
    assert np.linalg.norm(result.contact.stiffness) == pytest.approx(1.7 * truth.stiffness[0], abs=500.0)


class InTheAir(ArmTool):
    """An arm that touches nothing."""

    def sense(self, twist, dt):
        return np.zeros(6)


def test_a_missing_surface_is_reported():
    arm = load_arm("ur16e")
    position, rotation = arm.tcp_pose(np.array(ARMS["ur16e"].posture))
    tool = InTheAir(arm, ARMS["ur16e"].posture, homogeneous(rotation, position))
    goal = ExploreSettings(approach_distance=0.005)
    explorer = Explorer(tool, [0.0, 0.0, 0.15], np.eye(3), ProbingSettings(), goal)
    with pytest.raises(IdentificationError, match="no contact within"):
        explorer.run()


def test_the_arm_moves_the_tool_as_asked_and_refuses_its_limits():
    arm = load_arm("ur16e")
    position, rotation = arm.tcp_pose(np.array(ARMS["ur16e"].posture))
    tool = ArmTool(arm, ARMS["ur16e"].posture, homogeneous(rotation, position))
    twist = np.array([0.02, -0.01, 0.03, 0.1, 0.0, -0.2])
    assert np.allclose(tool.move(twist, 1e-3), twist, atol=1e-9)
    assert np.allclose(tool.pose[:3, 3] - position, 1e-3 * twist[:3], atol=1e-6)
    with pytest.raises(IdentificationError, match=r"singular|limit"):
        for _ in range(2000):
            tool.move(np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), 2e-3)


def test_strokes_stay_within_reach():
    at_edge = candidates(np.array([0.05, 0.0]), 0.025, 0.05, 0.3)
    assert {round(np.cos(s.heading)) for s in at_edge} == {-1}
    assert len(candidates(np.zeros(2), 0.025, 0.05, 0.3)) == 8
