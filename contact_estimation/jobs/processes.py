"""Tasks on worker processes of this machine; a worker that ends takes nothing with it.

``concurrent.futures`` gives up every task once one worker was killed. Here each worker has a pipe of its own, so that
it is known which task it worked on. A new worker tries that one again; it fails alone where it ends this one, too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

from contact_estimation.jobs.executor import Outcome, attempt

T = TypeVar("T")

#: A process per core leaves no core for threads of the BLAS, and their number decides the last bit of a sum.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: How often a task is given to a worker before it counts as failed.
_ATTEMPTS = 2


class _Worker(NamedTuple):
    process: Any  # multiprocessing's SpawnProcess, which has no public type
    pipe: Connection


class Processes:
    """Runs tasks on up to ``workers`` processes, which are started when there is work and end with the last task."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, function: Callable[[T], Any], tasks: Sequence[T]) -> Iterator[Outcome]:
        """Apply ``function`` to every task, in the order of ``tasks`` as workers come free."""
        waiting, tries = deque(range(len(tasks))), Counter[int]()
        idle: list[_Worker] = []
        busy: dict[Connection, tuple[_Worker, int]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self._workers:
                    worker, number = idle.pop() if idle else _hire(function), waiting.popleft()
                    tries[number] += 1
                    busy[worker.pipe] = worker, number
                    _send(worker, (number, tasks[number]))
                for pipe in wait(list(busy)):
                    worker, number = busy.pop(pipe)  # type: ignore[call-overload]  # only connections are waited for
                    try:
                        yield worker.pipe.recv()
                        idle.append(worker)
                    except (EOFError, OSError):
                        ending = _ending(worker)
                        if tries[number] < _ATTEMPTS:
                            waiting.appendleft(number)
                        else:
                            yield Outcome(number, None, f"its worker process ended {_ATTEMPTS} times, {ending}")
        finally:
            for worker in [*idle, *(worker for worker, _ in busy.values())]:
                worker.process.terminate()
                worker.process.join()


def _hire(function: Callable[[Any], Any]) -> _Worker:
    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks in whatever state they are
    pipe, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, function), daemon=True)
    # Ctrl-C is the parent's to handle, also while a worker's modules load: it begins with the mask of this thread.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()  # so that the pipe ends with the worker
    return _Worker(process, pipe)


def _send(worker: _Worker, task: tuple[int, Any]) -> None:
    """Hand a task to a worker; one that ended meanwhile is noticed when its answer is read."""
    try:
        worker.pipe.send(task)
    except OSError:
        return


def _ending(worker: _Worker) -> str:
    """Say how a worker ended."""
    worker.process.join()
    code = worker.process.exitcode or 0
    return f"at last by {signal.Signals(-code).name}" if code < 0 else f"at last with exit code {code}"


def _work(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """Answer tasks until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            number, task = pipe.recv()
            pipe.send(attempt(function, number, task))
        except (EOFError, BrokenPipeError):  # the parent ended
            return
