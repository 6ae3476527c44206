"""``contact-estimation compare``: several observers on one recording, compared with the reference, in one report."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_estimation.commands.inputs import (
    RECORDED,
    add_observers_argument,
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
    tell_invalid,
    text_table,
    warn,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser)
    add_robot_argument(parser, required=False, default=RECORDED)
    add_observers_argument(parser)
    add = parser.add_argument
    add("--sensors", metavar="NAME", help="sensor set (default the recording's, else the observer's or robot's)")
    text = "write force, stiffness, TCP and contact point of all observers as one HTML page"
    add("--out", type=Path, metavar="FILE", help=text)


def run(args: argparse.Namespace) -> int:
    """Replay, compare, report."""
    from contact_estimation.codegen import show_progress
    from contact_estimation.evaluation.scoring import (
        evaluate_recording,
        make_curves,
        open_streams,
        survey_for,
        write_report,
    )
    from contact_estimation.io.survey import missing_words
    from contact_estimation.viz.summary import summary_table

    check_output_file(args.out, [args.recording])
    show_progress()
    arm = load_robot(args, [args.recording])
    recording = open_for(arm, args)
    streams = open_streams(arm, args.observers, args.sensors or recording.head.sensors)
    duration, problems, missing = survey_for(recording, streams.values())
    curves = make_curves(streams) if args.out is not None else {}
    sinks = {name: [own.append] for name, own in curves.items()}
    found = evaluate_recording(arm, recording, streams, observer_progress(len(recording)), sinks=sinks)
    if args.out is not None:
        write_report(args.out, found, curves, f"Observers on {args.recording.name}", command_line(args))
    source = recording.head.source
    figures = {name: scores.figures() for name, scores in found.scores.items()}
    about = {"source": source, "samples": len(recording), "duration_s": duration, "problems": problems}
    label = found.reference.label if found.reference else None
    result = {"recording": about, "robot": arm.name, "reference": label, "observers": figures}
    nothing = f"none, the measured force is {missing_words(missing)}" if missing else "none"
    compared = found.reference.description if found.reference else nothing
    lines = [f"{source}: reference {compared}", text_table(*summary_table(figures))]
    emit(args, result | {"report": args.out and str(args.out)}, "\n".join(lines + [str(args.out)] * bool(args.out)))
    invalid = tell_invalid({name: scores.reasons.counts() for name, scores in found.scores.items()})
    for told in [*problems, *([invalid] if invalid else [])]:
        warn(args, told)
    return 0
