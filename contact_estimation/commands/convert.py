"""``contact-estimation convert``: an .npz recording to a bag, a bag to an .npz, one bag storage to the other.

A bag that was cut off, as by a recorder that was killed, is read to its last complete chunk.
"""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from contact_estimation.commands.inputs import add_recording_arguments, add_robot_argument, open_for
from contact_estimation.commands.output import emit
from contact_estimation.exceptions import RecordingError

if TYPE_CHECKING:
    from contact_estimation.io.recording import Samples
    from contact_estimation.robot import Arm


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser)
    text = "a file that ends in .npz, or a folder to be made, which becomes a rosbag2"
    parser.add_argument("output", type=Path, metavar="OUTPUT", help=text)
    add_robot_argument(parser, required=False)
    text = "storage of the bag (default mcap)"
    parser.add_argument("--storage", choices=("mcap", "sqlite3"), default="mcap", help=text)


def run(args: argparse.Namespace) -> int:
    """Read, write, say what was written."""
    arm = None
    if args.robot is not None:
        from contact_estimation.robot import load_arm

        arm = load_arm(args.robot, args.tool)
    from contact_estimation.io.recovery import whole_bag
    from contact_estimation.io.survey import missing_words, survey

    with whole_bag(args.recording) as (source, lost):
        recording = open_for(arm, args, source)
    path, head = write_recording(args.output, recording, arm, args.storage), recording.head
    parts = ["q", "dq", "tau"] + ["wrench"] * (head.wrench_tcp is not None)
    parts += [f"truth {name}" for name in head.truth]
    duration, problems, missing = survey(recording)
    problems = [*([lost] if lost else []), *recording.notes, *problems]
    problems += [f"the measured force is {missing_words(missing)}"] if missing else []
    result = {
        "output": str(path),
        "samples": len(recording),
        "duration_s": duration,
        "parts": parts,
        "joint_names": head.joint_names,
        "problems": problems,
    }
    text = f"{path}: {len(recording)} samples, {duration:.1f} s, {', '.join(parts)}"
    emit(args, result, "\n".join([text, *(f"note: {problem}" for problem in problems)]))
    return 0


def write_recording(path: Path, recording: Samples, arm: Arm | None, storage: str = "mcap") -> Path:
    """Write an .npz archive or a rosbag2, by the ending of ``path``.

    Args:
        path: the archive, or the bag's folder; it must not exist.
        recording: what to write.
        arm: names a bag's frames and the robot and tool of a recording that does not name them, and an archive gets
            the poses of its TCP (``x_tcp``, ``R_tcp``).
        storage: of a bag.

    Returns:
        The path.

    Raises:
        RecordingError: the path exists or cannot be written.
    """
    if path.exists():
        raise RecordingError(f"{path} exists already; name another, or delete it.")
    try:
        if path.suffix == ".npz":
            from contact_estimation.io.npz import write_npz

            if arm is None:
                return write_npz(path, recording)
            return write_npz(
                path,
                recording,
                arm.name,
                lambda block: dict(zip(("x_tcp", "R_tcp"), arm.tcp_poses(block.q))),
                arm.tool_name,
            )
        from contact_estimation.io.bag_writer import write_bag

        names = {} if arm is None else {"base_frame": arm.base_frame, "tcp_frame": arm.tcp_frame, "robot": arm.name}
        names |= {} if arm is None else {"tool": arm.tool_name}
        return write_bag(path, recording, storage, **names)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordingError(f"{path} cannot be written ({reason})") from error
