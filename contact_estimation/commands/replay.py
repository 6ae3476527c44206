"""``contact-estimation replay``: observers on a recording, without ROS."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

from contact_estimation.commands.output import Progress, add_json_flag, emit, text_table
from contact_estimation.exceptions import RecordingError

#: What is replayed when neither --observer nor --config is given.
DEFAULT_OBSERVER = "contact_bank"


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of every verb that reads a recording."""
    parser.add_argument("recording", type=Path, metavar="RECORDING",
                        help="rosbag2 (folder, .mcap or .db3) or .npz archive")
    parser.add_argument("--joint-states", metavar="TOPIC",
                        help="JointState topic of a bag (default /joint_states, or the only one)")
    parser.add_argument("--wrench", metavar="TOPIC", help="WrenchStamped topic of a bag, measured force on the robot "
                        "(default /force_torque_sensor_broadcaster/wrench where it is there)")
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of an .npz archive without stamps")


def open_for(arm, args):
    """The recording named by ``args`` with the joints, in the order, of ``arm`` (None: as recorded).

    Raises:
        RecordingError: it cannot be read, or does not fit the arm.
    """
    from contact_estimation.io.open import open_recording

    if args.rate is not None and not args.rate > 0:
        raise RecordingError(f"--rate must be greater than 0 Hz, found {args.rate:g}")
    fitted = {} if arm is None else {"base_frame": arm.base_frame, "rotation": lambda q: arm.tcp_poses(q)[1]}
    return open_recording(args.recording, arm and arm.joint_names, joint_states=args.joint_states, wrench=args.wrench,
                          rate=args.rate, **fitted)


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    add_recording_arguments(parser)
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument("--observer", action="append", default=[], metavar="NAME",
                        help=f"observer: a name in config/observers; repeatable (default {DEFAULT_OBSERVER})")
    parser.add_argument("--config", action="append", default=[], type=Path, metavar="FILE",
                        help="observer settings of your own, e.g. written by 'fit'; repeatable")
    parser.add_argument("--sensors", metavar="NAME", help="sensor set: a name in config/sensors, or a YAML file "
                        "(default the one the recording names, as simulated ones do, else the observer's, "
                        "else the robot's)")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write the estimates as .npz; with several "
                        "observers one file each, FILE's name extended by the observer's")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write DIR/report.html with pictures and figures")
    parser.add_argument("--keep-going", action="store_true", help="replay a recording with bad samples; estimates they "
                        "touch are marked invalid")
    add_json_flag(parser)


def run(args) -> int:
    """Replay and report."""
    from contact_estimation.filters.registry import open_stream
    from contact_estimation.io.replay import replay
    from contact_estimation.robot import load_arm

    start = time.perf_counter()
    arm = load_arm(args.robot)
    seconds = {"open": time.perf_counter() - start}
    start = time.perf_counter()
    recording = open_for(arm, args)
    seconds["read"] = time.perf_counter() - start
    start, streams = time.perf_counter(), {}
    for name in [*args.observer, *map(str, args.config)] or [DEFAULT_OBSERVER]:
        stream = open_stream(arm, name, args.sensors or recording.sensors or None)
        if stream.observer.name in streams:
            raise RecordingError(f"two observers are named '{stream.observer.name}'; rename one of the files")
        streams[stream.observer.name] = stream
    seconds["open"] += time.perf_counter() - start
    problems = recording.problems(min(stream.sensors.max_gap for stream in streams.values()))
    if problems and not args.keep_going:
        raise RecordingError(f"{recording.source}: {'; '.join(problems)}. Mend the recording, or replay it all the "
                             "same with --keep-going: estimates that bad samples touch are then marked invalid.")
    logs = {}
    for name, stream in streams.items():
        start = time.perf_counter()
        progress = Progress(len(recording), f"replay {name}")
        logs[name] = replay(recording, stream, progress.update)
        progress.close()
        seconds[name] = time.perf_counter() - start
    reasons = _invalid(logs)
    if reasons and not args.keep_going:
        raise RecordingError(f"{recording.source}: {_tell(reasons)}. Nothing was written; --keep-going writes it "
                             "all the same.")
    start = time.perf_counter()
    exports = _export(args.export, logs, recording)
    seconds["export"] = time.perf_counter() - start
    result, text = _summarise(args, arm, recording, logs, streams, seconds, exports, problems)
    emit(args, result, text)
    if reasons:
        print(f"contact-estimation replay: {_tell(reasons)}", file=sys.stderr)
    return 0


def _invalid(logs) -> dict[str, Counter]:
    from contact_estimation.viz.summary import invalid_reasons

    return invalid_reasons({name: log.columns() for name, log in logs.items()})


def _tell(reasons) -> str:
    return "; ".join(f"{name}: {sum(found.values())} estimates are invalid ("
                     + "; ".join(f"{count} x {reason}" for reason, count in found.most_common(3)) + ")"
                     for name, found in reasons.items())


def _export(path: Path | None, logs, recording) -> list[str]:
    if path is None:
        return []
    if len(logs) == 1:
        paths = {name: path for name in logs}
    else:
        paths = {name: path.with_name(f"{path.stem}_{name}{path.suffix}") for name in logs}
    try:
        return [str(log.save(paths[name], recording.truth)) for name, log in logs.items()]
    except OSError as error:
        raise RecordingError(f"{path} cannot be written ({error.strerror}); choose another --export") from error


def _command(args) -> str:
    words = ["contact-estimation", "replay", str(args.recording), "--robot", args.robot]
    for flag, values in (("--observer", args.observer), ("--config", args.config), ("--sensors", [args.sensors]),
                         ("--joint-states", [args.joint_states]), ("--wrench", [args.wrench]), ("--rate", [args.rate]),
                         ("--report", [args.report])):
        words += [word for value in values if value is not None for word in (flag, str(value))]
    return shlex.join(words + ["--keep-going"] * args.keep_going)


def _summarise(args, arm, recording, logs, streams, seconds, exports, problems) -> tuple[dict, str]:
    from contact_estimation.viz.summary import reference_of, summarise, summary_table

    has_force = recording.wrench_tcp is not None or "wrench_tcp" in recording.truth
    reference = reference_of(recording, *(arm.tcp_poses(recording.q) if has_force else ()))
    figures = {name: summarise(log.columns(), reference) for name, log in logs.items()}
    result = {"recording": {"source": recording.source, "samples": len(recording), "duration_s": recording.duration,
                            "problems": problems},
              "robot": arm.name, "exports": exports, "seconds": seconds,
              "observers": {name: figures[name] | {"counters": dict(streams[name].counters),
                                                   "backend": streams[name].observer.backend} for name in logs}}
    lines = [f"{recording.source}: {len(recording)} samples, {recording.duration:.1f} s",
             text_table(*summary_table(figures))]
    if args.report is not None:
        from contact_estimation.viz.report import replay_report  # matplotlib

        try:
            path = replay_report(args.report / "report.html", recording, logs, reference,
                                 f"Replay of {args.recording.name}", command=_command(args))
        except OSError as error:
            text = f"{args.report} cannot be written ({error.strerror}); choose another --report"
            raise RecordingError(text) from error
        result["report"] = str(path)
        lines.append(f"report: {path}")
    lines += [f"estimates: {path}" for path in exports]
    return result, "\n".join(lines)
