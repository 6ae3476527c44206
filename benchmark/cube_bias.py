"""Bias of m/I on simulated cubes of known m/I, by shape of the corners, contact and place of the centre of mass.

    python benchmark/cube_bias.py [--tosses 200] [--contacts mid,stiff,soft,bouncy]

The simulation (MuJoCo, ``simulated_tosses``) shares nothing with the estimator's model of contact. About 10 s a row.
"""

from __future__ import annotations

import argparse

import numpy as np

from contact_estimation.identify.planar.cube import fit_cube
from contact_estimation.studies.planar.simulated_tosses import Cube, Tracker, toss_cube

SHAPES = (("sharp", 0.0), ("round", 0.005), ("round", 0.009), ("cut", 0.004), ("chamfer", 0.006), ("worn", 0.005))
# Duration of an undamped impact [s] and damping ratio: restitution 0.3, 0.3, 0.3 and 0.6.
CONTACTS = {"mid": (0.006, 0.6), "stiff": (0.003, 0.6), "soft": (0.012, 0.6), "bouncy": (0.006, 0.2)}
RATIOS = (380.0, 456.8, 540.0)
OFFSET = 0.006  # m
RATE, SAMPLES = 148.0, 105  # 1/s; per toss, until it rests


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tosses", type=int, default=200)
    parser.add_argument("--contacts", default=",".join(CONTACTS))
    args = parser.parse_args()
    print(
        "| corners | contact | centre of mass off the middle | m/I planted | bias | sharp-corner bias | centre found "
        "| unexplained |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    bias, seed = [], 0
    for contact in args.contacts.split(","):
        duration, damping = CONTACTS[contact]
        for shape, size in SHAPES:
            for offset in (0.0, OFFSET):
                seed += 1
                ratio = RATIOS[seed % 3]
                cube = Cube(shape, size, ratio, (0.0, 0.0, offset), duration, damping)
                fitted = fit_cube(
                    toss_cube(cube, args.tosses, seed, Tracker(RATE, SAMPLES, session=5)), cube.side, RATE
                )
                bias.append(100 * (fitted.model.ratio[0] / ratio - 1))
                print(
                    f"| {shape} {1e3 * size:.0f} mm | {contact} | {1e3 * offset:.0f} mm | {ratio:.0f} "
                    f"| {bias[-1]:+.1f} % | {100 * (fitted.m_over_i_corner / ratio - 1):+.1f} % "
                    f"| {1e3 * np.linalg.norm(fitted.model.centre):.1f} mm "
                    f"| {100 * fitted.unexplained(fitted.model):.1f} % |",
                    flush=True,
                )
    print(
        f"mean {np.mean(bias):+.1f} %, standard deviation {np.std(bias):.1f} %, from {min(bias):+.1f} to "
        f"{max(bias):+.1f} %, {len(bias)} recordings"
    )


if __name__ == "__main__":
    main()
