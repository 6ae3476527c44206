"""``contact-estimation tune``: a filter's noise from recordings, by maximum likelihood of its innovations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    check_profile_out,
    load_robot,
    names_settings_file,
    read_recordings,
    write_settings_file,
    yaml_text,
)
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, command_line, emit_verdict, text_table
from contact_estimation.plugins import DEFAULT_OBSERVER

if TYPE_CHECKING:
    from contact_estimation.fit.noise import NoiseSettings
    from contact_estimation.fit.tuning import Tuning
    from contact_estimation.identify.verdict import Verdict
    from contact_estimation.robot import Arm

_STATISTICS = ("log_likelihood", "nis_mean", "inside", "mean_square", "correlation", "updates", "refused")

#: Key of the held-out likelihood -> column of the table.
_HELD_OUT = {"given": "noise before", "own": "tuned on it", "other": "tuned on the other"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser, nargs="+", wrench=False)
    add_robot_argument(parser, required=False, default=RECORDED)
    add = parser.add_argument
    text = "observer whose noise is tuned, of kind contact_imm or ekf (default contact_imm)"
    add("--config", default=DEFAULT_OBSERVER, help=text)
    text = (
        "what to tune. contact_imm: torque, disturbance, bias, model, velocity, elastic, offset, transmission (default "
        "torque disturbance). ekf: torque, torque_share, velocity, stiffness, rest, point, position (default torque "
        "torque_share)"
    )
    add("--noise", nargs="+", metavar="WHAT", help=text)
    add("--evaluations", type=int, default=60, help="runs over the recordings, at most (default 60)")
    add("--no-validation", action="store_true", help="leave out the validation on halves of the recordings")
    text = (
        "robot profile to write, a folder for --robot: the robot's own with the tuned noise; or a file that ends in "
        ".yaml, for the settings that hold the noise: actuators of contact_imm, the observer's configuration of an ekf"
    )
    add("--out", type=Path, metavar="FOLDER", help=text)


def run(args: argparse.Namespace) -> int:
    """Tune, judge, print, write."""
    from contact_estimation.filters.registry import load_observer_settings, robot_for
    from contact_estimation.fit.noise import noise_settings
    from contact_estimation.fit.tuning import tune
    from contact_estimation.fit.tuning_doubts import judge
    from contact_estimation.identify.verdict import DOUBTFUL, FAILED, GOOD, Verdict

    check_number("--evaluations", args.evaluations, least=1)
    robot = load_robot(args, args.recordings)
    check_profile_out(robot, args.out, args.recordings)
    settings = load_observer_settings(args.config, robot.settings.folder)
    arm = robot_for(robot, settings)
    recordings, sensors = read_recordings(arm, args, args.recordings, settings.sensors)
    noise = noise_settings(arm, settings, sensors)
    names = args.noise or noise.usual
    with Progress(args.evaluations, "tuning") as bar:
        found = tune(arm, noise, sensors, recordings, names, args.evaluations, bar.update)
    with Progress(2 * args.evaluations, "validating") as bar:
        judged = judge(found, args.evaluations, not args.no_validation, bar.update)
    reasons = (*judged.failures, *judged.doubts)
    verdict = Verdict(FAILED if judged.failures else DOUBTFUL if reasons else GOOD, reasons)
    out = None if judged.failures else args.out
    if out is not None:
        _write(args, robot, found.noise, verdict)
    result = {
        "noise": {name: {"before": noise.value(name), "after": found.noise.value(name)} for name in names},
        "channels": found.channels,
        "statistics": [
            {"recording": path.name} | {when: {key: getattr(s, key) for key in _STATISTICS} for when, s in pair.items()}
            for path, pair in zip(args.recordings, _before_and_after(found))
        ],
        "evaluations": found.evaluations,
        "held_out": judged.held_out and judged.held_out._asdict(),
        "change": judged.change._asdict(),
        "out": out and str(out),
    }
    code = emit_verdict(args, result, verdict, _text(result))
    if args.out:
        print(f"written to {out}" if out else f"{args.out} is not written: the noise before is better", file=sys.stderr)
    return code


def _write(args: argparse.Namespace, robot: Arm, noise: NoiseSettings, verdict: Verdict) -> None:
    """Write the profile, or the settings that hold the noise alone."""
    from contact_estimation.robot.profile import write_profile
    from contact_estimation.settings import to_mapping

    text = yaml_text(to_mapping(noise.values), f"Written by: {command_line(args)}\n{verdict.as_text()}")
    if names_settings_file(args.out):
        write_settings_file(args.out, text)
    else:
        write_profile(robot.settings, args.out, {noise.profile_file(Path(args.config).stem): text})


def _before_and_after(found: Tuning) -> list[dict[str, Any]]:
    return [{"before": before, "after": after} for before, after in zip(found.before, found.after)]


def _text(result: dict[str, Any]) -> str:
    noise = [[name, _show(values["before"]), _show(values["after"])] for name, values in result["noise"].items()]
    runs = [(f"{s['recording']} {when}", s[when]) for s in result["statistics"] for when in ("before", "after")]
    rows = [[name, s["log_likelihood"], s["nis_mean"], f"{100 * s['inside']:.1f} %", s["refused"]] for name, s in runs]
    header = ["recording", "log-likelihood", "NIS / dof (1)", "inside 95 %", "samples refused"]
    parts = [text_table(["noise", "before", "after"], noise), "", text_table(header, rows, 4)]
    for key, title in (("mean_square", "mean square (1)"), ("correlation", "correlation (0)")):
        channels = [[name, *(float(s[key][k]) for _, s in runs)] for k, name in enumerate(result["channels"])]
        parts += ["", text_table([title, *(name for name, _ in runs)], channels, 2)]
    if result["held_out"]:
        held_out = result["held_out"]
        halves = [[half, *(held_out[key][h] for key in _HELD_OUT)] for h, half in enumerate(("first", "second"))]
        parts += ["", text_table(["log-likelihood of the half", *_HELD_OUT.values()], halves, 4)]
    change = result["change"]
    parts += ["", f"force: changes by {change['force']:.2g} N (RMS)"]
    return "\n".join(parts)


def _show(value: float | list[float]) -> str:
    return ", ".join(f"{entry:.3g}" for entry in (value if isinstance(value, list) else [value]))
