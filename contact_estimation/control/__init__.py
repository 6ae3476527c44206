"""Impedance law, MPC problem and solvers, safety limits."""
