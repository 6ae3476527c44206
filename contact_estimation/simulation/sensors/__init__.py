"""What a real arm measures, and what stands between its motors and its links: each effect on or off, scalable and
seeded."""

from contact_estimation.simulation.sensors.pipeline import SensorPipeline
from contact_estimation.simulation.sensors.settings import ImperfectionSettings, load_imperfections

__all__ = ["ImperfectionSettings", "SensorPipeline", "load_imperfections"]
