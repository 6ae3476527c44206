"""Recordings through observers, scored: one of them for ``replay`` and ``compare``, thousands for ``evaluate``."""
