"""Monte Carlo studies of probing (paper 4): simulated probes, scores, ablations, and the figures redrawn."""
