"""``contact-estimation observability``: which contact parameters a posture or a recorded motion shows, and which
not."""

from __future__ import annotations

import argparse
from pathlib import Path

from contact_estimation.commands.output import add_json_flag, emit, text_table
from contact_estimation.contact.settings import KINDS
from contact_estimation.exceptions import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("recording", type=Path, nargs="?", metavar="RECORDING", help="motion to look at; or give "
                                                                                     "--posture")
    parser.add_argument("--robot", required=True, help="robot: a name in config/robots, or a YAML file")
    parser.add_argument("--posture", type=float, nargs="+", metavar="RAD", help="joint positions to look at instead")
    parser.add_argument("--depth", type=float, default=1e-3, metavar="M", help="how far the posture presses into each "
                                                                               "contact (default 1e-3)")
    parser.add_argument("--config", default="ekf", help="EKF configuration with the contacts, their uncertainties and "
                                                        "the process "
                        "noise (default ekf)")
    parser.add_argument("--estimate", nargs="+", choices=KINDS, metavar="WHAT",
                        help=f"parameters to ask about instead of the configuration's: {', '.join(KINDS)}")
    parser.add_argument("--joint-states", metavar="TOPIC", help="JointState topic of a bag")
    parser.add_argument("--rate", type=float, metavar="HZ", help="sample rate of an .npz archive without stamps")
    add_json_flag(parser)


def run(args) -> int:
    """Look and print."""
    import dataclasses

    from contact_estimation.contact import ParallelContacts
    from contact_estimation.dynamics.observability import observe_posture
    from contact_estimation.filters.process_noise import torque_intensity
    from contact_estimation.filters.registry import load_observer_settings, robot_for
    from contact_estimation.filters.settings import EkfSettings
    from contact_estimation.robot import load_arm

    if (args.recording is None) == (args.posture is None):
        raise ConfigError("give a RECORDING or --posture, one of them")
    settings = load_observer_settings(args.config)
    if not isinstance(settings, EkfSettings):
        raise ConfigError(f"--config {args.config} is an observer of kind '{settings.observer}'; observability needs "
                          f"one of kind 'ekf'")
    arm = robot_for(load_arm(args.robot), settings)
    if args.posture is not None:
        if len(args.posture) != arm.n:
            raise ConfigError(f"--posture has {len(args.posture)} entries, robot '{arm.name}' has {arm.n} joints")
        contacts = ParallelContacts(
            arm, [dataclasses.replace(c, estimate=args.estimate or c.estimate) for c in settings.contacts]
        )
        noise = settings.process_noise
        seen = observe_posture(arm, contacts, args.posture, noise.velocity, torque_intensity(arm, noise), args.depth)
    else:
        seen = _along(arm, settings, args)
    data = {
        "seconds": seen.seconds,
        "parameters": list(seen.parameters),
        "std": seen.std,
        "information": seen.information,
        "directions": [
            {
                "singular_value": d.singular_value,
                "seen": d.seen,
                "shrinkage": d.shrinkage,
                "vector": d.vector,
                "parts": dict(d.names),
            }
            for d in seen.directions
        ],
        "unseen": [str(d) for d in seen.unseen],
    }
    rows = [[str(d), d.singular_value, f"{100 * d.shrinkage:.3g} "
                                       "%", "seen" if d.seen else "NOT SEEN"] for d in seen.directions]
    text = "\n".join(
        [
            text_table(["direction [prior std]", "singular value", "std after / before", ""], rows),
            "",
            text_table(["parameter", "std after"], [[n, float(s)] for n, s in zip(seen.parameters, seen.std)]),
        ]
    )
    emit(args, data, text)
    return 0


def _along(arm, settings, args):
    """Observability along a recording, at the states and last parameters of the configured filter."""
    from contact_estimation.filters.ekf import Ekf
    from contact_estimation.filters.settings import load_sensor_settings
    from contact_estimation.filters.stream import SampleStream
    from contact_estimation.fit.information import information_along
    from contact_estimation.io.open import open_recording

    sensors = load_sensor_settings(settings.sensors or arm.settings.sensors)
    recording = open_recording(args.recording, arm.joint_names, joint_states=args.joint_states, rate=args.rate)
    return information_along(SampleStream(Ekf(arm, settings), arm, sensors), recording, args.estimate)
