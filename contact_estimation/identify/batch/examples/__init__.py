"""Simulated recordings with planted parameters: the finger of section VI and the anchor of section III-B."""
