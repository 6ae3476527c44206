"""What the cube tosses say about m/I when the same recording is read in other ways.

    python benchmark/cube_readings.py FILE.npz [--side 0.1048] [--rate 148]

Impacts: at the corner, at the best of three points of a cut corner, anywhere in the section of cube and ground (as
``identify planar --tosses`` has it). Without impacts: a cube that rolls over an edge obeys, about the edge's direction
e, I e . d omega/dt = e . (r x m (a - g)), whatever its two corners share among them; r may be rounded.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.spatial.transform import Rotation

from contact_estimation.identify.planar.cube import identify_cube, unexplained_rotation
from contact_estimation.identify.planar.impacts import least_absolute_ratio
from contact_estimation.identify.planar.stepping import GRAVITY
from contact_estimation.identify.planar.tosses import corner_impacts, cube_corners, gauge, load_tosses

SAMPLES = 9            # samples a second-order fit of the rolling motion takes
TOUCHING, CLEAR = 3e-3, 6e-3   # m: the edge's corners are lower than this, the third corner is higher
SMOOTH_V, SMOOTH_W = 0.06, 0.9  # m/s, rad/s per sample: no impact


def cut_corner(impacts, length: float) -> tuple[float, float]:
    """m/I and unexplained share when each impulse acts at the best of three points ``length`` [m] along the edges."""
    edges = impacts.section - impacts.r[:, None]
    edges = edges / np.maximum(np.linalg.norm(edges, axis=2, keepdims=True), 1e-12)
    moments = np.cross(impacts.r[:, None] + length * edges, impacts.dv[:, None])
    ratios = np.arange(250.0, 650.0, 2.0)
    left = [np.linalg.norm(impacts.dw[:, None] - k * moments, axis=2).min(axis=1) for k in ratios]
    best = int(np.argmin([x.sum() for x in left]))
    return ratios[best], float(np.median(left[best]) / np.median(np.linalg.norm(impacts.dw, axis=1)))


def rolling(tosses, side: float, rate: float, rounding: float) -> tuple[float, int, int]:
    """m/I of the stretches in which the cube rolls over an edge, how many there are, and in how many tosses."""
    frame, corners = gauge(tosses, side, rate), cube_corners(side)
    t = (np.arange(SAMPLES) - SAMPLES // 2) / rate
    fit = np.linalg.pinv(np.stack([np.ones(SAMPLES), t, 0.5 * t**2], axis=1))
    torques, accelerations, used = [], [], set()
    for index, poses in enumerate(tosses):
        p, attitude = frame.scale * poses[:, :3], Rotation.from_quat(poses[:, [4, 5, 6, 3]])
        turn = attitude.as_matrix()
        heights = p[:, None, 2] + np.einsum("nij,cj->nci", turn, corners)[..., 2] - frame.ground
        dv = np.diff(p, n=2, axis=0) * rate
        dw = np.diff((attitude[1:] * attitude[:-1].inv()).as_rotvec(), axis=0) * rate
        rough = (np.linalg.norm(dv, axis=1) > SMOOTH_V) | (np.linalg.norm(dw, axis=1) > SMOOTH_W)
        start = 0
        while start + SAMPLES <= len(p):
            part, middle = slice(start, start + SAMPLES), start + SAMPLES // 2
            low = np.argsort(heights[middle])[:3]
            near = heights[part][:, low]
            if near[:, 1].max() > TOUCHING or near[:, 2].min() < CLEAR or rough[start:start + SAMPLES - 2].any():
                start += 1
                continue
            edge = turn[middle] @ (corners[low[1]] - corners[low[0]])
            edge /= np.linalg.norm(edge)
            body = 0.5 * (corners[low[0]] + corners[low[1]])
            r = turn[middle] @ (body - rounding * np.sign(np.round(body, 9))) - [0.0, 0.0, rounding]
            force = (fit @ p[part])[2] + [0.0, 0.0, GRAVITY]
            torques.append(np.cross(r, force) @ edge)
            accelerations.append((fit @ (attitude[part] * attitude[middle].inv()).as_rotvec())[2] @ edge)
            used.add(index)
            start += SAMPLES // 2
    return least_absolute_ratio(torques, accelerations), len(torques), len(used)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--side", type=float, default=0.1048)
    parser.add_argument("--rate", type=float, default=148.0)
    args = parser.parse_args()
    tosses = load_tosses(args.file)
    impacts = corner_impacts(tosses, args.side, args.rate)
    report = identify_cube(tosses, args.side, args.rate, resamples=2)
    size = np.median(np.linalg.norm(impacts.dw, axis=1))
    moment = np.cross(impacts.r, impacts.dv)
    print("| reading | m/I [1/m^2] | rotation unexplained |\n|---|---|---|")
    for name, ratio in (("corner", report.m_over_i_corner), ("corner, URDF's m/I", 456.8)):
        left = np.median(np.linalg.norm(impacts.dw - ratio * moment, axis=1)) / size
        print(f"| {name} | {ratio:.0f} | {100 * left:.0f} % |")
    for length in (5e-3, 6e-3, 7e-3, 8e-3):
        ratio, left = cut_corner(impacts, length)
        print(f"| corner cut by {1e3 * length:.0f} mm | {ratio:.0f} | {100 * left:.0f} % |")
    for name, ratio in (("section", report.m_over_i), ("section, URDF's m/I", 456.8)):
        print(f"| {name} | {ratio:.0f} | {100 * np.median(unexplained_rotation(impacts, ratio)) / size:.1f} % |")
    for rounding in (0.0, 3e-3):
        ratio, count, in_tosses = rolling(tosses, args.side, args.rate, rounding)
        print(f"| rolling over an edge rounded by {1e3 * rounding:.0f} mm, {count} stretches of {in_tosses} tosses "
              f"| {ratio:.0f} | - |")


if __name__ == "__main__":
    main()
