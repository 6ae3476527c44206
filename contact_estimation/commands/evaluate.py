"""``contact-estimation evaluate``: every recording through every observer, on all cores or on a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.inputs import (
    add_observers_argument,
    add_robot_argument,
    add_topic_arguments,
    add_workers_arguments,
    executor_of,
)
from contact_estimation.commands.output import Progress, command_line, emit, text_table

if TYPE_CHECKING:
    from contact_estimation.evaluation.rows import Row

#: Up to how many lines the text has a line for each recording; the report has them all.
_MOST_LINES = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    text = "recording (rosbag2 or .npz), folder of recordings at any depth, or quoted pattern; several may be given"
    add("places", nargs="+", metavar="FOLDER|GLOB", help=text)
    add_robot_argument(parser, required=False, default="what each recording tells")
    add_topic_arguments(parser)
    add_observers_argument(parser)
    add("--sensors", metavar="NAME", help="sensor set (default the recording's, else the observer's or robot's)")
    add("--keep-going", action="store_true", help="evaluate recordings with bad samples, too")
    add_workers_arguments(parser)
    add("--report", type=Path, metavar="DIR", help="write DIR/report.html and DIR/table.csv")
    text = "folder of results of earlier runs, which are not made again (default evaluations/ of the code cache)"
    add("--results", type=Path, metavar="DIR", help=text)
    add("--fresh", action="store_true", help="evaluate everything again")


def run(args: argparse.Namespace) -> int:
    """Find, evaluate, report; 2 where every recording failed."""
    from contact_estimation.codegen.cache import open_cache
    from contact_estimation.evaluation.find import find_recordings
    from contact_estimation.evaluation.rows import evaluate_all, make_tasks
    from contact_estimation.evaluation.task import Options
    from contact_estimation.jobs.results import Results

    observers = _checked_observers(args)
    options = Options(args.robot, args.tool, args.sensors, args.joint_states, args.wrench, args.rate, args.keep_going)
    tasks = make_tasks(find_recordings(args.places), observers, options)
    executor = executor_of(args, len(tasks))
    results = Results(args.results or open_cache() / "evaluations")
    with Progress(len(tasks), "recordings") as progress:
        rows = evaluate_all(tasks, executor, results, args.fresh, progress.update)
    names = list(rows[0]["observers"])
    report = ""
    if args.report is not None:
        from contact_estimation.evaluation.report import write_reports  # matplotlib

        report = str(write_reports(args.report, rows, tasks, names, executor, command_line(args)))
    result: dict[str, Any] = {"recordings": rows, "failed": sum("error" in row for row in rows)}
    emit(args, result | ({"report": report} if report else {}), _text(rows, names, report))
    return 2 if all("robot" not in row for row in rows) else 0


def _checked_observers(args: argparse.Namespace) -> list[str]:
    """Return the observers' names; an unknown name, or that of a robot, ends the run before it begins."""
    from contact_estimation.filters.registry import load_observer_settings
    from contact_estimation.robot import load_robot_settings

    folder = load_robot_settings(args.robot).folder if args.robot else None
    for name in args.observers:
        load_observer_settings(name, folder)
    return list(args.observers)


def _text(rows: Sequence[Row], observers: Sequence[str], report: str) -> str:
    from contact_estimation.evaluation.tables import (
        distribution_table,
        header,
        labels,
        lines,
        missing_references,
        worst_rows,
    )

    failed, label = [row for row in rows if "error" in row], labels(rows)
    few = len(rows) * len(observers) <= _MOST_LINES
    parts = [
        text_table(header(), lines(rows if few else worst_rows(rows, observers[0]), observers, label)),
        *([] if few else [f"(the worst of {len(rows)} recordings; --report writes all)"]),
        text_table(*distribution_table(rows, observers)),
        *(f"error: {label[row['recording']]}: {row['error']}" for row in failed[:_MOST_LINES]),
        *missing_references(rows, label)[:_MOST_LINES],
        f"{len(rows)} recordings, {len(failed)} with errors",
        *([f"report: {report}"] if report else []),
    ]
    return "\n".join(parts)
