"""Friction, drive gains, biases, rotor inertia and payload from recordings of free motion."""

from contact_estimation.fit.calibration.identify import identify
from contact_estimation.fit.calibration.settings import Calibration, CalibrationSettings

__all__ = ["Calibration", "CalibrationSettings", "identify"]
