"""Observers: reset, step, estimate."""
