"""Many recordings through observers: one row each, kept on disk, so that a second run does only what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from contact_estimation.evaluation.task import Options, Task, evaluate, hash_of_files, keys_of
from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.jobs import Executor, Outcome
from contact_estimation.jobs.results import Results

#: ``recording`` (path), what is known about it, ``observers`` (name -> figures), and ``error`` where something failed.
Row = dict[str, Any]


def make_tasks(paths: Sequence[Path], observers: Sequence[str], options: Options) -> list[Task]:
    """Make the task of each recording.

    Args:
        paths: of the recordings.
        observers: names or YAML files.
        options: common to all.

    Raises:
        ConfigError: two observers would have one name in the rows.
    """
    shown = [_short(name) for name in observers]
    if len(set(shown)) < len(shown):
        raise ConfigError(f"two of the observers {', '.join(observers)} have one name; rename one of the files")
    names = tuple(str(Path(name).resolve()) if Path(name).is_file() else name for name in observers)
    files = hash_of_files(names, options)
    return [Task(path.resolve(), names, options, files) for path in paths]


def evaluate_all(
    tasks: Sequence[Task],
    executor: Executor,
    results: Results,
    fresh: bool = False,
    progress: Callable[[int], object] | None = None,
) -> list[Row]:
    """Evaluate recordings, each in whatever process is free.

    Args:
        tasks: one per recording.
        executor: where the work is done.
        results: what earlier runs found; what this one finds is added as it comes.
        fresh: whether to do everything anew.
        progress: called with the number of recordings that are done.

    Returns:
        The rows in the order of the tasks.
    """
    table = _Table(tasks, results, fresh)
    done = len(tasks) - len(table.missing)
    if progress is not None:
        progress(done)
    for count, outcome in enumerate(executor.run(evaluate, table.missing), done + 1):
        table.add(outcome)
        if progress is not None:
            progress(count)
    return table.rows()


class _Table:
    """What is known of each recording and observer, and what is missing."""

    def __init__(self, tasks: Sequence[Task], results: Results, fresh: bool) -> None:
        self._tasks, self._results = tasks, results
        self._found: list[dict[str, dict[str, Any]]] = [{} for _ in tasks]
        self._keys: list[dict[str, str]] = []
        self.missing: list[Task] = []
        self._places: list[int] = []  # of the missing ones among the tasks
        for place, task in enumerate(tasks):
            self._keys.append(self._known(place, task, fresh))
            left = tuple(name for name in task.observers if name not in self._found[place])
            if left:
                self.missing.append(dataclasses.replace(task, observers=left))
                self._places.append(place)

    def _known(self, place: int, task: Task, fresh: bool) -> dict[str, str]:
        """Look up what earlier runs found; return the keys of the recording's results."""
        try:
            keys = keys_of(task)
        except RecordingError as error:
            self._found[place] = {name: {"error": str(error)} for name in task.observers}
            return {}
        for name, key in keys.items() if not fresh else ():
            if (known := self._results.get(key)) is not None:
                self._found[place][name] = known
        return keys

    def add(self, outcome: Outcome) -> None:
        """Take the outcome of a missing one and keep it; an error is not kept, the next run may not have it."""
        place, task = self._places[outcome.number], self.missing[outcome.number]
        value: dict[str, Any] = {"error": outcome.error} if outcome.error else outcome.value
        for name in task.observers:
            one = {"about": value["about"], "figures": value["observers"][name]} if "about" in value else value
            self._found[place][name] = one
            if "error" not in one and "error" not in one["figures"]:
                self._results.put(self._keys[place][name], one)

    def rows(self) -> list[Row]:
        return [_row(task, found) for task, found in zip(self._tasks, self._found)]


def _row(task: Task, found: dict[str, dict[str, Any]]) -> Row:
    """Put what is known of one recording together."""
    row: Row = {"recording": str(task.path)}
    figures: dict[str, dict[str, Any]] = {}
    for name in task.observers:
        row |= found[name].get("about", {})
        figures[_short(name)] = found[name].get("figures") or {"error": found[name]["error"]}
    errors = dict.fromkeys(one["error"] for one in figures.values() if "error" in one)
    return row | {"observers": figures} | ({"error": "; ".join(errors)} if errors else {})


def _short(observer: str) -> str:
    """Name an observer of a file is known by."""
    return Path(observer).stem if observer.endswith((".yaml", ".yml")) else observer
