"""``contact-estimation identify probing``: identify contact geometry and dynamics from a probing motion (paper 4)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from contact_estimation.commands.inputs import add_workers_arguments, executor_of
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, command_line, emit, emit_verdict
from contact_estimation.exceptions import ConfigError
from contact_estimation.settings import from_yaml

if TYPE_CHECKING:
    from contact_estimation.identify.probing.settings import ProbingSettings


#: Option -> the example that it belongs to.
_EXAMPLES = {
    **dict.fromkeys(("ablation", "figures"), "planar"),
    **dict.fromkeys(("fork", "sensorless", "explore"), "spatial"),
}
#: Option -> options that it has no use for.
_UNUSED = {
    "recording": ("fork", "sensorless", "explore", "ablation", "figures", "report"),
    "explore": ("fork", "sensorless", "report"),
    "ablation": ("figures", "report"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--example",
        choices=("planar", "spatial"),
        default="planar",
        help="the paper's experiment in the plane, or its extension to space (default planar)",
    )
    parser.add_argument(
        "--runs", type=int, default=100, help="number of random surfaces and rough starts (default 100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of surfaces, starts and noise (default 0)")
    parser.add_argument("--settings", type=Path, help="YAML with keys of the probing settings")
    parser.add_argument(
        "--recording",
        type=Path,
        help="identify from a recording instead: .npz with t, pose, twist, wrench (see docs/identify_probing.md)",
    )
    parser.add_argument("--fork", type=float, metavar="METRES", help="spatial: two tips this far apart instead of one")
    parser.add_argument(
        "--sensorless", metavar="ARM", help="spatial: wrench from the joint torque of an arm (ur16e, fr3)"
    )
    parser.add_argument(
        "--explore", action="store_true", help="spatial: explore autonomously until every interval is below its target"
    )
    parser.add_argument(
        "--ablation", action="store_true", help="planar: ablation, remove each part of the filter in turn"
    )
    add_workers_arguments(parser)
    parser.add_argument("--figures", type=Path, metavar="DIR", help="planar: redraw figures 4 to 7 of one run into DIR")
    parser.add_argument("--report", type=Path, metavar="HTML", help="write a report with scores and figures")


def run(args: argparse.Namespace) -> int:
    """Run the experiment or the recording; returns the exit code."""
    from contact_estimation.identify.probing.settings import ProbingSettings

    check_number("--runs", args.runs, least=1)
    check_number("--fork", args.fork, "m", above=0, most=1, hint="the distance of two tips; leave it out for one tip")
    settings = from_yaml(ProbingSettings, args.settings) if args.settings else ProbingSettings()
    _check(args)
    if args.recording:
        return _recording(args, settings)
    if args.explore:
        return _explore(args, settings)
    return _experiment(args, settings)


def _check(args: argparse.Namespace) -> None:
    """Refuse options that what was asked for has no use for.

    Raises:
        ConfigError: names them.
    """
    given = [flag for flag in ("recording", "report", *_EXAMPLES) if getattr(args, flag) not in (None, False)]
    for flag in given:
        if args.example != _EXAMPLES.get(flag, args.example):
            raise ConfigError(f"--{flag} belongs to --example {_EXAMPLES[flag]}")
        if foreign := [f"--{other}" for other in _UNUSED.get(flag, ()) if other in given]:
            raise ConfigError(f"--{flag} takes no {', '.join(foreign)}: leave one of them out")


def _experiment(args: argparse.Namespace, settings: ProbingSettings) -> int:
    from contact_estimation.studies.probing import ablation, experiment, report
    from contact_estimation.studies.probing.score import score

    tips = (-0.5 * args.fork, 0.5 * args.fork) if args.fork else (0.0,)
    job = experiment.Experiment(args.example, args.runs, args.seed, settings=settings, tips=tips)
    executor = executor_of(args, args.runs)
    if args.ablation:
        results = {}
        for name in ablation.SCENARIOS:
            with Progress(len(ablation.VARIANTS), name) as progress:
                results[name] = experiment.ablate(job, name, progress.update, executor)
        emit(args, results, "\n\n".join(f"{name}\n{report.table(rows)}" for name, rows in results.items()))
        return 0
    sensor = None
    if args.sensorless:
        from contact_estimation.studies.probing.sensorless import sensorless_experiment

        job, data, sensor = sensorless_experiment(job, args.sensorless)
    else:
        data = experiment.simulate(job)
    with Progress(args.runs, "runs") as progress:
        traces = experiment.run(job, data, progress=progress.update, sensor=sensor, executor=executor)
    result = {"example": args.example, "seed": args.seed, **score(traces, job.evaluated_at)}
    figures = {}
    if args.example == "planar" and (args.figures or args.report):
        figures = report.paper_figures(traces[0], data.recording.slip[:, 0], job.excitation)
    if args.figures:
        result["figures"] = [str(path) for path in report.write_figures(figures, args.figures)]
    if args.report:
        result["report"] = str(report.page({args.example: result}, figures, command_line(args)).write(args.report))
    emit(args, result, report.summary(result))
    return 0


def _recording(args: argparse.Namespace, settings: ProbingSettings) -> int:
    from contact_estimation.identify.probing.offline import identify_recording

    result, verdict = identify_recording(args.recording, args.example, settings)
    columns = (result[name] for name in ("names", "mean", "interval_total", "units"))
    rows = [
        f"  {name:<20} {mean:12.5g}  {low:.5g} to {high:.5g} {unit}" for name, mean, (low, high), unit in zip(*columns)
    ]
    head = f"{args.recording}: {result['used']} of {result['samples']} samples used (mean, 95 % interval)"
    return emit_verdict(args, result, verdict, "\n".join([head, *rows, f"  NIS per component {result['nis']:.2f} (1)"]))


def _explore(args: argparse.Namespace, settings: ProbingSettings) -> int:
    from contact_estimation.studies.probing.exploration import explore_many, summary

    with Progress(args.runs, "explorations") as progress:
        result = explore_many(settings, args.runs, args.seed, progress.update, executor=executor_of(args, args.runs))
    emit(args, result, summary(result))
    return 0
