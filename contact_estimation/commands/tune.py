"""``contact-estimation tune``: an EKF's noise from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contact_estimation.commands.inputs import (
    add_recording_arguments,
    add_robot_argument,
    ekf_settings,
    open_for,
    robot_words,
    write_yaml,
)
from contact_estimation.commands.output import Progress, emit, text_table
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from contact_estimation.filters.settings import EkfSettings
    from contact_estimation.fit.tuning import Tuning

_STATISTICS = ("log_likelihood", "nis_mean", "inside", "correlation")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser, nargs="+", wrench=False)
    add_robot_argument(parser)
    parser.add_argument("--config", default="ekf", help="EKF configuration to start from (default ekf)")
    text = (
        "what to tune, of: torque, torque_share, velocity, stiffness, rest, point (process), position (measurement) "
        "(default torque torque_share)"
    )
    parser.add_argument("--noise", nargs="+", default=["torque", "torque_share"], metavar="WHAT", help=text)
    parser.add_argument("--evaluations", type=int, default=60, help="runs over the recordings, at most (default 60)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="configuration to write")


def run(args: argparse.Namespace) -> int:
    """Tune, print, write."""
    from contact_estimation.filters.registry import robot_for
    from contact_estimation.filters.settings import load_sensor_settings
    from contact_estimation.fit.tuning import tune
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import to_mapping

    settings = ekf_settings(args.config, "tune")
    if args.evaluations < 1:
        raise ConfigError(f"--evaluations must be at least 1, found {args.evaluations}")
    arm = robot_for(load_arm(args.robot, args.tool), settings)
    recordings = [open_for(arm, args, path).read() for path in args.recordings]
    sensors = load_sensor_settings(recordings[0].sensors or settings.sensors or arm.settings.sensors)
    with Progress(args.evaluations, "tuning") as bar:
        found = tune(arm, settings, sensors, recordings, args.noise, args.evaluations, bar.update)
    names = [path.name for path in args.recordings]
    if args.out:
        words = ["tune", *names, *robot_words(args), "--config", args.config, "--noise", *args.noise]
        command = shlex.join(words)
        write_yaml(args.out, to_mapping(found.settings), f"Written by: contact-estimation {command}")
    result = {
        "noise": _noise(args.noise, settings, found),
        "statistics": [
            {"recording": name, **{when: {key: getattr(s, key) for key in _STATISTICS} for when, s in pair.items()}}
            for name, pair in _before_and_after(names, found)
        ],
        "evaluations": found.evaluations,
        "out": args.out and str(args.out),
    }
    emit(args, result, _text(result, names, found))
    return 0


def _noise(names: list[str], settings: EkfSettings, found: Tuning) -> dict[str, dict[str, Any]]:
    from contact_estimation.fit.tuning import TUNABLE

    def value(of: EkfSettings, name: str) -> Any:
        group, field = TUNABLE[name]
        return getattr(getattr(of, group), field)

    return {name: {"before": value(settings, name), "after": value(found.settings, name)} for name in names}


def _before_and_after(names: list[str], found: Tuning) -> list[tuple[str, dict[str, Any]]]:
    pairs = zip(found.before, found.after)
    return [(name, {"before": before, "after": after}) for name, (before, after) in zip(names, pairs)]


def _text(result: dict[str, Any], names: list[str], found: Tuning) -> str:
    rows = [
        [
            f"{name} {when}",
            s.log_likelihood,
            s.nis_mean,
            f"{100 * s.inside:.1f} %",
            float(np.max(np.abs(s.correlation))),
        ]
        for name, pair in _before_and_after(names, found)
        for when, s in pair.items()
    ]
    header = ["recording", "log-likelihood", "NIS / dof (1)", "inside 95 %", "largest correlation (0)"]
    noise = [[name, values["before"], values["after"]] for name, values in result["noise"].items()]
    written = [f"written to {result['out']}"] if result["out"] else []
    return "\n".join([text_table(["noise", "before", "after"], noise), "", text_table(header, rows, 4), *written])
