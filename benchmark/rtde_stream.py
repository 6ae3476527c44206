"""The real ur_rtde client against the loopback controller: lost samples, intervals, reconnection.

    python benchmark/rtde_stream.py --seconds 60 --save benchmark/rtde_stream.md

Controller, client process and this reader share the machine; a controller on its own computer leaves the client more
room.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.drivers.rtde import RtdeBackend, RtdeSettings
from contact_estimation.robot import load_arm

HOST = "127.0.77.1"


def start(priority: int) -> subprocess.Popen:
    """Return the controller, listening."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "contact_estimation",
            "rtde-server",
            "--host",
            HOST,
            "--imperfections",
            "ideal",
            "--console",
            "--realtime-priority",
            str(priority),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if "listening" not in process.stdout.readline():
        raise SystemExit("the controller did not start")
    return process


def state(server: subprocess.Popen) -> dict[str, str]:
    """Return what the controller says of itself."""
    server.stdin.write("state\n")
    server.stdin.flush()
    words = server.stdout.readline().split()
    return dict(zip(words[::2], words[1::2]))


def main() -> None:
    """Stream, restart, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--restarts", type=int, default=5)
    add_save_argument(parser)
    args = parser.parse_args()
    note = "Controller and client process at real-time priority."
    head = heading("ur_rtde client against the loopback controller", note)
    arm, server = load_arm("ur16e"), start(40)
    driver = RtdeBackend(arm, RtdeSettings(host=HOST))
    try:
        driver.connect()
        settled = time.monotonic() + 1.0
        while time.monotonic() < settled:  # what waited in the pipe since the client started
            driver.read()
        driver.counters.clear()
        begin, cpu, arrivals, stamps = time.monotonic(), time.process_time(), [], []
        while time.monotonic() - begin < args.seconds:
            stamps.append(driver.read().stamp_ns)
            arrivals.append(time.monotonic())
        wall, cpu = time.monotonic() - begin, time.process_time() - cpu
        clock = state(server)
        lost, gaps, interval = driver.counters["lost"], np.diff(stamps) / 1e6, 1e3 * np.diff(arrivals)
        taken = []
        for _ in range(args.restarts):
            server.kill()
            server.wait()
            time.sleep(0.3)
            server = start(40)
            up = time.monotonic()
            driver._queue.clear()
            last = driver.counters["reconnects"]
            while driver.counters["reconnects"] == last or not driver._queue:
                driver._pump(0.02)
                if driver.counters["reconnects"] == last:
                    driver._queue.clear()
            taken.append(time.monotonic() - up)
    finally:
        driver.close()
        server.kill()
    rows = [
        ("samples", f"{len(stamps)} in {wall:.1f} s"),
        ("rate of the stream, by wall clock [Hz]", f"{(len(stamps) - 1 + lost) / (arrivals[-1] - arrivals[0]):.2f}"),
        ("lost samples", f"{lost}"),
        ("controller: packets over 1 ms late and caught up; ticks given up", f"{clock['late']}; {clock['skipped']}"),
        ("largest step between stamps [ms]", f"{gaps.max():.1f}"),
        (
            "interval between arrivals [ms] p50, p99, max",
            f"{np.percentile(interval, 50):.2f}, {np.percentile(interval, 99):.2f}, {interval.max():.1f}",
        ),
        ("CPU of the reading process", f"{100 * cpu / wall:.0f} % of one core"),
        ("reconnection after a restart [s] median, max", f"{np.median(taken):.2f}, {max(taken):.2f}"),
    ]
    text = [*head, "| what | measured |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    if lost:
        text += [
            "",
            "The library keeps the newest packet only: packets that reach it together cost a sample. Missing stamps",
            "are counted, and the estimators integrate over the gap.",
        ]
    publish(text, args.save)


if __name__ == "__main__":
    main()
