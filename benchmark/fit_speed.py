#!/usr/bin/env python3
"""One maximisation of the offline fit against a general NLP solver.

    python benchmark/fit_speed.py RECORDING --robot ur16e [--save]

All from the same filtered states and the same start (10 kN/m, vertical, at the TCP):

- IPOPT, full dynamics: the papers' objective as one writes it down, norms of mu_t+1 - f(mu_t, tau_t, phi) over 2000
  pairs with the coupled step f in the graph (mass matrix and its solve, Coriolis, gravity), exact derivatives, CasADi's
  virtual machine;
- IPOPT, features: the same objective and solver as shipped (``--objective paper``), everything that does not depend on
  phi computed once;
- Gauss-Newton: the shipped default, robust least squares of torques over blocks with the joints' friction beside the
  contact (27 unknowns for six joints), the contact and its derivatives in generated C; with features and search of the
  start.

Seconds are CPU seconds, everything runs on one core. ``--save`` writes fit_speed.md beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from pathlib import Path

import casadi as ca
import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.commands.inputs import open_for
from contact_estimation.contact import ParallelContacts
from contact_estimation.dynamics.coupled import CoupledStep
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.registry import load_observer_settings
from contact_estimation.filters.settings import load_sensor_settings
from contact_estimation.filters.stream import SampleStream
from contact_estimation.fit import paper, unbiased
from contact_estimation.fit.blocks import block_means
from contact_estimation.fit.contact_torque import FitContact
from contact_estimation.fit.start import search
from contact_estimation.fit.states import filtered_states
from contact_estimation.fit.unknowns import Unknowns
from contact_estimation.robot import load_arm

PAIRS = 2000
_SMOOTH = 1e-12


def full_dynamics(arm, states, contact, weights) -> tuple[float, float, np.ndarray, int]:
    """Seconds to build and to solve, phi (9,) in SI and the iterations."""
    began = time.process_time()
    free = dataclasses.replace(contact, estimate=[])
    contacts = ParallelContacts(arm, [free])
    step = CoupledStep(arm, contacts)
    rows = np.unique(np.linspace(0, len(states.q) - 2, PAIRS).astype(int))
    mean, n = states.q.mean(axis=0), arm.n
    centre = arm.tcp_pose(mean)[0]
    after, scaled = ca.SX.sym("after", 2 * n), ca.SX.sym("phi", 9)
    offset = np.concatenate([np.zeros(3), centre, np.zeros(3)])
    phi = scaled * paper._SCALE + offset
    rotation, position = arm.tcp(step.kinematics)
    error = ca.sqrt(ca.sumsqr(after - step.next) + _SMOOTH)
    term = ca.substitute(error, step.phi, phi / contacts.scale)
    place = position + rotation @ phi[6:]
    term += weights.rest * ca.sqrt(ca.sumsqr(place - phi[3:6]) + _SMOOTH)
    one = ca.Function("term", [scaled, step.q, step.dq, step.tau, after, step.h], [term])
    z, count = ca.MX.sym("z", 9), len(rows)
    data = [states.q[rows].T, states.dq[rows].T, states.tau[rows].T, np.hstack([states.q, states.dq])[rows + 1].T]
    total = ca.sum2(one.map(count)(z, *data, states.h))
    small = ca.sum1(ca.fabs(z[:3]) * paper._SCALE[0]) * weights.stiffness
    small += weights.point * ca.sqrt(ca.sumsqr(z[6:] * paper._SCALE[8]) + _SMOOTH)
    solver = ca.nlpsol(
        "full",
        "ipopt",
        {"x": z, "f": total + small},
        {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "ipopt.max_iter": 300},
    )
    built = time.process_time()
    start = (np.concatenate([contact.stiffness, centre, contact.point]) - offset) / paper._SCALE
    found = solver(x0=start)
    seconds = time.process_time() - built
    return built - began, seconds, np.array(found["x"]).ravel() * paper._SCALE + offset, solver.stats()["iter_count"]


def timed(call, repeats: int = 5):
    """(median seconds, result)."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        result = call()
        times.append(time.process_time() - began)
    return statistics.median(times), result


def gauss_newton(arm, states, contact) -> tuple[float, float, float, float]:
    """Seconds for the features, for the search of the start and for the maximisation; stiffness norm [N/m]."""
    options = unbiased.UnbiasedSettings()
    unknowns = Unknowns([FitContact(arm, contact, options.estimate)], 1, options.estimate, options.priors)
    features, block = timed(lambda: block_means(arm, states, options.block, options.presliding, True))
    searching, theta = timed(lambda: search(unknowns, [block], options))
    solving, found = timed(lambda: unbiased._maximise([block], theta, unknowns, options)[1])
    return features, searching, solving, found.contacts[0].stiffness


def main() -> None:
    """Time all three and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recording", type=Path)
    parser.add_argument("--robot", required=True)
    add_save_argument(parser)
    args = parser.parse_args()
    head = heading("Speed of the offline fit", "CPU seconds of one core; see the script.")
    arm, settings = load_arm(args.robot), load_observer_settings("ekf")
    contact = dataclasses.replace(settings.contacts[0], stiffness=[0.0, 0.0, 1e4], estimate=[])
    recording = open_for(
        arm, argparse.Namespace(recording=args.recording, joint_states=None, wrench=None, rate=None)
    ).read()
    observer = Ekf(arm, dataclasses.replace(settings, contacts=[contact]))
    sensors = load_sensor_settings(settings.sensors or arm.settings.sensors)
    states = filtered_states(SampleStream(observer, arm, sensors), recording)
    weights = paper.PaperWeights()

    features, searching, solving, norm = gauss_newton(arm, states, contact)
    own = features + searching + solving
    making, made = timed(lambda: paper._features(arm, states, PAIRS))
    reduced, (phi, _) = timed(lambda: paper._maximise(made, contact, weights), 1)
    built, full, full_phi, iterations = full_dynamics(arm, states, contact, weights)
    rows = [
        ("IPOPT, full dynamics", built, full, np.linalg.norm(full_phi[:3])),
        ("IPOPT, features", making, reduced, np.linalg.norm(phi[:3])),
        ("Gauss-Newton", features + searching, solving, norm),
    ]
    publish(
        [
            *head,
            "| | before [s] | maximisation [s] | together over Gauss-Newton | maximisation over Gauss-Newton | "
            "stiffness found [kN/m] |",
            "|---|---|---|---|---|---|",
            *(
                f"| {name} | {before:.2f} | {seconds:.2f} | {(before + seconds) / own:.0f} | {seconds / solving:.0f} | "
                f"{k / 1e3:.1f} |"
                for name, before, seconds, k in rows
            ),
            "",
            f"Before: building the graph, computing features ({features:.2f} s), searching the start "
            f"({searching:.2f} s). IPOPT with full dynamics took {iterations} iterations.",
        ],
        args.save,
    )


if __name__ == "__main__":
    main()
