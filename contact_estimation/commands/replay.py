"""``contact-estimation replay``: observers on a recording, without ROS."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    load_robot,
    open_for,
)
from contact_estimation.commands.output import (
    check_output_file,
    command_line,
    emit,
    observer_progress,
    prepare_folder,
    tell_invalid,
    text_table,
)
from contact_estimation.exceptions import RecordingError
from contact_estimation.plugins import DEFAULT_OBSERVER

if TYPE_CHECKING:
    from contact_estimation.evaluation.scoring import Evaluated
    from contact_estimation.filters.stream import SampleStream
    from contact_estimation.io.estimate_file import EstimateFile
    from contact_estimation.io.recording import Samples

#: Counters of a stream that tell of a bad recording. A doubt of the monitor, a spike and an observer that settles mark
#: estimates as invalid and stop nothing.
_BAD = (
    *("wrong_size", "not_finite", "torque_limit", "velocity_limit", "position_jump"),
    *("duplicate", "out_of_order", "backward", "gap", "clock_step"),
)
#: Share of invalid estimates beyond which nothing is written.
_MOST_INVALID = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser)
    add_robot_argument(parser, required=False, default=RECORDED)
    add = parser.add_argument
    text = f"observer: a name in config/observers; repeatable (default {DEFAULT_OBSERVER})"
    add("--observer", action="append", default=[], metavar="NAME", help=text)
    text = "observer settings of your own, e.g. written by 'fit'; repeatable"
    add("--config", action="append", default=[], type=Path, metavar="FILE", help=text)
    text = (
        "sensor set: a name in config/sensors, or a YAML file (default the one the recording names, as simulated ones "
        "do, else the observer's, else the robot's)"
    )
    add("--sensors", metavar="NAME", help=text)
    text = "write the estimates as .npz; with several observers one file each, FILE's name extended by the observer's"
    add("--export", type=Path, metavar="FILE", help=text)
    add("--report", type=Path, metavar="DIR", help="write DIR/report.html with pictures and figures")
    text = "replay a recording with bad samples; estimates they touch are marked invalid"
    add("--keep-going", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Replay and report."""
    from contact_estimation.codegen import show_progress
    from contact_estimation.evaluation.scoring import (
        evaluate_recording,
        make_curves,
        open_streams,
        survey_for,
        timed,
        write_report,
    )

    show_progress()
    seconds: dict[str, float] = {}
    with timed(seconds, "open"):
        arm = load_robot(args, [args.recording])
    with timed(seconds, "read"):
        samples = open_for(arm, args)
        head = samples.head
    with timed(seconds, "open"):
        observers = [*args.observer, *map(str, args.config)] or [DEFAULT_OBSERVER]
        streams = open_streams(arm, observers, args.sensors or head.sensors)
    duration, problems, _ = survey_for(samples, streams.values())
    if problems and not args.keep_going:
        raise RecordingError(
            f"{head.source}: {'; '.join(problems)}. Mend the recording, or replay it all the "
            "same with --keep-going: estimates that bad samples touch are then marked invalid."
        )
    if args.report is not None:
        prepare_folder(args.report)
    files = _files(args.export, list(streams))
    for file in files.values():
        check_output_file(file.path, [args.recording], "--export", ".npz")
    curves = make_curves(streams) if args.report is not None else {}
    sinks = {name: [sink[name].append for sink in (files, curves) if name in sink] for name in streams}
    found = evaluate_recording(arm, samples, streams, observer_progress(len(samples)), seconds, sinks)
    invalid = {name: scores.reasons.counts() for name, scores in found.scores.items()}
    figures = {name: scores.figures() for name, scores in found.scores.items()}
    reasons = tell_invalid(invalid)
    if not args.keep_going and any(
        _refused(stream, invalid[name].total(), len(samples)) for name, stream in streams.items()
    ):
        raise RecordingError(f"{head.source}: {reasons}. Nothing was written; --keep-going writes it all the same.")
    with timed(seconds, "export"):
        exports = _export(files, samples)
    report = ""
    if args.report is not None:
        title = f"Replay of {args.recording.name}"
        report = str(write_report(args.report / "report.html", found, curves, title, command_line(args)))
    about = {"source": head.source, "samples": len(samples), "duration_s": duration}
    result = {
        "recording": about | {"problems": problems},
        "robot": arm.name,
        "exports": exports,
        "seconds": seconds,
        "observers": {
            name: figures[name] | {"counters": dict(stream.counters), "backend": stream.observer.backend}
            for name, stream in streams.items()
        },
    } | ({"report": report} if report else {})
    emit(args, result, _text(about, found, figures, report, exports))
    if reasons:
        print(f"contact-estimation replay: {reasons}", file=sys.stderr)
    return 0


def _refused(stream: SampleStream, invalid: int, samples: int) -> bool:
    """Whether the estimates are not worth writing: bad samples, a diverged observer, or hardly a valid one."""
    return any(stream.counters[name] for name in (*_BAD, "diverged")) or invalid > _MOST_INVALID * samples


def _files(path: Path | None, observers: list[str]) -> dict[str, EstimateFile]:
    """Return the archive of each observer's estimates; none without ``--export``."""
    from contact_estimation.io.estimate_file import EstimateFile

    if path is None:
        return {}
    several = len(observers) > 1
    paths = {name: path.with_name(f"{path.stem}_{name}{path.suffix}") if several else path for name in observers}
    return {name: EstimateFile(name, own) for name, own in paths.items()}


def _export(files: dict[str, EstimateFile], recording: Samples) -> list[str]:
    """Save the archives; returns their paths."""
    try:
        return [str(file.save(recording)) for file in files.values()]
    except OSError as error:
        names = ", ".join(str(file.path) for file in files.values())
        raise RecordingError(f"{names} cannot be written ({error.strerror}); choose another --export") from error


def _text(
    about: dict[str, Any], found: Evaluated, figures: dict[str, dict[str, Any]], report: str, exports: list[str]
) -> str:
    from contact_estimation.viz.summary import summary_table

    lines = [
        f"{about['source']}: {about['samples']} samples, {about['duration_s']:.1f} s",
        *([f"reference {found.reference.description}"] if found.reference and found.reference.missing else []),
        text_table(*summary_table(figures)),
        *(f"{name}: model and data disagree: {words}" for name, own in figures.items() for words in own["mismatch"]),
        *([f"report: {report}"] if report else []),
        *(f"estimates: {path}" for path in exports),
    ]
    return "\n".join(lines)
