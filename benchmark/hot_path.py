"""The hot path from message to message, in steps of the plain EKF, all in one run.

- `push`: a sample through the stream of the default observer, with its estimate as arrays (`SampleStream.row`).
- `node`: callback of the estimator node, from the serialised JointState to the last published message, with a
  subscriber on each of the five full-rate topics, in another process.
- `driver`: from a backend's sample to the published JointState, with a subscriber in another process.
- `markers`: what the node draws at the visualization rate, on a thread of its own.

The unit is a step of the plain EKF (position measured, three parameters) in generated code, see ekf_step.py. All parts
take turns, blocks of fifty samples each, so that a machine that does other work as well slows all alike. A figure is
the median over blocks of a block's mean time per sample: updates of the filters, every fifth sample, are inside. It is
processor time of the calling thread; wall time would count the listener, which wakes up on the same cores.

    python benchmark/hot_path.py --save      # 20 s of samples per observer; the table goes to benchmark/hot_path.md
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np
import rclpy
from contact_estimation.msg import ContactEstimate
from ekf_step import settings_of  # a neighbour of this script
from geometry_msgs.msg import PointStamped, Vector3Stamped, WrenchStamped
from rclpy.serialization import serialize_message
from report import add_save_argument, heading, publish
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from contact_estimation.drivers.registry import make_backend
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import open_stream
from contact_estimation.nodes.estimator import Estimator
from contact_estimation.robot import load_arm
from contact_estimation.ros import convert, qos
from contact_estimation.ros.driver import SamplePublisher
from contact_estimation.ros.frames import Frames
from contact_estimation.ros.network import loopback_by_default
from contact_estimation.ros.processes import free_domain

TOPICS = {
    "contact_estimate": ContactEstimate,
    "external_wrench": WrenchStamped,
    "external_joint_torques": JointState,
    "contact_point": PointStamped,
    "stiffness": Vector3Stamped,
}
BLOCK, WARM_UP = 50, 4
BUDGET = {"push": 12.0, "node": 35.0, "driver": 35.0}


def listen(domain: int, node: str) -> None:
    """Subscribe to everything the node and the driver publish at full rate, until standard input ends."""
    rclpy.init(domain_id=domain)
    listener = rclpy.create_node("hot_path_listener")
    kinds = {f"/{node}/{topic}": kind for topic, kind in TOPICS.items()} | {"/joint_states": JointState}
    for topic, kind in kinds.items():
        listener.create_subscription(kind, topic, lambda raw: None, qos.SENSOR, raw=True)
    listener.create_subscription(MarkerArray, f"/{node}/markers", lambda raw: None, qos.VISUALIZATION, raw=True)
    print("ready", flush=True)
    while rclpy.ok():
        rclpy.spin_once(listener, timeout_sec=0.5)


def per_sample(call, samples) -> float:
    """Mean time [us] of this thread on the processor for ``call``, over ``samples``."""
    start = time.thread_time_ns()
    for sample in samples:
        call(sample)
    return (time.thread_time_ns() - start) / len(samples) / 1e3


def measure(observer: str, duration: float) -> dict[str, list[float]]:
    """Durations [us] per sample by part, one entry per block."""
    arm, domain = load_arm("ur16e"), free_domain()
    backend = make_backend("simulated", arm, duration=duration, ahead=True)
    backend.connect()
    samples = list(iter(backend.read, None))
    ekf, stream = Ekf(arm, settings_of(["stiffness"], "position")), open_stream("ur16e", observer, "joint_torque")
    stream.warm_up()
    ekf.reset(0.0, samples[0].q)
    rclpy.init(domain_id=domain)
    node = Estimator(defaults={"observer": observer, "sensors": "joint_torque", "max_age": 0.0}, subscribe=False)
    node._painter.close()  # markers take their turn below
    publisher = SamplePublisher(node, arm, Frames.of(arm, ""))
    command = [sys.executable, __file__, "--listen", str(domain), node.get_name()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listener:
        listener.stdout.readline()
        while any(node.count_subscribers(f"/{node.get_name()}/{topic}") == 0 for topic in TOPICS):
            time.sleep(0.1)
        time.sleep(1.0)
        messages = [
            serialize_message(
                convert.joint_state(convert.header(s.stamp_ns + 1, "base"), arm.joint_names, s.q, s.dq, s.tau)
            )
            for s in samples
        ]
        parts = {
            "EKF": lambda s: ekf.step(0.002, s.q, s.dq, s.tau),
            "push": lambda s: (stream.push_fast(s.stamp_ns + 1, s.q, s.dq, s.tau), stream.row()),
            "node": node.on_joint_states,
            "driver": lambda s: publisher.publish(s, s.stamp_ns),
            "estimate as object": lambda s: stream.estimate(),
        }
        times = {name: [] for name in (*parts, "markers")}
        for begin in range(0, len(samples) - BLOCK + 1, BLOCK):
            for name, call in parts.items():
                block = (messages if name == "node" else samples)[begin : begin + BLOCK]
                times[name].append(per_sample(call, block))
            times["markers"].append(per_sample(lambda _: node._draw(), [None]))
            time.sleep(0.002 * BLOCK)  # the listener keeps up
        listener.kill()
    used = node.stream.counters["used"]
    node.destroy_node()
    rclpy.shutdown()
    if used != len(samples):
        raise SystemExit(f"the node used {used} of {len(samples)} samples: {node.stream.counters}")
    return {name: values[WARM_UP:] for name, values in times.items()}


def table(found: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = ["| observer | part | p50 [us] | in steps of the EKF | budget |", "|---|---|---|---|---|"]
    for observer, times in found.items():
        for name, values in times.items():
            ratio = statistics.median(np.divide(values, times["EKF"]).tolist())
            budget = BUDGET.get(name)
            verdict = "-" if budget is None else f"{budget:g}, {'met' if ratio <= budget else 'MISSED'}"
            lines.append(f"| {observer} | {name} | {statistics.median(values):.1f} | {ratio:.1f} | {verdict} |")
    return lines


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=20.0, help="length of the simulated press [s]")
    parser.add_argument("--observer", action="append", help="repeatable; default contact_imm, momentum_manufacturer")
    add_save_argument(parser)
    parser.add_argument("--listen", nargs=2, metavar=("DOMAIN", "NODE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.listen:
        listen(int(args.listen[0]), args.listen[1])
        return
    observers = args.observer or ["contact_imm", "momentum_manufacturer"]
    note = "Microseconds of processor time per sample, medians over blocks of fifty, of ratios, too."
    head = heading("From message to message, in steps of the plain EKF", note)
    with loopback_by_default(rclpy.get_rmw_implementation_identifier()):  # the network that nodes use by themselves
        found = {observer: measure(observer, args.duration) for observer in observers}
    publish([*head, *table(found)], args.save)


if __name__ == "__main__":
    main()
