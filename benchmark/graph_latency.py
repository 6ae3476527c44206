"""From driver to published estimate through the real graph: latency and losses at 500 Hz or more.

This process is the driver: it publishes a simulated UR16e press on ``joint_states`` and listens to the estimate of a
real estimator node in another process. Latency is the time from just before a sample is published until its estimate
is, as DDS notes in the estimate's source timestamp (both on this machine's clock). The round trip adds the way back.
The node's own share (sample taken until every topic is published) is read from its diagnostics.

    python benchmark/graph_latency.py --save          # 30 s; the table goes to benchmark/graph_latency.md
    python benchmark/graph_latency.py --priority 20   # driver and node as real-time processes, as on a robot's computer
    python benchmark/graph_latency.py --rate 1000 --busy --duration 120   # with MPC and recorder as further processes
    python benchmark/graph_latency.py --burst 0.2     # every two seconds the driver stalls, then sends all at once
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rclpy
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from live_graph import cpu_seconds  # a neighbour of this script
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from report import add_save_argument, heading, publish
from sensor_msgs.msg import JointState

from contact_estimation.drivers.backend import Sample
from contact_estimation.drivers.registry import make_backend
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.network import loopback_by_default
from contact_estimation.ros.processes import NodeProcess, free_domain

#: Samples that percentiles leave out; samples until the MPC is activated, and again where it refuses.
WARM_UP, ACTIVATE = 250, 1500
#: Time between two stalls of the driver [s].
BURST_PERIOD = 2.0
BUDGET = {"p50": 0.5, "p99": 1.5}
SIGNALS = ("q", "dq", "tau")


class TransitionRefusedError(Exception):
    """The MPC refused a lifecycle transition."""


def refused(transition: Future) -> bool:
    """Whether a lifecycle transition was refused, as an activation is by an estimate that comes late."""
    return transition.done() and not transition.result().success


class Bench:
    """Driver and listener in one thread: while it waits for the next sample's time it takes what comes back."""

    def __init__(self, domain: int):
        rclpy.init(domain_id=domain)
        with loopback_by_default(rclpy.get_rmw_implementation_identifier()):  # the network that the nodes use
            self.node = rclpy.create_node("latency_bench")
        self._executor = SingleThreadedExecutor()  # the events executor does not give source timestamps
        self._executor.add_node(self.node)
        self._states = self.node.create_publisher(JointState, "joint_states", qos.SENSOR)
        self.sent: dict[int, int] = {}
        self.back: dict[int, list[tuple[int, int]]] = {}
        self._raw = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the bench): ten minutes fill a memory
        self.diagnostics: list[dict[str, str]] = []
        self.node.create_subscription(
            ContactEstimate, "/estimator/contact_estimate", self._on_estimate, qos.RECORDER, raw=True
        )
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.VISUALIZATION)

    def _on_estimate(self, raw: bytes, info: dict) -> None:
        now = time.time_ns()
        seconds, nanoseconds = struct.unpack_from("<iI", raw, 4)  # the stamp comes first, after CDR's own four bytes
        stamp = seconds * 1_000_000_000 + nanoseconds
        self.back.setdefault(stamp, []).append((info["source_timestamp"], now))
        self._raw.write(len(raw).to_bytes(4, "little") + raw)

    @property
    def invalid(self) -> Counter[str]:
        """Reasons of the invalid estimates that came back; read after the run."""
        self._raw.seek(0)
        sizes = iter(lambda: int.from_bytes(self._raw.read(4), "little"), 0)
        messages = (deserialize_message(self._raw.read(size), ContactEstimate) for size in sizes)
        return Counter(message.reason for message in messages if not message.valid)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        own = [status for status in message.status if status.name.split(":")[0] == "estimator"]
        self.diagnostics += [{value.key: value.value for value in status.values} for status in own]

    def spin_until(self, end: float) -> None:
        """Take messages until ``end`` [s, perf_counter]."""
        while (left := end - time.perf_counter()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def change(self, client: Client, transition: int) -> Future:
        """Ask for a lifecycle transition."""
        while not client.service_is_ready():
            self.spin_until(time.perf_counter() + 0.1)
        return client.call_async(ChangeState.Request(transition=Transition(id=transition)))

    def finish(self, transition: Future) -> None:
        """Wait for a lifecycle transition."""
        while not transition.done():
            self.spin_until(time.perf_counter() + 0.1)
        if not transition.result().success:
            raise TransitionRefusedError

    def run(self, arm, samples, burst: float, busy: bool) -> None:
        """Publish every sample at its time, or ``burst`` [s] of them at once; ``busy``: with an active MPC beside."""
        if busy:
            client = self.node.create_client(ChangeState, "/mpc/change_state")
            self.finish(self.change(client, Transition.TRANSITION_CONFIGURE))
        while self.node.count_subscribers("joint_states") < 1 + busy:  # the recorder listens, too
            self.spin_until(time.perf_counter() + 0.05)
        self.spin_until(time.perf_counter() + 1.0)
        activated: Future | None = None
        epoch, start = time.time_ns(), time.perf_counter()
        for k, sample in enumerate(samples):
            seconds = sample.stamp_ns * 1e-9
            into = seconds % BURST_PERIOD
            self.spin_until(start + (seconds + burst - into if into < burst else seconds))
            if busy and k % ACTIVATE == ACTIVATE - 1 and (activated is None or refused(activated)):
                activated = self.change(client, Transition.TRANSITION_ACTIVATE)
            stamp = epoch + sample.stamp_ns
            message = convert.joint_state(
                convert.header(stamp, arm.base_frame), arm.joint_names, sample.q, sample.dq, sample.tau
            )
            self.sent[stamp] = time.time_ns()
            self._states.publish(message)
        self.spin_until(time.perf_counter() + 1.5)
        if activated is not None:
            self.finish(activated)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown()


def samples_at(arm, duration: float, rate: float) -> list[Sample]:
    """Return a simulated press, interpolated to ``rate`` [Hz]."""
    backend = make_backend("simulated", arm, duration=duration, ahead=True)
    backend.connect()
    samples = list(iter(backend.read, None))
    stamps = np.array([s.stamp_ns for s in samples])
    times = np.arange(stamps[0], stamps[-1], round(1e9 / rate))
    columns = [[np.interp(times, stamps, c) for c in np.array([getattr(s, k) for s in samples]).T] for k in SIGNALS]
    return [Sample(int(t), *rows) for t, *rows in zip(times, *(np.array(c).T for c in columns))]


def catch_up(bench: Bench, burst: float) -> float:
    """Return the longest time [s] from the end of a stall until everything of it was answered; NaN without stalls."""
    first, longest = min(bench.sent), []
    for stamp in bench.sent:
        into = 1e-9 * (stamp - first) % BURST_PERIOD
        if into < burst and stamp in bench.back:
            longest.append(1e-9 * (bench.back[stamp][0][0] - stamp) - (burst - into))
    return max(longest, default=float("nan"))


@contextlib.contextmanager
def company(domain: int, busy: bool) -> Iterator[list[int]]:
    """Run MPC and recorder beside the estimator and give their process ids; the MPC's log says why it refuses."""
    if not busy:
        yield []
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        topics = ["/joint_states:sensor_msgs/msg/JointState"]
        topics.append("/estimator/contact_estimate:contact_estimation/msg/ContactEstimate")
        recorder = stack.enter_context(NodeProcess("recorder", domain, {"bag": f"{folder}/bag", "topics": topics}))
        mpc = stack.enter_context(NodeProcess("mpc", domain, {"robot": "ur16e", "task": "mpc_plane_ur16e"}))
        try:
            yield [mpc.process.pid, recorder.process.pid]
        except TransitionRefusedError:
            raise SystemExit(f"the MPC refuses a transition; the end of its log:\n{mpc.text()[-2000:]}") from None


def peak_memory(pid: int) -> float:
    """Peak resident set of a process [MB]."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def measure(observer: str, args: argparse.Namespace) -> dict:
    """One run; figures by name."""
    arm = load_arm("ur16e")
    samples = samples_at(arm, args.duration, args.rate)
    domain = free_domain()
    bench = Bench(domain)
    gc.disable()  # the bench's own pauses are not the graph's
    estimator = {"observer": observer, "sensors": "joint_torque"}
    with company(domain, args.busy) as others, NodeProcess("estimator", domain, estimator) as node:
        pids = [node.process.pid, *others]
        begin, before = time.perf_counter(), [cpu_seconds(pid) for pid in pids]
        bench.run(arm, samples, args.burst, args.busy)
        spent, duration = [cpu_seconds(pid) for pid in pids], time.perf_counter() - begin
        peaks = [peak_memory(pid) for pid in pids]
        assert node.stop() == 0, node.text()
    gc.enable()
    bench.close()
    stamps = list(bench.sent)
    answered = [(bench.sent[s], *bench.back[s][0]) for s in stamps[WARM_UP:] if s in bench.back]
    sent, published, back = np.array(answered).T
    latency, round_trip = (published - sent) * 1e-6, (back - sent) * 1e-6
    last = bench.diagnostics[-1]
    costs = [
        (float(d["cost [ms] p50"]), float(d["cost [ms] p99"])) for d in bench.diagnostics[1:] if "cost [ms] p50" in d
    ]
    return {
        "observer": observer,
        "samples": len(stamps),
        "lost": sum(s not in bench.back for s in stamps),
        "twice": sum(len(times) > 1 for times in bench.back.values()),
        "processed": int(last["samples"]),
        "invalid": bench.invalid.total(),
        "p50": float(np.percentile(latency, 50)),
        "p99": float(np.percentile(latency, 99)),
        "p999": float(np.percentile(latency, 99.9)),
        "max": float(latency.max()),
        "cpu": ", ".join(f"{100.0 * (after - first) / duration:.0f}" for first, after in zip(before, spent)),
        "memory": ", ".join(f"{peak:.0f}" for peak in peaks),
        "catch_up": catch_up(bench, args.burst),
        "back_p50": float(np.percentile(round_trip, 50)),
        "back_p99": float(np.percentile(round_trip, 99)),
        "cost_p50": float(np.median([c[0] for c in costs])),
        "cost_p99": float(np.median([c[1] for c in costs])),
    }


#: What the columns are.
NOTE = (
    "Driver and estimator in two processes, Fast DDS on the loopback interface, the node on EventsExecutor. "
    "Latency runs from before the sample is published until its estimate is (DDS source timestamp); the round "
    "trip until it is back at the driver; the node's share from the sample's arrival until every topic is "
    "published (median of the figures of each second). The first half second is left out of the percentiles, not "
    "of the counts. Caught up: longest time from the end of a stall of the driver until the last sample of it was "
    "answered. CPU in percent of a core, and peak resident set: of the estimator's process, then of the MPC's and "
    "the recorder's, where they run. Taken: samples that reached the node; lost: estimates that did not reach the "
    "driver."
)


def table(rows: list[dict]) -> list[str]:
    """Return the lines of a Markdown table."""
    text = [
        "| observer | samples | taken | lost | twice | invalid | latency p50 [ms] | p99 [ms] | p99.9 [ms] | max [ms] "
        "| round trip p50 [ms] | p99 [ms] | node p50 [ms] | node p99 [ms] | caught up [ms] | CPU [%] | memory [MB] |",
        "|" + "---|" * 17,
    ]
    text += [
        f"| {r['observer']} | {r['samples']} | {r['processed']} | {r['lost']} | {r['twice']} | {r['invalid']} "
        f"| {r['p50']:.3f} | {r['p99']:.3f} | {r['p999']:.2f} | {r['max']:.2f} "
        f"| {r['back_p50']:.3f} | {r['back_p99']:.3f} | "
        f"{r['cost_p50']:.3f} | {r['cost_p99']:.3f} | {1e3 * r['catch_up']:.0f} | {r['cpu']} | {r['memory']} |"
        for r in rows
    ]
    return text


def main() -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description="latency and losses of the estimator node on the real graph")
    parser.add_argument("--observer", action="append", help="config/observers name; repeatable (default ekf)")
    parser.add_argument("--duration", type=float, default=30.0, help="length of a run [s]")
    parser.add_argument(
        "--priority",
        type=int,
        default=0,
        help="real-time (FIFO) priority of driver and node, needs the right to it; 0: ordinary scheduling",
    )
    parser.add_argument("--rate", type=float, default=500.0, help="rate of the samples [Hz]")
    parser.add_argument("--busy", action="store_true", help="an active MPC and a recorder run beside the estimator")
    parser.add_argument("--burst", type=float, default=0.0, help="length of the driver's stalls [s], one every 2 s")
    add_save_argument(parser)
    args = parser.parse_args()
    if args.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(args.priority))  # the node inherits it
    how = f"FIFO priority {args.priority}" if args.priority else "ordinary scheduling"
    note = f"{args.duration:g} s at {args.rate:g} Hz, {how}. {NOTE}"
    head = heading("Driver to published estimate through the ROS 2 graph", note)
    rows = [measure(observer, args) for observer in args.observer or ["ekf"]]
    publish([*head, *table(rows)], args.save)
    good = all(r["p50"] <= BUDGET["p50"] and r["p99"] <= BUDGET["p99"] and r["lost"] == r["twice"] == 0 for r in rows)
    print(
        f"budget p50 <= {BUDGET['p50']} ms, p99 <= {BUDGET['p99']} ms, none lost, none twice: "
        f"{'held' if good else 'MISSED'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
