#!/usr/bin/env python3
"""What a step of the contact IMM filter costs from Python.

    python benchmark/imm_step.py [--robot NAME] [--blocks N] [--contacts N ...] [--save]

Per configuration (how many filters): `sample`: `ContactImm.step` between two updates; `update`: the step that ends a
block, with mixing and every filter's update; `per sample`: both, averaged over a block of five samples; `filter`: one
filter's compiled update alone; `estimate`: the estimate after a sample. Medians and 99th percentiles in microseconds,
the clock's own cost taken off. `EKF`: a step of the plain EKF (position, 3 parameters, see ekf_step.py), in turns with
the IMM filter, and the update in its steps, a median over the turns, so that a machine that is slow or does other work
as well slows both alike. The budget, 10 us for one filter and 30 us for three where the EKF takes 2 to 3 us, is 4 and
12 of its steps. ``--save`` writes imm_step.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time

import numpy as np
from ekf_step import settings_of  # a neighbour of this script
from report import add_save_argument, heading, publish

from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.imm.contact_settings import ImmContact
from contact_estimation.filters.imm.observer import ContactImm
from contact_estimation.filters.imm.settings import ImmSettings
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.robot import load_arm

DT, CHUNK = 0.002, 40
#: Filters -> steps of the plain EKF that an update may take: 10 and 30 us where that takes 2.5.
TARGET = {1: 4.0, 3: 12.0}

#: Directions from which up to four contacts push.
SIDES = ([0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])


def configurations(contacts: list[int]) -> dict[str, ImmSettings]:
    """Return one filter, the shipped configuration, and three filters: two contacts, one closed at a time.

    Beside them, for every number in ``contacts``, so many contacts in all their combinations.
    """
    shipped = load_observer_settings("contact_imm")
    wall = ImmContact(name="wall", normal=[-1.0, 0.0, 0.0])
    found = {
        "contact closed for good": dataclasses.replace(shipped, modes=[["contact_1"]]),
        "shipped": shipped,
        "free, one of two contacts": dataclasses.replace(
            shipped, contacts=[*shipped.contacts, wall], hypotheses=1, modes=[[], ["contact_1"], ["wall"]]
        ),
    }
    for count in contacts:
        sides = [ImmContact(name=f"side_{k + 1}", normal=SIDES[k]) for k in range(count)]
        found[f"{count} contacts, all combinations"] = dataclasses.replace(shipped, contacts=sides)
        found[f"{count} contacts, one at a time"] = dataclasses.replace(
            shipped, contacts=sides, modes=[[], *([c.name] for c in sides)]
        )
    return found


def timed(call, *arguments) -> float:
    """Duration [us] of one call."""
    start = time.perf_counter_ns()
    call(*arguments)
    return (time.perf_counter_ns() - start) / 1e3


def measure(imm: ContactImm, ekf: Ekf, blocks: int) -> dict[str, list[float]]:
    """Durations [us] by part, over ``blocks`` updates of a slow motion with noise, in turns with the EKF's."""
    arm, rng = imm.arm, np.random.default_rng(0)
    q0 = 0.6 * arm.lower + 0.4 * arm.upper
    gravity = arm.gravity(q0)
    imm.reset(0.0, q0)
    ekf.reset(0.0, q0)
    times = {name: [] for name in ("clock", "sample", "update", "filter", "estimate", "ekf", "ratio")}
    for begin in range(0, 5 * blocks, 5 * CHUNK):
        index = range(begin, begin + 5 * CHUNK)
        noise = rng.normal(0, 1.0, (5 * CHUNK, 2, arm.n))
        rows = [
            (
                DT,
                q0 + 1e-3 * np.sin(0.005 * k) + 1.5e-5 * at,
                np.full(arm.n, 2.5e-3 * np.cos(0.005 * k)),
                gravity + 0.3 * by,
            )
            for k, (at, by) in zip(index, noise)
        ]
        durations = [timed(imm.step, *row) for row in rows]
        times["clock"] += [timed(int) for _ in range(CHUNK)]
        times["update"] += durations[4::5]
        times["sample"] += [d for k, d in enumerate(durations) if k % 5 != 4]
        times["ekf"] += [timed(ekf.step, *row) for row in rows[:CHUNK]]
        clock, update, plain = (statistics.median(times[name][-CHUNK:]) for name in ("clock", "update", "ekf"))
        times["ratio"].append((update - clock) / (plain - clock))
        times["estimate"] += [timed(imm.estimate) for _ in range(CHUNK)]
        step = imm.filters
        state = step.x.copy(), step.p.copy()
        times["filter"] += [timed(step.updates[-1]) for _ in range(CHUNK)]
        step.x[:], step.p[:] = state
    return times


def main() -> None:
    """Measure all configurations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="ur16e")
    parser.add_argument("--contacts", type=int, action="append", default=[], choices=range(2, 5))
    parser.add_argument("--blocks", type=int, default=4000)
    add_save_argument(parser)
    args = parser.parse_args()
    arm = load_arm(args.robot)
    sensors = load_sensor_settings(arm.settings.sensors)
    head = heading(f"A step of the contact IMM filter, {arm.name}", "Microseconds, p50 / p99.")
    ekf, lines = Ekf(arm, settings_of(["stiffness"], "position")), []
    for name, settings in configurations(args.contacts).items():
        imm = ContactImm(arm.measured_at(sensors.torque_side), settings, sensors=sensors)
        times = measure(imm, ekf, args.blocks)
        clock = statistics.median(times["clock"])
        p50 = {part: statistics.median(values) - clock for part, values in times.items()}
        p99 = {part: float(np.percentile(values, 99)) - clock for part, values in times.items()}
        filters = len(imm.chain.owner)
        average = (4 * p50["sample"] + p50["update"]) / 5
        target, ratio = TARGET.get(filters), statistics.median(times["ratio"])
        verdict = "-" if target is None else f"{'met' if ratio <= target else 'MISSED'} ({target:g})"
        cells = [f"{p50[part]:.1f} / {p99[part]:.1f}" for part in ("sample", "update", "filter", "estimate")]
        lines.append(
            f"| {name} | {filters} | {imm.layout.size} | "
            + " | ".join(cells)
            + f" | {average:.1f} | {p50['ekf']:.2f} | {ratio:.1f} | {verdict} |"
        )
        print(lines[-1], flush=True)
    publish(
        [
            *head,
            "| configuration | filters | states | sample | update | one filter, C | estimate | per sample "
            "| EKF | update in steps of the EKF | its budget |",
            "|" + "---|" * 11,
            *lines,
        ],
        args.save,
    )


if __name__ == "__main__":
    main()
