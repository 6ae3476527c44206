"""Does the MPC earn its keep? Feedforward, PI, admittance and MPC on the same estimates, in 12 scenarios.

    python benchmark/mpc_baselines.py [--seeds 20] [--scenarios plane,delay_40] [--tune] [--save]

All controllers have the same task, supervision and estimator. ``--tune`` picks the gains of the plain controllers on
seeds 1000 and up, which the table never sees, and saves them as ``benchmark/tables/mpc_gains.json``. The table is made
with them, or with the shipped gains where there is no such file. ``--save`` writes every finished scenario into
``benchmark/tables/mpc_baselines.json``, beside those of earlier calls. It draws every curve of every seed into
``docs/figures/mpc_baselines.png`` where all scenarios ran.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contact_estimation.control.registry import CONTROLLERS
from contact_estimation.exceptions import ConfigError
from contact_estimation.simulation.session import Simulation
from contact_estimation.studies.mpc.closed_loop import ClosedLoop, LoopOptions, LoopRecord, load_loop_settings
from contact_estimation.viz.style import COLOURS, figure

ROOT = Path(__file__).resolve().parents[1]
TABLE, GAINS_FILE = ROOT / "benchmark/tables/mpc_baselines.json", ROOT / "benchmark/tables/mpc_gains.json"
SECONDS = 3.0  # [s] under the controller
TUNING_SEED = 1000
TUNING = ("plane", "imm_30k", "pivot")
GAINS: dict[str, list[dict[str, Any]]] = {
    "pi": [{"pi": {"proportional": p, "integral": i}} for p, i in ((0.3, 3.0), (0.5, 5.0), (0.5, 10.0), (1.0, 5.0))],
    "admittance": [{"admittance": {"time": time}} for time in (0.05, 0.1, 0.15, 0.3)],
}


@dataclass(frozen=True)
class Scenario:
    """What differs from the shipped task."""

    task: str = "plane"
    options: dict[str, Any] = field(default_factory=dict)
    disturb: Callable[[float, Simulation], None] | None = None


def oscillate(hertz: float) -> Callable[[float, Simulation], None]:
    """Return a surface that moves by +-5 mm."""

    def move(t: float, simulation: Simulation) -> None:
        surface = simulation.plant.surfaces[0]
        surface.point[2] = simulation.rest[2] + 0.02 + 0.005 * np.sin(2.0 * np.pi * hertz * t)

    return move


def tilt(degrees: float) -> Callable[[float, Simulation], None]:
    """Return a surface that is turned about base y where the tool touches it when the controller starts."""
    angle = np.deg2rad(degrees)

    def turn(t: float, simulation: Simulation) -> None:
        surface = simulation.plant.surfaces[0]
        if surface.name != "tilted" and t >= 0.0:
            surface.name, surface.normal = "tilted", np.array([np.sin(angle), 0.0, np.cos(angle)])
            surface.point[:2] = simulation.plant.position[:2]

    return turn


#: An estimator that knows the stiffness: what the scenario is about is then the controller's.
_EKF = {"observer": "franka_plane"}


SCENARIOS = {
    "plane": Scenario(options=_EKF),
    "imm_300": Scenario(options={"stiffness": 300.0}),
    "imm_1k": Scenario(options={"stiffness": 1e3}),
    "imm_5k": Scenario(options={"stiffness": 5e3}),
    "imm_30k": Scenario(options={"stiffness": 3e4}),
    "imm_100k": Scenario(options={"stiffness": 1e5}),
    "moving_0.5Hz": Scenario(options=_EKF, disturb=oscillate(0.5)),
    "moving_1Hz": Scenario(options=_EKF, disturb=oscillate(1.0)),
    "tilt_15": Scenario(options=_EKF, disturb=tilt(15.0)),
    "delay_20": Scenario(options={"delay": 0.02, **_EKF}),
    "delay_40": Scenario(options={"delay": 0.04, **_EKF}),
    "pivot": Scenario("pivot"),
}


def run(name: str, controller: str, seed: int, gains: dict[str, Any]) -> LoopRecord | None:
    """Return the record of one run, or None where the approach found no contact."""
    scenario = SCENARIOS[name]
    options = LoopOptions(seed=seed, controller=controller, task=gains, **scenario.options)
    try:
        return ClosedLoop(load_loop_settings(scenario.task, "fr3"), options).run(SECONDS, scenario.disturb)
    except ConfigError:
        return None


def rmse(record: LoopRecord | None) -> float:
    """Return the force RMSE [N]; a run without contact counts as infinite."""
    return float("inf") if record is None else record.force_rmse()


def tune() -> None:
    """Save the gains with the least mean RMSE over some scenarios, each on a seed of its own."""
    scores: dict[str, list[dict[str, Any]]] = {}
    best: dict[str, Any] = {}
    for controller, choices in GAINS.items():
        rows = []
        for gains in choices:
            errors = [rmse(run(name, controller, TUNING_SEED + i, gains)) for i, name in enumerate(TUNING)]
            rows.append({"gains": gains[controller], "rmse": dict(zip(TUNING, errors)), "mean": float(np.mean(errors))})
            print(f"{controller} {gains[controller]}: {rows[-1]['mean']:.2f} N", flush=True)
        scores[controller] = rows
        best |= choices[int(np.argmin([row["mean"] for row in rows]))]
        GAINS_FILE.write_text(json.dumps({"best": best, "tried [N]": scores}, indent=1) + "\n")


def summary(runs: list[LoopRecord | None]) -> dict[str, float]:
    """Return what one controller did in one scenario, over the seeds [N]; ``not_active`` in ticks."""
    found = [r for r in runs if r is not None]
    return {
        "rmse_median": float(np.median([rmse(r) for r in runs])),
        "rmse_worst": float(np.max([rmse(r) for r in runs])),
        "peak": float(max((r.force[:, r.axes].max() for r in found), default=np.nan)),
        "spring": float(max((r.max_spring for r in found), default=np.nan)),
        "not_active": float(sum(len(r.reasons) for r in found)),
    }


def draw(records: dict[str, dict[str, list[LoopRecord | None]]], path: Path) -> None:
    """Draw the norm of the force over the controlled axes, every seed."""
    fig, plots = figure(len(records), 1)
    for plot, (name, by_controller) in zip(plots[:, 0], records.items()):
        for colour, (controller, runs) in zip(COLOURS[1:], by_controller.items()):
            for i, record in enumerate(r for r in runs if r is not None):
                force = np.linalg.norm(record.force[:, record.axes], axis=1)
                plot.plot(record.t, force, color=colour, linewidth=0.6, label=controller if i == 0 else None)
        plot.set(ylabel=f"{name}\nforce [N]")
    plots[0, 0].legend(ncol=4)
    plots[-1, 0].set(xlabel="time under the controller [s]")
    fig.savefig(path, dpi=80)


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.tune:
        tune()
        return 0
    gains = json.loads(GAINS_FILE.read_text())["best"] if GAINS_FILE.exists() else {}
    table = json.loads(TABLE.read_text()) if args.save and TABLE.exists() else {"scenarios": {}}
    records: dict[str, dict[str, list[LoopRecord | None]]] = {}
    for name in args.scenarios.split(","):
        records[name] = {c: [run(name, c, seed, gains) for seed in range(args.seeds)] for c in CONTROLLERS}
        row = {c: summary(runs) for c, runs in records[name].items()}
        medians = {c: scores["rmse_median"] for c, scores in row.items()}
        ratio = medians["mpc"] / min(value for c, value in medians.items() if c != "mpc")
        words = "  ".join(f"{c} {value:6.2f}" for c, value in medians.items())
        print(f"{name:14s} {words}   mpc / best {ratio:.2f}", flush=True)
        if args.save:
            table["scenarios"][name] = {"seeds": args.seeds, "seconds": SECONDS, "mpc over best": ratio, **row}
            TABLE.write_text(json.dumps(table, indent=1) + "\n")
    if args.save and len(records) == len(SCENARIOS):
        draw(records, ROOT / "docs/figures/mpc_baselines.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
