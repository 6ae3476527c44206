#!/usr/bin/env python3
"""The offline fit against the truth of a simulation that knows more than the fit models.

    python benchmark/fit_truth.py [--robot ur16e] [--robot fr3] [--seeds N] [--save]
    python benchmark/fit_truth.py --free N

The arms run on the physics engine at 4 kHz with elastic gears (ur16e), LuGre friction, coloured and quantised torque,
encoder and velocity noise and an unknown gravity torque per seed, as the robot profiles have them. The
fit gets 500 Hz samples and makes the call that ``contact-estimation fit --estimate ...`` makes, from a contact of
10 kN/m at the TCP whose rest is where the tool was first:

- rotation (paper 1, section 5.4): a tool point some 13 cm off the TCP stays on a spot of 25 kN/m while the tool turns
  by 0.15 rad under 30 N. Fitted are stiffness, rest and point, without and with the knowledge that the point does not
  slide (``tangential``);
- two contacts: the TCP presses on a table and then also against a wall, and slides. Fitted are stiffness and rest of
  both.

Seed 0 has the tool point of the shipped scenario and a spot that is equally stiff sideways, the table is 2 and the wall
4 mm from the start; the other seeds draw the point from a box of 10 x 10 x 5 cm, the spot's sideways stiffness from
half to all of 25 kN/m, and the surfaces' places within +-1 mm. ``--save`` writes fit_truth.md beside this file.

``--free N`` fits N recordings of slow and N of fast free motion instead and prints the stiffness that is found over its
standard deviation: what :attr:`UnbiasedSettings.least_significance` must exceed.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np
from imm_truth import SENSORS, scene
from report import add_save_argument, heading, publish

from contact_estimation.exceptions import IdentificationError
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.fit.unbiased import UnbiasedFit, UnbiasedSettings, fit_unbiased
from contact_estimation.io.recording import Recording
from contact_estimation.robot import load_arm
from contact_estimation.settings import replace
from contact_estimation.simulation.scenarios.settings import ScenarioSettings
from contact_estimation.simulation.sensors.settings import load_imperfections
from contact_estimation.simulation.session import Simulation

START = 1e4
FITS = {
    "rotation": [("stiffness", "rest", "point"), ("stiffness", "rest", "point", "tangential")],
    "two contacts": [("stiffness", "rest")],
}
NORMALS = {
    "rotation": {"contact_1": [0.0, 0.0, 1.0]},
    "two contacts": {"table": [0.0, 0.0, 1.0], "wall": [-1.0, 0.0, 0.0]},
    "free": {"contact_1": [0.0, 0.0, 1.0]},
    "fast": {"contact_1": [0.0, 0.0, 1.0]},
}


def varied(name: str, robot: str, seed: int) -> ScenarioSettings:
    """Return the scenario of a seed."""
    made = scene(name, robot)
    if seed == 0:
        return made
    rng = np.random.default_rng([seed, 2])
    if name == "rotation":
        point, share = rng.uniform([-0.05, -0.15, 0.0], [0.05, -0.05, 0.05]), rng.uniform(0.5, 1.0)
        spot = dataclasses.replace(made.surfaces[0], stiffness_axes=[share, share, 1.0])
        return dataclasses.replace(made, tool_points=[point.tolist()], surfaces=[spot])
    places = [np.array(s.offset) + rng.uniform(-1e-3, 1e-3) * np.array(s.normal) for s in made.surfaces]
    moved = [dataclasses.replace(s, offset=place.tolist()) for s, place in zip(made.surfaces, places)]
    return dataclasses.replace(made, surfaces=moved)


def record(simulation: Simulation) -> Recording:
    """Return what the arm measured while the scenario ran."""
    samples = list(simulation.run())
    columns = {key: np.array([getattr(s, key) for s in samples]) for key in ("q", "dq", "tau")}
    stamps = np.array([s.stamp_ns for s in samples])
    return Recording(stamps, simulation.arm.joint_names, **columns, source="simulation")


def fit(
    name: str, robot: str, recording: Recording, estimate: tuple[str, ...], least_significance: float = 3.0
) -> tuple[UnbiasedFit, float]:
    """Return the fit that the verb makes, and the seconds it took."""
    arm, settings = load_arm(robot), load_observer_settings("ekf")
    sensors = load_sensor_settings(SENSORS[robot])
    if sensors.torque_scale is not None:  # the simulated arm's torque needs no correction of recorded constants
        sensors = replace(sensors, "simulated", torque_scale=None)
    one = dataclasses.replace(settings.contacts[0], estimate=[])
    contacts = [
        dataclasses.replace(one, name=key, stiffness=(START * np.array(normal)).tolist())
        for key, normal in NORMALS[name].items()
    ]
    began = time.perf_counter()
    options = UnbiasedSettings(estimate=estimate, least_significance=least_significance)
    found = fit_unbiased(arm, dataclasses.replace(settings, contacts=contacts), sensors, [recording], options)
    return found, time.perf_counter() - began


def rotation_line(robot, seed, simulation, found, seconds, estimate) -> tuple[str, float]:
    """Return a table row and the point's error [mm]."""
    result = found.contacts[0]
    error = 1e3 * (np.array(result.contact.point) - simulation.scenario.tool_points[0])
    normal = np.array(result.contact.stiffness) / result.stiffness
    along = result.stiffness * (result.tangential + (1 - result.tangential) * normal[2] ** 2)  # of the spring matrix
    rest = 1e3 * (result.rests[0] - simulation.rest)[2]
    total = float(np.linalg.norm(error))
    std = 1e3 * result.std[6:]
    stays = "yes" if "tangential" in estimate else "no"
    return (
        f"| {robot} | {seed} | {stays} | {error[0]:+.2f} {error[1]:+.2f} {error[2]:+.2f} | {total:.2f} | "
        f"{std[0]:.2f} {std[1]:.2f} {std[2]:.2f} | {rest:+.2f} | {along / 1e3:.1f} | {seconds:.1f} |"
    ), total


def contacts_line(robot, seed, simulation, found, seconds, estimate) -> tuple[str, float]:
    """Return a table row and the largest rest error along a normal [mm]."""
    rests, springs = [], []
    for result, surface in zip(found.contacts, simulation.plant.surfaces):
        rests.append(1e3 * float(np.dot(surface.normal, result.rests[0] - surface.point)))
        springs.append(result.stiffness / 1e3)
    return (
        f"| {robot} | {seed} | {rests[0]:+.2f} | {rests[1]:+.2f} | {springs[0]:.1f} | {springs[1]:.1f} | "
        f"{seconds:.1f} |"
    ), float(np.abs(rests).max())


def significance_in_free_motion(robot: str, name: str, seeds: int) -> list[str]:
    """Return stiffness over its standard deviation in free motion, one per seed, and whether the fit is doubted."""
    found = []
    for seed in range(seeds):
        recording = record(Simulation(scene(name, robot), load_arm(robot), load_imperfections(robot), seed=seed))
        try:
            result = fit(name, robot, recording, ("stiffness", "rest"), least_significance=0.0)[0]
        except IdentificationError:
            found.append("none")
        else:
            contact = result.contacts[0]
            found.append(f"{contact.stiffness / contact.stiffness_std:.1f}{' doubted' if result.doubts else ''}")
    return found


HEADS = {
    "rotation": [
        "arm",
        "seed",
        "point known to stay",
        "point error x y z [mm]",
        "total [mm]",
        "its standard deviation [mm]",
        "rest error along the load [mm]",
        "stiffness along the load [kN/m] (25)",
        "s",
    ],
    "two contacts": [
        "arm",
        "seed",
        "table's rest error [mm]",
        "wall's rest error [mm]",
        "table [kN/m] (25)",
        "wall [kN/m] (25)",
        "s",
    ],
}
LINES = {"rotation": rotation_line, "two contacts": contacts_line}


def main() -> None:
    """Run the scenarios and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", action="append", default=[], choices=list(SENSORS))
    parser.add_argument("--scenario", action="append", default=[], choices=list(FITS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--free", type=int, metavar="N", help="fit N recordings of free motion instead")
    add_save_argument(parser)
    args = parser.parse_args()
    if args.free:
        for robot in args.robot or SENSORS:
            for name in ("free", "fast"):
                found = significance_in_free_motion(robot, name, args.free)
                print(f"{robot}, {name}: stiffness over its standard deviation: {', '.join(found)}", flush=True)
        return
    note = "4 kHz simulation; see the script for what is in it and what the fit is told."
    text = heading("The offline fit against simulated truth", note)
    for name in args.scenario or FITS:
        head = HEADS[name]
        text += [f"## {name.capitalize()}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        errors: dict[str, list[float]] = {}
        for robot in args.robot or SENSORS:
            for seed in range(args.seeds):
                settings = varied(name, robot, seed)
                simulation = Simulation(settings, load_arm(robot), load_imperfections(robot), seed)
                recording = record(simulation)
                for estimate in FITS[name]:
                    found, seconds = fit(name, robot, recording, estimate)
                    row, error = LINES[name](robot, seed, simulation, found, seconds, estimate)
                    text.append(row)
                    print(row, flush=True)
                    errors.setdefault(f"{robot}, --estimate {' '.join(estimate)}", []).append(error)
        lines = [f"- {key}: median {np.median(e):.2f} mm, worst {max(e):.2f} mm" for key, e in errors.items()]
        text += ["", *lines, ""]
    publish(text, args.save)


if __name__ == "__main__":
    main()
