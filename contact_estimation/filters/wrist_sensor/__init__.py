"""Wrist sensor beside a sensorless estimate: its offset is learnt, and a sensor at fault is not used."""

from contact_estimation.filters.wrist_sensor.force import WristForce, WristReading

__all__ = ["WristForce", "WristReading"]
