"""The simulated UR16e beside the recorded one: joint friction loop and contact loop of a vertical press.

    python benchmark/friction_loop.py --out docs/pictures/friction_loop.png

The simulated arm makes the recorded motion (approach, hold, retreat at the recorded times and depth) with the shipped
imperfections. Friction torque is tau + J^T f - G on both sides, in the directions of travel; its Coulomb level is half
the difference between pressing and retreating at the same place. Needs the recording in ``data/ur16e_press`` of the
folder named by CONTACT_ESTIMATION_SHARED.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from contact_estimation.robot import load_arm
from contact_estimation.simulation.session import open_simulation
from contact_estimation.viz.style import COLOURS, figure

#: The recorded wrist currents carry the gear ratio 54 of the papers; the joints have 101.
WRIST = np.array([1, 1, 1, 101 / 54, 101 / 54, 101 / 54])
JOINTS = (1, 2, 3)
WIDTH = 25


def smooth(values):
    """Return moving average over 50 ms."""
    kernel = np.ones(WIDTH) / WIDTH
    return np.apply_along_axis(lambda v: np.convolve(v, kernel, "same"), 0, values)


def friction(arm, q, tau, f_tcp):
    """Friction torque (N, n) [Nm], TCP height (N,) [m] and vertical force (N,) [N] of samples."""
    out, height, force = [], [], []
    for q_k, tau_k, f_k in zip(q, tau, f_tcp):
        position, rotation = arm.tcp_pose(q_k)
        base = rotation @ f_k
        out.append(tau_k + arm.tcp_jacobian(q_k)[:3].T @ base - arm.gravity(q_k))
        height.append(position[2])
        force.append(base[2])
    return smooth(np.array(out)), np.array(height), np.array(force)


def phases(height):
    """Return samples of the press and of the retreat: where the smoothed speed exceeds half its largest value."""
    speed = np.gradient(smooth(height[:, None])[:, 0]) * 500.0
    speed[:WIDTH], speed[-WIDTH:] = 0.0, 0.0
    return speed < 0.5 * speed.min(), speed > 0.5 * speed.max()


def coulomb_levels(torque, height):
    """Half the difference between press and retreat (n,) [Nm], compared height by height."""
    down, up = phases(height)
    low, high = max(height[down].min(), height[up].min()), min(height[down].max(), height[up].max())
    grid = np.linspace(low + 0.15 * (high - low), high - 0.15 * (high - low), 50)

    def at(mask, column):
        order = np.argsort(height[mask])
        return np.interp(grid, height[mask][order], column[mask][order])

    return np.array([0.5 * np.mean(np.abs(at(down, column) - at(up, column))) for column in torque.T])


def simulate(arm, data, height, force, seed):
    """Return the recorded motion, made by the simulated arm: (q, tau, f_tcp)."""
    down, up = phases(height)
    times = [np.flatnonzero(down)[[0, -1]] / 500.0, np.flatnonzero(up)[[0, -1]] / 500.0]
    depth, end = float(np.min(height) - height[0]), float(height[-1] - height[0])
    contact = float(height[np.argmax(force - force[-500:].mean() > 3.0)] - height[0])
    (start, pressed), (leave, free) = times
    motion = [
        {"duration": start},
        {"duration": pressed - start, "move": [0, 0, depth], "shape": "linear"},
        {"duration": leave - pressed, "move": [0, 0, depth]},
        {"duration": free - leave, "move": [0, 0, end], "shape": "linear"},
        {"duration": len(height) / 500.0 - free, "move": [0, 0, end]},
    ]
    pressure = force - force[-500:].mean()
    stick = {
        "name": "stick",
        "offset": [0, 0, contact],
        "stiffness": 0.8 * float(pressure.max()) / (contact - depth),
        "damping": 60.0,
        "friction": 0.4,
        "hysteresis": 6.0,
        "hysteresis_length": 5e-4,
        "stiffening": 0.1 * pressure.max() / (contact - depth) ** 2,
    }
    start_q = data["q"][:100].mean(axis=0)
    sim = open_simulation(
        "linear_contact",
        "ur16e",
        seed=seed,
        motion=motion,
        surfaces=[stick],
        start={"ur16e": start_q.tolist()},
        controller={"ur16e": "admittance"},
    )
    samples = list(sim.run(len(height) / 500.0))
    return (
        np.array([s.q for s in samples]),
        np.array([s.tau for s in samples]),
        np.array([s.wrench_tcp[:3] for s in samples]),
    )


def main() -> None:
    """Compare, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recording", default="ur_vertical_1")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    shared = Path(os.environ.get("CONTACT_ESTIMATION_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    data = np.load(shared / "data" / "ur16e_press" / f"{args.recording}.npz", allow_pickle=False)
    arm = load_arm("ur16e")
    real = friction(arm, data["q"], data["tau"] * WRIST, data["f_tcp"] - data["f_tcp_zero_offset"])
    runs = []
    for seed in range(args.seeds):
        q, tau, force = simulate(arm, data, real[1], real[2], seed)
        runs.append(friction(arm, q, tau, force))
    levels = coulomb_levels(real[0], real[1])
    simulated = np.array([coulomb_levels(run[0], run[1]) for run in runs])
    table = {
        f"joint {j + 1}": {
            "recorded_Nm": round(float(levels[j]), 2),
            "simulated_Nm": round(float(np.median(simulated[:, j])), 2),
            "ratio": round(float(np.median(simulated[:, j]) / levels[j]), 3),
        }
        for j in JOINTS
    }
    table["peak_force_N"] = {"recorded": round(float(real[2].max()), 1), "simulated": round(float(runs[0][2].max()), 1)}
    table["loop_area_mJ"] = {
        "recorded": round(1e3 * loop_area(real), 1),
        "simulated": round(1e3 * loop_area(runs[0]), 1),
    }
    print(json.dumps(table, indent=1))
    if args.out:
        draw(args.out, real, runs[0])


def loop_area(run) -> float:
    """Work lost in the contact [J]."""
    return float(np.sum(0.5 * (run[2][1:] + run[2][:-1]) * -np.diff(smooth(run[1][:, None])[:, 0])))


def draw(path, real, simulated) -> None:
    """Loops over the height of the TCP."""
    fig, axes = figure(1, 4, width=13.0, height=3.4)
    for axis, j in zip(axes[0], JOINTS):
        for run, colour, label in ((real, COLOURS[0], "recorded"), (simulated, COLOURS[2], "simulated")):
            axis.plot(
                1e3 * (run[1] - run[1][0])[WIDTH:-WIDTH],
                run[0][WIDTH:-WIDTH, j],
                color=colour,
                label=label,
                linewidth=0.8,
            )
        axis.set(title=f"joint {j + 1}: tau + J'f - G", xlabel="height of the TCP [mm]", ylabel="friction torque [Nm]")
    for run, colour, label in ((real, COLOURS[0], "recorded"), (simulated, COLOURS[2], "simulated")):
        axes[0][3].plot(1e3 * (run[1] - run[1][0]), run[2], color=colour, label=label, linewidth=0.8)
    axes[0][3].set(title="contact", xlabel="height of the TCP [mm]", ylabel="vertical force [N]")
    axes[0][0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path)


if __name__ == "__main__":
    main()
