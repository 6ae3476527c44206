#!/usr/bin/env python3
"""How long a start takes: importing, and from a fresh interpreter to the first estimate or result of each verb.

    python benchmark/start.py [--cold] [--save]

Processor time of the interpreter and of what it starts (a compiler), the least of three; other load counts little.
Warm: the code cache is filled. Cold (``--cold``): it is empty, once. Verbs run on half a second of a simulated press.
``--save`` writes start.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from report import add_save_argument, heading, publish

from contact_estimation.cli import VERBS
from contact_estimation.codegen.cache import VARIABLE
from contact_estimation.commands.simulate import as_recording
from contact_estimation.io.bag_writer import write_bag
from contact_estimation.simulation.session import open_simulation

OBSERVERS = ("momentum", "ekf", "contact_imm")
#: What a node of any package pays; left out where there is no ROS.
_PEERS = ["rclpy.node", "contact_estimation.nodes.estimator"] if find_spec("rclpy") else []
#: Longest warm start [s], in processor time.
MOST = 1.0
SECONDS = 0.5
FIRST = (
    "import sys; from contact_estimation import open_stream; import numpy as np\n"
    "stream = open_stream('ur16e', sys.argv[1]); q = np.array([0.9, -1.0, 2.2, -2.8, -1.5, 0.5])\n"
    "[stream.push(k, q, 0 * q, stream.arm.gravity(q)) for k in (1, 2_000_001)]"
)
VERB = "import sys; from contact_estimation.cli import main; sys.exit(main(sys.argv[1:]))"


def starts(folder: Path) -> dict[str, list[str]]:
    """Return what is started: name -> words for the interpreter, on the bag ``press`` in ``folder``."""
    bag, robot = str(folder / "press"), ["--robot", "ur16e"]
    results = ["--workers", "0", "--results", str(folder / "results"), "--fresh", "--observers", "contact_imm"]
    verbs = {
        "replay": [bag, *robot],
        "compare": [bag, *robot, "--observers", "contact_imm,momentum"],
        "evaluate": [bag, *results],
        "view": [bag, *robot, "--out", str(folder / "view.html")],
        "observability": [bag, *robot],
    }
    found = {f"import {name}": ["-c", f"import {name}"] for name in ("contact_estimation", *_PEERS)}
    found |= {f"first estimate of {observer}": ["-c", FIRST, observer] for observer in OBSERVERS}
    found |= {f"`{verb} RECORDING`": ["-c", VERB, verb, *words] for verb, words in verbs.items()}
    return found | {f"`{verb} --help`": ["-c", VERB, verb, "--help"] for verb in VERBS}


def seconds(words: list[str], **environment: str) -> float:
    """Return the processor time [s] of a fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=os.environ | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def cold_start(words: list[str]) -> float:
    """Return the time [s] with an empty code cache."""
    with tempfile.TemporaryDirectory() as cache:
        return seconds(words, **{VARIABLE: cache})


def table(cold: bool) -> list[str]:
    """Measure and return the Markdown table."""
    bare = min(seconds(["-c", "pass"]) for _ in range(3))
    lines = ["| start | cold [s] | warm [s] | warm, in starts of Python |", "|---|---|---|---|"]
    simulation = open_simulation("linear_contact")
    recording = as_recording(list(simulation.run(SECONDS)), simulation.arm, "press", simulation.imperfections)
    with tempfile.TemporaryDirectory() as folder:
        write_bag(Path(folder) / "press", recording, robot=simulation.arm.name)
        for name, words in starts(Path(folder)).items():
            first = f"{cold_start(words):.1f}" if cold and "--help" not in name and "import" not in name else "-"
            warm = min(seconds(words) for _ in range(3))
            late = " (above 1)" if warm > MOST else ""
            lines.append(f"| {name} | {first} | {warm:.2f}{late} | {warm / bare:.1f} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cold", action="store_true", help="measure with an empty code cache, too")
    add_save_argument(parser)
    args = parser.parse_args()
    publish([*heading("Start", "Processor time [s]."), *table(args.cold)], args.save)


if __name__ == "__main__":
    main()
