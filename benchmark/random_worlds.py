#!/usr/bin/env python3
"""How often the default observer is wrong and does not say so: pushes, presses and loads that nobody chose.

    python benchmark/random_worlds.py [--robot NAME] [--runs N] [--first SEED] [--errors SIZE] [--jobs N] [--save]

Every seed draws a world of its own: posture, motion (rest to fast, with stops, some joints only), pushes at the tool
and at links that last 0.3 to 7 s, rise within 20 ms to 1 s and may overlap, in one run of ten since the first sample;
presses of any direction, stiffness and friction; springs; a hand that guides the tool. One run in five has an untold
load of up to 3 kg, one in five lost samples and gaps. Recordings are those of :mod:`rigid_body_recording`, which
shares no code with an observer. With ``--errors 1`` nothing of the model is exact, either: masses, mounting, ripple
and friction of the gears, gains (:mod:`model_errors`; larger numbers scale them).

An estimate is wrong where it misses the truth by more than ``LARGE`` and by more than ``SHARE`` of it, and its
covariance does not allow that (chi-square, 0.1 %). The truth is the force at the TCP; where a link is pushed, and where
nothing pushes, it is the joint torque. A force counts only where the joint torque misses half of ``LARGE``, too: no
joint feels some directions. An untold load counts as nothing: its weight is no contact. Columns: share [%]
of the time in which the estimate is wrong, valid and without a word in ``mismatch``, mean, and of the worst run; runs
in which that is more than 3 %; longest such time [s], median over the runs and worst; share [%] of the time that is not
valid, and valid with words. Rows: by what was drawn. Nothing was chosen on the seeds from 3001 on; those below 2101
were looked at. The seeds of runs above 3 % go to the standard error output. ``--save`` writes random_worlds.md beside
this file, or random_worlds_errors.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np
from any_contact import normalised_square, spans  # neighbours of this script
from contact_worlds import ROWS, SENSORS, SIZE, direction, pressed, random_posture, world
from model_errors import distort, misbuild
from report import add_save_argument, check_whole, heading, page, publish
from rigid_body_recording import RATE, Force, Push, Recording, RigidBodyArm, follow, pushes, sense, window
from scipy.stats import chi2

from contact_estimation.filters.observer import Estimate
from contact_estimation.filters.registry import open_stream

#: What is wrong: error of the force [N] and of the joint torque [Nm], and its share of the truth.
LARGE = {"fr3": (5.0, 2.0), "ur16e": (14.0, 9.0)}
SHARE, UNLIKELY = 0.3, float(chi2.ppf(0.999, 3))
#: A shorter error is the lag of a push that begins or ends [s]; a run with a larger share of it counts [%].
BRIEF, MANY = 0.25, 3.0
#: [s] Length of a run with pushes. Largest load [kg].
SECONDS, LOAD = 20.0, 3.0
#: Rows of the table that another script asks for.
LOADED, PRESSES, SPRINGS = "with an untold load", "presses", "springs, guided by hand"
KINDS = ("push", "press", "spring", "guided")
MOTIONS = {"rests": (0.0, 0.0), "slow": (0.1, 0.5), "medium": (0.5, 1.2), "fast": (1.2, 2.5)}


class Drawn(NamedTuple):
    """A world: its recording, which samples arrive, and what it is, as a row of the table."""

    recording: Recording
    seen: np.ndarray
    row: str


class Score(NamedTuple):
    """Of a run: row, share wrong [%], longest [s], share invalid [%], share with words [%]."""

    row: str
    wrong: float
    longest: float
    invalid: float
    words: float


def motion(arm: RigidBodyArm, t: np.ndarray, rng: np.random.Generator, speed: float) -> np.ndarray:
    """Return joint positions (N, n): sinusoids of up to ``speed`` [rad/s], of all joints or of some, with stops."""
    start, phase = arm.start + rng.uniform(-0.2, 0.2, arm.n), rng.uniform(0, 2 * np.pi, arm.n)
    rates = rng.uniform(0.5, 1.0, arm.n) * speed
    amplitude = rng.uniform(0.05, 0.6) / max(speed, 0.7) * (rng.uniform(size=arm.n) < rng.choice([0.4, 1.0]))
    go, stop = np.ones(len(t)), rng.uniform(1.0, 3.0)
    while rng.uniform() < 0.6 and stop < t[-1]:
        rest = rng.uniform(1.0, 3.0)
        go *= 1 - window(t, stop, stop + rest, 0.3)
        stop += rest + rng.uniform(1.2, 4.0)
    begins = rng.choice([1.0, -5.0], p=[0.8, 0.2])  # one in five moves at the first sample
    way = np.outer(window(t, begins, t[-1] + 5.0, 1.0), amplitude * (speed > 0.0))
    return np.asarray(start + way * np.sin(np.outer(np.cumsum(go) / RATE, rates) + phase))


def plan(robot: str, joints: int, rng: np.random.Generator) -> list[Push]:
    """Return pushes at the tool and at links, some of them at once."""
    made, at = [], rng.uniform(0.0, 0.05) if rng.uniform() < 0.1 else rng.uniform(1.2, 4.0)
    while at < SECONDS - 1.5:
        lasts = rng.uniform(*[(0.25, 1.0), (1.0, 3.0), (3.0, 7.0)][rng.integers(3)])
        rise = min(float(np.exp(rng.uniform(np.log(0.02), np.log(1.2)))), lasts / 2)
        link = None if rng.uniform() < 0.6 else int(rng.integers(2, joints))
        force, offset = rng.uniform(*SIZE[robot]) * direction(rng), rng.uniform(-0.06, 0.06, 3)
        made.append(Push(at, min(at + lasts, SECONDS - 0.7), force, rise, link, offset))
        pause = rng.uniform(*[(0.15, 0.6), (0.6, 4.0)][rng.integers(2)])
        at += 0.4 * lasts if rng.uniform() < 0.15 else lasts + pause
    return made


def draw(robot: str, seed: int, errors: float = 0.0) -> Drawn:
    """Return the world of a seed, with ``errors`` of the model of this size."""
    rng = np.random.default_rng([seed, 98, len(robot)])
    arm = RigidBodyArm(robot, random_posture(robot, seed) if rng.uniform() < 0.75 else None)
    kind, loaded = str(rng.choice(KINDS, p=[0.6, 0.26, 0.04, 0.1])), rng.uniform() < 0.2
    if loaded:
        arm.carry(rng.uniform(0.4, LOAD), rng.uniform(-0.05, 0.08, 3).tolist())
    if errors:
        misbuild(arm, seed, errors)
    theta, force, what = touched(arm, kind, rng)
    of_seed = world(seed, rng)
    course = follow(arm, theta, force, of_seed)
    made = sense(arm, course, of_seed)
    if errors:
        made.tau = distort(arm, course, made.tau, of_seed, errors)
    seen = np.ones(len(made.stamps), bool)
    if rng.uniform() < 0.2:
        seen = rng.uniform(size=len(seen)) > 0.02
        for at in rng.integers(RATE, len(seen) - RATE, 3):
            seen[at : at + rng.integers(20, RATE // 2)] = False
    return Drawn(made, seen, LOADED if loaded else what)


def touched(arm: RigidBodyArm, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, Force, str]:
    """Return motors' positions (N, n), the force, and their name."""
    if kind == "push":
        name, t = str(rng.choice(list(MOTIONS), p=[0.3, 0.3, 0.25, 0.15])), np.arange(SECONDS * RATE) / RATE
        theta = motion(arm, t, rng, rng.uniform(*MOTIONS[name]))
        return theta, pushes(arm, plan(arm.robot, arm.n, rng), t), f"pushes, {name}"
    if kind == "press":
        normal, stiffness = direction(rng), float(np.exp(rng.uniform(np.log(800.0), np.log(2.5e5))))
        slide = rng.choice([0.0, rng.uniform(0.005, 0.04)])
        make = pressed(lambda _: normal, stiffness, rng.uniform(0.0, 0.9), slide)
        return (*make(arm, rng), PRESSES)
    row = "spring in 3-D" if kind == "spring" else "guided by hand"
    return (*ROWS[row].make(arm, rng), SPRINGS)


def replay(robot: str, drawn: Drawn, seconds: float | None = None) -> list[Estimate]:
    """Return the default observer's estimates of the samples that arrive, in the first ``seconds`` or all of them."""
    stream = open_stream(robot, "contact_imm", SENSORS[robot])
    samples = islice(zip(drawn.recording.samples(), drawn.seen), None if seconds is None else round(seconds * RATE))
    return [stream.push(*sample) for sample, there in samples if there]


def score(task: tuple[str, int, float]) -> Score:
    """Replay the world of a robot and seed, with errors of the model of this size."""
    warnings.simplefilter("ignore")
    robot, seed, errors = task
    drawn = draw(robot, seed, errors)
    return judge(robot, drawn, replay(robot, drawn))


def judge(robot: str, drawn: Drawn, found: list[Estimate]) -> Score:
    """Compare estimates with the truth."""
    made, seen, row = drawn
    force, torque = made.force[seen], made.torque[seen]
    missed = np.array([e.force_tcp for e in found]) - force
    of_force, of_torque = LARGE[robot]
    by_force = np.linalg.norm(missed, axis=1) > np.maximum(of_force, SHARE * np.linalg.norm(force, axis=1))
    by_force &= normalised_square(missed, np.array([e.force_covariance for e in found])) > UNLIKELY
    error = np.linalg.norm(np.array([e.tau_ext for e in found]) - torque, axis=1)
    by_torque = error > np.maximum(of_torque, SHARE * np.linalg.norm(torque, axis=1))
    at_tool = np.linalg.norm(force, axis=1) > 0.0
    wrong = np.where(at_tool, by_force & (error > 0.5 * of_torque), by_torque)
    valid, said = np.array([e.valid for e in found]), np.array([bool(e.mismatch) for e in found])
    silent = wrong & valid & ~said
    times = (made.stamps[seen] / 1e9).tolist()
    lasting = [(a, b) for a, b in spans(silent) if times[b - 1] - times[a] > BRIEF]
    share = sum(b - a for a, b in lasting) / len(found)
    longest = max((times[b - 1] - times[a] for a, b in lasting), default=0.0)
    return Score(row, 100 * share, longest, 100 * float(np.mean(~valid)), 100 * float(np.mean(valid & said)))


def cells(robot: str, row: str, scores: list[Score]) -> list[str]:
    """Return a row of the table."""
    wrong, longest = [s.wrong for s in scores], [s.longest for s in scores]
    said = f"{np.mean([s.invalid for s in scores]):.1f}", f"{np.mean([s.words for s in scores]):.1f}"
    many = f"{sum(w > MANY for w in wrong)} of {len(wrong)}"
    times = f"{np.median(longest):.2f}, {max(longest):.1f}"
    return [robot, row, f"{np.mean(wrong):.2f}, {max(wrong):.0f}", many, times, *said]


def main() -> None:
    """Draw, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--runs", type=int, default=100, help="worlds per robot")
    parser.add_argument("--first", type=int, default=3001, help="the first seed")
    parser.add_argument("--errors", type=float, default=0.0, metavar="SIZE", help="of the model; 1 is usual")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    add_save_argument(parser)
    args = parser.parse_args()
    check_whole(parser, args, "robot")
    if args.errors and args.save == page():
        args.save = args.save.with_stem("random_worlds_errors")
    headings = (
        "robot",
        "world",
        "wrong without a word [%]",
        "runs above 3 %",
        "longest [s]",
        "invalid [%]",
        "words [%]",
    )
    title = "Worlds that nobody chose" + ", with errors of the model" * bool(args.errors)
    text = [*heading(title), "| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    with ProcessPoolExecutor(args.jobs) as pool:
        for robot in args.robot or SENSORS:
            scores = list(pool.map(score, [(robot, args.first + k, args.errors) for k in range(args.runs)]))
            for row in [*sorted({s.row for s in scores}), "all"]:
                of_row = [s for s in scores if row in (s.row, "all")]
                text.append("| " + " | ".join(cells(robot, row, of_row)) + " |")
            print(
                robot,
                [(args.first + k, round(s.wrong, 1)) for k, s in enumerate(scores) if s.wrong > MANY],
                file=sys.stderr,
            )
    publish(text, args.save)


if __name__ == "__main__":
    main()
