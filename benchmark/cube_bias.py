"""Bias and coverage of m/I on 48 simulated cubes of known m/I: corners, contact and centre of mass vary.

    python benchmark/cube_bias.py [--tosses 200] [--contacts mid,stiff,soft,bouncy] [--save FILE.md]

The simulation (MuJoCo, ``simulated_tosses``) shares nothing with the estimator's model of contact. Rows are appended to
``--out``; what is there already is not run again. A row takes about a minute.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from report import add_save_argument, heading, publish
from simulated_tosses import Cube, Tracker, toss_cube

from contact_estimation.identify.planar.cube import fit_cube, identify_cube

SHAPES = (("sharp", 0.0), ("round", 0.005), ("round", 0.009), ("cut", 0.004), ("chamfer", 0.006), ("worn", 0.005))
# Duration of an undamped impact [s] and damping ratio: restitution 0.3, 0.3, 0.3 and 0.6.
CONTACTS = {"mid": (0.006, 0.6), "stiff": (0.003, 0.6), "soft": (0.012, 0.6), "bouncy": (0.006, 0.2)}
RATIOS = (380.0, 456.8, 540.0)
OFFSETS = (0.0, 0.006)  # of the centre of mass from the middle [m]
RATE, SAMPLES = 148.0, 105  # 1/s; per toss, until it rests
RESAMPLES = 100  # of the bootstrap


def planted(contacts: list[str]) -> Iterator[tuple[int, str, Cube]]:
    """Seed, name of the contact, and cube of every row."""
    for seed, (contact, (shape, size), offset) in enumerate(product(CONTACTS, SHAPES, OFFSETS), 1):
        if contact in contacts:
            yield seed, contact, Cube(shape, size, RATIOS[seed % 3], (0.0, 0.0, offset), *CONTACTS[contact])


def identify(seed: int, cube: Cube, tosses: int) -> dict[str, float]:
    """Toss a cube and identify it."""
    fitted = fit_cube(toss_cube(cube, tosses, seed, Tracker(RATE, SAMPLES, session=5)), cube.side, RATE)
    report = identify_cube(fitted, resamples=RESAMPLES)
    return {
        "seed": seed,
        "tosses": tosses,
        "m_over_i": report.m_over_i,
        "corner": report.m_over_i_corner,
        "low": report.interval_total[0],
        "high": report.interval_total[1],
        "centre": float(np.linalg.norm(report.centre)),
        "unexplained": report.unexplained,
    }


def rows(args: argparse.Namespace) -> Iterator[tuple[str, Cube, dict[str, float]]]:
    """Contact, cube and what was identified; from ``--out`` where it has them."""
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = map(json.loads, args.out.read_text().splitlines() if args.out.is_file() else ())
    done = {(row["seed"], row["tosses"]): row for row in lines}
    with args.out.open("a") as file:
        for seed, contact, cube in planted(args.contacts.split(",")):
            row = done.get((seed, args.tosses))
            if row is None:
                row = identify(seed, cube, args.tosses)
                print(json.dumps(row), file=file, flush=True)
            yield contact, cube, row


def main() -> None:
    """Print the table, and save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tosses", type=int, default=200)
    parser.add_argument("--contacts", default=",".join(CONTACTS))
    parser.add_argument("--out", type=Path, default=Path("out/cube_bias.jsonl"), help="rows (default %(default)s)")
    add_save_argument(parser)
    args = parser.parse_args()
    lines = [
        *heading("Simulated cubes of known m/I"),
        "| corners | contact | centre of mass off the middle | m/I planted | interval | bias | sharp-corner bias "
        "| centre found | unexplained |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    bias, inside = [], 0
    for contact, cube, row in rows(args):
        truth = float(np.mean(cube.m_over_i))
        bias.append(100 * (row["m_over_i"] / truth - 1))
        inside += row["low"] <= truth <= row["high"]
        lines.append(
            f"| {cube.shape} {1e3 * cube.size:.0f} mm | {contact} | {1e3 * cube.centre[2]:.0f} mm | {truth:.0f} "
            f"| {row['low']:.0f} to {row['high']:.0f} | {bias[-1]:+.1f} % | {100 * (row['corner'] / truth - 1):+.1f} % "
            f"| {1e3 * row['centre']:.1f} mm | {100 * row['unexplained']:.1f} % |"
        )
    lines += [
        "",
        f"mean {np.mean(bias):+.1f} %, standard deviation {np.std(bias):.1f} %, from {min(bias):+.1f} to "
        f"{max(bias):+.1f} %; {inside} of {len(bias)} intervals (`interval_total`) hold the truth",
    ]
    publish(lines, args.save)


if __name__ == "__main__":
    main()
