"""The coupled arm and environment in discrete time (papers 1 and 2, section 3)."""

from contact_estimation.dynamics.coupled import CoupledStep, symmetric

__all__ = ["CoupledStep", "symmetric"]
