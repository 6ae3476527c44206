"""``contact-estimation calibrate``: friction, drive gains, biases, rotor inertia and payload from free motion."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    check_profile_out,
    load_robot,
    load_sensors,
    names_settings_file,
    open_for,
    refuse_repeated,
    write_settings_file,
    yaml_text,
)
from contact_estimation.commands.output import Progress, command_line, emit_verdict, text_table
from contact_estimation.exceptions import ConfigError, IdentificationError
from contact_estimation.fit.calibration.settings import OPTIONS

if TYPE_CHECKING:
    import numpy as np

    from contact_estimation.fit.calibration.identify import Identified
    from contact_estimation.fit.calibration.settings import Calibration
    from contact_estimation.fit.calibration.validation import Prediction
    from contact_estimation.identify.verdict import Verdict
    from contact_estimation.io.recording import Recording
    from contact_estimation.robot import Arm


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser, nargs="+", wrench=False)
    add_robot_argument(parser, required=False, default=RECORDED)
    add = parser.add_argument
    text = "sensor set whose torque unit and scale apply (default the one a recording names, else the robot's)"
    add("--sensors", metavar="NAME", help=text)
    text = f"what to identify beside friction and bias, of: {', '.join(OPTIONS)} (default all but links)"
    add("--identify", nargs="*", choices=OPTIONS, default=None, metavar="WHAT", help=text)
    text = "zero-phase low-pass of positions and torques (default 6)"
    add("--cutoff", type=float, metavar="HZ", help=text)
    add("--no-validation", action="store_true", help="leave out the cross-validation")
    text = (
        "robot profile to write, a folder for --robot: the robot's own with the calibrated friction; or a file that "
        "ends in .yaml, for the identified values alone"
    )
    add("--out", type=Path, metavar="FOLDER", help=text)


def run(args: argparse.Namespace) -> int:
    """Identify, validate, write."""
    from contact_estimation.fit.calibration import CalibrationSettings, identify
    from contact_estimation.fit.calibration.doubts import doubts
    from contact_estimation.fit.calibration.outcome import calibration, intervals
    from contact_estimation.fit.calibration.validation import cross_validate, shrinkage
    from contact_estimation.identify.verdict import DOUBTFUL, GOOD, Verdict
    from contact_estimation.io.survey import survey
    from contact_estimation.settings import replace, to_mapping

    given = {"identify": args.identify, "cutoff": args.cutoff}
    changes = {name: value for name, value in given.items() if value is not None}
    settings = replace(CalibrationSettings(), "command line", **changes)
    robot = load_robot(args, args.recordings)
    check_profile_out(robot, args.out, args.recordings)
    arm, recordings = _with_total_torque(robot, args)
    found = identify(arm, recordings, settings)
    result = calibration(arm, found, settings)
    reasons = doubts(arm, found, settings)
    predictions = []
    if not args.no_validation:
        with Progress(max(len(recordings), 2), "cross-validating") as bar:
            try:
                predictions = cross_validate(arm, found.designs, settings, bar.update)
            except IdentificationError as error:
                reasons.append(f"validation not possible: {error}; --no-validation leaves it out")
    verdict = Verdict(DOUBTFUL if reasons else GOOD, tuple(reasons))
    ratio = shrinkage(predictions) if predictions else None
    _write(args, robot, arm, result, found, recordings, verdict)
    data = {
        "calibration": to_mapping(result),
        "intervals": intervals(found),
        "condition": found.condition,
        "force_missing": [survey(recording).force_missing for recording in recordings],
        "correlation_time": found.correlation_time,
        "out": args.out and str(args.out),
        "validation": [{"source": p.source, "rigid": p.rigid, "calibrated": p.calibrated} for p in predictions],
        "residual_ratio": ratio,
    }
    text = "\n".join([_text(arm, result, predictions, ratio), *_unchecked(recordings)])
    code = emit_verdict(args, data, verdict, text)
    if args.out:
        use = f"; use it with --robot {shlex.quote(str(args.out))}" if args.out.is_dir() else ""
        print(f"written to {args.out}{use}", file=sys.stderr)
    return code


def _with_total_torque(arm: Arm, args: argparse.Namespace) -> tuple[Arm, list[Recording]]:
    """Give the arm as its torque sensors see it, and the recordings with total torque [Nm]."""
    from contact_estimation.fit.calibration.effort import with_total_torque

    recordings = [open_for(arm, args, path).read() for path in args.recordings]
    refuse_repeated(recordings)
    sensors = [load_sensors(arm, [recording], chosen=args.sensors) for recording in recordings]
    sides = {s.torque_side for s in sensors}
    if len(sides) > 1:
        raise ConfigError(
            "some recordings have their torque measured before the gears (torque_side: motor), some "
            "behind them (link); calibrate them one after the other"
        )
    arm = arm.measured_at(sides.pop())
    return arm, [with_total_torque(arm, *pair) for pair in zip(sensors, recordings)]


def _write(
    args: argparse.Namespace,
    robot: Arm,
    seen: Arm,
    result: Calibration,
    found: Identified,
    recordings: list[Recording],
    verdict: Verdict,
) -> None:
    """Write the profile, or the values alone: ``robot`` as configured, ``seen`` by its torque sensors."""
    from contact_estimation.fit.calibration.outcome import as_yaml
    from contact_estimation.fit.calibration.profile import calibrated_actuators, calibrated_robot
    from contact_estimation.robot import Arm
    from contact_estimation.robot.actuators import ActuatorSettings
    from contact_estimation.robot.profile import write_profile
    from contact_estimation.robot.settings import robot_file
    from contact_estimation.settings import from_yaml, to_mapping

    if not args.out:
        return
    command = f"Written by: {command_line(args)}"
    header = f"{command}\nA _std is what to expect of a new run; the comments are intervals of the identification."
    header += f"\n{verdict.as_text()}"
    values = as_yaml(robot, result, found, header)
    if names_settings_file(args.out):
        write_settings_file(args.out, values)
        return
    settings = calibrated_robot(robot.settings, seen, result)
    side = "motor" if seen is robot else "link"
    path = robot_file(robot.settings, "actuators")
    base = from_yaml(ActuatorSettings, path) if path else None
    actuators = calibrated_actuators(Arm(settings).measured_at(side), result, recordings, base)
    files = {"actuators.yaml": yaml_text(to_mapping(actuators), command), "calibration.yaml": values}
    write_profile(settings, args.out, files)


def _unchecked(recordings: list[Recording]) -> Iterator[str]:
    """Say of which recordings the force sensor does not show that the motion was free, and for how long."""
    from contact_estimation.io.survey import missing_words, survey

    for recording in recordings:
        if share := survey(recording).force_missing:
            yield f"{recording.source}: the measured force is {missing_words(share)}; no contact is seen then"


_COLUMNS = ("viscous", "coulomb", "presliding", "bias", "torque_scale")
_HEADER = [
    "joint",
    "viscous [Nms/rad]",
    "Coulomb [Nm]",
    "presliding [mrad]",
    "bias [Nm]",
    "torque scale",
    "armature [kg m^2]",
]


def _text(arm: Arm, result: Calibration, predictions: list[Prediction], ratio: np.ndarray | None) -> str:
    def figures(joint: int) -> Iterator[str]:
        for name in _COLUMNS:
            unit = 1e3 if name == "presliding" else 1
            yield _pm(
                getattr(result.friction, name)[joint] * unit, getattr(result.friction, f"{name}_std")[joint] * unit
            )
        yield _pm(result.armature[joint], result.armature_std[joint])

    parts = [text_table(_HEADER, [[name, *figures(joint)] for joint, name in enumerate(arm.joint_names)])]
    if result.payload:
        p = result.payload
        com = ", ".join(_pm(c, std) for c, std in zip(p.com, p.com_std))
        where = f"centre of mass [{com}] m from the flange" if any(p.com_std) else "no load to be seen"
        parts.append(f"payload {p.mass:.3f} +- {p.mass_std:.3f} kg, {where}")
    if ratio is not None:
        parts.append("torque of recordings that were left out, RMS [Nm], rigid model -> calibrated:")
        header = ["joint", *(Path(p.source).name.replace(".npz", "") for p in predictions), "ratio"]
        rows = [
            [name, *(f"{p.rigid[j]:.2f} -> {p.calibrated[j]:.2f}" for p in predictions), ratio[j]]
            for j, name in enumerate(arm.joint_names)
        ]
        parts.append(text_table(header, rows))
    return "\n".join(parts)


def _pm(value: float, std: float) -> str:
    return f"{value:.3g} +- {std:.2g}"
