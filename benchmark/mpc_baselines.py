"""Does the MPC earn its keep? Feedforward, PI, admittance and MPC on the same estimates, in 12 scenarios.

    python benchmark/mpc_baselines.py --tune
    python benchmark/mpc_baselines.py [--seeds 3 4 5] [--scenarios soft,delay_40] [--table]

All controllers have the same task, supervision and estimator. ``mpc, true force`` is the MPC whose estimates carry the
true force: what remains is the controller's error. ``--tune`` tries some gains of each plain controller in
the scenarios, on seeds that the comparison never sees, and saves the best ones.
Every run is saved when it is done, and a run that is saved is not repeated: the comparison may be stopped and goes on.
``--table`` writes mpc_baselines.md beside this file and draws every curve into docs/figures/mpc_baselines.png.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mpc_scenarios import SCENARIOS, run

from contact_estimation.control.controller import ControllerState
from contact_estimation.control.registry import CONTROLLERS
from contact_estimation.exceptions import ConfigError
from contact_estimation.studies.mpc.closed_loop import LoopRecord
from contact_estimation.viz.style import COLOURS, figure

ROOT = Path(__file__).resolve().parents[1]
RUNS, GAINS_FILE = ROOT / "benchmark/tables/mpc_baselines.json", ROOT / "benchmark/tables/mpc_gains.json"
#: Curves are large and not kept in the project: a table is drawn where its runs were made.
CURVES = ROOT / "build/mpc_baselines"
#: The comparison never sees them. One alone does not tell gains apart.
TUNING_SEEDS = (1000, 1001, 1002)
GAINS: dict[str, list[dict[str, Any]]] = {
    "pi": [{"pi": {"proportional": p, "integral": i}} for p, i in ((0.2, 3.0), (0.2, 8.0), (0.5, 5.0), (0.5, 10.0))],
    "admittance": [{"admittance": {"time": time}} for time in (0.05, 0.08, 0.12, 0.2)],
}
#: The MPC that is told the true force, in the table's last column.
TOLD = "mpc, true force"
#: [N] that a run without contact, or one that does not end under control, counts at least.
WORST = 10.0
#: [s] under the controller, from the start or after a search, from when the errors count.
SETTLED = 1.0
#: [s] between two points of a curve.
CURVE_STEP = 0.02


def load(path: Path) -> dict[str, Any]:
    """Return what an earlier call saved."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, content: dict[str, Any]) -> None:
    """Write ``content``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def scores(record: LoopRecord | None) -> dict[str, float]:
    """Return RMSE of force and estimate, peak and largest spring force [N] of a run, and its ticks not active."""
    if record is None:
        return {"rmse": WORST, "estimate": WORST, "peak": 0.0, "spring": 0.0, "not_active": 0}
    counted = (record.t > SETTLED) & ~searched(record)
    rmse = norm_rms((record.force - record.force_wanted)[counted][:, record.axes])
    controlled = record.state[-1] == ControllerState.ACTIVE.value
    return {
        "rmse": round(rmse if controlled else max(rmse, WORST), 4),
        "estimate": round(norm_rms((record.force_estimate - record.force)[counted][:, record.axes]), 4),
        "peak": round(float(record.force[:, record.axes].max()), 2),
        "spring": round(record.max_spring, 2),
        "not_active": len(record.reasons),
    }


def norm_rms(errors: np.ndarray) -> float:
    """Return the RMS of the norms of ``errors`` (N, k)."""
    return float(np.sqrt(np.mean(np.sum(errors**2, axis=1))))


def searched(record: LoopRecord) -> np.ndarray:
    """Return which samples (N,) are searches: from the last touch before one until it has ended and settled."""
    found: np.ndarray = record.state == ControllerState.SEARCHING.value
    touched = np.flatnonzero(np.linalg.norm(record.force, axis=1) > 0.0)
    settling = round(SETTLED / (record.t[1] - record.t[0]))
    change = np.diff(found.astype(int), prepend=0, append=0)
    for begin, end in zip(np.flatnonzero(change == 1), np.flatnonzero(change == -1)):
        last = np.searchsorted(touched, begin) - 1
        found[touched[max(last, 0)] + 1 : end + settling] = True
    return found


def attempt(name: str, controller: str, seed: int, gains: dict[str, Any]) -> LoopRecord | None:
    """Return the record of one run, or None where the approach found no contact."""
    try:
        return run(name, "mpc" if controller == TOLD else controller, seed, gains, controller == TOLD)
    except ConfigError:
        return None


def tune(names: list[str]) -> None:
    """Save, per plain controller, the gains whose RMSE over scenarios and seeds has the least geometric mean."""
    found = load(GAINS_FILE) or {"tried": {}, "best": {}}
    for controller, choices in GAINS.items():
        for gains in choices:
            tried = found["tried"].setdefault(json.dumps(gains), {})
            for name in names:
                if name not in tried:
                    found_rmse = [scores(attempt(name, controller, s, gains))["rmse"] for s in TUNING_SEEDS]
                    tried[name] = round(geometric_mean(found_rmse), 4)
                    save(GAINS_FILE, found)
            print(gains, round(geometric_mean([tried[name] for name in names]), 3), flush=True)
        errors = found["tried"]
        found["best"] |= min(choices, key=lambda one: geometric_mean([errors[json.dumps(one)][name] for name in names]))
        save(GAINS_FILE, found)


def geometric_mean(errors: list[float]) -> float:
    """Return the geometric mean [N] of ``errors``, which all count alike."""
    return float(np.exp(np.mean(np.log(errors))))


def compare(names: list[str], seeds: list[int], gains: dict[str, Any]) -> None:
    """Make the runs that are not saved yet, and save each."""
    for name in names:
        for controller in (*CONTROLLERS, TOLD):
            for seed in seeds:
                if str(seed) in load(RUNS).get(name, {}).get(controller, {}):
                    continue
                record = attempt(name, controller, seed, gains)
                keep(name, controller, seed, scores(record))
                if record is not None:
                    keep_curve(record, CURVES / f"{name}-{controller}-{seed}.npy")
        print(row(name, load(RUNS)[name]), flush=True)


def keep(name: str, controller: str, seed: int, values: dict[str, float]) -> None:
    """Add the scores of a run to those saved, also by other calls that run meanwhile."""
    CURVES.mkdir(parents=True, exist_ok=True)
    with (CURVES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = load(RUNS)
        runs.setdefault(name, {}).setdefault(controller, {})[str(seed)] = values
        save(RUNS, runs)


def keep_curve(record: LoopRecord, path: Path) -> None:
    """Save time [s] and norm of the force over the controlled axes [N], (2, N)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    every = max(round(CURVE_STEP / (record.t[1] - record.t[0])), 1)
    np.save(path, np.array([record.t, np.linalg.norm(record.force[:, record.axes], axis=1)])[:, ::every])


def shared(runs: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """Return the runs of each controller with the seeds that all of them have."""
    seeds = set.intersection(*[set(rows) for rows in runs.values()])
    return {controller: [rows[seed] for seed in sorted(seeds)] for controller, rows in runs.items()}


def row(name: str, runs: dict[str, dict[str, Any]]) -> str:
    """Return the table's row of one scenario."""
    same = shared(runs)
    found = {controller: float(np.median([one["rmse"] for one in rows])) for controller, rows in same.items()}
    plain = {controller: value for controller, value in found.items() if controller not in ("mpc", TOLD)}
    best = min(plain, key=lambda controller: plain[controller])
    mpc = same["mpc"]
    peak, spring = max(one["peak"] for one in mpc), max(one["spring"] for one in mpc)
    estimate = float(np.median([one["estimate"] for one in mpc]))
    values = " | ".join(f"{found[controller]:.2f}" for controller in CONTROLLERS)
    return (
        f"| {name} | {SCENARIOS[name].title} | {len(mpc)} | {values} | {best} | {found['mpc'] / plain[best]:.2f} | "
        f"{estimate:.2f} | {found[TOLD]:.2f} | {peak:.1f} | {spring:.1f} |"
    )


def table(gains: dict[str, Any]) -> str:
    """Return the table of all scenarios that have runs."""
    runs = load(RUNS)
    heads = [*CONTROLLERS, "best plain", "MPC over it", "estimate", TOLD, "MPC peak", "spring"]
    lines = [
        "# Contact controllers on the same estimates",
        "",
        "`python benchmark/mpc_baselines.py --table`. RMSE of the force after 1 s [N], median over the seeds.",
        "Estimate is the error of the estimate under the MPC. No controller can correct what it is not told.",
        f"'{TOLD}' is the MPC whose estimates carry the true force.",
        "A search after a lost contact is left out, from the last touch before to 1 s after it: all controllers share",
        f"it. A run that does not end under control counts at least {WORST:g} N.",
        f"Gains of the plain controllers, found by `--tune`: `{json.dumps(gains)}`.",
        "",
        f"| scenario | what | seeds | {' | '.join(heads)} |",
        "|---|---|---|" + "---|" * len(heads),
    ]
    done = [name for name in SCENARIOS if {*CONTROLLERS, TOLD} <= runs.get(name, {}).keys()]
    return "\n".join([*lines, *[row(name, runs[name]) for name in done]]) + "\n"


def draw(path: Path) -> None:
    """Draw the curves of all runs, one plot per scenario that has runs."""
    names = [name for name in SCENARIOS if name in load(RUNS)]
    fig, plots = figure((len(names) + 1) // 2, 2, height=1.6)
    for plot, name in zip(plots.ravel(), names):
        for colour, controller in reversed(list(zip(COLOURS[1:], CONTROLLERS))):
            for i, file in enumerate(sorted(CURVES.glob(f"{name}-{controller}-*.npy"))):
                plot.plot(*np.load(file), color=colour, linewidth=0.5, label=controller if i == 0 else None)
        plot.set(ylabel=f"{name} [N]", ylim=(0.0, 16.0))
    fig.legend(*plots[0, 0].get_legend_handles_labels(), loc="outside upper center", ncol=4)
    for plot in plots[-1]:
        plot.set(xlabel="time under the controller [s]")
    fig.savefig(path, dpi=80)


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    names = args.scenarios.split(",")
    if args.tune:
        tune(names)
        return 0
    gains = load(GAINS_FILE).get("best", {})
    compare(names, args.seeds, gains)
    if args.table:
        (ROOT / "benchmark/mpc_baselines.md").write_text(table(gains))
        draw(ROOT / "docs/figures/mpc_baselines.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
