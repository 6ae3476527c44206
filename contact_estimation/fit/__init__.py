"""Offline fitting of contact parameters to recordings."""
