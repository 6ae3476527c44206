"""Simulated recordings with planted parameters (finger, anchor) and the experiments of paper 3 on them."""
