#!/usr/bin/env python3
"""What the default observer says in ``mismatch``: right models, and models that are wrong in one thing.

    python benchmark/mismatch.py [--shared DIR] [--case WORD] [--save]

Right: recorded presses of a UR16e, a Panda's excitation, free motion of simulated arms (:mod:`rigid_body_recording`).
Wrong: the sign of the torque, the side of the velocity, the joint stiffness, a load of 2 kg that no tool tells of,
carried from the start or picked up after 8 s, a tool (1 kg, UR16e 3 kg) that falls off after 8 s, and a torque that is
scaled, which looks like a load. Columns: share of the time in which the estimate is valid, and in which something is
said; when it was said first, and the words that were said for longest. ``--save`` writes mismatch.md beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from report import add_save_argument, heading, publish
from rigid_body_recording import RATE, RigidBodyArm, World, pushes, random_motion, record

from contact_estimation import Arm, load_arm
from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot.actuators import actuators_of

MASS, CENTRE = 2.0, (0.02, 0.0, 0.06)  # [kg], [m] in the flange's frame
CHANGE = 8.0  # [s] when a load is picked up, or the tool falls off
SCALES = (1.8, 2.5)  # of a torque that is no load's
TOOL = {"fr3": 1.0, "ur16e": 3.0}  # [kg] of a tool that falls off, with its centre at CENTRE
EVERY = 25  # samples between two looks


class Signals(NamedTuple):
    """A recording: robot, sensor set, stamps (N,) [ns] and q, dq, tau (N, n)."""

    robot: str
    sensors: str | None
    stamps: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tau: np.ndarray


def real(path: Path, robot: str) -> Signals:
    """Read a recording of an arm."""
    data = np.load(path)
    return Signals(robot, None, np.round(1e9 * data["t"]).astype(np.int64) + 1, data["q"], data["dq"], data["tau"])


def simulated(robot: str, seed: int, mass: float = 0.0, start: float = 0.0, end: float = np.inf) -> Signals:
    """Make free motion of 24 s; a ``mass`` [kg] hangs on the flange from ``start`` [s] to ``end``."""
    body, t = RigidBodyArm(robot), np.arange(24 * RATE) / RATE
    theta = random_motion(robot, t, np.random.default_rng([seed, 5]), 0.3, 1.0)
    arms = RigidBodyArm(robot), RigidBodyArm(robot)
    arms[1].carry(mass, CENTRE)
    if start <= 0.0:
        body.carry(mass, CENTRE)
    made = record(body, theta, pushes(body, [], t), World(seed=seed))
    hangs = np.ones(len(t)) if start <= 0.0 else np.clip((t - start) / 0.3, 0.0, 1.0)
    if end < np.inf:
        hangs *= np.clip(1.0 - (t - end) / 0.3, 0.0, 1.0)
    for k, change in enumerate(hangs - (start <= 0.0)):
        if change:
            bare, loaded = (pin.computeGeneralizedGravity(arm.model, arm.data, made.q[k]) for arm in arms)
            made.tau[k] += change * (loaded - bare)
    return Signals(robot, "ur16e_driver" if robot == "ur16e" else None, made.stamps, made.q, made.dq, made.tau)


def of_the_joints(signals: Signals) -> Signals:
    """Replace the velocity of the motors by that of the joints."""
    slope = np.gradient(signals.q, axis=0) / (1e-9 * np.gradient(signals.stamps))[:, None]
    return signals._replace(dq=np.apply_along_axis(np.convolve, 0, slope, np.ones(5) / 5, "same"))


def scaled(robot: str, seed: int, factor: float) -> Signals:
    """Make free motion whose torque is read with another scale."""
    signals = simulated(robot, seed)
    return signals._replace(tau=factor * signals.tau)


def said(signals: Signals, stiffness: float = 1.0, tool: float = 0.0) -> str:
    """Return a line's cells; ``stiffness`` is a factor on the joints' in the filter; ``tool`` [kg] is named."""
    named = load_arm(signals.robot)
    arm = Arm(dataclasses.replace(named.settings, tool_mass=tool, tool_com=list(CENTRE))) if tool else named
    settings = load_observer_settings("contact_imm", arm.settings.folder)
    if stiffness != 1.0:
        actuators = actuators_of(arm)
        wrong = dataclasses.replace(actuators.elastic, stiffness=[stiffness * k for k in actuators.elastic.stiffness])
        settings = dataclasses.replace(settings, actuators=dataclasses.replace(actuators, elastic=wrong))
    sensors = load_sensor_settings(signals.sensors or arm.settings.sensors, arm.settings.folder)
    stream = SampleStream(make_observer(arm, settings, sensors=sensors), arm, sensors)
    words, first, texts, valid = Counter[str](), "-", {}, 0
    for k, (stamp, *sample) in enumerate(zip(signals.stamps.tolist(), *signals[3:])):
        valid += stream.push_fast(stamp, *sample) and stream.valid
        if k % EVERY == 0 and (text := stream.estimate().mismatch):
            kind = re.sub(r"[-.\d]+", "#", text)
            words[kind], texts[kind] = words[kind] + 1, text
            first = f"{1e-9 * (stamp - signals.stamps[0]):.1f}" if first == "-" else first
    share = 100 * words.total() * EVERY / len(signals.q)
    longest = texts[words.most_common(1)[0][0]] if words else ""
    return f"{100 * valid / len(signals.q):.0f} | {share:.0f} | {first} | {longest}"


def cases(data: Path) -> dict[str, Callable[[], str]]:
    """Return title -> what makes its cells."""
    found: dict[str, Callable[[], str]] = {}
    for name in ("ur_vertical_1", "ur_vertical_3"):
        press = real(data / f"ur16e_press/{name}.npz", "ur16e")
        found[f"right: {name}"] = lambda press=press: said(press)
        found[f"sign of the torque: {name}"] = lambda press=press: said(press._replace(tau=-press.tau))
        found[f"velocity of the joints: {name}"] = lambda press=press: said(of_the_joints(press))
        found[f"joint stiffness x 0.5: {name}"] = lambda press=press: said(press, 0.5)
    excitation = real(data / "panda_excitation/panda_excitation.npz", "panda")
    found["right: panda_excitation"] = lambda: said(excitation)
    for robot in ("fr3", "ur16e"):
        for seed in (11, 12, 13):
            for title, *load in (("right",), ("load", MASS), (f"load from {CHANGE:g} s on", MASS, CHANGE)):
                case = (robot, seed, *load)
                found[f"{title}: {robot}, seed {seed}"] = lambda case=case: said(simulated(*case))
    for robot in ("fr3", "ur16e"):
        for seed in (11, 12, 13):
            title = f"tool of {TOOL[robot]:g} kg falls off after {CHANGE:g} s: {robot}, seed {seed}"
            case = (robot, seed, TOOL[robot], 0.0, CHANGE)
            found[title] = lambda case=case: said(simulated(*case), tool=TOOL[case[0]])
            for factor in SCALES:
                free = robot, seed, factor
                found[f"torque x {factor:g}: {robot}, seed {seed}"] = lambda free=free: said(scaled(*free))
    found["joint stiffness x 0.5: ur16e, seed 11"] = lambda: said(simulated("ur16e", 11), 0.5)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("CONTACT_ESTIMATION_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(default))
    parser.add_argument("--case", default="", help="only rows whose title has this")
    add_save_argument(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = heading("What `mismatch` says")
    lines += ["| wrong: recording | valid [%] | said [%] | first [s] | words |", "|" + "---|" * 5]
    for title, cells in cases(args.shared / "data").items():
        if args.case in title:
            lines.append(f"| {title} | {cells()} |")
            print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
