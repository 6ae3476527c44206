#!/usr/bin/env python3
"""What one EKF step costs from Python: generated C against the same function on CasADi's virtual machine.

    python benchmark/ekf_step.py [--robot NAME] [--count N] [--rounds N] [--save]

Per case (what is measured, number of estimated parameters), all in one run and in turns, so that a machine that does
other work as well slows all of them alike:

- `Ekf.step`: the call an application makes, with writing the sample into the buffers;
- C alone: the bound function without writing anything;
- VM: `Function.call` of the same casadi.Function on a dict of DM, its results fed back as the next arguments, which is
  how the authors of papers 1 and 2 run their filter.

Both sides are also run from the same start and must agree. `--save` writes ekf_step.md beside this file.
"""

from __future__ import annotations

import argparse
import statistics
import time

import casadi as ca
import numpy as np
from report import add_save_argument, heading, publish

from contact_estimation.contact import ContactSettings
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.kalman import pack_array, unpack_array
from contact_estimation.filters.settings import EkfSettings, MeasurementNoise, ProcessNoise
from contact_estimation.robot import Arm, load_arm

DT = 0.002
PARAMETERS = {0: [], 3: ["stiffness"], 6: ["stiffness", "rest"], 9: ["stiffness", "rest", "point"]}
TARGET_US, TARGET_RATIO = 3.0, 20.0


def settings_of(estimate: list[str], measure: str) -> EkfSettings:
    """Return the shipped EKF's noise and one contact; the numbers themselves do not change what a step costs."""
    contact = ContactSettings(stiffness=[0.0, 0.0, 2e4], estimate=estimate)
    return EkfSettings(
        contacts=[contact],
        measure=measure,
        measurement_noise=MeasurementNoise(position=2e-10),
        process_noise=ProcessNoise(
            position=1e-12,
            velocity=0.0,
            unknown_torque=2.0,
            unknown_torque_share=0.02,
            stiffness=1e7,
            rest=1e-8,
            point=1e-6,
        ),
    )


def samples_of(arm: Arm, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return a slow motion about a posture away from every limit."""
    rng = np.random.default_rng(0)
    q = 0.6 * arm.lower + 0.4 * arm.upper
    gravity = arm.gravity(q)
    return [
        (
            q + 1e-3 * np.sin(0.005 * k) + rng.normal(0, 1.5e-5, arm.n),
            np.zeros(arm.n),
            gravity + rng.normal(0, 0.3, arm.n),
        )
        for k in range(count)
    ]


def times_of(call, arguments) -> list[float]:
    """Duration [us] of ``call(*a)`` for every a, less the clock's own."""
    clock, times = time.perf_counter_ns, []
    for row in arguments:
        start = clock()
        call(*row)
        times.append((clock() - start) / 1e3)
    return times


def dm_caller(ekf: Ekf):
    """Return the function as a call on a dict of DM that carries its state from call to call."""
    function = ekf.function
    arguments = {name: ca.DM(value) for name, value in ekf._step.inputs.items()}
    carried = {"xi_next": "xi", "P_next": "P"}

    def call(*_):
        result = function.call(arguments)
        for after, before in carried.items():
            arguments[before] = result[after]

    return call, arguments


def measure(arm: Arm, estimate: list[str], what: str, count: int, rounds: int) -> dict:
    """Medians and 99th percentiles [us] of one case, over ``rounds`` turns of every way to call."""
    settings = settings_of(estimate, what)
    ekf = Ekf(arm, settings)
    samples = samples_of(arm, count)
    ekf.reset(0.0, samples[0][0])
    for sample in samples[:200]:
        ekf.step(DT, *sample)
    call, arguments = dm_caller(ekf)
    idle = [()] * count
    times = {"step": [], "c": [], "vm": [], "clock": []}
    rows = [(DT, *sample) for sample in samples]
    for _ in range(rounds):
        times["clock"] += times_of(lambda: None, idle)
        times["step"] += times_of(ekf.step, rows)
        times["c"] += times_of(ekf._advance, idle)
        times["vm"] += times_of(call, idle[: max(count // 20, 100)])
    agree(ekf, arguments, rows[:50])
    result = {name: (statistics.median(values), float(np.percentile(values, 99))) for name, values in times.items()}
    return result | {"backend": ekf.backend, "instructions": ekf.function.n_instructions()}


def agree(ekf: Ekf, arguments: dict, rows: list) -> None:
    """Both ways give the same state from the same start; a benchmark of two different things would mean nothing."""
    dt, q, dq, tau = rows[0]
    ekf.reset(0.0, q)
    for name in arguments:
        arguments[name] = ca.DM(ekf._step.inputs[name])
    arguments |= {"xi": ca.DM(ekf.state), "P": ca.DM(pack_array(ekf.covariance))}
    arguments |= {"q_m": ca.DM(q), "tau": ca.DM(tau), "h": ca.DM(dt)} | (
        {"tau_m": ca.DM(tau)} if "tau_m" in arguments else {}
    )
    for _ in rows:
        ekf.step(dt, q, dq, tau)
        result = ekf.function.call(arguments)
        arguments["xi"], arguments["P"] = result["xi_next"], result["P_next"]
    np.testing.assert_allclose(ekf.state, arguments["xi"].full().ravel(), rtol=1e-9, atol=1e-12)
    covariance = unpack_array(arguments["P"].full().ravel(), len(ekf.state))
    np.testing.assert_allclose(ekf.covariance, covariance, rtol=1e-6, atol=1e-12)


def main() -> None:
    """Measure all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="ur16e")
    parser.add_argument("--count", type=int, default=10000, help="steps per round")
    parser.add_argument("--rounds", type=int, default=5)
    add_save_argument(parser)
    args = parser.parse_args()
    arm = load_arm(args.robot)
    note = f"CasADi {ca.__version__}. Microseconds, without the clock's own cost."
    head, lines, verdict = heading(f"One EKF step, {arm.name}", note), [], ""
    for what in ("position", "position_torque"):
        for count, estimate in PARAMETERS.items():
            found = measure(arm, estimate, what, args.count, args.rounds)
            clock = found["clock"][0]
            step, c, vm = (tuple(value - clock for value in found[name]) for name in ("step", "c", "vm"))
            lines.append(
                f"| {what} | {count} | {found['instructions']} | {step[0]:.2f} | {step[1]:.2f} | {c[0]:.2f} | "
                f"{vm[0]:.1f} | {vm[0] / step[0]:.0f} | {vm[0] / c[0]:.0f} |"
            )
            print(lines[-1], flush=True)
            if found["backend"] != "c":
                raise SystemExit("no C compiler was found: there is nothing to compare")
            if (what, count) == ("position", 3):
                met = step[0] <= TARGET_US and vm[0] >= TARGET_RATIO * step[0]
                verdict = (
                    f"Target, 3 parameters, position: `Ekf.step` within {TARGET_US:g} us and {TARGET_RATIO:g} "
                    f"times faster than the virtual machine on DM dicts: {'met' if met else 'MISSED'} with "
                    f"{step[0]:.2f} us and {vm[0] / step[0]:.0f} times."
                )
    publish(
        [
            *head,
            "| measured | parameters | instructions | `Ekf.step` p50 | p99 | C alone p50 | VM, DM dict p50 | VM / "
            "`Ekf.step` | VM / C |",
            "|---|---|---|---|---|---|---|---|---|",
            *lines,
            "",
            verdict,
        ],
        args.save,
    )


if __name__ == "__main__":
    main()
