"""The executor protocol: one function applied to many tasks, wherever that happens.

Contract: every task has exactly one outcome. A task whose function raises, or whose worker ends, does not end the
others. The function and the tasks are picklable, and the outcome does not depend on where or in which order they run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from contact_estimation.exceptions import ContactEstimationError, JobError

T = TypeVar("T")


class Outcome(NamedTuple):
    """What became of one task."""

    number: int  # of the task
    value: Any  # what the function returned; None where it failed
    error: str = ""  # why it failed; "" where it did not


class Executor(Protocol):
    """Runs tasks."""

    def run(self, function: Callable[[T], Any], tasks: Sequence[T]) -> Iterator[Outcome]:
        """Apply ``function`` to every task.

        Args:
            function: of one task; processes import it by its name.
            tasks: its arguments.

        Yields:
            One outcome per task, as they come.
        """
        ...


def attempt(function: Callable[[T], Any], number: int, task: T) -> Outcome:
    """Apply ``function`` to a task; an exception becomes the outcome's error.

    Args:
        function: of one task.
        number: of the task.
        task: argument of the function.
    """
    try:
        return Outcome(number, function(task))
    except ContactEstimationError as error:
        return Outcome(number, None, str(error))
    except Exception as error:  # of whatever kind: the other tasks go on
        return Outcome(number, None, f"{type(error).__name__}: {error}")


class Serial:
    """Runs tasks in this process, one after the other: for a debugger, and where a process is not worth its start."""

    def run(self, function: Callable[[T], Any], tasks: Sequence[T]) -> Iterator[Outcome]:
        """Apply ``function`` to every task, in order.

        Args:
            function: of one task.
            tasks: its arguments.
        """
        for number, task in enumerate(tasks):
            yield attempt(function, number, task)


def open_executor(workers: int | None = None, cluster: str | None = None) -> Executor:
    """Choose where tasks run.

    Args:
        workers: processes on this machine; None: one per core; 0: this process.
        cluster: address of a Dask scheduler, which wins over ``workers``.

    Raises:
        JobError: no number of workers, Dask is not installed, or the scheduler cannot be used.
    """
    if cluster is not None:
        from contact_estimation.jobs.cluster import Cluster

        return Cluster(cluster)
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    if workers < 0:
        raise JobError(f"--workers is {workers}; give 1 or more processes, or 0 to work in this one")
    if workers == 0:
        return Serial()
    from contact_estimation.jobs.processes import Processes

    return Processes(workers)


def gather(outcomes: Iterable[Outcome], progress: Callable[[int], object] | None = None) -> list[Any]:
    """Collect the values of all tasks in their order.

    Args:
        outcomes: of an executor.
        progress: called with the number of tasks that are done.

    Raises:
        JobError: a task failed.
    """
    values: dict[int, Any] = {}
    for outcome in outcomes:
        if outcome.error:
            raise JobError(f"task {outcome.number}: {outcome.error}")
        values[outcome.number] = outcome.value
        if progress is not None:
            progress(len(values))
    return [values[number] for number in sorted(values)]
