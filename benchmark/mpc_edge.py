"""Press, slide over an edge, come back and press again: how many seeds regain the contact, and how.

    python benchmark/mpc_edge.py [--seeds 20] [--save]

``--save`` writes ``benchmark/tables/mpc_edge.json`` after every seed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from contact_estimation.control.controller import ControllerState
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, LoopRecord, load_loop_settings

TABLE = Path(__file__).resolve().parent / "tables/mpc_edge.json"
SECONDS = 8.0  # [s] under the controller


def figures(record: LoopRecord) -> dict[str, float | bool]:
    """Return what one run did: force [N] over the last half second, peak [N], fall [m] and time until regained [s]."""
    searching = np.flatnonzero(record.state == ControllerState.SEARCHING.value)
    if not searching.size:
        return {"lost": False, "regained": False}
    lost, last = searching[0], searching[-1]
    mean = float(record.force[record.t > record.t[-1] - 0.5][:, 2].mean())
    wanted = float(record.force_wanted[2])
    return {
        "lost": True,
        "regained": bool(record.state[-1] == ControllerState.ACTIVE.value and abs(mean - wanted) < 0.2 * wanted),
        "force": mean,
        "peak": float(record.force[:, 2].max()),
        "fall": float(record.x[lost, 2] - record.x[lost:, 2].min()),
        "time": float(record.t[last] - record.t[lost]),
    }


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    settings, rows = load_loop_settings("edge", "fr3"), {}
    for seed in range(args.seeds):
        rows[seed] = figures(ClosedLoop(settings, LoopOptions(seed=seed)).run(SECONDS))
        print(seed, rows[seed], flush=True)
        if args.save:
            TABLE.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{sum(bool(row['regained']) for row in rows.values())} of {len(rows)} seeds regained the contact")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
