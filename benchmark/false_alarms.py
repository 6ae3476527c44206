#!/usr/bin/env python3
"""How often the signal monitor doubts healthy signals: real recordings, and worlds that share no code with it.

    python benchmark/false_alarms.py [--hours 10] [--shared DIR] [--save]

Real: two presses of a UR16e, whole, from every second on, and with gaps of 0.12 to 5 s at every other second; a Franka
press; a UR10e's identification logs and hand pushes; a Panda's excitation. Simulated: ``--hours`` of a UR16e and of an
FR3 (half each) that move, rest, are pushed at the tool and at links and press on a surface
(:mod:`rigid_body_recording`), in pieces of 30 s. Every motion comes eight times, with friction and noise of its own.

``--save`` writes false_alarms.md beside this file; rows of other recordings stay there.

An alarm is a sample that is doubted after one that was not. A stream that begins in contact may doubt until the force
changes (``docs/plausibility.md``), so that starts and gaps have a row of their own: the longest doubt there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from report import kept_rows, row_name
from rigid_body_recording import (
    RATE,
    START,
    Force,
    Push,
    RigidBodyArm,
    World,
    follow,
    pushes,
    random_motion,
    sense,
    surface,
    window,
)

from contact_estimation import load_arm
from contact_estimation.filters.settings import SensorSettings, load_sensor_settings
from contact_estimation.filters.stream import SampleStream

#: First line of the saved table.
MADE_BY = "`python benchmark/false_alarms.py --hours 10 --save`; rows of recordings that were not run again stay."
HEADER = "| recording | minutes | alarms | per hour | doubted [%] | longest [s] | reasons |"
#: Recordings of one simulated motion.
WORLDS = 8
#: [s] of a recording that are looked at after a start in mid run and after a gap, and before a gap.
AFTER, BEFORE = 10, 3


class Silent:
    """An observer that does nothing: only the stream is on trial."""

    name, backend = "silent", "python"

    def reset(self, t: float, q: np.ndarray) -> None:
        """Do nothing."""

    def step(self, dt: float, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Do nothing."""


@dataclass
class Row:
    """What a set of recordings showed.

    Attributes:
        seconds: of samples. alarms: in them. doubted: [s]. longest: [s] one doubt. reasons: how often each was said.
    """

    seconds: float = 0.0
    alarms: int = 0
    doubted: float = 0.0
    longest: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    def run(self, stream: SampleStream, stamps: np.ndarray, *columns: np.ndarray) -> SampleStream:
        """Push a recording and add what it showed."""
        since, last = None, None
        for stamp, *sample in zip(stamps.tolist(), *columns):
            stream.push_fast(stamp, *sample)
            problem = stream.monitor.problem or (stream.reason if stream.reason.startswith("a spike") else "")
            step = 0.0 if last is None else 1e-9 * (stamp - last)
            last = stamp
            self.seconds += step
            if not problem:
                since = None
                continue
            if since is None:
                self.alarms += 1
                self.reasons[problem[:90]] += 1
                since = stamp
            self.doubted += step
            self.longest = max(self.longest, 1e-9 * (stamp - since))
        return stream

    def text(self, name: str) -> str:
        """One line of the table."""
        said = "; ".join(f"{count} x {reason}" for reason, count in self.reasons.most_common(2))
        rate, share = 3600 * self.alarms / self.seconds, 100 * self.doubted / self.seconds
        numbers = f"{self.seconds / 60:.1f} | {self.alarms} | {rate:.1f} | {share:.2f} | {self.longest:.2f}"
        return f"| {name} | {numbers} | {said} |"


def streams(robot: str, sensors: str | None = None) -> Callable[[], SampleStream]:
    """Return what makes streams of a robot."""
    arm = load_arm(robot)
    settings: SensorSettings = load_sensor_settings(sensors or arm.settings.sensors, arm.settings.folder)
    return lambda: SampleStream(Silent(), arm, settings)


def real(shared: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the real recordings."""
    for name in ("ur_vertical_1", "ur_vertical_3"):
        data = np.load(shared / f"data/ur16e_press/{name}.npz")
        columns = np.round(1e9 * data["t"]).astype(np.int64), data["q"], data["dq"], data["tau"]
        make, whole, starts, gaps = streams("ur16e"), Row(), Row(), Row()
        whole.run(make(), *columns)
        yield name, whole
        for begin in range(0, len(columns[0]) - RATE, RATE):
            starts.run(make(), *(c[begin : begin + AFTER * RATE] for c in columns))
        yield f"{name}, from every second on", starts
        for begin in range(RATE, len(columns[0]) - RATE, 2 * RATE):
            for gap in (0.12, 0.6, 5.0):
                end = begin + round(gap * RATE)
                keep = np.r_[max(begin - BEFORE * RATE, 0) : begin, end : end + AFTER * RATE]
                gaps.run(make(), *(c[keep[keep < len(c)]] for c in columns))
        yield f"{name}, with gaps of 0.12 to 5 s", gaps
    data = np.load(shared / "data/franka_press/franka_contact.npz")
    stamps = np.arange(len(data["q"]), dtype=np.int64) * round(1e9 / 30)
    row = Row()
    row.run(streams("panda")(), stamps, data["q"], data["dq"], data["tau"])
    yield "franka_contact (with a hand nobody told of)", row
    data, row = np.load(shared / "data/panda_excitation/panda_excitation.npz"), Row()
    row.run(streams("panda")(), np.round(1e9 * data["t"]).astype(np.int64), data["q"], data["dq"], data["tau"])
    yield "panda_excitation", row
    yield from ur10e(shared)


def ur10e(shared: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the UR10e's logs, and of a person who pushes it."""
    make, arm = streams("ur10e"), load_arm("ur10e")
    for title, file in (("ur10e_logs", "ur10e_logs.npz"), ("ur10e_push_pose_1", "ur10e_push_pose_1.npz")):
        archive, row = np.load(shared / "data/ur10e_identification" / file), Row()
        loaded = Row()
        for name in archive.files:
            rows = archive[name]
            if rows.ndim != 2 or rows.shape[1] < 19 or (np.diff(rows[:, 0]) <= 0).any():  # one log is damaged
                continue
            stamps = np.round(1e9 * rows[:, 0]).astype(np.int64)
            into = loaded if "oad" in name and "unload" not in name else row
            into.run(make(), stamps, rows[:, 1:7], rows[:, 7:13], arm.motor.torque_from_current(rows[:, 13:19]))
        yield title, row
        if loaded.seconds:
            yield f"{title}, with a load nobody told of", loaded


def simulated(robot: str, hours: float) -> Row:
    """Return the row of simulated pieces of 30 s."""
    row, body = Row(), RigidBodyArm(robot)
    make = streams(robot, "ur16e_driver" if robot == "ur16e" else None)
    pieces = max(1, round(hours * 120))
    for seed in range(-(-pieces // WORLDS)):
        rng = np.random.default_rng([seed, 12])
        motion = session(body, rng, pressing=seed % 3 == 0)
        course = follow(body, *motion, World(stiffness=rng.uniform(0.9, 1.1), seed=seed))
        for k in range(min(WORLDS, pieces - seed * WORLDS)):
            world = World(rng.uniform(0.7, 1.3), rng.uniform(0.5, 2), seed=seed * WORLDS + k)
            recording = sense(body, course, world)
            row.run(make(), recording.stamps, recording.q, recording.dq, recording.tau)
    return row


def session(body: RigidBodyArm, rng: np.random.Generator, pressing: bool) -> tuple[np.ndarray, Force]:
    """Return a motion (N, n) of 30 s and what acts on it: four pushes in motion and at rest, or four presses."""
    robot, t = body.robot, np.arange(30 * RATE) / RATE
    if pressing:
        return press(body, robot, rng, t)
    motion = random_motion(robot, t, rng, rng.uniform(0.1, 0.5), rng.uniform(0.8, 2.5))
    share = window(t, 1, 12, 1.0) + window(t, 18, 29.5, 1.0)
    theta = motion[0] + share[:, None] * (motion - motion[0])
    plan = []
    for begin in (3.0, 8.0, 13.5, 21.0):
        link = None if rng.random() < 0.6 else int(rng.integers(2, body.n))
        force = rng.normal(size=3)
        force *= rng.uniform(10, 90 if robot == "ur16e" else 45) / np.linalg.norm(force)
        plan.append(Push(begin, begin + rng.uniform(0.8, 3), force, rng.uniform(0.03, 0.4), link))
    return theta, pushes(body, plan, t)


def press(body: RigidBodyArm, robot: str, rng: np.random.Generator, t: np.ndarray) -> tuple[np.ndarray, Force]:
    """Return a motion (N, n) down onto a surface and up again, four times, and the surface's force."""
    start = np.array(START[robot])
    pose = body.pose(start)
    depth = rng.uniform(1e-3, 4e-3)
    path = 0.5 * (1 - np.cos(2 * np.pi * t / 7.5)) * (0.03 + depth)
    knots = np.linspace(0, 0.03 + depth, 24)
    joints, at = [], start
    for down in knots:
        at = body.reach(pose.translation - [0, 0, down], pose.rotation, at)
        joints.append(at)
    theta = np.column_stack([np.interp(path, knots, column) for column in np.array(joints).T])
    stiffness = rng.uniform(5e3, 3e4) * (1.0 if robot == "ur16e" else 0.4)
    return theta, surface(body, pose.translation - [0, 0, 0.03], np.array([0, 0, 1.0]), stiffness, 0.2)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=0.1)
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    parser.add_argument("--robot", action="append", choices=["ur16e", "fr3"], help="simulated robots only")
    parser.add_argument("--save", action="store_true", help="write false_alarms.md beside this file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEADER)
    rows = iter(()) if args.robot or not args.shared.exists() else real(args.shared)
    robots = (args.robot or ["ur16e", "fr3"]) if args.hours > 0 else []
    drawn = ((f"simulated {robot}", simulated(robot, args.hours / len(robots))) for robot in robots)
    lines = []
    for name, row in itertools.chain(rows, drawn):
        lines.append(row.text(name))
        print(lines[-1], flush=True)
    if args.save:
        save(Path(__file__).with_suffix(".md"), lines)


def save(path: Path, found: list[str]) -> None:
    """Write rows to a table; rows there of other recordings stay."""
    rows = kept_rows(path, 0) | {row_name(row, 0): row for row in found}
    path.write_text("\n".join(["# False alarms", "", MADE_BY, "", HEADER, "|" + "---|" * 7, *rows.values()]) + "\n")


if __name__ == "__main__":
    main()
