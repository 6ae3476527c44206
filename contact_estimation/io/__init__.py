"""Recordings and bags to arrays and back."""
