"""Simulated arms and surfaces with ground truth."""
