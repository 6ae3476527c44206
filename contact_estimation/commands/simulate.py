"""``contact-estimation simulate``: a scenario to a bag, truth included."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from contact_estimation.commands.output import Progress, add_json_flag, emit
from contact_estimation.exceptions import ConfigError, RecordingError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "scenario", metavar="SCENARIO", help="shipped scenario (docs/simulation.md lists them), or a YAML file"
    )
    parser.add_argument("--robot", help="ur16e or fr3, or a robot YAML; default: the scenario's own")
    parser.add_argument("--seconds", type=float, help="simulated time [s]; default: as long as the scenario's motion")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="BAG",
        help="folder to be made (rosbag2), or a file that ends in .npz; without it nothing is kept",
    )
    parser.add_argument(
        "--imperfections", metavar="NAME", help="sensors and joints: ideal, ur16e, fr3 or a YAML; default: the robot's"
    )
    parser.add_argument(
        "--scale",
        action="append",
        default=[],
        metavar="EFFECT=FACTOR",
        help="scale one effect: encoder, velocity, torque, "
        "wrench, friction, elasticity, payload, timing; 0 turns it off (repeatable)",
    )
    parser.add_argument("--height-error", type=float, default=0.0, metavar="M", help="raise every surface by this [m]")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    add_json_flag(parser)


def run(args) -> int:
    """Simulate, write, say what happened."""
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import replace
    from contact_estimation.simulation.scenarios import load_scenario
    from contact_estimation.simulation.sensors.settings import load_imperfections, scaled
    from contact_estimation.simulation.session import Simulation

    if args.out is not None and args.out.exists():
        raise RecordingError(f"{args.out} exists already; name another, or delete it.")
    if args.seconds is not None and not args.seconds > 0:
        raise ConfigError(f"--seconds must be greater than 0, found {args.seconds}")
    if args.seed < 0:
        raise ConfigError(f"--seed must not be negative, found {args.seed}")
    scenario = load_scenario(args.scenario)
    if args.height_error:
        error = np.array(scenario.placement_error) + [0.0, 0.0, args.height_error]
        scenario = replace(scenario, args.scenario, placement_error=error.tolist())
    arm = load_arm(args.robot or scenario.robot)
    imperfections = scaled(load_imperfections(args.imperfections or arm.name), **_scales(args.scale))
    simulation = Simulation(scenario, arm, imperfections, args.seed)
    seconds = args.seconds or scenario.duration
    progress, samples = Progress(round(seconds * scenario.rate), f"simulate {args.scenario}"), []
    wall, cpu = time.perf_counter(), time.process_time()
    for sample in simulation.run(seconds):
        samples.append(sample)
        progress.update(len(samples))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    progress.close()
    recording = as_recording(samples, arm, f"simulation of {args.scenario}", imperfections)
    if args.out is not None:
        _write(args.out, recording, arm)
    force = np.linalg.norm(recording.truth["wrench_tcp"][:, :3], axis=1)
    result = {
        "scenario": args.scenario,
        "robot": arm.name,
        "seed": args.seed,
        "output": None if args.out is None else str(args.out),
        "samples": len(recording),
        "duration_s": simulation.time,
        "peak_force": float(force.max()),
        "contact_share": float(np.mean(force > 0)),
        "real_time_factor": simulation.time / wall,
        "real_time_factor_cpu": simulation.time / cpu,
    }
    text = (
        f"{scenario.title}: {arm.name}, {len(recording)} samples in {simulation.time:.1f} s, peak force "
        f"{force.max():.1f} N, in contact "
        f"{100 * result['contact_share']:.0f} % of the time; {result['real_time_factor']:.1f} times real time"
    )
    emit(args, result, text + ("" if args.out is None else f"\n{args.out}"))
    return 0


def as_recording(samples, arm, source: str, imperfections):
    """Samples of a simulation as a :class:`~contact_estimation.io.recording.Recording`, with truth and sensor set."""
    from contact_estimation.io.recording import Recording

    def column(name):
        return np.array([getattr(sample, name) for sample in samples])

    truth = {name: np.array([sample.truth[name] for sample in samples]) for name in samples[0].truth}
    # A simulation that begins at 0 would give stamps a ROS consumer takes for "no time"; a second later is as good.
    return Recording(
        column("stamp_ns") + 1_000_000_000,
        arm.joint_names,
        column("q"),
        column("dq"),
        column("tau"),
        source,
        wrench_tcp=column("wrench_tcp") if imperfections.wrench.enabled else None,
        truth=truth,
        sensors=imperfections.sensors,
    )


def _scales(words) -> dict[str, float]:
    scales = {}
    for word in words:
        name, _, factor = word.partition("=")
        try:
            scales[name] = float(factor)
        except ValueError:
            raise ConfigError(f"--scale takes EFFECT=FACTOR, for example friction=0.5; found '{word}'") from None
    return scales


def _write(path: Path, recording, arm) -> None:
    if path.suffix == ".npz":
        from contact_estimation.io.npz import write_npz

        position, rotation = arm.tcp_poses(recording.q)
        write_npz(path, recording, x_tcp=position, R_tcp=rotation)
        return
    from contact_estimation.io.bag_writer import write_bag

    write_bag(path, recording, base_frame=arm.base_frame, tcp_frame=arm.tcp_frame)
