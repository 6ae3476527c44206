"""An hour of presses and free motion through the default observer: memory, drift of the force's error, NaN.

A simulated arm (with its imperfections) is pushed onto a surface and lifted, every twelve seconds anew. Per window the
table tells the force's error against the simulation's truth, the share of invalid estimates, estimates that are not
finite, and the size of the process.

    python benchmark/soak.py --save
    python benchmark/soak.py --minutes 2 --window 1
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation import load_arm, open_stream
from contact_estimation.simulation.session import open_simulation

#: [s] A press and a lift; [m] how far the equilibrium moves; [s] how long it takes to move.
CYCLE, TRAVEL, RAMP = 12.0, 0.03, 2.0
#: Growth of the process after the first window that is a leak [MB]; growth of the force's error that is a drift [N].
LEAK, DRIFT = 5.0, 1.0


def resident() -> float:
    """Size of this process in memory [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def lift(t: float) -> float:
    """Height [m] of the equilibrium above the press, a smooth step up and one down per cycle."""
    phase = t % CYCLE
    along = np.clip(min(phase - 4.0, CYCLE - phase) / RAMP, 0.0, 1.0)
    return TRAVEL * float(along**2 * (3.0 - 2.0 * along))


def soak(robot: str, scenario: str, minutes: float, window: float) -> list[dict[str, float]]:
    """Figures of every window of ``window`` minutes."""
    arm = load_arm(robot)
    simulation, stream = open_simulation(scenario, arm), open_stream(arm)
    for _ in range(round(5.0 / simulation.period)):  # the scenario's own motion presses
        simulation.step()
    (position, rotation), start, rows = simulation.equilibrium, simulation.time, []
    while simulation.time - start < 60.0 * minutes:
        errors, invalid, bad, count = [], 0, 0, 0
        end = simulation.time + 60.0 * window
        while simulation.time < end:
            height = np.array([0.0, 0.0, lift(simulation.time - start)])
            simulation.command(position + height, rotation)
            sample = simulation.step()
            estimate = stream.push(sample.stamp_ns, sample.q, sample.dq, sample.tau)
            count += 1
            invalid += not estimate.valid
            if estimate.valid:
                bad += not (np.isfinite(estimate.force_tcp).all() and np.isfinite(estimate.force_covariance).all())
                errors.append(float(np.linalg.norm(estimate.force_tcp - sample.truth["wrench_tcp"][:3])))
        rows.append(
            {
                "minute": (simulation.time - start) / 60.0,
                "median": float(np.median(errors)),
                "p95": float(np.quantile(errors, 0.95)),
                "invalid": 100.0 * invalid / count,
                "not finite": bad,
                "memory": resident(),
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Run, print the table, and fail on growth, drift or NaN."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="fr3")
    parser.add_argument("--scenario", default="plane")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--window", type=float, default=5.0, help="[min]")
    add_save_argument(parser)
    args = parser.parse_args()
    lines = heading("Hours of presses and free motion", f"{args.minutes:g} minutes of the simulated {args.robot}.")
    rows = soak(args.robot, args.scenario, args.minutes, args.window)
    lines += ["| minute | force error, median [N] | 95 % [N] | invalid [%] | not finite | memory [MB] |"]
    lines += ["|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['minute']:.0f} | {r['median']:.2f} | {r['p95']:.2f} | {r['invalid']:.2f} | {r['not finite']} | "
            f"{r['memory']:.1f} |"
        )
    publish(lines, args.save)
    grown, drifted = rows[-1]["memory"] - rows[0]["memory"], rows[-1]["p95"] - rows[0]["p95"]
    sys.exit(grown > LEAK or drifted > DRIFT or any(r["not finite"] for r in rows))


if __name__ == "__main__":
    main()
