"""Reproductions of the papers and Monte Carlo studies; only commands and benchmarks import this layer."""
