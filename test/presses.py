"""Simulated presses for tests: the package's own coupled dynamics, from the first sample in contact."""

from simulated_press import PressSettings, PressSimulation

START = [0.9, -1.0, 2.2, -2.8, -1.5, 0.5]


def press(arm, count: int = 1500, start=START, seed: int = 0, **changes) -> list:
    """``count`` samples of a press that starts at the surface of an elastic block, so that the estimators' model is the
    truth's."""
    settings = {"start": list(start), "clearance": 0.0, "depth": 0.004, "damping": 0.0, "substeps": 4}
    simulation = PressSimulation(arm, PressSettings(**(settings | changes)), seed)
    return [simulation.step() for _ in range(count)]
