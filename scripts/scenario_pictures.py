"""A picture and a force curve of every scenario, for docs/simulation.md.

MUJOCO_GL=egl python scripts/scenario_pictures.py docs/pictures
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from contact_estimation.simulation.picture import render
from contact_estimation.simulation.scenarios import load_scenario, scenario_names
from contact_estimation.simulation.session import open_simulation
from contact_estimation.viz.style import figure


def draw(name: str, path: Path) -> None:
    """Simulate ``name`` twice: for the curve, and up to its largest force for the picture."""
    scenario = load_scenario(name)
    samples = list(open_simulation(name).run())
    force = np.array([s.truth["wrench_tcp"][:3] for s in samples])
    norm = np.linalg.norm(force, axis=1)
    simulation = open_simulation(name)
    for _ in range(int(np.argmax(np.convolve(norm, np.ones(250), "same"))) + 1):
        simulation.step()
    fig, axes = figure(1, 2, width=8.6, height=2.9, gridspec_kw={"width_ratios": [1.0, 1.15]})
    axes[0][0].imshow(render(simulation, 560, 420))
    axes[0][0].axis("off")
    time = np.array([s.stamp_ns for s in samples]) * 1e-9
    for column, label in enumerate("xyz"):
        axes[0][1].plot(time, force[:, column], label=f"f_{label}")
    axes[0][1].axvline(simulation.time, color="0.6", linewidth=0.8)
    axes[0][1].set(title=f"{name} ({scenario.robot})", xlabel="time [s]", ylabel="force on the robot, TCP axes [N]")
    axes[0][1].legend(ncols=3)
    fig.savefig(path / f"{name}.png")


def main() -> None:
    """All scenarios."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    path.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or scenario_names():
        draw(name, path)
        print(path / f"{name}.png", flush=True)


if __name__ == "__main__":
    main()
