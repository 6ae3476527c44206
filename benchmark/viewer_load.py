"""What the live page costs: the processor time of its server, its frames, and the delay of the estimator beside it.

This process is the driver, as in graph_latency.py: it publishes a simulated press at 500 Hz to an estimator node. Runs
without and with the node ``viewer`` take turns. Clients that read frames as a browser does are open all the time of a
run with it; they are another process.

    python benchmark/viewer_load.py --save
    python benchmark/viewer_load.py --priority 20   # driver and estimator as real-time processes, the viewer not
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from graph_latency import Bench, samples_at
from live_graph import cpu_seconds  # neighbours of this script
from report import add_save_argument, heading, publish

from contact_estimation.robot import load_arm
from contact_estimation.ros.processes import NodeProcess, free_domain

ROBOT = "ur16e"
#: Samples of a run that the percentiles leave out: the observer settles.
WARM_UP = 250
#: Share of a core [%] that the server may take, and frames per second that a page gets at least.
BUDGET_CPU, BUDGET_FRAMES = 15.0, 28.0
#: A client: it counts frames until its input closes, then prints their number and their seconds.
CLIENT = """
import sys, threading, time, urllib.request
stream, count, begin, last = urllib.request.urlopen(sys.argv[1] + 'live'), 0, 0.0, 1.0
threading.Thread(target=lambda: (sys.stdin.read(), stream.fp.raw._sock.shutdown(2)), daemon=True).start()
try:
    for line in stream:
        if line.startswith(b'data:'):
            begin, count = begin or time.monotonic(), count + 1
            last = time.monotonic()
except OSError:
    pass
print((count - 1) / (last - begin))
"""


class Run(NamedTuple):
    """Figures of one run.

    Attributes:
        viewer: whether the viewer ran.
        p50, p99, worst: latency of the estimator [ms].
        lost: estimates that did not come back.
        cpu: of the viewer's process [% of a core].
        frames: per second that the slowest client got.
    """

    viewer: bool
    p50: float
    p99: float
    worst: float
    lost: int
    cpu: float = float("nan")
    frames: float = float("nan")


class Page:
    """The viewer's process and its clients."""

    def __init__(self, node: NodeProcess, clients: int) -> None:
        self._node = node
        while not (found := re.search(r"page: (\S+)", node.text())):
            if not node.running:
                raise SystemExit(node.text())
            time.sleep(0.05)
        command = [sys.executable, "-c", CLIENT, found[1]]
        self._clients = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(clients)
        ]
        self._begin, self._cpu = 0.0, 0.0

    def begin(self) -> None:
        """Measure from now on."""
        self._begin, self._cpu = time.perf_counter(), cpu_seconds(self._node.process.pid)

    def end(self) -> tuple[float, float]:
        """Return the share of a core [%] and the frames per second of the slowest client."""
        share = (cpu_seconds(self._node.process.pid) - self._cpu) / (time.perf_counter() - self._begin)
        return 100.0 * share, min(float(client.communicate()[0]) for client in self._clients)


@contextlib.contextmanager
def ordinary(priority: int) -> Iterator[None]:
    """Let processes that are started inside have the ordinary scheduling."""
    if priority:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    yield
    if priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def measure(bench: Bench, arm, samples: list, page: Page | None) -> Run:
    """One run."""
    bench.sent.clear()
    bench.back.clear()
    if page is not None:
        page.begin()
    bench.run(arm, samples, 0.0, False)
    more = page.end() if page is not None else ()
    stamps = list(bench.sent)
    times = [bench.back[s][0][0] - bench.sent[s] for s in stamps[WARM_UP:] if s in bench.back]
    latency = 1e-6 * np.array(times)
    quantiles = np.percentile(latency, [50, 99, 100]).tolist()
    return Run(page is not None, *quantiles, sum(s not in bench.back for s in stamps), *more)


def table(runs: list[Run]) -> list[str]:
    """Return the lines of a Markdown table of the runs."""
    lines = [
        "| viewer | latency p50 [ms] | p99 [ms] | max [ms] | lost | CPU of the server [% of a core] | frames/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        more = f"{run.cpu:.1f} | {run.frames:.1f}" if run.viewer else "- | -"
        word = "yes" if run.viewer else "no"
        lines.append(f"| {word} | {run.p50:.3f} | {run.p99:.3f} | {run.worst:.2f} | {run.lost} | {more} |")
    return lines


def main() -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="length of a run [s]")
    parser.add_argument("--pairs", type=int, default=3, help="runs without and with the viewer")
    parser.add_argument("--clients", type=int, default=2, help="open pages")
    parser.add_argument("--observer", default="contact_imm", help="observer of the estimator")
    parser.add_argument("--priority", type=int, default=0, help="real-time (FIFO) priority of driver and estimator")
    add_save_argument(parser)
    args = parser.parse_args()
    how = f"driver and estimator with FIFO priority {args.priority}" if args.priority else "ordinary scheduling"
    note = (
        f"{args.seconds:g} s at 500 Hz each, observer {args.observer}, {args.clients} clients, {how}. Latency runs "
        "from a sample's publication to that of its estimate."
    )
    head, arm, domain = heading("The live page beside an estimator", note), load_arm(ROBOT), free_domain()
    samples = samples_at(arm, args.seconds, 500.0)
    if args.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(args.priority))
    bench, runs = Bench(domain), []
    gc.disable()  # this process's own pauses are not the graph's
    with NodeProcess("estimator", domain, {"observer": args.observer, "sensors": "joint_torque"}):
        for _ in range(args.pairs):
            runs.append(measure(bench, arm, samples, None))
            with contextlib.ExitStack() as stack:
                with ordinary(args.priority):
                    viewer = stack.enter_context(NodeProcess("viewer", domain, {"robot": ROBOT}))
                    page = Page(viewer, args.clients)
                runs.append(measure(bench, arm, samples, page))
    bench.close()
    publish([*head, *table(runs)], args.save)
    shown = [run for run in runs if run.viewer]
    good = max(run.cpu for run in shown) <= BUDGET_CPU and min(run.frames for run in shown) >= BUDGET_FRAMES
    print(f"budget {BUDGET_CPU:g} % of a core, {BUDGET_FRAMES:g} frames/s: {'held' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
