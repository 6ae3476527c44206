"""Predict where the recorded cube will be, in tosses that its identification has not seen.

    python benchmark/cube_rollouts.py FILE.npz [--samples 10] [--save benchmark/cube_rollouts.md]

Even tosses are identified, flights of the odd tosses give the starts: the cube's state at the last sample before a
contact. Errors are the rms over all samples of a rollout; medians and upper quartiles over the rollouts.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from cube_rollout import flight_ends, renamed, rollout_errors
from report import add_save_argument, heading, publish

from contact_estimation.identify.planar.cube import fit_cube, identify_cube
from contact_estimation.identify.planar.cube_model import fit
from contact_estimation.identify.planar.tosses import load_tosses


def main() -> None:
    """Identify, predict, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", metavar="FILE.npz", help="cube tosses, see identify planar --tosses")
    parser.add_argument("--side", type=float, default=0.1048, help="[m]")
    parser.add_argument("--rate", type=float, default=148.0, help="samples per second")
    parser.add_argument("--samples", type=int, default=10, help="predicted (default %(default)s: 68 ms)")
    parser.add_argument("--held", type=float, default=456.8, help="another m/I, all else fitted anew [1/m^2]")
    add_save_argument(parser)
    args = parser.parse_args()
    tosses = load_tosses(args.file)
    fitted = fit_cube(tosses[::2], args.side, args.rate)
    report = identify_cube(fitted, resamples=50)
    unseen = renamed(tosses[1::2], fitted, args.rate)
    starts = flight_ends(tosses[1::2], unseen, args.rate, args.samples)
    held = replace(fitted.model, ratio=np.array([args.held]))
    models = {
        f"identified, m/I {report.m_over_i:.0f}": fitted.model,
        f"m/I held at {args.held:g}": fit(fitted.residuals(), held, hold_ratio=True),
    }
    note = f"{len(starts.p)} rollouts of {args.samples / args.rate:.3f} s, held-out tosses."
    lines = heading("Rollouts of the recorded cube", note)
    lines += ["| model | position, median [mm] | upper quartile | angle, median [deg] | upper quartile |"]
    lines += ["|---|---|---|---|---|"]
    for name, model in models.items():
        errors = rollout_errors(starts, model, report, args.rate)
        (a, b), (c, d) = (np.quantile(each, [0.5, 0.75]) for each in (1e3 * errors.position, np.rad2deg(errors.angle)))
        lines.append(f"| {name} | {a:.2f} | {b:.2f} | {c:.2f} | {d:.2f} |")
    publish(lines, args.save)


if __name__ == "__main__":
    main()
