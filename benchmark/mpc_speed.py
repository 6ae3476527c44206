"""How fast the MPC's solvers are, and what their speed costs.

Closed loops run on the model itself, one tick every 10 ms of real time.

    python benchmark/mpc_speed.py [--ticks 200] [--fifo] [--scaling] [--save]

``--fifo`` asks for a real-time priority, as a control process has on a robot; without it other processes show in the
tail. ``--save`` writes ``benchmark/tables/mpc_speed.json``, with ``--scaling`` instead ``mpc_scaling.json`` and the
plot ``docs/figures/mpc_scaling.png``.

Two references stand beside the solvers (mpc_reference.py): exact dynamics with every stage limited, as the solvers
have them, and the authors' cheaper formulation. Ratios are of CPU time. Plans are compared by the cost of the closed
loop they lead to: the same disturbances, every stage's cost charged on the true state. Ratios and medians travel
between machines, milliseconds do not.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from contact_estimation.codegen.compiler import find_compiler
from contact_estimation.control.mpc import MpcProblem, load_mpc_settings, make_solver
from contact_estimation.control.mpc.rollout import Rollout
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace, to_mapping

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
from mpc_reference import FORMULATIONS, MxIpoptSolver  # noqa: E402  (a neighbour of this script)

#: Tick of the loop [s].
TICK = 0.01
START = np.array([0.0, -0.7853981, 0.0, -2.3561944, 0.0, 1.5707963, 0.7853981])


def make_problem(horizon: int, contacts: int) -> MpcProblem:
    """Make the planar task on the FR3 with ``contacts`` contacts, the later ones beside the first and tilted."""
    settings = load_mpc_settings("mpc_plane_fr3")
    first = to_mapping(settings.contacts[0])
    tilts = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]
    listed = [
        {
            **first,
            "name": f"contact_{i + 1}",
            "point": [0.02 * tilts[i][0], 0.02 * tilts[i][1], 0.10],
            "stiffness": [300.0 * tilts[i][0], 300.0 * tilts[i][1], 1000.0],
        }
        for i in range(contacts)
    ]
    arm = load_arm("fr3")
    problem = MpcProblem(arm, replace(settings, "benchmark", horizon=horizon, contacts=listed))
    _, rotation = arm.tcp_pose(START)
    problem.set("rotation", rotation.ravel(order="F"))
    return problem


def closed_loop(problem: MpcProblem, solver, ticks: int, seed: int = 0) -> dict:
    """Return solve times and CPU times [ms], cost and failures of ``ticks`` ticks.

    The target moves, the wanted force steps, the wall moves by 5 mm, and there is noise.
    """
    arm, rng = problem.arm, np.random.default_rng(seed)
    position, rotation = arm.tcp_pose(START)
    plant = Rollout(problem)
    state = problem.stack(START, np.zeros(arm.n))
    solver.reset(state)
    times, spent, cost, failed = [], [], 0.0, 0
    phi = np.array(
        [[*c.stiffness, *(position + rotation @ np.array(c.point)), *c.point] for c in problem.settings.contacts]
    )
    for k in range(ticks):
        due = time.perf_counter() + TICK
        truth = phi.copy()
        truth[:, 5] += 0.005 * (k > ticks // 2)
        problem.set_contacts(truth.ravel())
        problem.set("force_target", [0.0, 0.0, 5.0 if k < ticks // 3 else 15.0])
        problem.set("position_target", position + np.array([0.0, 0.05 * np.sin(2 * np.pi * k / ticks), 0.0]))
        begun = time.thread_time()
        plan = solver.solve(state)
        spent.append(1e3 * (time.thread_time() - begun))
        times.append(1e3 * plan.seconds)
        failed += not plan.ok
        control = plan.controls[0] if plan.ok else np.zeros(problem.nu)
        state, part = plant.step(state, control, TICK)
        cost += part * TICK
        state = state + np.tile(
            np.concatenate([np.zeros(arm.n), 2e-3 * rng.standard_normal(arm.n)]), len(problem.stage.modes)
        )
        time.sleep(max(due - time.perf_counter(), 0.0))
    warm = np.array(times[5:])
    return {
        "cpu_p50_ms": float(np.median(spent[5:])),
        "p50_ms": float(np.median(warm)),
        "p99_ms": float(np.percentile(warm, 99)),
        "max_ms": float(warm.max()),
        "cost": cost,
        "failed": int(failed),
    }


def compare(horizon: int, contacts: int, ticks: int, names: tuple[str, ...], fifo: bool) -> dict:
    """One row per solver."""
    problem, rows = make_problem(horizon, contacts), {}
    for name in names:
        solver: Any = MxIpoptSolver(problem, name) if name in FORMULATIONS else make_solver(problem, name)
        if fifo:  # not while compiling
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        rows[name] = closed_loop(problem, solver, ticks)
        if fifo:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        print(
            f"H {horizon:3d}  contacts {contacts}  {name:10s}"
            + "".join(f"  {k} {v:.4g}" for k, v in rows[name].items()),
            file=sys.stderr,
            flush=True,
        )
    return rows


def summary(table: dict) -> list[str]:
    """Return the claims, from the table."""
    base, lines = table["H15_contacts1"], []
    for name in ("sqp", "rti"):
        row = base[name]
        ratios = " and ".join(
            f"{base[other]['cpu_p50_ms'] / row['cpu_p50_ms']:.1f} times less CPU than {other} "
            f"({base[other]['cpu_p50_ms']:.0f} ms)"
            for other in FORMULATIONS
        )
        lines.append(
            f"{name}: {ratios}; {row['cpu_p50_ms']:.2f} ms, wall p50 {row['p50_ms']:.2f}, p99 {row['p99_ms']:.2f}"
        )
    lines.append(f"rti: closed-loop cost {100 * (base['rti']['cost'] / base['sqp']['cost'] - 1):+.2f} % of converged")
    two = table["H20_contacts2"]
    lines.append(
        f"H 20, two contacts: rti p50 {two['rti']['p50_ms']:.2f} ms, p99 {two['rti']['p99_ms']:.2f} ms, cost "
        f"{100 * (two['rti']['cost'] / two['sqp']['cost'] - 1):+.2f} % of converged"
    )
    return lines


def plot(table: dict, path: Path) -> None:
    """Solve time over the horizon and over the number of contacts."""
    from contact_estimation.viz.style import figure

    fig, axes = figure(1, 2)
    for axis, (pattern, values, label) in zip(
        axes[0],
        (("H{}_contacts1", HORIZONS, "horizon H (one contact)"), ("H15_contacts{}", CONTACTS, "contacts (H = 15)")),
    ):
        for name in ("sqp", "rti"):
            rows = [(v, table[pattern.format(v)][name]) for v in values if name in table.get(pattern.format(v), {})]
            axis.plot([v for v, _ in rows], [row["p50_ms"] for _, row in rows], "o-", label=f"{name}, median")
            axis.plot(
                [v for v, _ in rows],
                [row["p99_ms"] for _, row in rows],
                ":",
                color=axis.lines[-1].get_color(),
                label=f"{name}, p99",
            )
        axis.set(xlabel=label, ylabel="solve [ms]", yscale="log")
        axis.set_xticks(list(values))
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncol=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=120)


HORIZONS, CONTACTS = (5, 10, 15, 20, 30, 40), (1, 2, 3, 4)


def main() -> int:
    """Run, print the claims, save if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--fifo", action="store_true", help="real-time priority while solving")
    parser.add_argument("--scaling", action="store_true", help="also the growth with horizon and contacts")
    parser.add_argument("--save", action="store_true", help="save table and plot")
    args = parser.parse_args()
    table = {
        "H15_contacts1": compare(15, 1, args.ticks, (*FORMULATIONS, "sqp", "rti"), args.fifo),
        "H20_contacts2": compare(20, 2, args.ticks, ("sqp", "rti"), args.fifo),
    }
    if args.scaling:
        for horizon in HORIZONS:
            if horizon != 15:
                table[f"H{horizon}_contacts1"] = compare(horizon, 1, args.ticks, ("sqp", "rti"), args.fifo)
        for contacts in CONTACTS[1:]:
            table[f"H15_contacts{contacts}"] = compare(15, contacts, args.ticks, ("sqp", "rti"), args.fifo)
    lines = summary(table)
    print("\n".join(lines))
    if args.save:
        command = "python benchmark/mpc_speed.py " + " ".join(sys.argv[1:])
        facts = {
            "command": command,
            "compiler": find_compiler().version,
            "cpus": os.cpu_count(),
            "load": os.getloadavg()[0],
            "fifo": args.fifo,
            "options": {name: dataclasses.asdict(one) for name, one in FORMULATIONS.items()},
            "summary": lines,
            "table": table,
        }
        path = ROOT / "benchmark" / "tables" / ("mpc_scaling.json" if args.scaling else "mpc_speed.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(facts, indent=1) + "\n")
        if args.scaling:
            plot(table, ROOT / "docs" / "figures" / "mpc_scaling.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
