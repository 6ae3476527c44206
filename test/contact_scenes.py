"""Short simulated recordings of an FR3 with the imperfections it is shipped with: a tool that turns about a held point,
and a tool that touches a table and a wall."""

import numpy as np

from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.settings import from_mapping
from contact_estimation.simulation.scenarios.settings import ScenarioSettings
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation

START = [0.0, -0.7853981, 0.0, -2.3561944, 0.0, 1.5707963, 0.7853981]
POINT = [-0.02, -0.125, 0.02]
STIFFNESS = 25e3


def record(surfaces, motion, point=(0.0, 0.0, 0.0), seed=0) -> tuple[Recording, list[np.ndarray]]:
    """The recording, and the surfaces' places (3,) [m]."""
    settings = {
        "title": "test",
        "robot": "fr3",
        "start": {"fr3": START},
        "controller": {"fr3": "impedance"},
        "surfaces": surfaces,
        "motion": motion,
        "tool_points": [list(point)],
        "impedance": {"stiffness": [2000.0] * 3, "rotational_stiffness": [300.0] * 3, "max_force": 80.0},
    }
    scenario = from_mapping(ScenarioSettings, settings, "test")
    simulation = Simulation(scenario, load_arm("fr3"), load_imperfections("fr3"), seed)
    samples = list(simulation.run())
    columns = {name: np.array([getattr(s, name) for s in samples]) for name in ("q", "dq", "tau")}
    stamps = np.array([s.stamp_ns for s in samples])
    recording = Recording(stamps, simulation.arm.joint_names, **columns, source="scene")
    return recording, [surface.point for surface in simulation.plant.surfaces]


def turning() -> tuple[Recording, list[np.ndarray]]:
    """The tool turns by 0.15 rad about a point 13 cm from the TCP, pressed by 30 N."""
    force = [0.0, 0.0, -30.0]
    return record(
        [{"name": "spot", "kind": "anchor", "stiffness": STIFFNESS, "damping": 80.0}],
        [
            {"duration": 1.0, "force": force},
            {"duration": 2.0, "turn": [0.15, 0.0, 0.0], "force": force},
            {"duration": 3.0, "turn": [-0.15, 0.1, 0.0], "force": force},
        ],
        POINT,
    )


def table_and_wall() -> tuple[Recording, list[np.ndarray]]:
    """The tool presses on a table 2 mm below it, slides against a wall 4 mm away, and leaves both."""
    face = {"stiffness": STIFFNESS, "friction": 0.1}
    return record(
        [
            face | {"name": "table", "offset": [0.0, 0.0, -0.002]},
            face | {"name": "wall", "normal": [-1.0, 0.0, 0.0], "offset": [0.004, 0.0, 0.0]},
        ],
        [
            {"duration": 0.5},
            {"duration": 1.0, "move": [0.0, 0.0, -0.03]},
            {"duration": 1.5, "move": [0.04, 0.0, -0.03]},
            {"duration": 1.0, "move": [0.0, 0.0, -0.03]},
            {"duration": 1.0},
            {"duration": 0.5},
        ],
    )
