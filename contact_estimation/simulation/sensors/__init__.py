"""Sensors, gears and friction of a simulated arm; each effect can be scaled from zero up."""

from contact_estimation.simulation.sensors.pipeline import SensorPipeline
from contact_estimation.simulation.sensors.settings import ImperfectionSettings, imperfections_of, load_imperfections

__all__ = ["ImperfectionSettings", "SensorPipeline", "imperfections_of", "load_imperfections"]
