"""Offline and online identification: batch (paper 3), probing (paper 4), planar (paper 5)."""
