"""Scenarios: an arm, surfaces and a motion by name; one YAML each in ``config/tasks``."""

from contact_estimation.simulation.scenarios.settings import ScenarioSettings, load_scenario, scenario_names

__all__ = ["ScenarioSettings", "load_scenario", "scenario_names"]
