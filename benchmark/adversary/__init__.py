"""Recordings of worlds that share no code with the estimators, clean and with planted faults."""
