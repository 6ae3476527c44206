"""Does the MPC earn its keep? Feedforward, PI, admittance and MPC on the same estimates, in 12 scenarios.

    python benchmark/mpc_baselines.py [--seeds 20] [--scenarios plane,delay_40] [--tune] [--save]

All controllers have the same task, supervision and estimator. ``--tune`` picks the gains of the plain controllers on
seeds 1000 and up, which the table never sees, and prints them; the shipped defaults are its result. ``--save`` writes
``benchmark/tables/mpc_baselines.json`` and ``docs/figures/mpc_baselines.png``: every curve of every seed.
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
SECONDS = 4.0  # [s] under the controller
TUNING_SEED, TUNING_SEEDS = 1000, 2
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
    """Return a surface that is turned about base y where the tool touches it."""
    angle = np.deg2rad(degrees)

    def turn(t: float, simulation: Simulation) -> None:
        surface = simulation.plant.surfaces[0]
        if surface.name != "tilted" and t >= 0.0:
            surface.name, surface.normal = "tilted", np.array([np.sin(angle), 0.0, np.cos(angle)])
            surface.point[:2] = simulation.plant.position[:2]

    return turn


def _imm(stiffness: float) -> dict[str, Any]:
    return {"observer": "contact_imm", "stiffness": stiffness}


SCENARIOS = {
    "plane": Scenario(),
    "imm_300": Scenario(options=_imm(300.0)),
    "imm_1k": Scenario(options=_imm(1e3)),
    "imm_5k": Scenario(options=_imm(5e3)),
    "imm_30k": Scenario(options=_imm(3e4)),
    "imm_100k": Scenario(options=_imm(1e5)),
    "moving_0.5Hz": Scenario(disturb=oscillate(0.5)),
    "moving_1Hz": Scenario(disturb=oscillate(1.0)),
    "tilt_15": Scenario(disturb=tilt(15.0)),
    "delay_20": Scenario(options={"delay": 0.02}),
    "delay_40": Scenario(options={"delay": 0.04}),
    "pivot": Scenario("pivot"),
}


def run(name: str, controller: str, seed: int, task: dict[str, Any] | None = None) -> LoopRecord | None:
    """Return the record of one run, or None where the approach found no contact."""
    scenario = SCENARIOS[name]
    options = LoopOptions(seed=seed, controller=controller, task=task or {}, **scenario.options)
    try:
        return ClosedLoop(load_loop_settings(scenario.task, "fr3"), options).run(SECONDS, scenario.disturb)
    except ConfigError:
        return None


def rmse(record: LoopRecord | None) -> float:
    """Return the force RMSE [N]; a run without contact counts as infinite."""
    return float("inf") if record is None else record.force_rmse()


def tune() -> None:
    """Print the gains with the least mean RMSE over some scenarios, on seeds of their own."""
    for controller, choices in GAINS.items():
        scores = []
        for gains in choices:
            runs = [
                run(name, controller, TUNING_SEED + i, gains)
                for name in ("plane", "imm_30k", "pivot")
                for i in range(TUNING_SEEDS)
            ]
            scores.append(float(np.mean([rmse(record) for record in runs])))
            print(f"{controller} {gains[controller]}: {scores[-1]:.2f} N", flush=True)
        print(f"best: {choices[int(np.argmin(scores))]}")


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
    records: dict[str, dict[str, list[LoopRecord | None]]] = {}
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for name in args.scenarios.split(","):
        records[name] = {c: [run(name, c, seed) for seed in range(args.seeds)] for c in CONTROLLERS}
        rows[name] = {
            c: {
                "rmse_median": float(np.median([rmse(r) for r in runs])),
                "rmse_worst": float(np.max([rmse(r) for r in runs])),
                "peak": float(max((r.force[:, r.axes].max() for r in runs if r is not None), default=np.nan)),
                "spring": float(max((r.max_spring for r in runs if r is not None), default=np.nan)),
                "not_active": float(sum(len(r.reasons) for r in runs if r is not None)),
            }
            for c, runs in records[name].items()
        }
        medians = {c: row["rmse_median"] for c, row in rows[name].items()}
        ratio = medians["mpc"] / min(value for c, value in medians.items() if c != "mpc")
        words = "  ".join(f"{c} {value:6.2f}" for c, value in medians.items())
        print(f"{name:14s} {words}   mpc / best {ratio:.2f}", flush=True)
    if args.save:
        table = {"seeds": args.seeds, "seconds": SECONDS, "force RMSE [N]": rows}
        (ROOT / "benchmark/tables/mpc_baselines.json").write_text(json.dumps(table, indent=1) + "\n")
        draw(records, ROOT / "docs/figures/mpc_baselines.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
