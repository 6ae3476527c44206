"""Many independent tasks: worker processes on this machine or a Dask cluster, and results that outlive the run."""

from contact_estimation.jobs.executor import Executor, Outcome, gather, open_executor

__all__ = ["Executor", "Outcome", "gather", "open_executor"]
