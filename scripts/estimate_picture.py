"""The picture of the README: an arm presses, and what the default observer makes of it.

python scripts/estimate_picture.py docs/pictures/estimate.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from contact_estimation import Estimate, open_stream
from contact_estimation.commands.replay import DEFAULT_OBSERVER
from contact_estimation.simulation.session import open_simulation
from contact_estimation.viz.markers import estimate_shapes
from contact_estimation.viz.picture import arm_picture
from contact_estimation.viz.player import Box
from contact_estimation.viz.style import COLOURS, TRUTH, band, figure

ROBOT, SCENARIO, SEED = "ur16e", "linear_contact", 1
#: The scenario's press, faster: it holds still, presses 4.5 mm deep, holds, and lets go.
MOTION = [
    {"duration": 0.6},
    {"duration": 1.0, "move": [0.0, 0.0, -0.0045]},
    {"duration": 0.4, "move": [0.0, 0.0, -0.0045]},
    {"duration": 1.0, "move": [0.0, 0.0, 0.0]},
]
PICTURED = 1.8  # [s], when the picture is taken
LABELS = (("estimated force", (0.84, 0.37, 0.0)), ("estimated surface and stiffness axis", (0.0, 0.55, 0.40)))


def main() -> None:
    """Simulate, estimate, draw."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures/estimate.png")
    simulation = open_simulation(SCENARIO, ROBOT, seed=SEED, motion=MOTION)
    stream = open_stream(simulation.arm, DEFAULT_OBSERVER, simulation.imperfections.sensors)
    estimates: list[Estimate] = []
    truth, picture = [], None
    for sample in simulation.run():
        estimates.append(stream.push(sample.stamp_ns + 1_000_000_000, sample.q, sample.dq, sample.tau))
        truth.append(sample.truth["wrench_tcp"][2])
        if picture is None and simulation.time >= PICTURED:
            boxes = [Box(*surface.slab(), colour=(0.45, 0.66, 0.82)) for surface in simulation.plant.surfaces]
            arm, q = simulation.arm, np.array(simulation.plant.q)
            shapes = estimate_shapes(estimates[-1], arm.tcp_frame, arm.base_frame)
            picture = arm_picture(arm, q, shapes, boxes, 900, 760)
    t = np.array([e.t - 1.0 for e in estimates])
    force = np.array([e.force_tcp[2] if e.valid else np.nan for e in estimates])
    std = np.array([np.sqrt(e.force_covariance[2, 2]) if e.valid else np.nan for e in estimates])
    stiffness = np.array([e.stiffness if e.valid else np.nan for e in estimates])
    fig, axes = figure(1, 2, width=10.0, height=4.2, gridspec_kw={"width_ratios": [1.18, 1.0]})
    picture_axis, axis = axes[0]
    picture_axis.imshow(picture)
    picture_axis.axis("off")
    for k, (text, colour) in enumerate(LABELS):
        picture_axis.text(0.03, 0.04 + 0.06 * k, text, color=colour, transform=picture_axis.transAxes, weight="bold")
    axis.plot(t, truth, color=TRUTH, linewidth=1.6, label="truth")
    band(axis, t, np.nan_to_num(force), np.nan_to_num(std), COLOURS[2], "estimate, 2 sigma")
    axis.axvline(PICTURED, color="0.6", linewidth=0.8)
    axis.set(xlabel="time [s]", ylabel="force on the robot along the tool [N]")
    held = (t > PICTURED - 0.2) & (t < PICTURED)
    axis.set_title(f"stiffness {np.nanmedian(stiffness[held]) / 1e3:.1f} kN/m (truth 26.0), no force sensor")
    axis.legend(loc="lower left")
    fig.savefig(path)
    print(path)


if __name__ == "__main__":
    main()
