"""``contact-estimation doctor``: what is installed, what compiles, the time of a loop, how to add what is missing."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from typing import Any

from contact_estimation.commands import diagnosis
from contact_estimation.commands.output import Progress, emit, text_table
from contact_estimation.viz.html import cell


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--robot", default="ur16e", help="robot whose loop is timed (default ur16e)")
    parser.add_argument("--observer", default="ekf", help="EKF configuration whose step is timed (default ekf)")


def run(args: argparse.Namespace) -> int:
    """Look at everything, print it; 1 if something that is needed is missing."""
    result: dict[str, Any] = {
        "python": {"version": platform.python_version(), "executable": sys.executable, "machine": platform.machine()}
    }
    looks: dict[str, Callable[[], Any]] = {
        "packages": diagnosis.packages,
        "compiler": diagnosis.compiler,
        "cache": diagnosis.cache,
        "ros": diagnosis.ros,
        "loop": lambda: diagnosis.loop(args.robot, args.observer),
    }
    with Progress(len(looks), "doctor") as progress:
        for done, (name, look) in enumerate(looks.items()):
            progress.update(done, name)
            result[name] = look()
        progress.update(len(looks))
    parts = [*result["packages"], result["compiler"], result["cache"], *result["ros"], result["loop"]]
    result["to_do"] = [part["remedy"] for part in parts if part["remedy"]]
    result["ok"] = all(part["ok"] or not part["needed"] for part in parts)
    emit(args, result, _text(result))
    return 0 if result["ok"] else 1


def _text(result: dict[str, Any]) -> str:
    rows = [
        [part["name"], _state(part), cell(part["version"] or None), part["purpose"]]
        for part in [*result["packages"], *result["ros"], result["compiler"], result["cache"]]
    ]
    width = max(len(row[0]) for row in rows)
    python = result["python"]
    lines = [f"Python {python['version']} ({python['executable']}), {python['machine']}", ""]
    lines += [f"{name.ljust(width)}  {state:8s}  {version:28s}  {purpose}" for name, state, version, purpose in rows]
    loop = result["loop"]
    lines += ["", f"One EKF step, {loop['version']}:"]
    if loop["ok"]:
        times = [[name, *(cell(value[p]) for p in ("p50", "p99"))] for name, value in loop["step_us"].items()]
        lines.append(text_table(["", "p50 [µs]", "p99 [µs]"], times))
        if "ratio" in loop:
            lines.append(f"generated C is {loop['ratio']:.1f} times faster than the virtual machine")
    else:
        lines.append(loop["purpose"])
    lines += ["", "Nothing to do." if not result["to_do"] else "To do:"]
    return "\n".join(lines + [f"  - {remedy}" for remedy in result["to_do"]])


def _state(part: diagnosis.Finding) -> str:
    return "ok" if part["ok"] else "MISSING" if part["needed"] else "absent"
