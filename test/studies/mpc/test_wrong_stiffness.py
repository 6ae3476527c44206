"""A stiffness that the observer tells wrongly does not make the plan ring."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from contact_estimation.control.controller import ControllerState, Observation
from contact_estimation.control.mpc.apparent_stiffness import ApparentStiffness
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, LoopRecord, load_loop_settings


def loop(**options) -> ClosedLoop:
    return ClosedLoop(load_loop_settings("plane", "fr3"), LoopOptions(**options))


def swings(record: LoopRecord) -> tuple[float, float]:
    """Return the least and largest force [N] after the first second."""
    pressed = record.force[record.t > 1.0][:, 2]
    return float(pressed.min()), float(pressed.max())


@pytest.mark.parametrize("stiffness, seed", [(5e4, 83), (1e5, 84)])
def test_an_observer_that_expects_a_soft_surface_on_a_hard_one(stiffness, seed):
    record = loop(stiffness=stiffness, seed=seed, observer="franka_plane").run(3.0)
    least, most = swings(record)
    assert least > 8.5 and most < 11.5 and not record.reasons


@pytest.mark.parametrize("factor", [3.0, 100.0])
def test_a_stiffness_that_is_told_too_high(factor):
    made = loop(stiffness=5e3, seed=31)
    update = made.controller.update

    def falsified(t: float, observation: Observation):
        told = {name: np.concatenate([factor * phi[:3], phi[3:]]) for name, phi in observation.contacts.items()}
        return update(t, dataclasses.replace(observation, contacts=told) if t >= 1.0 else observation)

    made.controller.update = falsified
    record = made.run(3.0)
    least, most = swings(record)
    assert least > 8.5 and most < 11.5 and not record.reasons


def test_a_loop_that_rings_all_the_same_is_held(monkeypatch):
    monkeypatch.setattr(ApparentStiffness, "bound", lambda self, stiffness: stiffness)
    made = loop(stiffness=1e5, seed=83, observer="franka_plane")
    record = made.run(3.0)
    assert made.controller.state is ControllerState.HOLDING and "swings" in record.reasons[-1]
    assert swings(record)[1] < 12.0


def test_a_tool_that_bounces_as_it_arrives_is_not_held():
    record = loop(stiffness=1e5, seed=2).run(1.5)
    assert not record.reasons
    least, most = swings(record)
    assert least > 8.5 and most < 11.5
