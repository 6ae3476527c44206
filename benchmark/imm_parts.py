#!/usr/bin/env python3
"""What each part of the contact IMM filter is for: the worlds of random_worlds.py without it.

    python benchmark/imm_parts.py [--robot NAME] [--part WORD] [--runs N] [--first SEED] [--jobs N] [--save]

A part is taken out by replacing its test or step with one that does nothing. Columns, over all worlds: share [%] of the
time in which the estimate is wrong, valid and without a word (as there), and runs in which that is more than 3 %; share
of the time not valid or with words; RMSE [Nm] of the external joint torque while something touches, and 99th
percentile of the force [N] where nothing has touched for 50 ms; share [%] of the touched time in which the mode is
``free``; share [%] of the force's errors in the two-sided 95 % band of its covariance (NEES), presses, springs and
guiding only (these four of valid estimates without an untold load); worlds with more, and with less, of the time wrong
than with all parts, by more than one percentage point. These worlds have no load that is put down, no push that grows
over seconds (``any_contact.py --row "slow push"``) and no touch shorter than 0.25 s: a part may be for those.
``--save`` writes imm_parts.md beside this file; rows of a robot that was not run stay there.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from any_contact import GONE, consistent  # neighbours of this script
from contact_worlds import SENSORS
from random_worlds import LOADED, MANY, PRESSES, SPRINGS, Drawn, draw, judge, replay
from report import add_save_argument, check_whole, heading, kept_rows, publish
from rigid_body_recording import RATE

from contact_estimation.filters.imm import free_starts, imm_step
from contact_estimation.filters.imm.absorbed_push import AbsorbedPush
from contact_estimation.filters.imm.friction_drift import FrictionDrift
from contact_estimation.filters.imm.growing_push import GrowingPush
from contact_estimation.filters.imm.imm_step import ImmStep
from contact_estimation.filters.imm.innovation import VarianceFactors
from contact_estimation.filters.imm.mismatch import MismatchTest
from contact_estimation.filters.imm.mode_chain import ModeChain
from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.imm.payload import PayloadTest
from contact_estimation.filters.imm.push_course import OutliersInARow, PushCourse
from contact_estimation.filters.imm.start_decision import StartDecision
from contact_estimation.filters.imm.start_push import PushSinceStart
from contact_estimation.filters.imm.unknown import PushEnd

#: Percentage points by which a world differs.
DIFFERS = 1.0


class NeverBeyond(OutliersInARow):
    """Outliers in a row that are not counted."""

    def follow(self, normalised: np.ndarray) -> bool:
        """Count nothing."""
        return False


def known_at_start(test: PushSinceStart, kept: object = None) -> None:
    """Begin anew, with nothing to compare."""
    _RESET_START(test, kept)
    test.end()


def drift_of_lag(drift: FrictionDrift, deflection: np.ndarray, left_out: np.ndarray, lag: Any) -> None:
    """Let nothing change the friction."""
    np.maximum(drift._deflected, np.abs(deflection), out=drift._deflected)
    drift.published[:] = lag**2


def resume_anew(observer: ContactImm, t: float, q: np.ndarray, dq: np.ndarray, unseen: float) -> None:
    """Start anew behind a gap."""
    observer.reset(t, q)


def give(value: object) -> Callable[..., object]:
    """Return a function that does nothing and returns a value."""
    return lambda *_, **__: value


_RESET_START, _OF = PushSinceStart.reset, PushCourse.of
#: Part of the filter: what it does, and what replaces which attributes without it.
PARTS: dict[str, list[tuple[Any, str, Any]]] = {
    "all parts": [],
    "growing pushes, by deflection": [(GrowingPush, "since", give(None))],
    "growing pushes, by friction": [(AbsorbedPush, "since", give(None))],
    "starts of free space from earlier friction": [(free_starts, "_STARTS", 1)],
    "free filters that are kept after a push": [(free_starts.FreeStarts, "_keeps", give(False))],
    "the end of a push as a measurement": [(PushEnd, "apply", give(False))],
    "no other contact where a push ends": [
        (PushCourse, "of", staticmethod(lambda f, m: _OF(f, m)._replace(ends=False)))
    ],
    "no pulling where a push reverses": [
        (PushCourse, "of", staticmethod(lambda f, m: _OF(f, m)._replace(reverses=False)))
    ],
    "jumps of a push": [(imm_step, "OutliersInARow", NeverBeyond)],
    "lag of a push": [(ImmStep, "_lag", give(0.0))],
    "friction that motion has changed": [(FrictionDrift, "follow_contact", drift_of_lag)],
    "touch test": [(ImmStep, "shows_contact", give(True))],
    "known contacts at the start": [(StartDecision, "keep", give(None))],
    "pushes since the start": [(PushSinceStart, "reset", known_at_start)],
    "friction behind gaps": [(ContactImm, "resume", resume_anew)],
    "stiffness hypotheses": [(ModeChain, "give_birth", give(False))],
    "variance factors": [(VarianceFactors, "add", give(None))],
    "payloads": [(MismatchTest, "add_torque", give(False))],
    "the end of payloads": [(PayloadTest, "may_change", property(give(False)))],
    "words while not free since the start": [(MismatchTest, "words_of_push", property(give("")))],
}


class Figures(NamedTuple):
    """Of a run: [%] wrong, [%] not valid or with words, squared torque errors of touches, free forces, masks."""

    wrong: float
    said: float
    square: np.ndarray
    free: np.ndarray
    missed: np.ndarray
    inside: np.ndarray


def figures(robot: str, drawn: Drawn) -> Figures:
    """Replay a world and compare."""
    found = replay(robot, drawn)
    made, seen, row = drawn
    score = judge(robot, drawn, found)
    touched, valid = made.touched[seen], np.array([e.valid for e in found])
    near = np.convolve(made.touched, np.ones(round(GONE * RATE)))[: len(made.touched)][seen] > 0
    error = np.array([e.force_tcp for e in found]) - made.force[seen]
    named_free = np.array([e.mode == "free" for e in found])
    told = valid & (row != LOADED)
    missed = np.array([e.tau_ext for e in found]) - made.torque[seen]
    at_tool = told & touched & ~named_free & (row in (PRESSES, SPRINGS))
    covariance = np.array([e.force_covariance for e in found])
    return Figures(
        score.wrong,
        score.invalid + score.words,
        np.sum(missed[told & touched] ** 2, axis=1),
        np.linalg.norm(error[told & ~near], axis=1),
        named_free[told & touched],
        consistent(error[at_tool], covariance[at_tool]),
    )


def without(task: tuple[str, int, list[str]]) -> list[Figures]:
    """Replay a robot's world without each of some parts."""
    warnings.simplefilter("ignore")
    robot, seed, parts = task
    drawn, found = draw(robot, seed), []
    for part in parts:
        with ExitStack() as stack:
            for place, name, replacement in PARTS[part]:
                stack.enter_context(patch.object(place, name, replacement))
            found.append(figures(robot, drawn))
    return found


def cells(robot: str, part: str, runs: list[Figures], full: list[Figures]) -> list[str]:
    """Return a row of the table."""

    def share(masks: list[np.ndarray]) -> str:
        return f"{100 * np.mean(together):.1f}" if len(together := np.concatenate(masks)) else "-"

    wrong, change = [r.wrong for r in runs], [r.wrong - f.wrong for r, f in zip(runs, full)]
    rmse = np.sqrt(np.mean(np.concatenate([r.square for r in runs])))
    free = np.percentile(np.concatenate([r.free for r in runs]), 99)
    more, less = sum(c > DIFFERS for c in change), sum(c < -DIFFERS for c in change)
    return [
        robot,
        part,
        f"{np.mean(wrong):.2f}, {max(wrong):.0f}",
        f"{sum(w > MANY for w in wrong)}",
        f"{np.mean([r.said for r in runs]):.1f}",
        f"{rmse:.2f}",
        f"{free:.1f}",
        share([r.missed for r in runs]),
        share([r.inside for r in runs]),
        f"{more}, {less}",
    ]


def main() -> None:
    """Take out, replay, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--part", default="", help="only parts with this word")
    parser.add_argument("--runs", type=int, default=24, help="worlds per robot")
    parser.add_argument("--first", type=int, default=1301, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    add_save_argument(parser)
    args = parser.parse_args()
    check_whole(parser, args, "part")
    parts = [p for p in PARTS if args.part in p or not PARTS[p]]
    robots = args.robot or list(SENSORS)
    headings = ("robot", "without", "wrong [%]", "> 3 %", "said [%]", "RMSE [Nm]", "free p99 [N]", "missed [%]")
    headings += ("NEES [%]", "more, less")
    text = heading("What each part of the filter is for", "Rows of a robot that was not run again stay.")
    text += ["| " + " | ".join(headings) + " |", "|---" * len(headings) + "|"]
    with ProcessPoolExecutor(args.jobs) as pool:
        for robot in robots:
            worlds = list(pool.map(without, [(robot, args.first + k, parts) for k in range(args.runs)]))
            runs = [list(of_part) for of_part in zip(*worlds)]
            for part, of_part in zip(parts, runs):
                text.append("| " + " | ".join(cells(robot, part, of_part, runs[0])) + " |")
    text += [row for (robot, _), row in kept_rows(args.save, 0, 1).items() if robot not in robots]
    publish(text, args.save)


if __name__ == "__main__":
    main()
