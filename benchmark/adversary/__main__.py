"""Try identification on recordings of worlds that share no code with it, clean and with planted faults.

    python -m benchmark.adversary [--system planar] [--runs 3] [--clean 20] [--seed 0] [--fault friction] [--save FILE]

Every run writes the files a user would have into a folder and runs ``contact-estimation identify ... --json`` on them.
``verdict`` of the answer (``good``, ``doubtful``, ``failed``) counts. Where there is none, ``status`` does (``failed``
or ``undetermined``), then the exit code; a traceback is ``crashed``. Rows are appended to ``rows.jsonl`` in ``--out``;
what is there already is not run again, unless it crashed. The same seed draws the same body with and without a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import json
import signal
import sys
import time
import traceback
import zlib
from pathlib import Path

import numpy as np

from benchmark.adversary.case import CLEAN
from benchmark.adversary.summary import summary, table
from contact_estimation.cli import main as command_line
from contact_estimation.jobs.processes import Processes

SYSTEMS = ("batch", "probing", "planar")
TIMEOUT = 900  # [s]


def world(system: str):
    """Import the module of a system's world."""
    return importlib.import_module(f"benchmark.adversary.{system}")


def run_one(system: str, fault: str, seed: int, out: Path, seconds: float | None) -> dict:
    """Simulate, write, identify; returns the row."""
    module, folder = world(system), out / system / f"{fault}_{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    length = {} if seconds is None else {"seconds": seconds}
    case = module.write(folder, fault, np.random.default_rng([zlib.crc32(system.encode()), seed]), **length)
    begin = time.monotonic()
    code, text, errors, cpu = identify(case.command)
    verdict, reasons, found = judge(module, code, text, errors)
    return {
        "system": system,
        "fault": fault,
        "seed": seed,
        "verdict": verdict,
        "reasons": reasons,
        "truth": case.truth,
        "found": found,
        "note": case.note,
        "exit": code,
        "seconds": round(time.monotonic() - begin, 2),
        "cpu": round(cpu, 2),
        "command": ["contact-estimation", *case.command, "--json"],
    }


def run_job(job: tuple[str, str, int], out: Path, seconds: float | None) -> dict:
    """Run what ``(system, fault, seed)`` names; returns the row."""
    return run_one(*job, out, seconds)


def identify(command: list[str]) -> tuple[int, str, str, float]:
    """Exit code, what was printed, and processor time [s]; what it raises is a traceback among the errors."""
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(TIMEOUT)
    output, errors, begin = io.StringIO(), io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = command_line([*command, "--json"])
        except Exception:
            code = 1
            traceback.print_exc()
    signal.alarm(0)
    return code, output.getvalue(), errors.getvalue(), time.process_time() - begin


def _too_late(*_: object) -> None:
    raise TimeoutError(f"no answer within {TIMEOUT} s")


def judge(module, code: int, text: str, errors: str) -> tuple[str, list[str], dict[str, list[float]]]:
    """Verdict, its reasons, and the intervals by parameter."""
    last = [errors.strip().splitlines()[-1]] if errors.strip() else []
    if "Traceback (most recent call last)" in errors:
        return "crashed", last, {}
    try:
        output = json.loads(text)
        found = {name: [float(x) for x in interval] for name, interval in module.read(output).items()}
    except (ValueError, KeyError, TypeError):
        return "failed" if code else "crashed", last, {}
    status = output.get("status")
    verdict = output.get("verdict") or ("failed" if code or status in ("failed", "undetermined") else "good")
    return verdict, output.get("reasons") or [output.get("reason", "")], found


def wanted(args) -> list[tuple[str, str, int]]:
    """(system, fault, seed) of every run asked for, clean runs first."""
    jobs = []
    for system in args.system or SYSTEMS:
        faults = world(system).FAULTS
        unknown = sorted(set(args.fault) - set(faults)) if args.system and len(args.system) == 1 else []
        if unknown:
            raise SystemExit(f"{system} has no fault {', '.join(unknown)}; it has {', '.join(faults)}")
        clean = args.runs if args.clean is None else args.clean
        jobs += [(system, CLEAN, args.seed + k) for k in range(clean)]
        jobs += [
            (system, f, args.seed + k) for f in faults if not args.fault or f in args.fault for k in range(args.runs)
        ]
    return jobs


def collect(jobs: list[tuple[str, str, int]], out: Path, processes: int, seconds: float | None = None) -> list[dict]:
    """Rows of all jobs; those in ``rows.jsonl`` are read, the others run and appended."""
    out = out if seconds is None else out / f"{seconds:g}s"
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "rows.jsonl"
    rows = {}
    for line in kept.read_text().splitlines() if kept.is_file() else ():
        row = json.loads(line)
        if row["verdict"] != "crashed":  # a broken installation crashes too
            rows[row["system"], row["fault"], row["seed"]] = row
    missing = [job for job in jobs if job not in rows]
    with kept.open("a") as file:
        outcomes = Processes(processes).run(functools.partial(run_job, out=out, seconds=seconds), missing)
        for done, outcome in enumerate(outcomes, 1):
            if outcome.error:
                raise SystemExit(f"{missing[outcome.number]}: {outcome.error}")
            row = rows[missing[outcome.number]] = outcome.value
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(
                f"{done}/{len(missing)} {row['system']} {row['fault']} {row['seed']}: {row['verdict']}", file=sys.stderr
            )
    return [rows[job] for job in jobs]


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="repeatable; default all")
    parser.add_argument("--fault", action="append", default=[], help="repeatable; default all of the system")
    parser.add_argument("--runs", type=int, default=3, help="runs of each fault (default 3)")
    parser.add_argument("--clean", type=int, help="clean runs (default as many as --runs)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--seconds", type=float, help="with --system probing: length of the recordings (default 8)")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2)
    parser.add_argument(
        "--out", type=Path, default=Path("out/adversary"), help="recordings and rows (default %(default)s)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE.md")
    args = parser.parse_args()
    if args.seconds is not None and args.system != ["probing"]:
        parser.error("--seconds belongs to --system probing alone")
    rows = collect(wanted(args), args.out.resolve(), args.processes, args.seconds)
    systems = args.system or list(SYSTEMS)
    lines = ["# Identification on strangers' recordings", "", f"`{command(args)}`", ""]
    lines += summary({system: world(system) for system in systems}, rows)
    for system in systems:
        lines += table(system, world(system), rows)
    print("\n".join(lines))
    if args.save:
        args.save.write_text("\n".join(lines).rstrip() + "\n")


def command(args) -> str:
    """Write out the command line that makes these rows."""
    parts = ["python -m benchmark.adversary", *(f"--system {s}" for s in args.system or ())]
    parts += [f"--fault {f}" for f in args.fault]
    parts += [
        f"--runs {args.runs}",
        *([f"--clean {args.clean}"] if args.clean is not None else []),
        f"--seed {args.seed}",
        *([f"--seconds {args.seconds:g}"] if args.seconds is not None else []),
    ]
    return " ".join(parts)


if __name__ == "__main__":
    from benchmark.adversary.__main__ import main as importable  # spawned processes import what they run by its name

    importable()
