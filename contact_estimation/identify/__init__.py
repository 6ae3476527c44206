"""Identification systems beside the filter: batch (paper 3), probing (paper 4), planar (paper 5)."""
