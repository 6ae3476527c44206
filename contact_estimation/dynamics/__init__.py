"""The coupled arm and environment in discrete time (papers 1 and 2, section 3)."""
