"""A UR16e presses through the RTDE driver, with and without its wrist sensor, and meets faults meanwhile.

    python benchmark/ur_live.py [--seconds 8] [--seed 0] [--rows "5 kN/m, sensor"] [--controller mpc]
                                [--task NAME] [--observer NAME] [--air MM] [--approach MM_PER_S]
                                [--record FILE] [--save]

Driver, default observer, fusion with the wrist sensor, controller and recorder run as on a robot. The controller
behind the registers is simulated, in simulated time: ``--seconds 1800`` is half an hour. ``--rows`` chooses the rows
whose titles its regular expression matches. ``--air MM`` is the way to the surface, by default 0.4 mm, and
``--approach`` the speed there. ``--save`` writes every finished row into tables/ur_live.json, and all of them into
ur_live.md. A row that is saved is not repeated. ``--record FILE`` keeps the samples of the last run.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from ur_press import UrPress, UrPressOptions, UrPressRecord

FOLDER = Path(__file__).resolve().parent
ROWS, TABLE = FOLDER / "tables/ur_live.json", FOLDER / "ur_live.md"
#: [N/m] and the three ways to sense: sensor used, offset [N].
STIFFNESS = (5e3, 26e3, 100e3)
SENSING = {"sensor": (True, 0.0), "sensor, 10 N off": (True, 10.0), "sensorless": (False, 0.0)}
#: [s] after which the RMSE counts, when a fault comes, and for how long it lasts at least.
SETTLED, FAULT_AT, FAULT_LASTS = 3.0, 4.0, 1.0
#: [m/s] below which the arm stands.
STILL = 1e-4
FAULTS: dict[str, Callable[[UrPress], None]] = {
    "protective stop": lambda press: press.ur.stop_for_safety(),
    "stall of 1 s": lambda press: press.link.stall(1.0),
    "connection lost for 1 s": lambda press: press.link.stall(1.0, gone=True),
}
#: Errors of the wrist sensor along the wanted force: jump [N] and drift [N/s].
SENSOR_FAULTS = {
    "sensor jumps by -30 N": (-30.0, 0.0),
    "sensor jumps by 30 N": (30.0, 0.0),
    "sensor jumps by -10 N": (-10.0, 0.0),
    "sensor drifts by -2 N/s": (0.0, -2.0),
    "sensor drifts by -0.5 N/s": (0.0, -0.5),
    "sensor drifts by 2 N/s": (0.0, 2.0),
}
#: What holds meanwhile: the sensor's offset [N].
HOLDS = {"hold": 0.0, "hold, sensor 10 N off": 10.0, "hold, sensor -20 N off": -20.0}


def pressed(record: UrPressRecord) -> dict[str, float | str]:
    """Return what one press shows [N]."""
    return {
        "rmse": round(record.rmse(SETTLED), 2),
        "mean": round(float(record.force[record.t > SETTLED].mean()), 2),
        "peak": round(float(record.force.max()), 1),
        "active": round(float(record.active.mean()), 3),
    }


def survived(record: UrPressRecord) -> dict[str, float | str]:
    """Return how a fault was answered: when the arm stands [ms], and the highest forces [N]."""
    before = record.force[(record.t > FAULT_AT - 0.5) & (record.t < FAULT_AT)]
    during = record.ticks[record.ticks[:, 0] < FAULT_AT + FAULT_LASTS]
    moving = during[during[:, 2] > STILL]
    return {
        "stands after [ms]": round(1e3 * float(moving[-1, 0] - FAULT_AT)) if moving.size else 0,
        "highest before [N]": round(float(before.max()), 1),
        "highest during [N]": round(float(during[:, 1].max()), 1),
        "highest after [N]": round(float(record.force[record.t >= FAULT_AT].max()), 1),
        "active at the end": str(bool(record.active[-1])),
        "refused": "; ".join(record.refused),
    }


def endured(record: UrPressRecord) -> dict[str, float | str]:
    """Return what an error of the sensor, or a hold, has led to [N]."""
    after = record.t >= FAULT_AT
    held = record.t[after & ~record.active]
    return {
        "highest [N]": round(float(record.force[after].max()), 1),
        "lowest while active [N]": round(float(record.force[after & record.active].min(initial=np.inf)), 1),
        "holds after [s]": round(float(held[0] - FAULT_AT), 2) if held.size else "never",
        "at the end [N]": round(float(record.force[record.t > record.t[-1] - 0.5].mean()), 1),
    }


def save(rows: dict[str, dict[str, float | str]]) -> None:
    """Write all rows: as JSON, and as one table for the presses and one for the faults."""
    ROWS.write_text(json.dumps(rows, indent=1) + "\n")
    lines = [
        "# A UR16e presses with 50 N through the RTDE driver",
        "",
        f"`python benchmark/ur_live.py --save`. Forces in N; the RMSE counts after {SETTLED:g} s.",
    ]
    for key in ("rmse", "stands after [ms]", "holds after [s]"):
        same = {title: row for title, row in sorted(rows.items()) if key in row}
        heads = list(dict.fromkeys(name for row in same.values() for name in row))
        lines += ["", f"| press | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
        lines += [f"| {title} | {' | '.join(str(row[name]) for name in heads)} |" for title, row in same.items()]
    TABLE.write_text("\n".join(lines) + "\n")


def main() -> int:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", default="", help="a regular expression for the titles of the rows")
    parser.add_argument("--controller", default="mpc")
    parser.add_argument("--task", default=UrPressOptions.task, help="a name in a profile's tasks, or a file")
    parser.add_argument("--observer", default=UrPressOptions.observer, help="its name in the profile, or a file")
    usual = 1e3 * UrPressOptions.air, 1e3 * UrPressOptions.approach_speed
    parser.add_argument("--air", type=float, default=usual[0], help="[mm] between tool and surface at the start")
    parser.add_argument("--approach", type=float, default=usual[1], help="[mm/s]")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = json.loads(ROWS.read_text()) if ROWS.exists() and args.save else {}
    jobs = [(f"{k / 1e3:g} kN/m, {name}", k, *sensing, None) for k in STIFFNESS for name, sensing in SENSING.items()]
    middle = STIFFNESS[1]
    jobs += [(name, middle, True, 0.0, fault) for name, fault in FAULTS.items()]
    breaks = {name: partial(UrPress.break_sensor, jump=j, drift=d) for name, (j, d) in SENSOR_FAULTS.items()}
    jobs += [(name, middle, True, 0.0, fault) for name, fault in breaks.items()]
    jobs += [(name, middle, True, offset, UrPress.declare_lost) for name, offset in HOLDS.items()]
    for press_title, stiffness, sensor, offset, fault in jobs:
        title = "" if args.task == UrPressOptions.task else f"{Path(args.task).stem}, "
        title += "" if args.observer == UrPressOptions.observer else f"{Path(args.observer).stem}, "
        title += f"{args.controller}, seed {args.seed}, {args.seconds:g} s"
        title += "" if (args.air, args.approach) == usual else f", {args.air:g} mm of air at {args.approach:g} mm/s"
        title += f": {press_title}"
        if title in rows or not re.search(args.rows, title):
            continue
        options = UrPressOptions(
            task=args.task,
            controller=args.controller,
            observer=args.observer,
            stiffness=stiffness,
            sensor=sensor,
            offset=offset,
            seed=args.seed,
            air=args.air / 1e3,
            approach_speed=args.approach / 1e3,
            keep_samples=args.record is not None,
        )
        press = UrPress(options)
        record = press.run(args.seconds, None if fault is None else (FAULT_AT, fault))
        shown = pressed if fault is None else survived if press_title in FAULTS else endured
        rows[title] = shown(record)
        print(title, rows[title], flush=True)
        if args.record:
            record.save(args.record)
        if args.save:
            save(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
