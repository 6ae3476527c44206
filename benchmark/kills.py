"""Interrupt and kill the real nodes at random moments: exit codes, times to be back, the command gate, and the bags.

Driver (simulated FR3), estimator, momentum observer, MPC and recorder run as processes over DDS. The driver is active
and gets an equilibrium pose all the time; the MPC is configured. First each node is started and interrupted (Ctrl-C)
between its first import and its first samples. Then the running nodes are killed (SIGKILL) one at a time and started
again at once. The load is the benchmark's own: ``--busy`` loops that never rest run beside the nodes.

    python benchmark/kills.py --priority 20 --save benchmark/kills.md
    python benchmark/kills.py --interrupts 10 --kills 10
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from contact_estimation.msg import ContactEstimate
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import GetState
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from contact_estimation.control.safety import SafetySettings
from contact_estimation.io.open import open_recording
from contact_estimation.io.recovery import whole_bag
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.mpc_outputs import pose as pose_message
from contact_estimation.ros.processes import NodeProcess

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "ros"))
from watcher import Watcher

ROBOT = {"robot": "fr3"}
SENSORS = {**ROBOT, "sensors": "link_torque"}
TOPICS = ["/joint_states:sensor_msgs/msg/JointState"]
DRIVER = {**ROBOT, "driver": "sim", "scenario": "plane", "duration": 36000.0, "configure_at_start": True}
NODES = {
    "driver": {**DRIVER, "wait_for_subscribers": 0},
    "estimator": dict(SENSORS),
    "momentum_observer": SENSORS,
    "mpc": ROBOT,
    "recorder": {"topics": TOPICS},
}
#: Where a node's estimates are; the others tell their state.
ESTIMATES = {"estimator": "/estimator/contact_estimate", "momentum_observer": "/momentum_observer/contact_estimate"}
#: [s] An interrupt comes this long after the start at the latest, a kill this long after the graph is whole again.
LATEST = 4.0
#: [s] A killed node is back within the first, and its estimates are valid within the second more.
LIMITS = {"back": 2.0, "valid": 1.0}
#: [s] A bag holds all but the last flush (twice a second), and what the recorder had not yet received.
FLUSHED = 1.0


class Graph:
    """The nodes as processes, and what is heard of them."""

    def __init__(self, watcher: Watcher, folder: Path, priority: int) -> None:
        self.watcher, self._folder, self._bags, self._priority = watcher, folder, 0, priority
        self.arm = load_arm("fr3")
        self.processes: dict[str, NodeProcess] = {}
        # Raw and the newest only: a listener that unpacks 1500 messages a second falls behind on a busy machine.
        self._heard = {name: self._newest(ContactEstimate, topic) for name, topic in ESTIMATES.items()}
        self._states = self._newest(JointState, "/joint_states")
        self.health = watcher.watch(DiagnosticArray, "/diagnostics", qos.VISUALIZATION)
        self._poses = watcher.node.create_publisher(PoseStamped, "equilibrium_pose", qos.SENSOR)
        self._pose = PoseStamped()

    def _newest(self, kind: type, topic: str) -> deque[bytes]:
        kept: deque[bytes] = deque(maxlen=1)
        self.watcher.node.create_subscription(kind, topic, lambda raw: kept.append(raw), qos.SENSOR, raw=True)
        return kept

    def start(self, name: str) -> None:
        """Start a node."""
        parameters = dict(NODES[name])
        if name == "recorder":
            self._bags += 1
            parameters["bag"] = str(self.bag)
        process = self.processes[name] = self.watcher.start(name, parameters)
        if self._priority:
            os.sched_setscheduler(process.process.pid, os.SCHED_FIFO, os.sched_param(self._priority))

    @property
    def bag(self) -> Path:
        """The bag that is being written."""
        return self._folder / f"bag_{self._bags}"

    def command(self) -> None:
        """Publish the first pose as the wanted one: a gate that is open lets it pass."""
        if not self._pose.header.frame_id and self._states:
            position = np.array(deserialize_message(self._states[0], JointState).position)
            self._pose.pose = pose_message(*self.arm.tcp_pose(position))
            self._pose.header.frame_id = self.arm.base_frame
        if self._pose.header.frame_id:
            self._poses.publish(self._pose)

    def passed(self) -> list[tuple[int, int, str]]:
        """Stamp [ns], commands passed and state of the gate, as the driver reported them."""
        reports = []
        for message in self.health:
            for status in message.status:
                values = {v.key: v.value for v in status.values}
                if status.name.startswith("driver") and "commands" in values:
                    count = int(values.get("commands passed", 0))
                    reports.append((convert.stamp_ns(message.header.stamp), count, values["commands"]))
        return reports

    def whole(self) -> None:
        """Return once everything runs and the gate is open."""
        for name in ESTIMATES:
            assert self.watcher.spin(lambda n=name: self.valid(n, 0)), self.processes[name].text()
        if self.watcher.state("mpc") == State.PRIMARY_STATE_UNCONFIGURED:
            assert self.watcher.change("mpc", Transition.TRANSITION_CONFIGURE), self.processes["mpc"].text()
        assert self.watcher.spin(self.opened), self.processes["driver"].text()

    def opened(self) -> bool:
        """Whether the driver is active, after a try to make it so."""
        if self.watcher.state("driver") == State.PRIMARY_STATE_ACTIVE:
            return True
        done = self.watcher.change("driver", Transition.TRANSITION_ACTIVATE)
        return done or self.watcher.spin(timeout=0.2)

    def answered(self, name: str, since_ns: int) -> bool:
        """Whether an estimator's newest estimate is of a sample of after ``since_ns`` [ns]."""
        seconds, nanoseconds = struct.unpack_from("<iI", self._heard[name][0], 4) if self._heard[name] else (0, 0)
        return seconds * 1_000_000_000 + nanoseconds > since_ns  # the stamp comes first, after CDR's own four bytes

    def valid(self, name: str, since_ns: int) -> bool:
        """As :meth:`answered`, a valid one."""
        return self.answered(name, since_ns) and deserialize_message(self._heard[name][0], ContactEstimate).valid

    def back(self, name: str, since_ns: int) -> Callable[[], bool]:
        """Return what tells that a node which was started again is there."""
        if name in ESTIMATES:
            return lambda: self.answered(name, since_ns)
        if name == "recorder":
            return lambda: any(self.bag.glob("*.mcap"))
        answers, asked = [], [0.0]

        def state() -> bool:
            if time.monotonic() - asked[0] > 0.1 and len(answers) < 1000:
                asked[0] = time.monotonic()
                answers.append(self.watcher._ask(GetState, f"/{name}/get_state", GetState.Request()))
            return any(answer.done() for answer in answers)

        return state

    def stop(self) -> None:
        """End all nodes."""
        for process in self.processes.values():
            process.stop()


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep processors busy with ``count`` loops that never rest."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def interrupts(watcher: Watcher, count: int, rng: np.random.Generator, folder: Path) -> dict[str, list]:
    """Start each node in turn and interrupt it; (exit code, whether a traceback was printed, seconds) per node."""
    found = defaultdict(list)
    for k in range(count):
        name = list(NODES)[k % len(NODES)]
        more = {"bag": str(folder / f"interrupted_{k}")} if name == "recorder" else {}
        with watcher.start(name, {**NODES[name], **more}) as process:
            watcher.spin(timeout=rng.uniform(0.1, LATEST))
            began = time.monotonic()
            process.process.send_signal(signal.SIGINT)
            code = process.wait()
            found[name].append((code, "Traceback" in process.text(), time.monotonic() - began))
        print(f"interrupt {k + 1}: {name} {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def kill(graph: Graph, name: str, stop_after: float) -> dict[str, float]:
    """Kill a node, start it again, and measure until the graph is whole."""
    watcher, result = graph.watcher, {}
    bag = graph.bag
    graph.processes[name].process.kill()
    graph.processes[name].wait()
    killed_ns, began = watcher.now_ns(), time.monotonic()
    graph.start(name)
    assert watcher.spin(graph.back(name, killed_ns)), graph.processes[name].text()
    result["back"] = time.monotonic() - began
    if name in ESTIMATES:
        assert watcher.spin(lambda: graph.valid(name, killed_ns)), graph.processes[name].text()
        result["valid"] = time.monotonic() - began - result["back"]
    if name == "recorder":
        with whole_bag(bag) as (path, _):
            stamps = open_recording(path, graph.arm.joint_names).stamps_ns
        result["lost"] = 1e-9 * (killed_ns - stamps[-1])
    if name == "estimator":  # the gate's deadman is past its stop: no report after it may count a command more
        watcher.spin(lambda: graph.passed() and graph.passed()[-1][0] > killed_ns + 1e9 * (stop_after + 2.0))
        late = [report for report in graph.passed() if report[0] > killed_ns + 1e9 * stop_after]
        result["leaked"] = float(late[-1][1] - late[0][1]) if late[-1][2] != "active" else -1.0
    graph.whole()
    return result


def table(interrupted: dict[str, list], killed: dict[str, list], commands: str) -> str:
    """Both tables as Markdown."""
    lines = ["# Nodes that are interrupted and killed", "", f"`{commands}`", ""]
    lines += ["| node | interrupts | exit code 0 | tracebacks | slowest end [s] |", "|---|---|---|---|---|"]
    for name, runs in interrupted.items():
        codes, traces, seconds = zip(*runs)
        lines.append(f"| {name} | {len(runs)} | {codes.count(0)} | {sum(traces)} | {max(seconds):.2f} |")
    back, valid = (f"median, max; within {limit:g} s" for limit in LIMITS.values())
    lines += ["", f"| node | kills | back after [s], {back} | then valid after [s], {valid} | remark |"]
    lines.append("|---|---|---|---|---|")
    for name, runs in killed.items():
        two = [
            f"{np.median(v):.2f}, {max(v):.2f}; {sum(s <= limit for s in v)} of {len(v)}"
            if (v := [r[key] for r in runs if key in r])
            else "-"
            for key, limit in LIMITS.items()
        ]
        remark = ""
        if name == "recorder":
            lost = [r["lost"] for r in runs]
            remark = f"{sum(v < FLUSHED for v in lost)} bags whole but for the last {max(lost):.2f} s"
        elif name == "estimator":
            remark = f"gate shut {sum(r['leaked'] == 0.0 for r in runs)} times"
        lines.append(f"| {name} | {len(runs)} | {two[0]} | {two[1]} | {remark} |")
    return "\n".join(lines) + "\n"


def passes(interrupted: dict[str, list], killed: dict[str, list]) -> bool:
    """Whether every interrupt ended well, every bag is whole, the gate was shut, and nodes were back in time."""
    ended = all(code == 0 and not trace for runs in interrupted.values() for code, trace, _ in runs)
    runs = [run for one in killed.values() for run in one]
    timely = all(run.get(key, 0.0) <= limit for run in runs for key, limit in LIMITS.items())
    return ended and timely and all(r.get("lost", 0.0) < FLUSHED and r.get("leaked", 0.0) == 0.0 for r in runs)


def main() -> None:
    """Interrupt, kill, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interrupts", type=int, default=50)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--busy", type=int, default=2, help="loops that keep processors busy meanwhile")
    parser.add_argument("--priority", type=int, default=0, help="real-time (FIFO) priority of the killed nodes")
    parser.add_argument("--observer", default="contact_imm", help="of the estimator")
    parser.add_argument("--stop-after", type=float, default=SafetySettings().stop_after, help="of the deadman [s]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="write the tables here")
    args = parser.parse_args()
    if args.priority > resource.getrlimit(resource.RLIMIT_RTPRIO)[0] and os.geteuid() != 0:
        parser.error(f"priority {args.priority} is not granted; docs/realtime.md says how to get it, or leave it out")
    NODES["estimator"]["observer"] = args.observer
    rng, killed = np.random.default_rng(args.seed), defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Watcher() as watcher, busy_loops(args.busy):
        limits = Path(folder) / "limits.yaml"
        limits.write_text(f"hold_after: {args.stop_after / 4}\nstop_after: {args.stop_after}\n")
        NODES["driver"]["safety"] = str(limits)
        interrupted = interrupts(watcher, args.interrupts, rng, Path(folder))
        graph = Graph(watcher, Path(folder), args.priority)
        try:
            with watcher.meanwhile(graph.command, 0.02):
                for name in NODES if args.kills else ():
                    graph.start(name)
                for k in range(args.kills):
                    graph.whole()
                    graph.health.clear()
                    watcher.spin(timeout=rng.uniform(1.0, LATEST))
                    name = str(rng.choice(list(NODES)))
                    killed[name].append(kill(graph, name, args.stop_after))
                    print(f"kill {k + 1}: {name} {killed[name][-1]}", file=sys.stderr, flush=True)
        finally:
            graph.stop()
    given = f"--interrupts {args.interrupts} --kills {args.kills} --seed {args.seed}"
    given += f" --observer {args.observer} --stop-after {args.stop_after} --priority {args.priority} --busy {args.busy}"
    command = f"python benchmark/kills.py {given}"
    text = table(interrupted, killed, command)
    print(text)
    if args.save:
        args.save.write_text(text)
    sys.exit(not passes(interrupted, killed))


if __name__ == "__main__":
    main()
