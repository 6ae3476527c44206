"""``contact-estimation fit``: contact parameters from a recording, written as a configuration the estimator loads."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import numpy as np
import yaml

from contact_estimation.commands.output import Progress, add_json_flag, emit
from contact_estimation.commands.replay import add_recording_arguments, open_for
from contact_estimation.contact.settings import KINDS
from contact_estimation.exceptions import ConfigError


def configure(parser) -> None:
    """Arguments of the verb."""
    add_recording_arguments(parser)
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="RECORDING",
        help="a further recording of the same contact (unbiased objective; repeatable)",
    )
    parser.add_argument(
        "--objective",
        choices=("unbiased", "paper"),
        default="unbiased",
        help="unbiased: noise-weighted torques with the "
        "joints' friction beside the contact (default); paper: eq. 16 of paper 1 as printed, a "
        "baseline",
    )
    parser.add_argument(
        "--estimate",
        nargs="+",
        choices=(*KINDS, "tangential"),
        default=list(KINDS),
        metavar="WHAT",
        help=f"what the unbiased objective fits, of: {', '.join(KINDS)} (default all of these), tangential (the point "
        "does not slide, the contact holds it)",
    )
    parser.add_argument(
        "--config",
        help="EKF configuration whose contacts are the start of the fit and whose noise "
        "estimates the states "
        "(default ekf, for the paper's objective paper_online)",
    )
    parser.add_argument(
        "--start-stiffness",
        type=float,
        default=1e4,
        metavar="N/M",
        help="stiffness the fit starts from, along each contact's configured normal (vertical for the paper's "
        "objective; default 1e4)",
    )
    parser.add_argument(
        "--rest-weight",
        type=float,
        default=0.5,
        metavar="W",
        help="weight of ||x - x_rest|| in the papers' objective (printed: 0.5)",
    )
    parser.add_argument("--passes", type=int, help="turns of filtering and optimising, at most (default 4, paper 2)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="configuration to write")
    add_json_flag(parser)


def run(args) -> int:
    """Fit and write the configuration."""
    from contact_estimation.filters.registry import load_observer_settings, robot_for
    from contact_estimation.filters.settings import EkfSettings, load_sensor_settings
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import from_mapping, to_mapping

    paper = args.objective == "paper"
    passes = args.passes if args.passes is not None else 2 if paper else 4
    if passes < 1:
        raise ConfigError(f"--passes must be at least 1, found {passes}")
    if paper and args.also:
        raise ConfigError("--also needs --objective unbiased: the papers' objective is for one recording")
    config = args.config or ("paper_online" if paper else "ekf")
    settings = load_observer_settings(config)
    count = len(getattr(settings, "contacts", []))
    if not isinstance(settings, EkfSettings) or count < 1 or (paper and count > 1):
        wanted = "one contact" if paper else "at least one contact"
        raise ConfigError(f"--config {config}: a fit starts from an EKF with {wanted}, found an observer of kind "
                          f"'{settings.observer}' with {count} contacts; try --config "
                          f"{'paper_online' if paper else 'ekf'}")
    arm = robot_for(load_arm(args.robot), settings)
    recordings = [
        open_for(arm, argparse.Namespace(**{**vars(args), "recording": path})) for path in (args.recording, *args.also)
    ]
    sensors = load_sensor_settings(recordings[0].sensors or settings.sensors or arm.settings.sensors)
    mapping = to_mapping(settings)
    for contact in mapping["contacts"]:
        normal = np.array([0.0, 0.0, 1.0] if paper else contact["stiffness"])
        contact.update(stiffness=(args.start_stiffness * normal / np.linalg.norm(normal)).tolist(), estimate=[])
    start = from_mapping(type(settings), mapping, "start of the fit")
    bar = Progress(passes, "fitting")
    contacts, result, text, options = (_paper if paper else _unbiased)(
        arm, start, sensors, recordings, passes, args, bar
    )
    bar.close()
    for written, fitted in zip(mapping["contacts"], contacts):
        written.update(fitted)
    from_mapping(type(settings), mapping, str(args.out))  # what is written must load
    names = " ".join([args.recording.name, *(f"--also {path.name}" for path in args.also)])
    header = (
        f"# Written by: contact-estimation fit {names} --robot {args.robot} --objective {args.objective} {options}\n"
        "# Fitted: stiffness [N/m, base axes], rest [m, base frame] and point [m, TCP frame] of every contact.\n"
    )
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(header + yaml.safe_dump(mapping, sort_keys=False, default_flow_style=None))
    except OSError as error:
        raise ConfigError(f"{args.out} cannot be written ({error.strerror}); choose another --out") from error
    emit(args, {"objective": args.objective, **result, "out": str(args.out)},
         f"{text}\nwritten to {args.out}; use it with: contact-estimation replay ... --config {args.out}")
    return 0


def _paper(arm, start, sensors, recordings, passes, args, bar):
    from contact_estimation.fit.paper import PaperWeights, fit_paper

    found = fit_paper(
        arm, start, sensors, recordings[0], PaperWeights(rest=args.rest_weight), passes, progress=bar.update
    )
    contact = {"stiffness": _round(found.stiffness, 1), "rest": _round(found.rest, 6), "point": _round(found.point, 6)}
    result = {
        "stiffness": found.stiffness,
        "stiffness_norm": found.passes[-1],
        "rest": found.rest,
        "point": found.point,
        "objective_per_pair": found.objective,
        "stiffness_per_pass": found.passes,
    }
    text = (f"stiffness {found.passes[-1]:.0f} N/m, vector {_round(found.stiffness, 0)} N/m in base axes\n"
            f"rest position {_round(found.rest, 5)} m, contact point {_round(found.point, 4)} m from the TCP")
    print("the papers' objective is a baseline: its stiffness depends on the model's inertia", file=sys.stderr)
    return [contact], result, text, f"--rest-weight {args.rest_weight:g} --passes {passes}"


def _unbiased(arm, start, sensors, recordings, passes, args, bar):
    from contact_estimation.exceptions import IdentificationError
    from contact_estimation.fit.unbiased import UnbiasedSettings, fit_unbiased

    options = UnbiasedSettings(estimate=tuple(args.estimate), passes=passes)
    found = fit_unbiased(arm, start, sensors, recordings, options, progress=bar.update)
    try:  # what the stiffness would be if the joints' friction were taken for contact
        without = fit_unbiased(arm, start, sensors, recordings, dataclasses.replace(options, friction=False)).passes[-1]
    except IdentificationError:
        without = [float("nan")] * len(found.contacts)
    written, results, lines = [], {}, []
    for k, fit in enumerate(found.contacts):
        c, interval = fit.contact, [fit.stiffness + sign * 1.96 * fit.stiffness_std for sign in (-1, 1)]
        written.append({"stiffness": _round(c.stiffness, 1), "rest": _round(c.rest, 6), "point": _round(c.point, 6),
                        "stiffness_std": round(fit.stiffness_std, 1)})
        results[c.name] = {
            "stiffness": c.stiffness,
            "stiffness_norm": fit.stiffness,
            "stiffness_interval": interval,
            "rests": fit.rests,
            "point": c.point,
            "std": fit.std,
            "stiffness_per_pass": [turn[k] for turn in found.passes],
            "stiffness_without_friction": without[k],
        }
        if "tangential" in args.estimate:
            results[c.name]["tangential_over_normal"] = fit.tangential
        held = f", tangential over normal {fit.tangential:.2f}" if "tangential" in args.estimate else ""
        name = f"{c.name}: " if len(found.contacts) > 1 else ""
        lines.append(
            f"{name}stiffness {fit.stiffness:.0f} N/m (95 %: {interval[0]:.0f} .. {interval[1]:.0f}), vector "
            f"{_round(c.stiffness, 0)} +- {_round(fit.std[:3], 0)} N/m in base axes{held}\n  {without[k]:.0f} N/m "
            f"where the joints' friction is taken for contact\nrest position {_round(c.rest, 5)} +- "
            f"{_round(fit.std[3:6], 5)} m, contact point {_round(c.point, 4)} +- {_round(fit.std[6:], 4)} m from the "
            "TCP"
        )
    lines.append(f"torque left unexplained {_round(found.residual, 2)} Nm")
    friction = {name: found.friction[:, :, k] for k, name in enumerate(("bias", "viscous", "coulomb"))}
    result = results.popitem()[1] if len(results) == 1 else {"contacts": results}
    result = {**result, "residual": found.residual, "friction": friction}
    return written, result, "\n".join(lines), f"--estimate {' '.join(args.estimate)} --passes {passes}"


def _round(values, digits: int) -> list[float]:
    return [round(float(v), digits) for v in values]
