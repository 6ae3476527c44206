"""Batch speed of the simulated arms: real-time factor at a 1 kHz inner loop.

    python benchmark/simulation_speed.py --save

Wall-clock and CPU time of one process on one core; the CPU figure is what an idle machine gives.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from report import add_save_argument, heading, publish

from contact_estimation.simulation.session import open_simulation

CASES = (
    ("linear_contact", "ur16e", "ur16e"),
    ("linear_contact", "ur16e", "ideal"),
    ("linear_contact", "fr3", "fr3"),
    ("plane", "fr3", "fr3"),
    ("peg_in_slot", "fr3", "fr3"),
)


def measure(scenario: str, robot: str, imperfections: str, seconds: float) -> tuple[float, float]:
    """Real-time factors by wall clock and by CPU time."""
    sim = open_simulation(scenario, robot, imperfections)
    sim.step()
    wall, cpu, start = time.perf_counter(), time.process_time(), sim.time
    for _ in sim.run(seconds):
        pass
    return (sim.time - start) / (time.perf_counter() - wall), (sim.time - start) / (time.process_time() - cpu)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=3)
    add_save_argument(parser)
    args = parser.parse_args()
    note = f"Medians of {args.repeats} runs of {args.seconds:g} s, one core, 1 kHz inner loop, samples at 500 Hz."
    lines = [
        *heading("Batch speed of the simulated arms", note),
        "| scenario | robot | imperfections | times real time (wall) | times real time (CPU) |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        runs = [measure(*case, args.seconds) for _ in range(args.repeats)]
        wall, cpu = (statistics.median(column) for column in zip(*runs))
        lines.append(f"| {' | '.join(case)} | {wall:.1f} | {cpu:.1f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    publish(lines, args.save)


if __name__ == "__main__":
    main()
