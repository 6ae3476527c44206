"""Every scenario on both arms, simulated, replayed through an observer and compared with the truth.

    python benchmark/scenario_truth.py --save

What 'contact-estimation simulate SCENARIO --robot ROBOT --seconds 20 --out BAG' and 'contact-estimation replay BAG
--robot ROBOT --export FILE' give, without the files in between.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.commands.simulate import as_recording
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.export import truth_columns
from contact_estimation.io.replay import replay
from contact_estimation.robot import load_arm
from contact_estimation.simulation.scenarios import scenario_names
from contact_estimation.simulation.session import open_simulation

#: In contact above, free below [N].
TOUCH, NOTHING = 3.0, 0.01


def compare(scenario: str, robot: str, observers: list[str], seconds: float):
    """Rows of the table, as lists of cells, one per observer."""
    arm, simulation = load_arm(robot), open_simulation(scenario, robot)
    recording = as_recording(list(simulation.run(seconds)), arm, scenario, simulation.imperfections)
    truth = truth_columns(recording.truth)
    for observer in observers:
        columns = replay(recording, open_stream(arm, observer, recording.sensors)).columns()
        yield [scenario, robot, observer, *cells(columns, truth)]


def cells(columns: dict[str, np.ndarray], truth: dict[str, np.ndarray]) -> list[str]:
    """Figures of one observer."""
    force, valid = np.linalg.norm(truth["truth_force"], axis=1), columns["valid"]
    error = columns["force"] - truth["truth_force"]
    contact, free = valid & (force > TOUCH), valid & (force < NOTHING)
    half = contact & (np.cumsum(contact) > contact.sum() / 2)  # what it has settled on: the second half in contact
    found = [f"{force.max():.1f}", rms(error[contact][:, 2]), rms(error[contact][:, :2]), rms(error[free])]
    if "stiffness" in columns and half.any():
        point = np.linalg.norm(columns["contact_point"] - truth["truth_contact_point"], axis=1)
        found += [f"{1e-3 * np.median(k[half]):.1f}" for k in (truth["truth_stiffness"], columns["stiffness"])]
        found += [f"{1e3 * np.median(point[half]):.0f}"]
    else:
        found += ["-"] * 3
    return found


def rms(values: np.ndarray) -> str:
    """Root mean square of the entries."""
    return f"{np.sqrt(np.mean(values**2)):.2f}" if values.size else "-"


def main() -> None:
    """Compare, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observer", action="append", help="a name in config/observers; repeatable")
    parser.add_argument("--seconds", type=float, default=20.0)
    add_save_argument(parser)
    args = parser.parse_args()
    observers = args.observer or ["contact_imm", "momentum_manufacturer"]
    note = (
        f"{args.seconds:g} s each, seed 0, the shipped observer and sensors, no setting for the scenario. Root mean "
        f"square errors in TCP axes; contact means more than {TOUCH:g} N; stiffness and point are medians over the "
        "second half in contact. The observer is not told of the tool (the finger of 100 to 150 mm that most "
        "scenarios use), nor of friction along a surface."
    )
    lines = [
        *heading("Estimates against the truth of every scenario", note),
        "| scenario | robot | observer | largest force [N] | z in contact [N] | xy in contact [N] | free [N] "
        "| stiffness [kN/m] | estimated | point off [mm] |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for scenario in scenario_names():
        for robot in ("ur16e", "fr3"):
            for row in compare(scenario, robot, observers, args.seconds):
                lines.append(f"| {' | '.join(row)} |")
                print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
