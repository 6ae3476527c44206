"""``contact-estimation simulate``: a scenario to a bag, truth included."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contact_estimation.commands.convert import write_recording
from contact_estimation.commands.inputs import add_tool_argument
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, check_writable, emit
from contact_estimation.exceptions import ConfigError, RecordingError

if TYPE_CHECKING:
    from contact_estimation.io.recording import Recording
    from contact_estimation.robot import Arm
    from contact_estimation.robot.sample import Sample
    from contact_estimation.simulation.sensors.settings import ImperfectionSettings
    from contact_estimation.simulation.session import Simulation


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    text = "shipped scenario (docs/simulation.md lists them), or a YAML file"
    parser.add_argument("scenario", metavar="SCENARIO", help=text)
    parser.add_argument("--robot", help="robot: a name in config/robots, or a YAML file; default: the scenario's own")
    add_tool_argument(parser)
    parser.add_argument("--seconds", type=float, help="simulated time [s]; default: as long as the scenario's motion")
    text = "folder to be made (rosbag2), or a file that ends in .npz; without it nothing is kept"
    parser.add_argument("--out", type=Path, metavar="BAG", help=text)
    text = "sensors and joints: ideal, a robot's name or a YAML file; default: the robot's"
    parser.add_argument("--imperfections", metavar="NAME", help=text)
    text = (
        "scale one effect: encoder, velocity, torque, wrench, friction, elasticity, payload, timing; 0 turns it off "
        "(repeatable)"
    )
    parser.add_argument("--scale", action="append", default=[], metavar="EFFECT=FACTOR", help=text)
    parser.add_argument("--height-error", type=float, default=0.0, metavar="M", help="raise every surface by this [m]")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")


def run(args: argparse.Namespace) -> int:
    """Simulate, write, say what happened."""
    if args.out is not None and args.out.exists():
        raise RecordingError(f"{args.out} exists already; name another, or delete it.")
    if args.out is not None:
        check_writable(args.out, "--out")
    simulation = _simulation(args)
    scenario, arm = simulation.scenario, simulation.arm
    seconds = args.seconds or scenario.duration
    if seconds * scenario.rate <= 0.5:
        raise ConfigError(f"--seconds {seconds:g} ends before the first sample; give at least {1 / scenario.rate:g} s")
    progress, samples = Progress(round(seconds * scenario.rate), f"simulate {args.scenario}"), []
    wall, cpu = time.perf_counter(), time.process_time()
    for sample in simulation.run(seconds):
        samples.append(sample)
        progress.update(len(samples))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    progress.close()
    recording = as_recording(samples, arm, f"simulation of {args.scenario}", simulation.imperfections)
    if args.out is not None:
        write_recording(args.out, recording, arm)
    limited = _limited_shares(simulation)
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
        "torque_limited_share": limited,
        "real_time_factor": simulation.time / wall,
        "real_time_factor_cpu": simulation.time / cpu,
    }
    text = (
        f"{scenario.title}: {arm.name}, {len(recording)} samples in {simulation.time:.1f} s, peak force "
        f"{force.max():.1f} N, in contact {100 * np.mean(force > 0):.0f} % of the time; "
        f"{simulation.time / wall:.1f} times real time"
    )
    emit(args, result, text + ("" if args.out is None else f"\n{args.out}"))
    return 0


def _limited_shares(simulation: Simulation) -> dict[str, float]:
    """Return the share of the time at its effort limit of each joint that reached it, and warn of them."""
    shares = simulation.plant.limited_time / simulation.time
    limited = {name: float(share) for name, share in zip(simulation.arm.joint_names, shares) if share > 0.0}
    if limited:
        words = ", ".join(f"{name} {100 * share:.2g} %" for name, share in limited.items())
        warnings.warn(
            f"motors at their effort limit ({words} of the time): robot '{simulation.arm.name}' cannot do what the "
            "scenario asks, and it may swing. Copy the scenario and reduce its forces and ways, or give another "
            "'ready' in the robot's YAML",
            stacklevel=3,
        )
    return limited


def _simulation(args: argparse.Namespace) -> Simulation:
    from contact_estimation.robot import load_arm, load_robot_settings
    from contact_estimation.settings import replace
    from contact_estimation.simulation.scenarios import load_scenario
    from contact_estimation.simulation.sensors.settings import imperfections_of, scaled
    from contact_estimation.simulation.session import Simulation

    check_number("--seconds", args.seconds, "s", above=0, most=86400, hint="a day at most")
    scenario = load_scenario(args.scenario, load_robot_settings(args.robot).folder if args.robot else None)
    if args.height_error:
        error = np.asarray(scenario.placement_error) + np.array([0.0, 0.0, args.height_error])
        scenario = replace(scenario, args.scenario, placement_error=error.tolist())
    arm = load_arm(args.robot or scenario.robot, args.tool)
    imperfections = scaled(imperfections_of(arm, args.imperfections or "", scenario.timestep), **_scales(args.scale))
    return Simulation(scenario, arm, imperfections, args.seed)


def as_recording(samples: Sequence[Sample], arm: Arm, source: str, imperfections: ImperfectionSettings) -> Recording:
    """Turn samples of a simulation into a recording with truth and sensor set.

    Args:
        samples: N samples.
        arm: the simulated arm.
        source: what the recording says it comes from.
        imperfections: of the simulated sensors.

    Returns:
        The recording, whose stamps begin a second after zero.
    """
    from contact_estimation.io.recording import Recording

    def column(name: str) -> np.ndarray:
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
        wrench_tcp=column("wrench_tcp") if imperfections.wrench.present else None,
        truth=truth,
        sensors=imperfections.sensors,
        robot=arm.name,
        tool=arm.tool_name,
    )


def _scales(words: list[str]) -> dict[str, float]:
    scales = {}
    for word in words:
        name, _, factor = word.partition("=")
        try:
            scales[name] = float(factor)
        except ValueError:
            raise ConfigError(f"--scale takes EFFECT=FACTOR, for example friction=0.5; found '{word}'") from None
    return scales
