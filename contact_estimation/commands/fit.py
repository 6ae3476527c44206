"""``contact-estimation fit``: contact parameters from a recording, written as a configuration the estimator loads."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    load_robot,
    read_recordings,
    write_settings_file,
    yaml_text,
)
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import Progress, check_output_file, command_line, emit
from contact_estimation.contact.law import LAW_GROUPS
from contact_estimation.contact.settings import CONTACT_PARAMETERS
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from contact_estimation.filters.settings import EkfSettings, SensorSettings
    from contact_estimation.fit.unbiased import ContactFit
    from contact_estimation.io.recording import Recording
    from contact_estimation.robot import Arm


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser)
    add_robot_argument(parser, required=False, default=RECORDED)
    add = parser.add_argument
    text = "a further recording of the same contact (unbiased objective; repeatable)"
    add("--also", type=Path, action="append", default=[], metavar="RECORDING", help=text)
    text = (
        "unbiased: noise-weighted torques with the joints' friction beside the contact (default); paper: eq. 16 of "
        "paper 1 as printed, a baseline"
    )
    add("--objective", choices=("unbiased", "paper"), default="unbiased", help=text)
    text = (
        f"what the unbiased objective fits, of: {', '.join(CONTACT_PARAMETERS)} (default all of these), tangential "
        "(the point does not slide, the contact holds it), law (other parameters of the contact law)"
    )
    add(
        "--estimate",
        nargs="+",
        choices=(*CONTACT_PARAMETERS, *LAW_GROUPS),
        default=list(CONTACT_PARAMETERS),
        metavar="WHAT",
        help=text,
    )
    text = (
        "contact law of every contact, as key 'law' of a contact (default the configuration's, else spring); one that "
        "does not open by itself is fitted as its unilateral version"
    )
    add("--law", metavar="NAME", help=text)
    text = (
        "EKF configuration whose contacts are the start of the fit and whose noise estimates the states (default ekf, "
        "for the paper's objective paper_online)"
    )
    add("--config", help=text)
    text = (
        "stiffness the fit starts from, along each contact's configured normal (vertical for the paper's objective; "
        "default 1e4)"
    )
    add("--start-stiffness", type=float, default=1e4, metavar="N/M", help=text)
    text = "weight of ||x - x_rest|| in the papers' objective (printed: 0.5)"
    add("--rest-weight", type=float, default=0.5, metavar="W", help=text)
    add("--passes", type=int, help="turns of filtering and optimising, at most (default 4, paper 2)")
    add("--out", type=Path, required=True, metavar="FILE", help="configuration to write")


class _Data(NamedTuple):
    """What is fitted, and from where."""

    arm: Arm
    start: EkfSettings
    sensors: SensorSettings
    recordings: list[Recording]


class _Fitted(NamedTuple):
    """What an objective found: keys of every contact's YAML, the JSON result, and the text."""

    contacts: list[dict[str, Any]]
    result: dict[str, Any]
    text: str


def run(args: argparse.Namespace) -> int:
    """Fit and write the configuration."""
    from contact_estimation.filters.registry import robot_for
    from contact_estimation.settings import from_mapping, to_mapping

    paper = args.objective == "paper"
    args.passes = args.passes if args.passes is not None else 2 if paper else 4
    check_output_file(args.out, [args.recording, *args.also])
    settings = _start_settings(args, paper)
    arm = robot_for(load_robot(args, [args.recording, *args.also]), settings)
    recordings, sensors = read_recordings(arm, args, [args.recording, *args.also], settings.sensors)
    mapping = to_mapping(settings)
    for contact in mapping["contacts"]:
        normal = np.array([0.0, 0.0, 1.0] if paper else contact["stiffness"])
        if args.law is not None and args.law != contact["law"]:
            contact.update(law=args.law, law_parameters={}, law_std={})
        contact.update(stiffness=(args.start_stiffness * normal / np.linalg.norm(normal)).tolist(), estimate=[])
    start = from_mapping(type(settings), mapping, "start of the fit")
    with Progress(args.passes, "fitting") as bar:
        found = (_paper if paper else _unbiased)(_Data(arm, start, sensors, recordings), args, bar)
    for written, fitted in zip(mapping["contacts"], found.contacts):
        written.update(fitted)
    from_mapping(type(settings), mapping, str(args.out))  # what is written must load
    header = (
        f"Written by: {command_line(args)}\n"
        "Fitted: stiffness [N/m, base axes], rest [m, base frame] and point [m, TCP frame] of every contact."
    )
    write_settings_file(args.out, yaml_text(mapping, header))
    text = f"{found.text}\nwritten to {args.out}; use it with: contact-estimation replay ... --config {args.out}"
    emit(args, {"objective": args.objective, **found.result, "out": str(args.out)}, text)
    return 0


def _start_settings(args: argparse.Namespace, paper: bool) -> EkfSettings:
    """Load the settings of the EKF the fit starts from."""
    from contact_estimation.filters.registry import load_observer_settings
    from contact_estimation.fit.start import start_problem

    check_number("--passes", args.passes, least=1)
    check_number("--start-stiffness", args.start_stiffness, "N/m", above=0)
    check_number("--rest-weight", args.rest_weight, least=0)
    if paper and args.also:
        raise ConfigError("--also needs --objective unbiased: the papers' objective is for one recording")
    default = "paper_online" if paper else "ekf"
    settings = load_observer_settings(args.config or default)
    if problem := start_problem(settings, one=paper):
        raise ConfigError(f"--config {args.config or default}: {problem}; try --config {default}")
    return cast("EkfSettings", settings)


def _paper(data: _Data, args: argparse.Namespace, bar: Progress) -> _Fitted:
    from contact_estimation.fit.paper import PaperWeights, fit_paper

    weights = PaperWeights(rest=args.rest_weight)
    found = fit_paper(data.arm, data.start, data.sensors, data.recordings[0], weights, args.passes, progress=bar.update)
    contact = {"stiffness": _round(found.stiffness, 1), "rest": _round(found.rest, 6), "point": _round(found.point, 6)}
    result = {
        "stiffness": found.stiffness,
        "stiffness_norm": found.passes[-1],
        "rest": found.rest,
        "point": found.point,
        "objective_per_pair": found.objective,
        "stiffness_per_pass": found.passes,
    }
    text = (
        f"stiffness {found.passes[-1]:.0f} N/m, vector {_round(found.stiffness, 0)} N/m in base axes\n"
        f"rest position {_round(found.rest, 5)} m, contact point {_round(found.point, 4)} m from the TCP"
    )
    print("the papers' objective is a baseline: its stiffness depends on the model's inertia", file=sys.stderr)
    return _Fitted([contact], result, text)


def _unbiased(data: _Data, args: argparse.Namespace, bar: Progress) -> _Fitted:
    from contact_estimation.exceptions import IdentificationError
    from contact_estimation.fit.unbiased import UnbiasedSettings, fit_unbiased
    from contact_estimation.identify.verdict import DOUBTFUL, GOOD, Verdict

    options = UnbiasedSettings(estimate=tuple(args.estimate), passes=args.passes)
    found = fit_unbiased(*data, options, progress=bar.update)
    try:  # what the stiffness would be if the joints' friction were taken for contact
        without = fit_unbiased(*data, dataclasses.replace(options, friction=False)).passes[-1]
    except IdentificationError:
        without = [float("nan")] * len(found.contacts)
    written, results, lines = [], {}, []
    for k, fit in enumerate(found.contacts):
        c = fit.contact
        contact = {"stiffness": _round(c.stiffness, 1), "rest": _round(fit.rests[-1], 6), "point": _round(c.point, 6)}
        law = {name: round(value, 6) for name, value in c.law_parameters.items()}
        written.append(contact | {"stiffness_std": round(fit.stiffness_std, 1), "law_parameters": law})
        results[c.name] = {
            "stiffness": c.stiffness,
            "stiffness_norm": fit.stiffness,
            "stiffness_interval": _interval(fit),
            "rests": fit.rests,
            "point": c.point,
            "std": fit.std,
            "stiffness_per_pass": [turn[k] for turn in found.passes],
            "stiffness_without_friction": without[k],
        } | ({"tangential_over_normal": fit.tangential} if fit.tangential else {})
        if fit.law_parameters:
            results[c.name] |= {"law_parameters": fit.law_parameters, "law_std": fit.law_std}
        lines.append((f"{c.name}: " if len(found.contacts) > 1 else "") + _contact_text(fit, without[k]))
    lines.append(f"torque left unexplained {_round(found.residual, 2)} Nm")
    verdict = Verdict(DOUBTFUL if found.doubts else GOOD, tuple(found.doubts))
    lines.append(verdict.as_text())
    friction = {name: found.friction[:, :, k] for k, name in enumerate(("bias", "viscous", "coulomb"))}
    result: dict[str, Any] = results.popitem()[1] if len(results) == 1 else {"contacts": results}
    result |= {"residual": found.residual, "friction": friction, "verdict": verdict.verdict, "reasons": found.doubts}
    return _Fitted(written, result, "\n".join(lines))


def _interval(fit: ContactFit) -> list[float]:
    """95 % of the stiffness [N/m]."""
    return [fit.stiffness + sign * 1.96 * fit.stiffness_std for sign in (-1, 1)]


def _contact_text(fit: ContactFit, without: float) -> str:
    c, (low, high) = fit.contact, _interval(fit)
    held = f", tangential over normal {fit.tangential:.2f}" if fit.tangential else ""
    taken = f"{without:.0f} N/m" if math.isfinite(without) else "no contact is found"
    return (
        f"stiffness {fit.stiffness:.0f} N/m (95 %: {low:.0f} .. {high:.0f}), vector {_round(c.stiffness, 0)} +- "
        f"{_round(fit.std[:3], 0)} N/m in base axes{held}\n  {taken} where the joints' friction is taken for "
        f"contact\nrest position {_round(fit.rests[-1], 5)} +- {_round(fit.std[3:6], 5)} m, contact point "
        f"{_round(c.point, 4)} +- {_round(fit.std[6:], 4)} m from the TCP"
    )


def _round(values: Iterable[float], digits: int) -> list[float]:
    return [round(float(v), digits) for v in values]
