"""The demo: a simulated UR16e presses, slides, lets go and is pushed; three observers on the real ROS 2 graph.

The arm and its contacts are simulated by a physics engine with friction, elastic gears and noise that the filters do
not share. Driver, estimators and recorder are processes of their own. The report compares with the truth.
"""

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
from contact_estimation.filters.registry import open_stream
from contact_estimation.io.export import EstimateLog
from contact_estimation.io.open import open_recording
from contact_estimation.io.recording import Recording
from contact_estimation.io.replay import replay
from contact_estimation.io.topics import TRUTH_TOPICS
from contact_estimation.robot import Arm, load_arm
from contact_estimation.ros.bag_estimates import LOST, read_estimates
from contact_estimation.ros.processes import NodeProcess, free_domain
from contact_estimation.simulation.session import Simulation, open_simulation
from contact_estimation.viz.frames import TRUTH_COLOUR, TRUTH_SIZE, TrueShapes, recorded_frames
from contact_estimation.viz.markers import Shape, arrow
from contact_estimation.viz.meshes import link_poses
from contact_estimation.viz.player import Box, recording_page
from contact_estimation.viz.reference import reference_of
from contact_estimation.viz.report import ReplayedRun, ReportExtras, Table, replay_report
from contact_estimation.viz.summary import summarise

ROBOT, SENSORS, SEED, SCENARIO = "ur16e", "ur16e_driver", 1, "mission"
#: Node -> observer: the default one and two baselines. All use the arm's own model: what the papers' momentum observer
#: reads into the wrist is true of their recordings only.
ESTIMATORS = {"estimator": "contact_imm", "momentum_observer": "momentum_manufacturer", "ekf": "ekf"}
TOPICS = [
    "/joint_states:sensor_msgs/msg/JointState",
    *(f"/{node}/contact_estimate:contact_estimation/msg/ContactEstimate" for node in ESTIMATORS),
    *(f"{topic}:{kind}" for topic, kind in TRUTH_TOPICS.values()),
]
TABLE_COLOUR = (0.62, 0.72, 0.80)
PHASES_CAPTION = (
    "Error against the simulation, root mean square: of the contact force [N]; of the joint torque [Nm] where a link "
    "is pushed."
)
GRAPH_CAPTION = (
    "Time of the filter for one sample, and time from the sample's stamp until its estimate is in the bag. A busy "
    "machine raises the second: no sample is dropped."
)
GRAPH_HEADER = [
    "observer",
    "estimates",
    "filter, median [µs]",
    "99 % [µs]",
    "stamp to bag, median [ms]",
    "99 % [ms]",
    "equal to offline replay",
]


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def run_graph(out: Path, duration: float) -> Path:
    """Run the nodes while the scenario lasts, ``duration`` [s]; returns the bag.

    Raises:
        ContactEstimationError: a node ended before its time.
    """
    bag, domain = out / "bag", free_domain()
    complete = {"complete": True}  # a busy machine makes it late, but loses no sample
    common = complete | {"robot": ROBOT, "sensors": SENSORS}
    with ExitStack() as stack:

        def start(node: str, parameters: dict) -> NodeProcess:
            executable, remap = ("estimator", {"__node": node}) if node == "ekf" else (node, {})
            return stack.enter_context(NodeProcess(executable, domain, parameters, remap, out / f"{node}.log"))

        say(f"demo: starting recorder, {', '.join(ESTIMATORS.values())} and a simulated UR16e, one process each")
        nodes = [
            start("recorder", complete | {"bag": str(bag), "topics": TOPICS}),
            *(start(node, common | {"observer": observer}) for node, observer in ESTIMATORS.items()),
        ]
        driver = start(
            "simulated_driver",
            complete
            | {"robot": ROBOT, "scenario": SCENARIO, "seed": SEED, "ahead": True, "wait_for_subscribers": len(nodes)},
        )
        wait_for_start(driver, nodes)
        progress, begun = Progress(1000, "demo: press, slide, let go, pushes"), time.monotonic()
        while driver.running:
            check(nodes)
            progress.update(min(int(1000 * (time.monotonic() - begun) / duration), 999))
            time.sleep(0.1)
            if time.monotonic() - begun > 10 * duration + 60:
                raise ContactEstimationError(f"the simulated driver does not end; its log is {driver.log}")
        progress.update(1000)
        progress.close()
        if driver.process.returncode:
            raise ContactEstimationError(f"the simulated driver failed:\n{driver.text()}")
        check(nodes)
        wait_for_end(bag)
        for node in nodes:
            if node.stop():
                raise ContactEstimationError(f"{node.node} did not end cleanly:\n{node.text()}")
    return bag


def wait_for_start(driver: NodeProcess, nodes: list[NodeProcess], timeout: float = 300.0) -> None:
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


def wait_for_end(bag: Path, quiet: float = 3.0) -> None:
    """Return when the bag no longer grows: on a busy machine estimators are behind."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < quiet:
        now = sum(file.stat().st_size for file in bag.iterdir())
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(0.2)


def check(nodes: list[NodeProcess]) -> None:
    """Raise where a node has died."""
    for node in nodes:
        if not node.running:
            raise ContactEstimationError(f"{node.node} ended early with code {node.process.returncode}:\n{node.text()}")


def phases(simulation: Simulation, recording: Recording) -> dict[str, np.ndarray]:
    """Phases of the scenario by name, each as a mask (N,) of samples."""
    t = recording.t - recording.t[0]
    ends = np.cumsum([segment.duration for segment in simulation.scenario.motion])
    touched = np.abs(recording.truth["wrench_tcp"][:, :3]).max(axis=1) > 0.0
    untouched = np.abs(recording.truth["tau_ext"]).max(axis=1) == 0.0
    found = {"press": (t > ends[0]) & (t < ends[2]) & touched, "slide": (t > ends[2]) & (t < ends[4]) & touched}
    for push in simulation.scenario.pushes:
        found[f"push: {push.name}"] = (t > push.start + push.rise) & (t < push.start + push.duration - push.rise)
    return found | {"free": untouched & (t > 0.5)}


def phase_table(
    simulation: Simulation, recording: Recording, logs: dict[str, EstimateLog]
) -> tuple[list[str], list[list[object]]]:
    """Header and rows: RMS of truth and error in each phase; of joint torque where a link is pushed, else of force."""
    on_links = {f"push: {push.name}" for push in simulation.scenario.pushes if push.joint}
    rows: list[list[object]] = []
    for name, mask in phases(simulation, recording).items():
        truth, column, unit = recording.truth["wrench_tcp"][:, :3], "force", "N"
        if name in on_links:
            truth, column, unit = recording.truth["tau_ext"], "tau_ext", "Nm"
        errors: list[object] = []
        for log in logs.values():
            columns = log.columns()
            chosen = mask & columns["valid"]
            errors.append(rms(columns[column][chosen] - truth[chosen]))
        rows.append([f"{name} [{unit}]", rms(truth[mask]), *errors])
    return ["phase", "true size", *(f"error of {name}" for name in logs)], rows


def rms(vectors: np.ndarray) -> float:
    """Root mean square of the norm of vectors (N, k)."""
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1)))) if len(vectors) else float("nan")


def true_shapes(arm: Arm, simulation: Simulation) -> TrueShapes:
    """Arrows of what really pushes: the table at the tool, and hands where they are."""

    def shapes(recording: Recording, row: int) -> list[Shape]:
        poses, t = link_poses(arm, recording.q[row]), float(recording.t[row] - recording.t[0])
        position, rotation = arm.tcp_pose(recording.q[row])
        forces = []
        surface = rotation @ recording.truth["wrench_tcp"][row, :3]
        for push in simulation.scenario.pushes:
            force = push.force_at(t)
            turn, place = poses[push.joint] if push.joint else (rotation, position)
            forces.append((push.name, place + turn @ np.array(push.point), force))
            surface = surface if push.joint else surface - force
        forces.append(("table", recording.truth["contact_point"][row], surface))
        return [
            arrow(f"truth/{name}", arm.base_frame, start, start + 0.003 * force, TRUTH_COLOUR, size=TRUTH_SIZE)
            for name, start, force in forces
            if np.linalg.norm(force) > 1.0
        ]

    return shapes


def evaluate(bag: Path, out: Path) -> str:
    """Write the report and the 3-D page; returns the closing text."""
    arm = load_arm(ROBOT)
    recording = open_recording(bag, arm.joint_names)
    found = read_estimates(bag, recording)
    if set(found) != set(ESTIMATORS.values()):
        raise ContactEstimationError(
            f"{bag} holds estimates of {', '.join(found) or 'nobody'}, expected {', '.join(ESTIMATORS.values())}"
        )
    logs = {name: found[name] for name in ESTIMATORS.values()}
    graph_rows, lines = graph_table(recording, logs)
    simulation = open_simulation(SCENARIO, arm, seed=SEED)
    boxes = [Box(*surface.slab(), colour=TABLE_COLOUR) for surface in simulation.plant.surfaces]
    page, report = out / "page.html", out / "report.html"
    title = "A simulated UR16e presses, slides, lets go and is pushed"
    frames = recorded_frames(arm, recording, logs, true_shapes(arm, simulation))
    page.write_text(recording_page(arm, title, frames, boxes), encoding="utf-8")
    reference, by_phase = reference_of(recording), phase_table(simulation, recording, logs)
    extras = ReportExtras(
        f"{len(recording)} samples over {recording.duration:.1f} s on the ROS 2 graph; driver, estimators and "
        "recorder were separate processes.",
        command="make demo",
        boxes=boxes,
        tables=[
            Table("Accuracy, phase by phase", PHASES_CAPTION, *by_phase),
            Table("On the ROS 2 graph", GRAPH_CAPTION, GRAPH_HEADER, graph_rows),
        ],
        page_3d=page.name,
    )
    run = ReplayedRun.of(arm, recording, logs, reference)
    replay_report(report, run, f"Demo: {title[0].lower()}{title[1:]}", extras)
    figures = {name: summarise(log.columns(), reference) for name, log in logs.items()}
    lines += ["", PHASES_CAPTION, text_table(*by_phase), "", GRAPH_CAPTION, text_table(GRAPH_HEADER, graph_rows)]
    median = figures["contact_imm"]["stiffness"]["median"]
    lines.append(
        f"\nStiffness of the table: contact_imm {median / 1e3:.1f} kN/m, truth {reference.stiffness / 1e3:.1f}"
    )
    lines.append(f"In 3-D: {page.resolve().as_uri()}\nReport: {report.resolve().as_uri()}\nBag:    {bag}")
    return "\n".join(lines)


def graph_table(recording: Recording, logs: dict[str, EstimateLog]) -> tuple[list[list[object]], list[str]]:
    """Rows of :data:`GRAPH_HEADER`, and warnings. The logs get the filters' own step time instead of the latency."""
    rows, lines = [], []
    for name, log in logs.items():
        columns, offline = log.columns(), replay(recording, open_stream(ROBOT, name, SENSORS)).columns()
        lost = int(np.count_nonzero(columns["reason"] == LOST))
        latency, steps = columns["step_time"] * 1e3, offline["step_time"] * 1e6
        both = columns["valid"] & offline["valid"]
        worst = float(np.abs(columns["force"][both] - offline["force"][both]).max())
        if lost:
            lines.append(f"{name}: {lost} of {len(log)} samples were lost: this machine is too busy for 500 Hz")
        columns["step_time"][:] = offline["step_time"]
        times = [*np.percentile(steps, [50, 99]).tolist(), *np.nanpercentile(latency, [50, 99]).tolist()]
        rows.append([name, f"{len(log) - lost}/{len(log)}", *times, "yes" if worst < 1e-6 else f"{worst:.1g} N"])
    return rows, lines


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo"), help="folder of bag, logs, report and page (is emptied)"
    )
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    try:
        bag = run_graph(args.out, open_simulation(SCENARIO, ROBOT).scenario.duration)
        say("demo: reading the bag, replaying it offline, drawing report and page")
        text = evaluate(bag, args.out)
    except ContactEstimationError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
