"""``contact-estimation tune``: an EKF's noise from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import yaml

from contact_estimation.commands.output import Progress, add_json_flag, emit, text_table
from contact_estimation.exceptions import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RECORDING", help="rosbag2 or .npz archives, tuned "
                                                                                      "together")
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument("--config", default="ekf", help="EKF configuration to start from (default ekf)")
    parser.add_argument("--noise", nargs="+", default=["torque", "torque_share"], metavar="WHAT",
                        help="what to tune, of: torque, torque_share, velocity, stiffness, rest, point "
                        "(process), position (measurement) (default torque torque_share)")
    parser.add_argument("--evaluations", type=int, default=60, help="runs over the recordings, at most (default 60)")
    parser.add_argument("--joint-states", metavar="TOPIC", help="JointState topic of a bag")
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of an .npz archive without stamps")
    parser.add_argument("--out", type=Path, metavar="FILE", help="configuration to write")
    add_json_flag(parser)


def run(args) -> int:
    """Tune, print, write."""
    from contact_estimation.filters.registry import load_observer_settings, robot_for
    from contact_estimation.filters.settings import EkfSettings, load_sensor_settings
    from contact_estimation.fit.tuning import TUNABLE, tune
    from contact_estimation.io.open import open_recording
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import to_mapping

    settings = load_observer_settings(args.config)
    if not isinstance(settings, EkfSettings):
        raise ConfigError(f"--config {args.config} is an observer of kind '{settings.observer}'; tune needs one of "
                          f"kind 'ekf'")
    if args.evaluations < 1:
        raise ConfigError(f"--evaluations must be at least 1, found {args.evaluations}")
    arm = robot_for(load_arm(args.robot), settings)
    recordings = [
        open_recording(path, arm.joint_names, joint_states=args.joint_states, rate=args.rate)
        for path in args.recordings
    ]
    sensors = load_sensor_settings(recordings[0].sensors or settings.sensors or arm.settings.sensors)
    bar = Progress(args.evaluations, "tuning")
    found = tune(arm, settings, sensors, recordings, args.noise, args.evaluations, bar.update)
    bar.close()
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        header = (f"# Written by: contact-estimation tune {' '.join(path.name for path in args.recordings)} --robot "
                  f"{args.robot} --config {args.config} --noise {' '.join(args.noise)}\n")
        args.out.write_text(
            header + yaml.safe_dump(to_mapping(found.settings), sort_keys=False, default_flow_style=None)
        )

    def value(of, name):
        group, field = TUNABLE[name]
        return getattr(getattr(of, group), field)

    noise = {name: {"before": value(settings, name), "after": value(found.settings, name)} for name in args.noise}
    statistics = [
        {
            "recording": path.name,
            **{
                when: {
                    "log_likelihood": s.log_likelihood,
                    "nis_mean": s.nis_mean,
                    "inside": s.inside,
                    "correlation": s.correlation,
                }
                for when, s in (("before", b), ("after", a))
            },
        }
        for path, b, a in zip(args.recordings, found.before, found.after)
    ]
    rows = [
        [
            f"{path.name} {when}",
            s.log_likelihood,
            s.nis_mean,
            f"{100 * s.inside:.1f} %",
            float(np.max(np.abs(s.correlation))),
        ]
        for path, *pair in zip(args.recordings, found.before, found.after)
        for when, s in zip(("before", "after"), pair)
    ]
    text = "\n".join(
        [
            text_table(["noise", "before", "after"], [[n, v["before"], v["after"]] for n, v in noise.items()]),
            "",
            text_table(
                ["recording", "log-likelihood", "NIS / dof (1)", "inside 95 %", "largest correlation (0)"], rows, 4
            ),
        ]
    )
    emit(
        args,
        {"noise": noise, "statistics": statistics, "evaluations": found.evaluations, "out": args.out and str(args.out)},
        text + (f"\nwritten to {args.out}" if args.out else ""),
    )
    return 0
