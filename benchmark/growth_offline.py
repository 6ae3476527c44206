#!/usr/bin/env python3
"""How offline methods and the MPC grow: the fit with samples, a batch iteration with samples, a tick with the horizon.

    python benchmark/growth_offline.py [--rounds N] [--save]

The fit works on a simulated press with a moving tool, the batch on the scene of batch_iteration.py, the MPC on the task
of mpc_speed.py with one contact. Each is asked for an exponent: the slope of log time over log size. One means that
twice the size takes twice the time. Processor time of one thread, the median of the rounds; sizes take turns. `--save`
writes growth_offline.md beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable

import batch_iteration  # a neighbour of this script, which limits the threads
import numpy as np
from fit_speed import gauss_newton
from mpc_speed import START, make_problem
from report import add_save_argument, heading, publish

from contact_estimation.commands.simulate import as_recording
from contact_estimation.control.mpc import make_solver
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit.states import FilteredStates, filtered_states
from contact_estimation.simulation.session import open_simulation

#: Method -> sizes: samples of the recording, samples of the batch, stages of the horizon.
SIZES = {"fit, samples": (2000, 4000, 8000), "batch, samples": (500, 1000, 2000), "MPC, stages": (5, 10, 20, 40)}
BATCH_RATE = 200.0  # [1/s]
TICKS = 100
Measurement = Callable[[int], float]


def fit_seconds() -> Measurement:
    """Return the processor time [s] of features, start and maximisation, as a function of the samples."""
    most = max(SIZES["fit, samples"])
    simulation = open_simulation("linear_contact")
    recording = as_recording(list(simulation.run(most / 500.0)), simulation.arm, "press", simulation.imperfections)
    arm, settings = simulation.arm, load_observer_settings("ekf")
    contact = dataclasses.replace(settings.contacts[0], stiffness=[0.0, 0.0, 1e4], estimate=[])
    observer = Ekf(arm, dataclasses.replace(settings, contacts=[contact]))
    stream = SampleStream(observer, arm, load_sensor_settings(arm.settings.sensors))
    states = filtered_states(stream, recording)

    def measure(samples: int) -> float:
        part = FilteredStates(states.q[:samples], states.dq[:samples], states.tau[:samples], states.h)
        return sum(gauss_newton(arm, part, contact)[:3])

    return measure


def batch_seconds(samples: int) -> float:
    """Return the processor time [s] of one iteration."""
    return float(batch_iteration.measure(samples / BATCH_RATE)["cpu"])


def mpc_seconds() -> Measurement:
    """Return the processor time [s] of a tick of one Gauss-Newton iteration, as a function of the stages."""
    solvers = {}
    for stages in SIZES["MPC, stages"]:
        problem = make_problem(stages, 1)
        arm = problem.arm
        position, rotation = arm.tcp_pose(START)
        first = problem.settings.contacts[0]
        point = np.array(first.point)
        problem.set_contacts(np.concatenate([first.stiffness, position + rotation @ point, point]))
        problem.set("position_target", position)
        problem.set("force_target", np.array([0.0, 0.0, 5.0]))
        x = problem.stack(START, np.zeros(arm.n))
        solver = make_solver(problem, "rti")
        solver.reset(x)
        solvers[stages] = solver, x

    def measure(stages: int) -> float:
        solver, x = solvers[stages]
        begin = time.process_time()
        for _ in range(TICKS):
            solver.solve(x)
        return (time.process_time() - begin) / TICKS

    return measure


def table(rounds: int) -> list[str]:
    """Measure and return the Markdown table."""
    measures = {"fit, samples": fit_seconds(), "batch, samples": batch_seconds, "MPC, stages": mpc_seconds()}
    lines = ["| method, size | time [ms] by size | exponent |", "|---|---|---|"]
    for name, measure in measures.items():
        turns = np.array([[measure(size) for size in SIZES[name]] for _ in range(rounds)])
        seconds = np.median(turns, axis=0)
        exponent = np.polyfit(np.log(SIZES[name]), np.log(seconds), 1)[0]
        cells = ", ".join(f"{size}: {1e3 * value:.3g}" for size, value in zip(SIZES[name], seconds))
        lines.append(f"| {name} | {cells} | {exponent:.2f} |")
    return lines


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    add_save_argument(parser)
    args = parser.parse_args()
    head = heading("Growth of fit, batch and MPC", "Processor time. Exponent: slope of log time over log size.")
    publish([*head, *table(args.rounds)], args.save)


if __name__ == "__main__":
    main()
