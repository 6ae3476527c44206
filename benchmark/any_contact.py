#!/usr/bin/env python3
"""What touches the arm, nothing told: pushes anywhere, walls, springs, payloads, free motion; every observer beside it.

    python benchmark/any_contact.py [--robot NAME] [--row WORD] [--seeds N ...] [--anywhere] [--quick]
                                    [--observer NAME] [--json] [--save]

The recordings are made by ``contact_worlds.py`` from rigid-body dynamics with LuGre friction and Hunt-Crossley
surfaces; nothing is shared with an observer. Friction, breakaway length (x 0.5, 1 or 2) and joint stiffness differ from
seed to seed. Observers run with their shipped configuration; those without modes are zeroed at rest. Figures per row,
over all seeds:

- error: pushes and springs: median over touches of the mean error while held, as a share [%] of the force (links: of
  the joint torque), and the worst; surfaces: RMSE [N] in contact.
- silent: share [%] of the held time in which the mode is ``free`` although the estimate is valid.
- named, gone: time [ms] from the first newton until the mode is not ``free``, and from the end until it is: median,
  worst.
- free p99: 99th percentile [N] of the force where nothing touches, from 50 ms after a touch on.
- 2 sigma: share [%] of errors per axis within two published standard deviations, in contact.
- NEES: share [%] of the held time in which the normalised estimation error squared, e^T P^-1 e, lies in the two-sided
  95 % band of chi-square with three degrees of freedom (Bar-Shalom, Li and Kirubarajan, 2001, section 5.4).

``--quick`` takes one seed. With ``--anywhere`` every seed has a posture of its own, drawn from the joints' ranges.
``--save`` writes any_contact.md, or any_contact_anywhere.md: all robots, rows and observers.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from contact_worlds import ROWS, SENSORS, Case, make_case  # neighbours of this script
from report import check_whole, command
from rigid_body_recording import RATE
from scipy.stats import chi2

from contact_estimation.filters.registry import open_stream
from contact_estimation.settings import find_config, load_yaml

OBSERVERS = ("contact_imm", "momentum_calibrated", "disturbance", "ekf")
#: The first second is not scored: an observer may settle. A touch is gone after this [s]; it is held from so long after
#: its rise on.
SETTLE, GONE, HELD = 1.0, 0.05, 0.2
#: Two-sided band of a consistent force's normalised error squared.
BAND = chi2.ppf([0.025, 0.975], 3)
#: Size from which a touch counts [N].
TOUCH = 1.0


def estimates(case: Case, observer: str) -> dict[str, np.ndarray]:
    """Return force, its covariance, joint torque, validity and ``free`` of every sample."""
    recording = case.recording
    stream = open_stream(case.robot, observer, SENSORS[case.robot])
    if not has_modes(observer):
        stream.zero.start()  # what carries no torque bias gets it told, once, at rest
    samples = recording.samples()
    found = [stream.push(*sample) for sample in samples]
    return {
        "force": np.array([e.force_tcp for e in found]),
        "covariance": np.array([e.force_covariance for e in found]),
        "torque": np.array([e.tau_ext for e in found]),
        "valid": np.array([e.valid for e in found]),
        "free": np.array([e.mode == "free" for e in found]),
    }


def spans(mask: np.ndarray) -> list[list[int]]:
    """Return where a mask (N,) is true: first index, and the one behind the last, of every run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(int), [0]])))
    found: list[list[int]] = edges.reshape(-1, 2).tolist()
    return found


def touches(touched: np.ndarray) -> list[tuple[int, int]]:
    """Return first and last sample of every touch of at least 0.3 s; gaps below 0.1 s are none."""
    runs: list[tuple[int, int]] = []
    for start, end in spans(touched):
        if runs and start - runs[-1][1] < 0.1 * RATE:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return [(a, b) for a, b in runs if b - a > 0.3 * RATE]


def score(case: Case, found: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Return what one recording adds to the figures of its row."""
    recording, rise = case.recording, round(case.rise * RATE)
    on_link = case.kind == "link"
    truth, told = (recording.torque, found["torque"]) if on_link else (recording.force, found["force"])
    size, error = np.linalg.norm(truth, axis=1), np.linalg.norm(told - truth, axis=1)
    first = round(SETTLE * RATE)
    figures: dict[str, list[float]] = {
        k: [] for k in ("error", "square", "silent", "named", "gone", "free", "inside", "consistent")
    }
    later = np.ones(len(size), bool)
    later[:first] = False
    for start, end in touches(recording.touched):
        later[start : end + round(GONE * RATE)] = False
        held = slice(start + rise + round(HELD * RATE), end - rise)
        figures["error"].append(100 * float(np.mean(error[held] / size[held])))
        figures["silent"] += (found["free"][held] & found["valid"][held]).astype(float).tolist()
        figures["square"] += (error[start:end] ** 2).tolist()
        onset = start + int(np.argmax(size[start:end] > TOUCH * (0.3 if on_link else 1.0)))
        named = np.flatnonzero(~found["free"][onset:end])
        figures["named"].append(1e3 * (named[0] if len(named) else end - onset) / RATE)
        gone = np.flatnonzero(found["free"][end:])
        figures["gone"].append(1e3 * (gone[0] if len(gone) else len(size) - end) / RATE)
        if not on_link:
            sigma = np.sqrt(np.diagonal(found["covariance"][held], axis1=1, axis2=2))
            figures["inside"] += (np.abs(told - truth)[held] < 2 * sigma).ravel().astype(float).tolist()
            figures["consistent"] += consistent((told - truth)[held], found["covariance"][held]).tolist()
    later &= ~recording.touched
    figures["free"] += np.linalg.norm(found["force"][later], axis=1).tolist()
    return figures


def consistent(error: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return (N,) one where errors (N, 3) lie in the band of their covariances (N, 3, 3); singular ones do not."""
    square = normalised_square(error, covariance)
    return np.asarray((square > BAND[0]) & (square < BAND[1]), float)


def normalised_square(error: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return e^T P^-1 e (N,) of errors (N, 3) with covariances (N, 3, 3)."""
    return np.asarray(np.einsum("ki,kij,kj->k", error, np.linalg.pinv(covariance, hermitian=True), error))


def summary(kind: str, figures: dict[str, list[float]], has_modes: bool) -> dict[str, float | None]:
    """Return the cells of a row by name; None where an observer or a row has none."""
    cells: dict[str, float | None] = dict.fromkeys(CELLS)
    if figures["error"]:
        cells["error [%]"], cells["worst [%]"] = float(np.median(figures["error"])), max(figures["error"])
        if kind != "link":
            cells["RMSE [N]"] = float(np.sqrt(np.mean(figures["square"])))
        if has_modes:
            cells["silent [%]"] = 100 * float(np.mean(figures["silent"]))
            for name in ("named", "gone"):
                cells[f"{name} [ms]"], cells[f"{name}, worst"] = float(np.median(figures[name])), max(figures[name])
    cells["free p99 [N]"] = float(np.percentile(figures["free"], 99))
    if figures["inside"] and np.any(figures["inside"]):
        cells["2 sigma [%]"] = 100 * float(np.mean(figures["inside"]))
        cells["NEES [%]"] = 100 * float(np.mean(figures["consistent"]))
    return cells


CELLS = ("error [%]", "worst [%]", "RMSE [N]", "silent [%]", "named [ms]", "named, worst", "gone [ms]", "gone, worst")
CELLS += ("free p99 [N]", "2 sigma [%]", "NEES [%]")


def has_modes(observer: str) -> bool:
    """Whether an observer is a contact IMM filter: it has the mode ``free`` and estimates torque bias."""
    return load_yaml(find_config("observers", observer))["observer"] in ("contact_imm", "contact_bank")


def exists(observer: str) -> bool:
    """Whether an observer is shipped."""
    try:
        find_config("observers", observer)
    except Exception:
        return False
    return True


def table(robot: str, rows: dict[str, dict[str, dict[str, float | None]]]) -> list[str]:
    """Return the Markdown table of one robot."""
    lines = [f"## {robot}", "", "| row | observer | " + " | ".join(CELLS) + " |", "|---" * (len(CELLS) + 2) + "|"]
    for row, observers in rows.items():
        for observer, cells in observers.items():
            values = ["-" if v is None else f"{v:.1f}" if abs(v) < 100 else f"{v:.0f}" for v in cells.values()]
            lines.append(f"| {row} | {observer} | " + " | ".join(values) + " |")
    return [*lines, ""]


def main() -> None:
    """Simulate, replay, score, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", choices=tuple(SENSORS), help="repeatable; default all")
    parser.add_argument("--row", help="only rows whose name has this word")
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103])
    parser.add_argument("--anywhere", action="store_true", help="a posture of its own per seed")
    parser.add_argument("--quick", action="store_true", help="the first seed only")
    parser.add_argument("--observer", action="append", help="a name in config/observers or a file; repeatable")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    check_whole(parser, args, "quick", "robot", "row", "observer")
    warnings.simplefilter("ignore")
    observers = args.observer or [name for name in OBSERVERS if exists(name)]
    results: dict[str, dict[str, dict[str, dict[str, float | None]]]] = {}
    for robot in args.robot or SENSORS:
        results[robot] = {}
        for row in [name for name in ROWS if not args.row or args.row in name]:
            total: dict[str, dict[str, list[float]]] = {}
            for seed in args.seeds[: 1 if args.quick else None]:
                case = make_case(robot, row, seed, args.anywhere)
                for observer in observers:
                    for name, values in score(case, estimates(case, observer)).items():
                        total.setdefault(observer, {}).setdefault(name, []).extend(values)
            results[robot][row] = {name: summary(ROWS[row].kind, f, has_modes(name)) for name, f in total.items()}
            print("\n".join(table(robot, {row: results[robot][row]})[4:-1]), file=sys.stderr, flush=True)
    if args.json:
        print(json.dumps(results))
        return
    name = "any_contact_anywhere" if args.anywhere else "any_contact"
    text = ["# Whatever touches the arm" + ", in random postures" * args.anywhere, ""]
    text += [f"`{command()}`; the figures are explained in the script."]
    for robot, rows in results.items():
        text += ["", *table(robot, rows)[:-1]]
    print("\n".join(text))
    if args.save:
        (Path(__file__).parent / f"{name}.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
