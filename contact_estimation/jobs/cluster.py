"""Tasks on a Dask cluster: for more recordings than one machine replays overnight.

The workers run the same function on the same tasks. They need this package, in this version, and the files the tasks
name under the same paths. A worker that ends takes nothing with it: Dask gives its tasks to others, as often as the
scheduler's ``distributed.scheduler.allowed-failures`` says, and then reports them as failed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from contact_estimation.exceptions import JobError
from contact_estimation.jobs.executor import Outcome, attempt
from contact_estimation.jobs.version import code_version

T = TypeVar("T")

_CONNECT = 10.0  # [s] until a scheduler that does not answer counts as absent


class Cluster:
    """Runs tasks on the workers of a Dask scheduler.

    Args:
        address: of the scheduler, such as ``tcp://lab:8786``.

    Raises:
        JobError: Dask is not installed, the scheduler does not answer, has no worker, or its workers run other code.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ModuleNotFoundError as error:
            raise JobError(
                f"--cluster {address} needs Dask, which is not installed (no module '{error.name}'); "
                "'pip install dask distributed' installs it, and without --cluster the processes of this machine do"
            ) from error
        self._address = address
        self._connect = functools.partial(Client, address, timeout=_CONNECT, set_as_default=False)
        try:
            client = self._connect()
        except (OSError, TimeoutError, ValueError) as error:
            raise JobError(
                f"--cluster {address}: no Dask scheduler answers there ({error}); start one with 'dask scheduler' and "
                "workers with 'dask worker ADDRESS'"
            ) from error
        with client:
            self._require_same_code(client)

    def _require_same_code(self, client: Any) -> None:
        """Refuse workers that would give other results."""
        try:
            versions: dict[str, str] = client.run(code_version)
        except Exception as error:  # whatever a worker's import raised
            raise JobError(
                f"--cluster {self._address}: a worker cannot import this package ({type(error).__name__}: {error}); "
                "install it there"
            ) from error
        if not versions:
            raise JobError(
                f"--cluster {self._address}: the scheduler has no worker; start one with 'dask worker {self._address}'"
            )
        others = {worker: version for worker, version in versions.items() if version != code_version()}
        if others:
            worker, version = next(iter(others.items()))
            raise JobError(
                f"--cluster {self._address}: {len(others)} of {len(versions)} workers run other code ({worker}: "
                f"{version}, here {code_version()}); install the same version of this package there"
            )

    def run(self, function: Callable[[T], Any], tasks: Sequence[T]) -> Iterator[Outcome]:
        """Apply ``function`` to every task.

        Args:
            function: of one task; processes import it by its name.
            tasks: its arguments.
        """
        from distributed import as_completed

        with self._connect() as client:
            futures = {client.submit(attempt, function, k, task, pure=False): k for k, task in enumerate(tasks)}
            for future in as_completed(futures, loop=client.loop):
                if future.status == "finished":
                    yield Outcome(*future.result())
                else:
                    error = future.exception()
                    yield Outcome(futures[future], None, f"{type(error).__name__}: {error}")
                future.release()
