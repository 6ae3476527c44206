"""Closed loops of estimator, MPC and simulated arm, and what is measured on them."""
