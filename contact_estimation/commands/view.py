"""``contact-estimation view``: a recording, or a live arm, on a 3-D page in the browser."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from pathlib import Path

from contact_estimation.atomic_write import atomic_write_text
from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    load_robot,
    open_for,
)
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, check_output_file, emit, warn
from contact_estimation.exceptions import ConfigError, RecordingError
from contact_estimation.plugins import DEFAULT_OBSERVER


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser, nargs="?")
    add = parser.add_argument
    add("--live", action="store_true", help="follow the estimators on the ROS graph instead of a recording")
    add_robot_argument(parser, required=False, default=f"{RECORDED}; --live: ur16e")
    text = f"observer, or its YAML file; repeatable, the page switches between them (default {DEFAULT_OBSERVER})"
    add("--observer", action="append", default=[], metavar="NAME", help=text)
    add("--sensors", metavar="NAME", help="sensor set (default the recording's, else the observer's or robot's)")
    add("--out", type=Path, metavar="FILE", help="write the page to FILE, which needs no server, and end")
    add("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    add("--no-browser", action="store_true", help="only print the address")


def run(args: argparse.Namespace) -> int:
    """Make the page, then write or serve it."""
    if args.live:
        return _live(args)
    if args.recording is None:
        raise RecordingError("view takes a RECORDING, or --live for the estimators on the ROS graph")
    check_output_file(args.out, [args.recording])
    check_number("--port", args.port, least=0, most=65535)
    page = _page(args)
    if args.out is not None:
        atomic_write_text(args.out, page)
        emit(args, {"page": str(args.out)}, str(args.out))
        return 0
    from contact_estimation.viz.server import PageServer

    server = PageServer(page, port=args.port)
    emit(args, {"address": server.address}, f"{server.address}   (Ctrl-C ends)")
    if not args.no_browser:
        webbrowser.open(server.address)
    try:
        threading.Event().wait()
    finally:
        server.close()
    return 0


def _page(args: argparse.Namespace) -> str:
    """Replay the recording through the observers; a block of it is in memory."""
    from contact_estimation.codegen import show_progress
    from contact_estimation.evaluation.scoring import survey_for
    from contact_estimation.filters.registry import open_stream
    from contact_estimation.io.export import EstimateLog
    from contact_estimation.io.replay import estimates, fitting_blocks
    from contact_estimation.io.row_file import BLOCK
    from contact_estimation.viz.frames import RecordedFrames
    from contact_estimation.viz.player import recording_page

    show_progress()
    arm = load_robot(args, [args.recording])
    recording = open_for(arm, args)
    head, shown = recording.head, {}
    observers = args.observer or [DEFAULT_OBSERVER]
    streams = {name: open_stream(arm, name, args.sensors or head.sensors or None) for name in observers}
    duration, problems, _ = survey_for(recording, streams.values())
    for problem in problems:
        warn(args, problem)
    for name, stream in streams.items():
        frames, log = RecordedFrames(arm, float(head.t[0]), duration), EstimateLog(stream.observer.name, BLOCK)
        with Progress(len(recording), f"replay {name}") as progress:
            for block in fitting_blocks(recording, stream, progress.update):
                log.clear()
                for stamp_ns, estimate, seconds in estimates(block, stream):
                    log.append(stamp_ns, estimate, seconds)
                frames.add(block, log)
        shown[stream.observer.name] = frames
    return recording_page(arm, args.recording.name, shown)


def _live(args: argparse.Namespace) -> int:
    """Become the node ``viewer``: a process of its own, which the estimators do not wait for."""
    from contact_estimation.ros.processes import executable

    given = {"--observer": args.observer, "--sensors": args.sensors, "--out": args.out, "RECORDING": args.recording}
    if useless := [name for name, value in given.items() if value]:
        raise ConfigError(f"{', '.join(useless)}: of no use to --live, which shows the estimators that run")
    node = str(executable("viewer"))
    words = ["--ros-args", "-p", f"robot:={args.robot or 'ur16e'}", "-p", f"port:={args.port}"]
    words += ["-p", f"tool:={args.tool}"] if args.tool else []
    words += ["-p", f"browser:={'false' if args.no_browser else 'true'}"]
    sys.stdout.flush()
    os.execv(node, [node, *words])
