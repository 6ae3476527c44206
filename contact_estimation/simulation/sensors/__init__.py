"""What a real arm measures, and what stands between its motors and its links; each effect scales from zero up."""

from contact_estimation.simulation.sensors.pipeline import SensorPipeline
from contact_estimation.simulation.sensors.settings import ImperfectionSettings, imperfections_of, load_imperfections

__all__ = ["ImperfectionSettings", "SensorPipeline", "imperfections_of", "load_imperfections"]
