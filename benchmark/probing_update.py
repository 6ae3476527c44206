#!/usr/bin/env python3
"""What one update of the probing estimator costs on one core.

    python benchmark/probing_update.py [--runs N] [--rounds N] [--save]

Simulated experiments are filtered sample by sample; only full updates count (motion, sign modes, wrench, merge), not
the samples in which the probe sticks. Times are processor time. The unit is a step of the plain EKF (position measured,
three parameters) in generated code, see ekf_step.py. It and the cases take turns, run by run, so that a machine that
does other work as well slows all of them alike. `--save` writes probing_update.md beside this file.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from ekf_step import samples_of, settings_of  # a neighbour of this script
from report import add_save_argument, heading, publish

from contact_estimation.filters.ekf import Ekf
from contact_estimation.identify.probing.cubature import rule
from contact_estimation.identify.probing.settings import ProbingSettings
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace
from contact_estimation.studies.probing.experiment import Experiment, run, simulate

#: Most steps of the plain EKF that an update with one tip may cost.
BUDGET = 40.0
#: case -> (experiment, dimension of the integration, target rate [1/s] or None).
CASES = {
    "planar, degree 7": (Experiment("planar"), 7, 1000.0),
    "planar, degree 3": (Experiment("planar", settings=replace(ProbingSettings(), degree=3)), 7, None),
    "spatial, degree 7": (Experiment("spatial"), 10, 200.0),
    "spatial, degree 5": (Experiment("spatial", settings=replace(ProbingSettings(), degree=5)), 10, None),
    "spatial, two tips, degree 5": (Experiment("spatial", tips=(-0.01, 0.01)), 13, 200.0),
    "spatial, two tips, degree 7": (
        Experiment("spatial", tips=(-0.01, 0.01), settings=replace(ProbingSettings(), degree_several=7)),
        13,
        None,
    ),
}


def main() -> None:
    """Measure, print, and save when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2, help="runs per case and round")
    parser.add_argument("--rounds", type=int, default=3)
    add_save_argument(parser)
    args = parser.parse_args()
    head = heading("One full update of the probing estimator", f"One thread, numpy {np.__version__}.")
    times, ratios, arm = {name: [] for name in CASES}, {name: [] for name in CASES}, load_arm("ur16e")
    ekf, steps = Ekf(arm, settings_of(["stiffness"], "position")), samples_of(arm, 500)
    for seed in range(args.rounds):
        for name, (experiment, _, _) in CASES.items():
            job = type(experiment)(**{**vars(experiment), "runs": 1, "seconds": 5.0})
            for k in range(args.runs):
                one = type(job)(**{**vars(job), "seed": args.runs * seed + k})
                before = ekf_step(ekf, steps)
                (trace,) = run(one, simulate(one))
                seconds = trace.seconds[trace.used]
                times[name].append(seconds)
                ratios[name].append(2.0 * np.median(seconds) / (before + ekf_step(ekf, steps)))
    publish([*head, *table(times, ratios)], args.save)


def ekf_step(ekf: Ekf, steps: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> float:
    """Return the processor time [s] of a step of the plain EKF."""
    begin = time.process_time()
    for sample in steps:
        ekf.step(0.002, *sample)
    return (time.process_time() - begin) / len(steps)


def table(times, ratios) -> list[str]:
    """Return the lines of a Markdown table of the medians."""
    lines = [
        "| case | sigma points | p50 [ms] | p99 [ms] | updates/s | in steps of the EKF | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (experiment, dimension, target) in CASES.items():
        seconds = np.concatenate(times[name])
        median, cfg = np.median(seconds), experiment.settings
        degree = cfg.degree if len(experiment.tips) == 1 else cfg.degree_several
        ratio = np.median(ratios[name])
        good = target is not None and 1.0 / median >= target and (ratio <= BUDGET or len(experiment.tips) > 1)
        most = "" if len(experiment.tips) > 1 else f", {BUDGET:g} steps"
        met = "" if target is None else f"{target:.0f}/s{most}: {'met' if good else 'missed'}"
        lines.append(
            f"| {name} | {len(rule(dimension, degree).weights)} | {1e3 * median:.2f} | "
            f"{1e3 * np.percentile(seconds, 99):.2f} | {1.0 / median:.0f} | {ratio:.1f} | {met} |"
        )
    return lines


if __name__ == "__main__":
    main()
