"""Compliant contacts: force laws and their parameters (papers 1 and 2, section 2)."""
