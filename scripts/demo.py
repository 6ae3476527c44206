"""The demo: simulated arm, contact IMM filter and momentum observer on the real ROS 2 graph, recorded, and a report."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from contact_estimation.commands.output import Progress, text_table
from contact_estimation.exceptions import ContactEstimationError
from contact_estimation.io.open import open_recording
from contact_estimation.io.topics import TRUTH_TOPICS
from contact_estimation.robot import load_arm
from contact_estimation.ros.bag_estimates import LOST, read_estimates
from contact_estimation.ros.processes import NodeProcess, free_domain
from contact_estimation.viz.report import replay_report, summary_table
from contact_estimation.viz.summary import reference_of, summarise

ROBOT, SENSORS, SEED = "ur16e", "ur16e_driver", 1
#: Both use the arm's own model: what the papers' momentum observer reads into the wrist is true of their recordings
#: only.
ESTIMATORS = {"estimator": "contact_imm", "momentum_observer": "momentum_manufacturer"}
TOPICS = [
    "/joint_states:sensor_msgs/msg/JointState",
    "/diagnostics:diagnostic_msgs/msg/DiagnosticArray",
    *(f"/{node}/contact_estimate:contact_estimation/msg/ContactEstimate" for node in ESTIMATORS),
    *(f"/{node}/external_wrench:geometry_msgs/msg/WrenchStamped" for node in ESTIMATORS),
    *(f"{topic}:{kind}" for name, (topic, kind) in TRUTH_TOPICS.items() if name != "tau_ext"),
]


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def run_graph(out: Path, duration: float) -> Path:
    """Run the nodes for ``duration`` [s] of simulated time; returns the bag.

    Raises:
        ContactEstimationError: a node ended before its time.
    """
    bag, domain = out / "bag", free_domain()
    common = {"robot": ROBOT, "sensors": SENSORS}
    with ExitStack() as stack:

        def start(node: str, parameters: dict) -> NodeProcess:
            return stack.enter_context(NodeProcess(node, domain, parameters, log=out / f"{node}.log"))

        say("demo: starting recorder, contact IMM filter, momentum observer and simulated UR16e, one process each")
        nodes = [
            start("recorder", {"bag": str(bag), "topics": TOPICS}),
            *(start(node, common | {"observer": observer}) for node, observer in ESTIMATORS.items()),
        ]
        driver = start(
            "simulated_driver",
            {"robot": ROBOT, "duration": duration, "seed": SEED, "ahead": True, "wait_for_subscribers": len(nodes)},
        )
        wait_for_start(driver, nodes)
        progress, begun = Progress(1000, "demo: pressing"), time.monotonic()
        while driver.running:
            check(nodes)
            progress.update(min(int(1000 * (time.monotonic() - begun) / duration), 999))
            time.sleep(0.1)
            if time.monotonic() - begun > 3 * duration + 20:
                raise ContactEstimationError(f"the simulated driver does not end; its log is {driver.log}")
        progress.update(1000)
        progress.close()
        if driver.process.returncode:
            raise ContactEstimationError(f"the simulated driver failed:\n{driver.text()}")
        check(nodes)
        for node in nodes:
            if node.stop():
                raise ContactEstimationError(f"{node.node} did not end cleanly:\n{node.text()}")
    return bag


def wait_for_start(driver: NodeProcess, nodes: list[NodeProcess], timeout: float = 90.0) -> None:
    """Return when the driver found its subscribers; the first start compiles the filter."""
    end = time.monotonic() + timeout
    while "start," not in driver.text():
        check([*nodes, driver])
        if time.monotonic() > end:
            raise ContactEstimationError(
                f"the nodes did not find each other within {timeout:g} s; is UDP on the loopback "
                f"interface blocked? Logs are beside {driver.log}"
            )
        time.sleep(0.05)


def check(nodes: list[NodeProcess]) -> None:
    """Raise where a node has died."""
    for node in nodes:
        if not node.running:
            raise ContactEstimationError(f"{node.node} ended early with code {node.process.returncode}:\n{node.text()}")


def evaluate(bag: Path, out: Path) -> tuple[Path, str]:
    """Report on the bag; returns its path and the closing text."""
    recording = open_recording(bag, load_arm(ROBOT).joint_names)
    logs = read_estimates(bag, recording)
    if len(logs) != len(ESTIMATORS):
        raise ContactEstimationError(
            f"{bag} holds estimates of {', '.join(logs) or 'nobody'}, expected {len(ESTIMATORS)} observers"
        )
    reference = reference_of(recording)
    figures = {name: summarise(log.columns(), reference) for name, log in logs.items()}
    report = replay_report(
        out / "report.html",
        recording,
        logs,
        reference,
        "Demo: a simulated UR16e presses on a compliant block",
        f"{len(recording)} samples over {recording.duration:.1f} s on the ROS 2 graph; driver, estimators and "
        "recorder were separate processes. Timing: from a sample's stamp to its estimate in the bag.",
        command="make demo",
    )
    lines = [text_table(*summary_table(figures))]
    for name, log in logs.items():
        columns = log.columns()
        lost = int(np.count_nonzero(columns["reason"] == LOST))
        line = f"{name}: {len(log) - lost} estimates of {len(log)} samples"
        if reference.stiffness > 0 and figures[name]["stiffness"]:
            median = figures[name]["stiffness"]["median"]
            line += f"; stiffness {median / 1e3:.1f} kN/m, truth {reference.stiffness / 1e3:.1f}"
        if figures[name]["force"] and figures[name]["force"]["contact"]:
            line += f"; force error in contact {figures[name]['force']['contact']['rmse_z']:.2f} N along the push"
        if "contact_point" in columns:
            good = reference.contact & columns["valid"]
            error = np.linalg.norm(columns["contact_point"][good] - recording.truth["contact_point"][good], axis=1)
            line += f"; contact point within {1e3 * np.median(error):.2f} mm"
        lines.append(line)
    peak = float(np.nanmax(np.abs(reference.force[:, 2])))
    lines.append(f"The arm pressed with up to {peak:.0f} N. Bag: {bag}. Report: {report}")
    return report, "\n".join(lines)


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo"), help="folder of the bag, the logs and the report (is emptied)"
    )
    parser.add_argument("--duration", type=float, default=10.0, help="length of the press [s]")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    try:
        bag = run_graph(args.out, args.duration)
        say("demo: reading the bag and drawing the report")
        _, text = evaluate(bag, args.out)
    except ContactEstimationError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
