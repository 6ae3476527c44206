"""The whole graph live: simulated driver, estimator, momentum observer and MPC as four processes over real DDS.

The scenario's own motion brings the tool into contact; then driver and MPC are activated and the MPC presses on the
plane, moving along it, for the measured time. Rates, losses, latencies and the true force are taken from what the
nodes publish, with the source timestamps DDS gives every message; CPU shares from /proc.

    python benchmark/live_graph.py --save                # 20 s per arm
    python benchmark/live_graph.py --priority 20 --save benchmark/live_graph.md  # all nodes as real-time processes
"""

from __future__ import annotations

import argparse
import gc
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rclpy
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import SingleThreadedExecutor
from rclpy.serialization import deserialize_message
from report import add_save_argument, heading, publish
from sensor_msgs.msg import JointState

from contact_estimation.control.mpc.settings import load_mpc_settings
from contact_estimation.robot import load_arm
from contact_estimation.ros import qos
from contact_estimation.ros.network import loopback_by_default
from contact_estimation.ros.processes import NodeProcess, free_domain

TICKS = os.sysconf("SC_CLK_TCK")
#: Time under MPC before the measurement begins [s].
SETTLE = 2.0


@dataclass(frozen=True)
class Case:
    """An arm, the scenario it is in, and what estimates and controls."""

    robot: str
    observer: str
    task: str
    scenario: str
    contact_at: float  # [s] the scenario's motion presses by then
    sensors: str
    safety: str = ""


CASES = (
    Case("fr3", "franka_plane", "mpc_plane_fr3", "plane", 3.9, "link_torque"),
    Case("ur16e", "contact_imm", "mpc_plane_ur16e", "linear_contact", 4.0, "ur16e_driver", "press_ur16e"),
)


@dataclass(frozen=True)
class Arrivals:
    """Messages of one topic: header stamps and DDS source timestamps [ns], and the raw messages."""

    kind: type
    stamps: list[int]
    published: list[int]
    raw: list[bytes]

    def window(self, begin: int, end: int) -> np.ndarray:
        """Return indices of the messages published from ``begin`` to ``end`` [ns]."""
        published = np.array(self.published)
        return np.flatnonzero((published >= begin) & (published < end))


class Listener:
    """Takes what the nodes publish, as raw bytes, and asks for lifecycle transitions."""

    def __init__(self, domain: int):
        rclpy.init(domain_id=domain)
        with loopback_by_default(rclpy.get_rmw_implementation_identifier()):  # the network that the nodes use
            self.node = rclpy.create_node("live_bench")
        self._executor = SingleThreadedExecutor()  # the events executor does not give source timestamps
        self._executor.add_node(self.node)
        self.topics: dict[str, Arrivals] = {}
        self.diagnostics: dict[str, dict[str, str]] = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, qos.VISUALIZATION)

    def watch(self, kind: type, topic: str) -> Arrivals:
        """Collect ``topic`` from now on."""
        kept = self.topics[topic] = Arrivals(kind, [], [], [])

        def on_message(raw: bytes, info: dict) -> None:
            # The stamp comes first, after CDR's own four bytes.
            seconds, nanoseconds = struct.unpack_from("<iI", raw, 4)
            kept.stamps.append(seconds * 1_000_000_000 + nanoseconds)
            kept.published.append(info["source_timestamp"])
            kept.raw.append(raw)

        self.node.create_subscription(kind, topic, on_message, qos.RECORDER, raw=True)
        return kept

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.diagnostics[status.name.split(":")[0]] = {v.key: v.value for v in status.values}

    def spin(self, seconds: float, until=lambda: False) -> bool:
        """Take messages for ``seconds``, or until ``until()`` holds; returns ``until()``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not until():
            self._executor.spin_once(timeout_sec=min(left, 0.1))
        return bool(until())

    def change(self, node: str, transition: int, seconds: float = 120.0) -> bool:
        """Ask ``node`` for a lifecycle transition; whether it succeeded."""
        client = self.node.create_client(ChangeState, f"/{node}/change_state")
        if not self.spin(30.0, client.service_is_ready):
            raise SystemExit(f"node {node} offers no lifecycle")
        future = client.call_async(ChangeState.Request(transition=Transition(id=transition)))
        return self.spin(seconds, future.done) and future.result().success

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown()


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, all its threads [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(case: Case, seconds: float) -> dict:
    """One run; figures by name."""
    arm, task, domain = load_arm(case.robot), load_mpc_settings(case.task), free_domain()
    bench = Listener(domain)
    states = bench.watch(JointState, "/joint_states")
    estimates = bench.watch(ContactEstimate, "/estimator/contact_estimate")
    bench.watch(ContactEstimate, "/momentum_observer/contact_estimate")
    poses = bench.watch(PoseStamped, "/equilibrium_pose")
    truth = bench.watch(WrenchStamped, "/truth/external_wrench")
    nodes = {
        "estimator": {"robot": case.robot, "observer": case.observer, "sensors": case.sensors},
        "momentum_observer": {"robot": case.robot, "sensors": case.sensors},
        "mpc": {"robot": case.robot, "task": case.task, "executor": "driver"},
        "driver": {
            "robot": case.robot,
            "driver": "sim",
            "scenario": case.scenario,
            "safety": case.safety,
            "duration": 600.0,
            "configure_at_start": True,
            "wait_for_subscribers": 3,
            "impedance_stiffness": list(task.impedance.stiffness),
            "admittance_damping": float(task.impedance.damping_factor * np.sqrt(task.impedance.stiffness[0])),
        },
    }
    processes = {}
    try:
        for name, parameters in nodes.items():
            remap = {"mpc/equilibrium_pose": "equilibrium_pose"} if name == "mpc" else None
            processes[name] = NodeProcess(name, domain, parameters, remap)
            if name == "mpc" and not bench.change("mpc", Transition.TRANSITION_CONFIGURE):
                raise SystemExit(processes[name].text())
        first = lambda: len(states.stamps) > 0  # noqa: E731
        in_contact = lambda: states.stamps[-1] - states.stamps[0] > case.contact_at * 1e9  # noqa: E731
        if not bench.spin(60.0, first) or not bench.spin(30.0, in_contact):
            raise SystemExit("no samples came: " + processes["driver"].text())
        for node, transition in (("driver", Transition.TRANSITION_ACTIVATE), ("mpc", Transition.TRANSITION_ACTIVATE)):
            if not bench.change(node, transition, 10.0):
                raise SystemExit(f"{node} could not be activated: {processes[node].text()}")
        bench.spin(SETTLE)
        begin, cpu = time.time_ns(), {name: cpu_seconds(p.process.pid) for name, p in processes.items()}
        bench.spin(seconds)
        end, wall = time.time_ns(), 1e-9 * (time.time_ns() - begin)
        shares = {name: 100 * (cpu_seconds(p.process.pid) - cpu[name]) / wall for name, p in processes.items()}
        bench.spin(1.2)  # what is still on its way, and one more report of every node
    finally:
        for process in reversed(processes.values()):
            process.stop()
        bench.close()
    messages = (deserialize_message(estimates.raw[i], ContactEstimate) for i in estimates.window(begin, end))
    return {
        "case": case,
        "wanted": task.force,
        "cpu": shares,
        "rates": {topic: rate(kept, begin, end) for topic, kept in bench.topics.items()},
        "sample to estimate": latency(states, estimates, begin, end),
        "estimate to equilibrium": latency(estimates, poses, begin, end),
        "real time": real_time(states, begin, end),
        "invalid": sum(not message.valid for message in messages),
        "force": forces(arm, states, truth, begin, end),
        "estimated": estimated(estimates, begin, end),
        "diagnostics": bench.diagnostics,
        "seconds": wall,
    }


def rate(kept: Arrivals, begin: int, end: int) -> tuple[float, int]:
    """Rate by publishing time [Hz], and how many stamps of the samples' 2 ms grid are missing (-1: no such grid)."""
    published, stamps = (np.array(kind)[kept.window(begin, end)] for kind in (kept.published, kept.stamps))
    hertz = (len(published) - 1) / (1e-9 * (published[-1] - published[0])) if len(published) > 1 else 0.0
    steps = np.round(np.diff(stamps) / 2e6)
    return hertz, int(np.sum(steps - 1)) if kept.kind is not PoseStamped else -1


def latency(source: Arrivals, sink: Arrivals, begin: int, end: int) -> tuple[float, float, float]:
    """Return p50, p99 and largest time [ms] from a message of ``source`` to the one of ``sink`` with its stamp."""
    published = dict(zip(source.stamps, source.published))
    times = [
        1e-6 * (sink.published[i] - published[sink.stamps[i]])
        for i in sink.window(begin, end)
        if sink.stamps[i] in published
    ]
    return tuple(np.percentile(times, [50, 99, 100])) if times else (np.nan,) * 3


def real_time(states: Arrivals, begin: int, end: int) -> float:
    """Return simulated time over wall time."""
    w = states.window(begin, end)
    return (states.stamps[w[-1]] - states.stamps[w[0]]) / (states.published[w[-1]] - states.published[w[0]])


def forces(arm, states: Arrivals, truth: Arrivals, begin: int, end: int) -> np.ndarray:
    """Return true force on the robot (N, 3) [N], base axes."""
    at, rows = dict(zip(states.stamps, states.raw)), []
    for i in truth.window(begin, end)[::5]:
        if truth.stamps[i] in at:
            q = np.array(deserialize_message(at[truth.stamps[i]], JointState).position)
            force = deserialize_message(truth.raw[i], WrenchStamped).wrench.force
            rows.append(arm.tcp_pose(q)[1] @ [force.x, force.y, force.z])
    return np.array(rows)


def estimated(estimates: Arrivals, begin: int, end: int) -> np.ndarray:
    """Estimated force on the robot (N, 3) [N], base axes."""
    messages = (deserialize_message(estimates.raw[i], ContactEstimate) for i in estimates.window(begin, end)[::5])
    return np.array([[m.force_base.x, m.force_base.y, m.force_base.z] for m in messages])


def lines(result: dict) -> list[str]:
    """Rows of a Markdown table for one run."""
    case, cpu, diagnostics = result["case"], result["cpu"], result["diagnostics"]
    axis = int(np.argmax(np.abs(result["wanted"])))
    true, estimate = result["force"][:, axis], result["estimated"][:, axis]
    wanted = result["wanted"][axis]
    driver, mpc = diagnostics.get("driver", {}), diagnostics.get("mpc", {})
    spread = "p50 {:.2f}, p99 {:.2f}, max {:.1f}"
    rows = [
        (f"{topic} [Hz]", f"{hertz:.1f}" + ("" if missing < 0 else f", {missing} samples missing"))
        for topic, (hertz, missing) in result["rates"].items()
    ]
    rows += [
        ("simulated over wall time", f"{result['real time']:.4f}"),
        ("sample to estimate [ms]", spread.format(*result["sample to estimate"])),
        ("estimate to equilibrium pose [ms]", spread.format(*result["estimate to equilibrium"])),
        (
            "solve time of the MPC [ms], last second",
            ", ".join(f"{part} {mpc.get(f'solve time [ms] {part}')}" for part in ("p50", "p99")),
        ),
        *((f"CPU of {name} [% of one core]", f"{share:.0f}") for name, share in cpu.items()),
        (
            "force along the wanted one [N]",
            f"wanted {wanted:.1f}, true {true.mean():.2f} +- {true.std():.2f}, estimated {estimate.mean():.2f}",
        ),
        ("RMS of the true force's error [N]", f"{np.sqrt(np.mean((true - wanted) ** 2)):.2f}"),
        ("invalid estimates", f"{result['invalid']}"),
        ("ticks of the MPC", ", ".join(f"{v} {k[6:]}" for k, v in mpc.items() if k.startswith("ticks "))),
        (
            "commands at the driver",
            ", ".join(f"{v} {k[9:]}" for k, v in driver.items() if k.startswith("commands ") and k != "commands say")
            + f"; in the end {driver.get('commands')}",
        ),
    ]
    return [
        f"## {case.robot}: scenario `{case.scenario}`, observer `{case.observer}`, task `{case.task}`",
        "",
        "| what | measured |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]


def main() -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the measurement per arm [s]")
    parser.add_argument("--robot", choices=[case.robot for case in CASES], help="this arm only")
    parser.add_argument("--priority", type=int, default=0, help="FIFO priority of all nodes; 0: ordinary scheduling")
    add_save_argument(parser)
    args = parser.parse_args()
    if args.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(args.priority))  # the nodes inherit it
    gc.disable()  # the bench's own pauses are not the graph's
    how = f"FIFO priority {args.priority}" if args.priority else "ordinary scheduling"
    note = (
        f"{args.seconds:g} s under MPC per arm, four nodes as processes over Fast DDS on the loopback interface, "
        f"{how}, a listener beside them. Latencies run between DDS source timestamps."
    )
    text = heading("Driver, estimators and MPC in the live graph", note)
    for case in CASES:
        if args.robot in (None, case.robot):
            text += lines(measure(case, args.seconds))
    publish(text, args.save)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
