"""``contact-estimation fit``: contact parameters from a recording, written as a configuration the estimator loads."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from contact_estimation.commands.output import Progress, add_json_flag, emit
from contact_estimation.commands.replay import add_recording_arguments, open_for
from contact_estimation.exceptions import ConfigError


def configure(parser) -> None:
    """Arguments of the verb."""
    add_recording_arguments(parser)
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument("--objective", choices=("paper",), default="paper", help="paper: eq. 16 of paper 1 as printed, a baseline")
    parser.add_argument("--config", default="paper_online", help="EKF configuration whose contact is the start of the fit and whose "
                        "noise estimates the states (default paper_online)")
    parser.add_argument("--start-stiffness", type=float, default=1e4, metavar="N/M",
                        help="vertical stiffness the fit starts from (default 1e4)")
    parser.add_argument("--rest-weight", type=float, default=0.5, metavar="W",
                        help="weight of ||x - x_rest|| in the papers' objective (printed: 0.5)")
    parser.add_argument("--passes", type=int, default=2, help="turns of filtering and optimising (default 2)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="configuration to write")
    add_json_flag(parser)


def run(args) -> int:
    """Fit and write the configuration."""
    from contact_estimation.filters.registry import load_observer_settings, robot_for
    from contact_estimation.filters.settings import load_sensor_settings
    from contact_estimation.fit.paper import PaperWeights, fit_paper
    from contact_estimation.robot import load_arm
    from contact_estimation.settings import from_mapping, to_mapping

    if args.passes < 1:
        raise ConfigError(f"--passes must be at least 1, found {args.passes}")
    settings = load_observer_settings(args.config)
    arm = robot_for(load_arm(args.robot), settings)
    sensors = load_sensor_settings(settings.sensors or arm.settings.sensors)
    recording = open_for(arm, args)
    mapping = to_mapping(settings)
    mapping["contacts"][0].update(stiffness=[0.0, 0.0, args.start_stiffness], estimate=[])
    start = from_mapping(type(settings), mapping, "start of the fit")
    bar = Progress(args.passes, "fitting")
    found = fit_paper(arm, start, sensors, recording, PaperWeights(rest=args.rest_weight), args.passes, progress=bar.update)
    bar.close()
    mapping["contacts"][0].update(stiffness=_round(found.stiffness, 1), rest=_round(found.rest, 6), point=_round(found.point, 6))
    from_mapping(type(settings), mapping, str(args.out))  # what is written must load
    args.out.parent.mkdir(parents=True, exist_ok=True)
    header = (f"# Written by: contact-estimation fit {args.recording.name} --robot {args.robot} --objective paper "
              f"--rest-weight {args.rest_weight:g} --passes {args.passes}\n"
              "# Fitted: stiffness [N/m, base axes], rest [m, base frame] and point [m, TCP frame] of the contact.\n")
    args.out.write_text(header + yaml.safe_dump(mapping, sort_keys=False, default_flow_style=None))
    result = {"objective": "paper", "stiffness": found.stiffness, "stiffness_norm": found.passes[-1], "rest": found.rest,
              "point": found.point, "objective_per_pair": found.objective, "stiffness_per_pass": found.passes, "out": str(args.out)}
    text = (f"stiffness {found.passes[-1]:.0f} N/m, vector {_round(found.stiffness, 0)} N/m in base axes\n"
            f"rest position {_round(found.rest, 5)} m, contact point {_round(found.point, 4)} m from the TCP\n"
            f"written to {args.out}; use it with: contact-estimation replay ... --config {args.out}")
    emit(args, result, text)
    print("the papers' objective is a baseline: its stiffness depends on the model's inertia", file=sys.stderr)
    return 0


def _round(values, digits: int) -> list[float]:
    return [round(float(v), digits) for v in values]
