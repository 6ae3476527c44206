"""Rigid planar bodies that hit, stick, slide and roll: parameters and contact forces (paper 5, Fazeli et al. 2017)."""
