"""Is a sampled start (iCEM) better than the last plan where the contact changes?

    python benchmark/mpc_warm_start.py [--save]

A plan is settled before a change; then either the last plan or iCEM's best sample starts one and three Gauss-Newton
iterations, and a converged solve. What counts is the cost of the controls rolled out through the dynamics, over the
converged cost. ``--save`` writes ``benchmark/tables/mpc_warm_start.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from contact_estimation.control.mpc import make_solver
from contact_estimation.control.mpc.icem import Icem
from contact_estimation.control.mpc.rollout import Rollout

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mpc_speed import START, make_problem

#: Name -> change of [contact parameters, wanted force] at the moment of the plan.
CHANGES = {
    "wall rises by 30 mm": lambda phi, force: (phi + 0.03 * np.eye(9)[5], force),
    "wall falls by 30 mm (contact lost)": lambda phi, force: (phi - 0.03 * np.eye(9)[5], force),
    "stiffness jumps tenfold": lambda phi, force: (phi * np.where(np.arange(9) == 2, 10.0, 1.0), force),
    "normal turns by 45 degrees": lambda phi, force: (np.concatenate([[700.0, 0.0, 700.0], phi[3:]]), force),
    "wanted force from 5 to 15 N": lambda phi, force: (phi, 3.0 * force),
}


def measure() -> dict:
    """One row per change."""
    problem = make_problem(15, 1)
    arm, rollout, icem = problem.arm, Rollout(problem), Icem(problem, np.random.default_rng(0))
    rti, sqp = make_solver(problem, "rti"), make_solver(problem, "sqp")
    position, rotation = arm.tcp_pose(START)
    point = np.array(problem.settings.contacts[0].point)
    before = np.concatenate(
        [problem.settings.contacts[0].stiffness, position + rotation @ point + [0.0, 0.0, 0.005], point]
    )
    force, x, rows = np.array([0.0, 0.0, 5.0]), problem.stack(START, np.zeros(arm.n)), {}
    problem.set("position_target", position)
    for name, change in CHANGES.items():
        problem.set_contacts(before)
        problem.set("force_target", force)
        sqp.reset(x)
        settled = sqp.solve(x).controls
        phi, wanted = change(before, force)
        problem.set_contacts(phi)
        problem.set("force_target", wanted)
        start = time.perf_counter()
        sampled, _ = icem.search(x, settled)
        row = {"search_ms": 1e3 * (time.perf_counter() - start)}
        best = np.inf
        for kind, controls in (("last plan", settled), ("iCEM", sampled)):
            sqp.reset(x)
            sqp.guess(controls)
            plan = sqp.solve(x)
            best = min(best, plan.cost) if plan.ok else best
            row[f"{kind}: iterations"] = plan.iterations
        for kind, controls in (("last plan", settled), ("iCEM", sampled)):
            rti.reset(x)
            rti.solve(x)
            rti.guess(controls)
            row[f"{kind}: start"] = rollout(x, controls)[1] / best
            for iteration in range(1, 4):
                plan = rti.solve(x)
                if iteration != 2:
                    row[f"{kind}: after {iteration}"] = rollout(x, plan.controls)[1] / best
        rows[name] = row
    return rows


def main() -> int:
    """Print the table, save if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="save the table")
    args = parser.parse_args()
    rows = measure()
    for name, row in rows.items():
        print(name)
        print("   " + ", ".join(f"{key} {value:.3g}" for key, value in row.items()))
    if args.save:
        path = Path(__file__).resolve().parent / "tables" / "mpc_warm_start.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            json.dumps(
                {"command": "python benchmark/mpc_warm_start.py --save", "cost over converged cost": rows}, indent=1
            )
            + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
