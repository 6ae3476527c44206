#!/usr/bin/env python3
"""How soon the contact IMM filter commits to a touch and a release, by the speed of the approach.

    python benchmark/touch_delay.py [--robot ur16e] [--robot fr3] [--seed N] [--taps N] [--save]

The arm taps a table of 25 kN/m, which it meets and leaves at the middle of its stroke, where it is fastest. It is
simulated as in ``imm_truth.py``, at 4 kHz with what the filter does not model. Per speed: median, least, largest time
from the true change to the decision over all taps [ms] (negative: too early), the force at that time (for a release the
force so long before it), and how often the mode changed beyond the true changes.

Beside each time what the force does: how fast it rises in the 20 ms after a touch and falls in the 20 ms before a
release, r [N/s]; and for the UR16e the bound that this sets: who knew moment and slope beforehand, and had white noise
of sigma = 0.9 N per sample alone to fear (12 urad of encoder noise on its two elastic joints, in this posture), would
be certain to z = 4 standard deviations after (3 z^2 sigma^2 / (r dt)^2)^(1/3) samples. ``--save`` writes
touch_delay.md.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from imm_truth import SENSORS, TABLE, mode_delays, move, on_surfaces, simulated_sensors  # a neighbour of this script

from contact_estimation.filters.registry import load_observer_settings, make_observer
from contact_estimation.filters.stream import SampleStream
from contact_estimation.robot import load_arm
from contact_estimation.simulation.scenarios.settings import ScenarioSettings
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation

SPEEDS = (2e-3, 5e-3, 1e-2, 2e-2, 4e-2)
#: [m] The FR3 gives way (impedance): its reference goes deeper.
STROKE = {"ur16e": 5e-3, "fr3": 1.6e-2}
#: Largest speed of a segment over its mean speed.
PEAK = 1.875
#: [s] sample interval; white noise of the force per sample [N] where it is known; certainty.
DT, SIGMA, CERTAIN = 2e-3, {"ur16e": 0.9}, 4.0


def taps(robot: str, speed: float, count: int) -> ScenarioSettings:
    """``count`` taps at ``speed`` [m/s]."""
    stroke = STROKE[robot]
    duration = PEAK * stroke / speed
    motion = [move(1.0)]
    for _ in range(count):
        motion += [move(duration, z=-stroke), move(0.5, z=-stroke), move(duration), move(0.5)]
    return on_surfaces("taps", robot, [TABLE | {"offset": [0.0, 0.0, -0.5 * stroke]}], motion)


def run(robot: str, speed: float, count: int, seed: int) -> dict[str, np.ndarray]:
    """Return true force of the table [N] and whether the filter has the contact closed, of every sample."""
    arm = load_arm(robot)
    simulation = Simulation(taps(robot, speed, count), arm, load_imperfections(robot), seed)
    sensors = simulated_sensors(robot)
    stream = SampleStream(make_observer(arm, load_observer_settings("contact_imm"), sensors=sensors), arm, sensors)
    touched, closed = [], []
    for sample in simulation.run():
        estimate = stream.push(sample.stamp_ns, sample.q, sample.dq, sample.tau)
        touched.append([sum(np.linalg.norm(row[0].force) for row in simulation.plant.touches if row[0].closed)])
        closed.append([estimate.mode != "free"])
    return {"touched": np.array(touched), "closed": np.array(closed)}


def line(robot: str, speed: float, log: dict[str, np.ndarray]) -> str:
    """Return a table row."""
    touches, releases, surplus = mode_delays(log)
    force = log["touched"][:, 0]
    changes = np.flatnonzero(np.diff((force > 0).astype(int))) + 1
    rises = [force[min(k + 10, len(force) - 1)] / 0.02 for k in changes if force[k] > 0]
    falls = [force[max(k - 10, 0)] / 0.02 for k in changes if force[k] == 0]

    def slope(rates):
        if not rates:
            return "-"
        rate, sigma = float(np.median(rates)), SIGMA.get(robot)
        if sigma is None:
            return f"{rate:.0f}"
        return f"{rate:.0f}: {1e3 * DT * (3 * (CERTAIN * sigma / (rate * DT)) ** 2) ** (1 / 3):.0f}"

    def tell(pairs, forces):
        delays = [delay for delay, _ in pairs]
        if not delays:
            return "- | -"
        return f"{np.median(delays):.0f} ({min(delays):.0f} to {max(delays):.0f}) | {np.median(forces):.1f}"

    lost = [
        force[max(k - max(round(d / 2.0), 0), 0)]
        for k, (d, _) in zip([k for k in changes if force[k] == 0], releases)
        if np.isfinite(d)
    ]
    return (
        f"| {robot} | {1e3 * speed:.0f} | {slope(rises)} | {tell(touches, [f for _, f in touches])} | "
        f"{slope(falls)} | {tell(releases, lost or [np.nan])} | {surplus} |"
    )


def main() -> None:
    """Run all speeds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", default=[], choices=list(SENSORS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--taps", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    lines = []
    for robot in args.robot or SENSORS:
        for speed in SPEEDS:
            lines.append(line(robot, speed, run(robot, speed, args.taps, args.seed)))
            print(lines[-1], flush=True)
    table = "\n".join(
        [
            "# When a touch is committed to",
            "",
            f"`python benchmark/touch_delay.py --taps {args.taps} --seed {args.seed} --save`, {os.cpu_count()} cores; "
            "taps on 25 kN/m, median (least to largest; negative: too early).",
            "",
            "| arm | speed [mm/s] | force rises [N/s]: bound [ms] | touch to mode [ms] | force then [N] | "
            "force fell [N/s]: bound [ms] | release to mode [ms] | force as long before [N] | surplus changes |",
            "|" + "---|" * 9,
            *lines,
            "",
        ]
    )
    print(table)
    if args.save:
        (Path(__file__).parent / "touch_delay.md").write_text(table)


if __name__ == "__main__":
    main()
