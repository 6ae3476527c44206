"""``contact-estimation convert``: an .npz recording to a bag, a bag to an .npz, or one bag storage to the other."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_estimation.commands.output import add_json_flag, emit
from contact_estimation.commands.replay import add_recording_arguments, open_for
from contact_estimation.exceptions import RecordingError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    add_recording_arguments(parser)
    parser.add_argument("output", type=Path, metavar="OUTPUT",
                        help="a file that ends in .npz, or a folder to be made, which becomes a rosbag2")
    parser.add_argument("--robot", help="robot the recording was made with: names its joints and frames; an .npz "
                        "written with it also holds the TCP's pose (x_tcp, R_tcp)")
    parser.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap",
                        help="storage of the bag (default mcap)")
    add_json_flag(parser)


def run(args) -> int:
    """Read, write, say what was written."""
    arm = None
    if args.robot is not None:
        from contact_estimation.robot import load_arm

        arm = load_arm(args.robot)
    recording = open_for(arm, args)
    try:
        path = _write(args, arm, recording)
    except OSError as error:
        raise RecordingError(f"{args.output} cannot be written ({error.strerror})") from error
    parts = ["q", "dq", "tau"] + ["wrench"] * (recording.wrench_tcp is not None)
    parts += [f"truth {name}" for name in recording.truth]
    result = {"output": str(path), "samples": len(recording), "duration_s": recording.duration, "parts": parts,
              "joint_names": recording.joint_names, "problems": recording.problems()}
    text = [f"{path}: {len(recording)} samples, {recording.duration:.1f} s, {', '.join(parts)}"]
    text += [f"note: {problem}" for problem in result["problems"]]
    emit(args, result, "\n".join(text))
    return 0


def _write(args, arm, recording) -> Path:
    if args.output.suffix == ".npz":
        from contact_estimation.io.npz import write_npz

        if args.output.exists():
            raise RecordingError(f"{args.output} exists already; name another file, or delete it.")
        if arm is None:
            return write_npz(args.output, recording)
        position, rotation = arm.tcp_poses(recording.q)
        return write_npz(args.output, recording, x_tcp=position, R_tcp=rotation)
    from contact_estimation.io.bag_writer import write_bag

    frames = {} if arm is None else {"base_frame": arm.base_frame, "tcp_frame": arm.tcp_frame}
    return write_bag(args.output, recording, args.storage, **frames)
