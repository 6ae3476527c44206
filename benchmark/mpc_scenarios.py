"""Twelve scenarios that compare contact controllers: what each changes of a shipped closed loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contact_estimation.settings import to_mapping
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, LoopRecord, load_loop_settings

Disturbance = Callable[[float, Simulation], None]


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Attributes:
        title: what it is about, for the table.
        task: shipped closed loop it starts from.
        options: fields of :class:`LoopOptions` it sets.
        disturb: what moves the surface, called with the time [s] under the controller.
        seconds: under the controller [s].
    """

    title: str
    task: str = "plane"
    options: dict[str, Any] = field(default_factory=dict)
    disturb: Disturbance | None = None
    seconds: float = 3.0


def oscillate(hertz: float) -> Disturbance:
    """Return a plane that moves up and down by 5 mm."""

    def move(t: float, simulation: Simulation) -> None:
        surface = simulation.plant.surfaces[0]
        surface.point[2] = simulation.rest[2] + 0.02 + 0.005 * np.sin(2.0 * np.pi * hertz * t)

    return move


def tilt(degrees: float) -> Disturbance:
    """Return a plane that is turned about base y where the tool touches it when the controller starts."""
    angle = np.deg2rad(degrees)

    def turn(t: float, simulation: Simulation) -> None:
        surface = simulation.plant.surfaces[0]
        if surface.name != "tilted" and t >= 0.0:
            surface.name, surface.normal = "tilted", np.array([np.sin(angle), 0.0, np.cos(angle)])
            surface.point[:2] = simulation.plant.position[:2]

    return turn


#: Knows the stiffness and follows a moving surface. The contact IMM filter expects a contact to stay where it is.
_EKF = {"observer": "franka_plane"}
#: [Nm] constant error of the torque sensors, unknown to the estimator.
_BIAS = [0.0, 1.0, 0.5, 1.0, 0.2, 0.2, 0.0]
_OFFSET = {"torque": {**to_mapping(load_imperfections("fr3").torque), "bias": _BIAS}}

SCENARIOS = {
    "soft": Scenario("0.3 kN/m", options={"stiffness": 300.0}),
    "medium": Scenario("5 kN/m", options={"stiffness": 5e3}),
    "stiff": Scenario("100 kN/m", options={"stiffness": 1e5}),
    "uphill": Scenario("1 kN/m, tilted by -30 degrees", options=_EKF, disturb=tilt(-30.0)),
    "downhill": Scenario("1 kN/m, tilted by 30 degrees", options=_EKF, disturb=tilt(30.0)),
    "moving": Scenario("1 kN/m, moves by +-5 mm at 0.5 Hz", options=_EKF, disturb=oscillate(0.5)),
    "delay_20": Scenario("5 kN/m, estimates 20 ms late", options={"stiffness": 5e3, "delay": 0.02}),
    "delay_40": Scenario("5 kN/m, estimates 40 ms late", options={"stiffness": 5e3, "delay": 0.04}),
    "offset": Scenario(
        "5 kN/m, torque sensors off by up to 1 Nm", options={"stiffness": 5e3, "imperfections": _OFFSET}
    ),
    "friction": Scenario("wipe: 15 degrees, friction 0.4", "wipe"),
    "edge": Scenario("10 kN/m, over an edge and back", "edge", seconds=8.0),
    "pivot": Scenario("pivot about a hinge of 1 kN/m", "pivot"),
}


def run(name: str, controller: str, seed: int, gains: dict[str, Any], true_force: bool = False) -> LoopRecord:
    """Return the record of one run.

    Args:
        name: of the scenario.
        controller: word of the controller.
        seed: of everything random.
        gains: keys of the task that are replaced.
        true_force: the estimates carry the true force.
    """
    scenario = SCENARIOS[name]
    options = LoopOptions(seed=seed, controller=controller, task=gains, true_force=true_force, **scenario.options)
    return ClosedLoop(load_loop_settings(scenario.task, "fr3"), options).run(scenario.seconds, scenario.disturb)
