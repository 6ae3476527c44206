#!/usr/bin/env python3
"""Consistency of the probing estimator's intervals: one condition changed at a time.

    python benchmark/probing_consistency.py [--example planar|spatial] [--runs N] [--seeds N ...]

Prints the mean NEES at the time of scoring and at the end (8 s) per condition, averaged over the seeds (least and
largest seed), and the 95 % interval of a consistent filter for one seed.
"""

from __future__ import annotations

import argparse
import dataclasses

import numpy as np

from contact_estimation.settings import replace
from contact_estimation.studies.probing.experiment import EXAMPLES, Experiment, run, simulate
from contact_estimation.studies.probing.score import score

WALKS = ("tip_walk", "angle_walk", "offset_walk", "stiffness_walk", "friction_walk")
#: condition -> (changed keys of the settings of world and filter, further changes of the experiment).
CONDITIONS = {
    "as shipped": ({}, {}),
    "the filter assumes friction opposite to sliding": ({"presliding_stiffness": 1e9}, {}),
    "neither side has presliding": ({"presliding_stiffness": 1e9}, {"presliding": 1e6}),
    "the contact is 1.5 times as stiff as expected": ({}, {"presliding": 3e4}),
    "the contact is 1.5 times as soft as expected": ({}, {"presliding": 2e4 / 1.5}),
    "parameters are constant, and the filter knows it": (dict.fromkeys(WALKS, 0.0), {}),
    "a third of the jerk": ({"jerk": 1.0, "angular_jerk": 10.0}, {}),
    "residual taken as white": ({"residual_colour": 1.0}, {}),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", choices=EXAMPLES, default="planar")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    for name, (keys, changes) in CONDITIONS.items():
        results = []
        for seed in args.seeds:
            job = Experiment(args.example, args.runs, seed, seconds=8.0, **changes)
            job = dataclasses.replace(job, settings=replace(job.settings, **keys))
            results.append(score(run(job, simulate(job)), job.evaluated_at))
        low, high = results[0]["nees_interval"]
        columns = [[result["nees_mean"] for result in results], [result["nees_over_time"]["8"] for result in results]]
        texts = [f"{np.mean(nees):7.2f} ({min(nees):.2f} to {max(nees):.2f})" for nees in columns]
        print(f"{name:<52} {texts[0]:<26} at 8 s {texts[1]:<26} consistent {low:.2f} to {high:.2f}", flush=True)


if __name__ == "__main__":
    main()
