#!/usr/bin/env python3
"""A UR10e calibrated from its own logs, then watched: false contacts in free motion, pushes by hand.

    python benchmark/ur10e_logs.py [--shared DIR] [--taught NAME ...] [--save]

Four free excitations give the profile, as ``contact-estimation calibrate --out`` writes it. Torque is the motor current
times the controller's own Nm/A. The observers then replay logs that the calibration has not seen. Free motion: share of
the time in contact, changes of the mode, 99th percentile and largest force. Pushes: share of the time in contact while
the calibrated momentum observer shows more than 25 N. ``--taught`` calibrates with other excitations, and replays these
four instead. ``--save`` writes ur10e_logs.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from calibration import ur10e_log  # a neighbour of this script

from contact_estimation.cli import main as command
from contact_estimation.commands.output import text_table
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.npz import load_arrays, write_npz
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import replay
from contact_estimation.robot import Arm, load_arm

TAUGHT = ("20_02_05-20sec_12harm", "20_02_06-20sec_10harm", "20_02_10-30sec_12harm", "20_02_12-50sec_12harm")
FREE = (
    "identification_data__ur-20_02_19_14harm50sec",
    "identification_data__ur-20_02_19_15harm50sec",
    "identification_data__ur-20_02_05-20sec_8harm",
    "identification_data__ur-19_12_23_free",
    "validation_data__ur-20_01_17-ptp_10_points",
    *(f"jointwise_motion__ur-20_01_22-joint_{k}" for k in range(1, 7)),
)
PUSHES = "collision__ur-20_01_22-push_pose_1"
#: Pushes count where the calibrated momentum observer shows more than this [N].
PUSHED = 25.0
OBSERVERS = ("contact_imm", "momentum_calibrated")


def calibrated(archive, folder: Path, taught: Sequence[str] = TAUGHT) -> Arm:
    """Return the arm of the profile that ``calibrate`` writes from the logs ``taught``."""
    arm, paths = load_arm("ur10e"), [folder / f"{name}.npz" for name in taught]
    for name, path in zip(taught, paths):
        write_npz(path, ur10e_log(archive, arm, excitation(name)))
    words = ["calibrate", *map(str, paths), "--robot", "ur10e", "--no-validation", "--out", str(folder / "profile")]
    if command(words):
        raise SystemExit("the calibration was refused")
    return load_arm(str(folder / "profile"))


def excitation(name: str) -> str:
    """Return the full name of an excitation in the archive."""
    return f"identification_data__ur-{name}"


def estimates(arm: Arm, recording: Recording, observers: Sequence[str] = OBSERVERS) -> dict[str, dict[str, np.ndarray]]:
    """Columns of every observer."""
    return {name: replay(recording, open_stream(arm, name)).columns() for name in observers}


def touching(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return (N,) whether the most probable mode is a contact."""
    return columns["valid"] & (columns["mode"] != "free")


def short(name: str) -> str:
    """Return a log's name without its folder."""
    return name.split("__ur-")[1]


def free_row(name: str, found: dict[str, dict[str, np.ndarray]]) -> list:
    """Contact that is none."""
    columns = found["contact_imm"]
    contact = touching(columns)
    force = {key: np.linalg.norm(value["force"], axis=1) for key, value in found.items()}
    imm, momentum = ([np.nanpercentile(force[name], 99), np.nanmax(force[name])] for name in OBSERVERS)
    changes = int(np.count_nonzero(np.diff(contact.astype(int))))
    return [short(name), 100 * contact.mean(), changes, 100 * columns["valid"].mean(), *imm, *momentum]


def main() -> None:
    """Calibrate, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    parser.add_argument("--taught", nargs="+", default=TAUGHT, help="excitations to calibrate with")
    parser.add_argument("--save", action="store_true", help="write ur10e_logs.md beside this file")
    args = parser.parse_args()
    folder = args.shared / "data" / "ur10e_identification"
    archive = load_arrays(folder / "ur10e_logs.npz") | load_arrays(folder / "ur10e_push_pose_1.npz")
    with tempfile.TemporaryDirectory() as made:
        arm = calibrated(archive, Path(made), args.taught)
        free = [name for name in (*FREE, *map(excitation, TAUGHT)) if short(name) not in args.taught]
        rows = [free_row(name, estimates(arm, ur10e_log(archive, arm, name))) for name in free]
        found = estimates(arm, ur10e_log(archive, arm, PUSHES))
    header = ["log", "contact [%]", "changes", "valid [%]", "p99 [N]", "max [N]", "momentum p99 [N]", "max [N]"]
    pushed = np.linalg.norm(found["momentum_calibrated"]["force"], axis=1) > PUSHED
    seen = touching(found["contact_imm"])
    text = [
        text_table(header, rows),
        "",
        f"{short(PUSHES)}: in contact {100 * seen[pushed].mean():.1f} % of the {100 * pushed.mean():.0f} % "
        f"of the time with more than {PUSHED:g} N; {100 * seen[~pushed].mean():.1f} % of the other time",
    ]
    print("\n".join(text))
    if args.save:
        title = f"# {__doc__.splitlines()[0]}\n\n`python benchmark/ur10e_logs.py --save`\n\n```text\n"
        Path(__file__).with_suffix(".md").write_text(title + "\n".join(text) + "\n```\n")


if __name__ == "__main__":
    main()
