"""What cube tosses say about m/I when the same recording is read in other ways.

    python benchmark/cube_readings.py FILE.npz [--side 0.1048] [--rate 148] [--held 456.8]

Impacts: sharp corners with the centre of mass in the middle; blunt corners, axes as recorded; everything (as
``identify planar --tosses`` has it), and that by halves of the tosses, by hardness, and with m/I held. Without impacts:
a cube that rolls over an edge obeys, about the edge's direction e, I e . d omega/dt = e . (r x m (a - g)), whatever
its two corners share among them. Where the centre of mass is, free flight says on its own.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from flight_centre import centre_of_mass
from scipy.spatial.transform import Rotation

from contact_estimation.identify.planar.corner_impacts import corner_impacts
from contact_estimation.identify.planar.cube import FittedCube, fit_cube
from contact_estimation.identify.planar.cube_model import fit
from contact_estimation.identify.planar.cube_shape import cube_corners, norms
from contact_estimation.identify.planar.impacts import least_absolute_ratio
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.planar.tosses import load_tosses, velocity_changes

SAMPLES = 9  # samples a second-order fit of the rolling motion takes
TOUCHING, CLEAR = 3e-3, 6e-3  # m: the edge's corners are lower than this, the third corner is higher
SMOOTH_V, SMOOTH_W = 0.06, 0.9  # m/s, rad/s per sample: no impact


def rolling(tosses, fitted: FittedCube, rate: float) -> tuple[float, int, int]:
    """m/I of the stretches in which the cube rolls over an edge, how many there are, and in how many tosses."""
    model, corners = fitted.model, cube_corners(fitted.model.side)
    lengths = np.concatenate([[1.0], model.lengths])
    t = (np.arange(SAMPLES) - SAMPLES // 2) / rate
    second = np.linalg.pinv(np.stack([np.ones(SAMPLES), t, 0.5 * t**2], axis=1))
    torques, accelerations, used = [], [], set()
    for index, poses in enumerate(tosses):
        attitude = Rotation.from_quat(poses[:, [4, 5, 6, 3]])
        turn, centre = attitude.as_matrix(), fitted.turns[index] @ model.centre
        middle = fitted.frame.scale * poses[:, :3]
        p = middle + turn @ centre
        heights = middle[:, None, 2] + np.einsum("nij,cj->nci", turn, corners)[..., 2] - fitted.frame.ground
        dv, dw = velocity_changes(p, attitude, rate)
        rough = (np.linalg.norm(dv, axis=1) > SMOOTH_V) | (np.linalg.norm(dw, axis=1) > SMOOTH_W)
        start = 0
        while start + SAMPLES <= len(p):
            part, now = slice(start, start + SAMPLES), start + SAMPLES // 2
            low = np.argsort(heights[now])[:3]
            near = heights[part][:, low]
            if near[:, 1].max() > TOUCHING or near[:, 2].min() < CLEAR or rough[start : start + SAMPLES - 2].any():
                start += 1
                continue
            edge = turn[now] @ (corners[low[1]] - corners[low[0]])
            edge /= np.linalg.norm(edge)
            r = turn[now] @ (norms(-turn[now, 2][None], 0.5 * model.side)[1][0] @ lengths - centre)
            force = (second @ p[part])[2] + [0.0, 0.0, GRAVITY]
            torques.append(np.cross(r, force) @ edge)
            accelerations.append((second @ (attitude[part] * attitude[now].inv()).as_rotvec())[2] @ edge)
            used.add(index)
            start += SAMPLES // 2
    return least_absolute_ratio(torques, accelerations), len(torques), len(used)


def row(name: str, fitted: FittedCube, model) -> None:
    """Print what ``model`` leaves of ``fitted``'s impacts."""
    height = 1e3 * np.median(np.abs(fitted.residuals().height(model)))
    print(
        f"| {name} | {np.mean(model.ratio):.0f} | {100 * fitted.unexplained(model):.1f} % | {height:.2f} mm "
        f"| {1e3 * np.linalg.norm(model.centre):.1f} mm |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--side", type=float, default=0.1048)
    parser.add_argument("--rate", type=float, default=148.0)
    parser.add_argument("--held", type=float, default=456.8)
    args = parser.parse_args()
    tosses = load_tosses(args.file)
    fitted = fit_cube(tosses, args.side, args.rate)
    model, impacts = fitted.model, fitted.impacts
    raw = FittedCube(
        model,
        corner_impacts(tosses, args.side, args.rate, fitted.frame),
        np.broadcast_to(np.eye(3), (len(tosses), 3, 3)),
        fitted.frame,
        fitted.m_over_i_corner,
    )
    sharp = replace(model, ratio=np.array([fitted.m_over_i_corner]), centre=np.zeros(3), lengths=np.zeros(3))
    print(
        "| reading | m/I [1/m^2] | rotation unexplained | height misfit | centre of mass off the middle |\n"
        "|---|---|---|---|---|"
    )
    row("sharp corners, centre of mass in the middle", raw, sharp)
    row("blunt corners, axes as recorded", raw, fit(raw.residuals(), sharp))
    row("everything", fitted, model)
    three = fit(fitted.residuals(), replace(model, ratio=np.repeat(model.ratio, 3)))
    row("the same, m/I along three axes " + ", ".join(f"{k:.0f}" for k in three.ratio), fitted, three)
    row(
        f"the same, m/I held at {args.held:g}",
        fitted,
        fit(fitted.residuals(), replace(model, ratio=np.array([args.held])), hold_ratio=True),
    )
    even = impacts.toss % 2 == 0
    hard = impacts.slip_before[:, 2] < np.median(impacts.slip_before[:, 2])
    for name, seen, unseen in (
        ("even tosses; misfits of the odd ones", even, ~even),
        ("odd tosses; misfits of the even ones", ~even, even),
        ("harder impacts; misfits of the softer ones", hard, ~hard),
        ("softer impacts; misfits of the harder ones", ~hard, hard),
    ):
        row(name, replace(fitted, impacts=impacts[unseen]), fit(fitted.residuals(seen), model))
    ratio, count, in_tosses = rolling(tosses, fitted, args.rate)
    print(f"| rolling over an edge, no impact: {count} stretches of {in_tosses} tosses | {ratio:.0f} | - | - | - |")
    # The names of tosses without an impact are guessed from their neighbours: leave them out.
    sure = np.unique(impacts.toss)
    for name, turns in (("named as found", fitted.turns[sure]), ("as recorded", None)):
        flight = centre_of_mass([tosses[i] for i in sure], args.side, args.rate, turns)
        print(
            f"centre of mass by {flight.flights} flights alone, axes {name} [mm]:",
            np.round(1e3 * flight.centre, 1),
            "+-",
            np.round(1e3 * flight.error, 1),
        )
    print("by impacts [mm]:", np.round(1e3 * model.centre, 1))


if __name__ == "__main__":
    main()
