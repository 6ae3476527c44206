"""``contact-estimation observability``: which contact parameters a posture or recorded motion shows, and which not."""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from contact_estimation.commands.inputs import (
    RECORDED,
    add_recording_arguments,
    add_robot_argument,
    ekf_settings,
    load_robot,
    read_recordings,
)
from contact_estimation.commands.numbers import check_number
from contact_estimation.commands.output import emit, text_table
from contact_estimation.contact.law import LAW_GROUPS
from contact_estimation.contact.settings import CONTACT_PARAMETERS
from contact_estimation.exceptions import ConfigError

if TYPE_CHECKING:
    from contact_estimation.dynamics.observability import Observability
    from contact_estimation.filters.settings import EkfSettings
    from contact_estimation.robot import Arm


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording_arguments(parser, nargs="?", wrench=False)
    add_robot_argument(parser, required=False, default=RECORDED)
    text = "joint positions to look at instead of a recording"
    parser.add_argument("--posture", type=float, nargs="+", metavar="RAD", help=text)
    text = "how far the posture presses into each contact (default 1e-3)"
    parser.add_argument("--depth", type=float, default=1e-3, metavar="M", help=text)
    text = "EKF configuration with the contacts, their uncertainties and the process noise (default ekf)"
    parser.add_argument("--config", default="ekf", help=text)
    text = f"parameters to ask about instead of the configuration's: {', '.join(CONTACT_PARAMETERS)}"
    parser.add_argument("--estimate", nargs="+", choices=(*CONTACT_PARAMETERS, *LAW_GROUPS), metavar="WHAT", help=text)


def run(args: argparse.Namespace) -> int:
    """Look and print."""
    from contact_estimation.filters.registry import robot_for

    if (args.recording is None) == (args.posture is None):
        raise ConfigError("give a RECORDING or --posture, one of them")
    if args.posture is not None and args.robot is None:
        raise ConfigError("--posture needs the robot: give --robot, a name in config/robots or a profile of your own")
    check_number("--depth", args.depth, "m", above=0, most=1)
    if not all(map(math.isfinite, args.posture or ())):
        raise ConfigError(f"--posture must hold finite joint positions [rad], found {' '.join(map(str, args.posture))}")
    settings = ekf_settings(args.config, "observability")
    arm = robot_for(load_robot(args, [args.recording]), settings)
    seen = (_along if args.posture is None else _at_posture)(arm, settings, args)
    emit(args, _result(seen), _text(seen))
    return 0


def _at_posture(arm: Arm, settings: EkfSettings, args: argparse.Namespace) -> Observability:
    from contact_estimation.contact import ParallelContacts
    from contact_estimation.dynamics.observability import observe_posture
    from contact_estimation.filters.process_noise import torque_intensity

    if len(args.posture) != arm.n:
        raise ConfigError(f"--posture has {len(args.posture)} entries, robot '{arm.name}' has {arm.n} joints")
    beyond = [
        f"{n} {q:g}" for n, q, a, b in zip(arm.joint_names, args.posture, arm.lower, arm.upper) if not a <= q <= b
    ]
    if beyond:
        raise ConfigError(
            f"--posture is beyond the limits of robot '{arm.name}': {', '.join(beyond)} [rad]; in degrees?"
        )
    asked = [dataclasses.replace(c, estimate=args.estimate or c.estimate) for c in settings.contacts]
    noise = settings.process_noise
    intensity = torque_intensity(arm, noise)
    return observe_posture(arm, ParallelContacts(arm, asked), args.posture, noise.velocity, intensity, args.depth)


def _along(arm: Arm, settings: EkfSettings, args: argparse.Namespace) -> Observability:
    """Observability along a recording, at the states and last parameters of the configured filter."""
    from contact_estimation.filters.ekf import Ekf
    from contact_estimation.filters.stream import SampleStream
    from contact_estimation.fit.information import information_along

    (recording,), sensors = read_recordings(arm, args, [args.recording], settings.sensors)
    return information_along(SampleStream(Ekf(arm, settings), arm, sensors), recording, args.estimate)


def _result(seen: Observability) -> dict[str, Any]:
    directions = [
        {
            "singular_value": d.singular_value,
            "seen": d.seen,
            "shrinkage": d.shrinkage,
            "vector": d.vector,
            "parts": dict(d.names),
        }
        for d in seen.directions
    ]
    return {
        "seconds": seen.seconds,
        "parameters": list(seen.parameters),
        "std": seen.std,
        "information": seen.information,
        "directions": directions,
        "unseen": [str(d) for d in seen.unseen],
    }


def _text(seen: Observability) -> str:
    rows = [
        [str(d), d.singular_value, f"{100 * d.shrinkage:.3g} %", "observed" if d.seen else "WEAKLY OBSERVED"]
        for d in seen.directions
    ]
    directions = text_table(["direction [prior std]", "singular value", "std after / before", ""], rows)
    parameters = [[name, float(std)] for name, std in zip(seen.parameters, seen.std)]
    return f"{directions}\n\n{text_table(['parameter', 'std after'], parameters)}"
