"""A picture and a force curve of every scenario, for docs/simulation.md.

python scripts/scenario_pictures.py docs/pictures
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from contact_estimation.simulation.scenarios import load_scenario, scenario_names
from contact_estimation.simulation.session import Simulation, open_simulation
from contact_estimation.viz.markers import Shape, arrow, dot
from contact_estimation.viz.picture import arm_picture
from contact_estimation.viz.player import Box
from contact_estimation.viz.raster import Camera
from contact_estimation.viz.style import figure

FORCE, TOOL = (0.84, 0.15, 0.15, 1.0), (0.15, 0.15, 0.15, 1.0)
SURFACES = ((0.45, 0.66, 0.82), (0.88, 0.62, 0.32), (0.50, 0.72, 0.50))


def bodies(simulation: Simulation) -> list[Box]:
    """Surfaces of a simulation as bodies to draw."""
    slabs = [surface.slab() for surface in simulation.plant.surfaces]
    return [Box(*slab, colour=SURFACES[k % len(SURFACES)]) for k, slab in enumerate(slabs)]


def shapes(simulation: Simulation) -> list[Shape]:
    """Tool points, what holds them, and the direction of the force on the robot."""
    plant, frame = simulation.plant, simulation.arm.base_frame
    points = [plant.point(i) for i in range(len(simulation.scenario.tool_points))]
    rod = (0.012, 0.012, 1e-4)
    found = [arrow(f"rod/{i}", frame, plant.position, p, TOOL, size=rod) for i, p in enumerate(points)]
    found += [dot(f"tip/{i}", frame, p, 0.022, TOOL) for i, p in enumerate(points)]
    force = plant.rotation @ plant.wrench_tcp[:3]
    if np.linalg.norm(force) > 0.5:
        start = plant.truth()["contact_point"]
        found.append(arrow("force", frame, start, start + 0.2 * force / np.linalg.norm(force), FORCE))
    return found


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
    point = simulation.plant.point()
    target = 0.85 * point + [0.0, 0.0, 0.10]
    camera = Camera(target, 1.1, float(np.arctan2(point[1], point[0])) - 1.0, 0.32)
    q, boxes = np.array(simulation.plant.q), bodies(simulation)
    axes[0][0].imshow(arm_picture(simulation.arm, q, shapes(simulation), boxes, 560, 420, camera))
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
