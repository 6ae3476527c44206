"""``contact-estimation compare``: several observers on one recording, beside the reference, in one report."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from contact_estimation.commands import replay
from contact_estimation.commands.inputs import add_recording_arguments, add_robot_argument, open_for, robot_words
from contact_estimation.commands.output import add_json_flag, emit, text_table
from contact_estimation.exceptions import RecordingError

_DEFAULT = "contact_imm,ekf,momentum"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser)
    add_robot_argument(parser)
    add = parser.add_argument
    text = f"observers, separated by commas: names in config/observers, or YAML files (default {_DEFAULT})"
    add("--observers", default=_DEFAULT, metavar="A,B,C", help=text)
    add("--sensors", metavar="NAME", help="sensor set (default the recording's, else the observer's or robot's)")
    text = "write force, stiffness, TCP and contact point of all observers as one HTML page"
    add("--out", type=Path, metavar="FILE", help=text)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Replay, compare, report."""
    from contact_estimation.codegen import show_progress
    from contact_estimation.robot import load_arm
    from contact_estimation.viz.summary import summary_table

    show_progress()
    arm = load_arm(args.robot, args.tool)
    recording = open_for(arm, args)
    args.observer, args.config = [name.strip() for name in args.observers.split(",") if name.strip()], []
    logs = replay.run_observers(recording, replay.open_streams(arm, args, recording), {})
    figures, reference = replay.summaries(arm, recording, logs)
    if args.out is not None:
        from contact_estimation.viz.report import replay_report  # matplotlib

        words = ["contact-estimation", "compare", str(args.recording), *robot_words(args)]
        command = shlex.join([*words, "--observers", args.observers, "--out", str(args.out)])
        title = f"Observers on {args.recording.name}"
        try:
            replay_report(args.out, arm, recording, logs, reference, title, command=command)
        except OSError as error:
            raise RecordingError(f"{args.out} cannot be written ({error.strerror}); choose another --out") from error
    about = {"source": recording.source, "samples": len(recording), "duration_s": recording.duration}
    label = reference.label if reference else None
    result = {"recording": about, "robot": arm.name, "reference": label, "observers": figures}
    lines = [f"{recording.source}: reference {label or 'none'}", text_table(*summary_table(figures))]
    emit(args, result | {"report": args.out and str(args.out)}, "\n".join(lines + [str(args.out)] * bool(args.out)))
    return 0
