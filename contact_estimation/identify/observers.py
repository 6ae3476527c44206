"""Observers of the identification systems, made known to the registry; importing this module costs nothing else."""

from contact_estimation.filters.kinds import KINDS

KINDS.setdefault("probing",
                 ("contact_estimation.identify.probing.observer", "ProbingObserverSettings", "ProbingObserver"))
