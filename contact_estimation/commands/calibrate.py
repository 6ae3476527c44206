"""``contact-estimation calibrate``: friction, drive gains, biases, rotor inertia and payload from free motion."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import yaml

from contact_estimation.commands.output import Progress, add_json_flag, emit, text_table
from contact_estimation.exceptions import ConfigError
from contact_estimation.fit.calibration.settings import OPTIONS


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "recordings", type=Path, nargs="+", metavar="RECORDING", help="rosbag2 or .npz archive of free motion"
    )
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument(
        "--sensors", metavar="NAME",
        help="sensor set whose torque unit and scale apply (default the one a recording names, else the robot's)"
    )
    parser.add_argument(
        "--identify",
        nargs="*",
        choices=OPTIONS,
        default=None,
        metavar="WHAT",
        help=f"what to identify beside friction and bias, of: {', '.join(OPTIONS)} (default all but links)",
    )
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="zero-phase low-pass of positions and torques (default 6)"
    )
    parser.add_argument("--joint-states", metavar="TOPIC", help="JointState topic of a bag")
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of an .npz archive without stamps")
    parser.add_argument("--no-validation", action="store_true", help="leave out the cross-validation")
    parser.add_argument("--out", type=Path, metavar="FILE", help="YAML file to write")
    parser.add_argument(
        "--drives",
        type=Path,
        metavar="FILE",
        help="drives YAML to write, which a contact bank loads "
        "(key drives): the "
        "robot's own from config/drives with the calibrated friction",
    )
    add_json_flag(parser)


def run(args) -> int:
    """Identify, validate, write."""
    from contact_estimation.filters.settings import load_sensor_settings
    from contact_estimation.fit.calibration import CalibrationSettings, identify
    from contact_estimation.fit.calibration.drives import drive_settings
    from contact_estimation.fit.calibration.effort import with_total_torque
    from contact_estimation.fit.calibration.outcome import as_yaml, calibration, intervals
    from contact_estimation.fit.calibration.validation import cross_validate, shrinkage
    from contact_estimation.io.open import open_recording
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import replace, to_mapping

    arm = load_arm(args.robot)
    changes = {
        name: value for name, value in (("identify", args.identify), ("cutoff", args.cutoff)) if value is not None
    }
    settings = replace(CalibrationSettings(), "command line", **changes)
    recordings = [
        open_recording(
            path,
            arm.joint_names,
            joint_states=args.joint_states,
            rate=args.rate,
            base_frame=arm.base_frame,
            rotation=lambda q: arm.tcp_poses(q)[1],
        )
        for path in args.recordings
    ]
    sensors = [load_sensor_settings(args.sensors or r.sensors or arm.settings.sensors) for r in recordings]
    sides = {s.torque_side for s in sensors}
    if len(sides) > 1:
        raise ConfigError("some recordings have their torque measured before the gears (torque_side: motor), some "
                          "behind them (link); calibrate them one after the other")
    arm = arm.measured_at(sides.pop())
    found = identify(arm, [with_total_torque(arm, *pair) for pair in zip(sensors, recordings)], settings)
    result = calibration(arm, found, settings)
    predictions = []
    if not args.no_validation:
        bar = Progress(max(len(recordings), 2), "cross-validating")
        predictions = cross_validate(arm, found.designs, settings, bar.update)
        bar.close()
    command = shlex.join(
        ["contact-estimation", "calibrate", *(path.name for path in args.recordings), "--robot", args.robot]
    )
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(as_yaml(arm, result, found, f"Written by: {command}\nA _std is what to expect of a new "
                                                        f"run; the comments are "
                                    "intervals of the identification."))
    if args.drives:
        drives = drive_settings(result, found, _shipped_drives(arm))
        args.drives.parent.mkdir(parents=True, exist_ok=True)
        args.drives.write_text(
            f"# Written by: {command}\n" + yaml.safe_dump(to_mapping(drives), sort_keys=False, default_flow_style=None)
        )
    data = {"calibration": to_mapping(result), "intervals": intervals(found), "condition": found.condition,
            "correlation_time": found.correlation_time, "out": args.out and str(args.out),
            "validation": [{"source": p.source, "rigid": p.rigid, "calibrated": p.calibrated} for p in predictions],
            "residual_ratio": shrinkage(predictions) if predictions else None}
    emit(args, data, _text(arm, result, predictions, shrinkage(predictions) if predictions else None))
    for path in filter(None, (args.out, args.drives)):
        print(f"written to {path}", file=sys.stderr)
    return 0


def _shipped_drives(arm):
    """The robot's drives in config/drives, None where there are none."""
    from contact_estimation.filters.bank.settings import load_drive_settings

    try:
        return load_drive_settings(arm.name)
    except ConfigError:
        return None


def _text(arm, result, predictions, ratio) -> str:
    f = result.friction
    rows = [[name, *(_pm(getattr(f, key)[j] * unit, getattr(f, f"{key}_std")[j] * unit) for key, unit in
                     (("viscous", 1), ("coulomb", 1), ("presliding", 1e3), ("bias", 1), ("torque_scale", 1))),
             _pm(result.armature[j], result.armature_std[j])] for j, name in enumerate(arm.joint_names)]
    parts = [text_table(["joint", "viscous [Nms/rad]", "Coulomb [Nm]", "presliding [mrad]", "bias [Nm]", "torque scale",
                         "armature [kg m^2]"], rows)]
    if result.payload:
        p = result.payload
        parts.append(f"payload {p.mass:.3f} +- {p.mass_std:.3f} kg, centre of mass "
                     f"[{', '.join(f'{c:.3f}' for c in p.com)}] m from the TCP")
    if predictions:
        parts.append("torque of recordings that were left out, RMS [Nm], rigid model -> calibrated:")
        parts.append(text_table(["joint", *(Path(p.source).name.replace(".npz", "") for p in predictions), "ratio"],
                                [[name, *(f"{p.rigid[j]:.2f} -> {p.calibrated[j]:.2f}" for p in predictions), ratio[j]]
                                 for j, name in enumerate(arm.joint_names)]))
    return "\n".join(parts)


def _pm(value: float, std: float) -> str:
    return f"{value:.3g} +- {std:.2g}"
