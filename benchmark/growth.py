#!/usr/bin/env python3
"""What a filter step costs beside its peers, how it grows with joints and contacts, where the time goes, and its floor.

    python benchmark/growth.py [--rounds N] [--joints N ...] [--contacts N ...] [--save]

Peers: the papers' way (`Function.call` on CasADi's virtual machine), plain Pinocchio with numpy, and filterpy
(`pip install filterpy`; without it its rows are missing), see growth_peers.py. Peers of the EKF must give its state.
Growth: the EKF on chains of so many joints, and with so many contacts on a UR16e. Floor: an empty call of compiled
code, and the step's operations at the rate of a matrix product. Processor time; all cases take turns, so that a machine
that does other work slows all of them alike. `--save` writes growth.md beside this file and docs/figures/growth.png.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import casadi as ca
import numpy as np
from ekf_step import dm_caller, samples_of, settings_of  # neighbours of this script
from growth_peers import DT, FilterpyEkf, FilterpyUkf, PlainArm, PlainEkf, PlainMomentum
from report import add_save_argument, heading, publish

from contact_estimation.codegen import compile_function
from contact_estimation.contact import ContactSettings, ParallelContacts
from contact_estimation.dynamics.coupled import CoupledStep
from contact_estimation.filters.ekf import Ekf
from contact_estimation.filters.kalman import pack_array
from contact_estimation.filters.momentum import MomentumObserver
from contact_estimation.filters.settings import MomentumSettings, UkfSettings
from contact_estimation.filters.ukf import Ukf
from contact_estimation.robot import Arm, load_arm
from contact_estimation.robot.settings import RobotSettings
from contact_estimation.viz.style import figure

Step = Callable[..., object]
ROOT = Path(__file__).parents[1]
#: Steps of the slowest peer per turn; others make as many as take as long.
TURN = 0.03  # [s]
#: Links of the chains: length [m], mass [kg], inertia [kg m^2].
LINK, MASS, INERTIA = 0.25, 3.0, 0.02


def chain(joints: int, folder: Path) -> Arm:
    """Return an arm of equal links whose axes alternate between z and y."""
    inertial = (
        f'<inertial><origin xyz="0 0 {LINK / 2}"/><mass value="{MASS}"/><inertia ixx="{INERTIA}" iyy="{INERTIA}" '
    )
    inertial += f'izz="{INERTIA}" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = '<robot name="chain"><link name="link0"/>'
    for k in range(1, joints + 1):
        text += (
            f'<link name="link{k}">{inertial}</link><joint name="joint{k}" type="revolute"><parent link="link{k - 1}"/>'
        )
        text += f'<child link="link{k}"/><origin xyz="0 0 {LINK}"/><axis xyz="0 {k % 2} {1 - k % 2}"/>'
        text += '<limit lower="-2" upper="3" effort="100" velocity="3"/></joint>'
    path = folder / f"chain{joints}.urdf"
    path.write_text(text + "</robot>")
    names = [f"joint{k}" for k in range(1, joints + 1)]
    return Arm(
        RobotSettings(
            name=f"chain{joints}", urdf=str(path), base_frame="link0", tcp_frame=f"link{joints}", joints=names
        )
    )


def in_turns(steps: dict[str, tuple[Step, Sequence[tuple]]], rounds: int) -> dict[str, float]:
    """Return the processor time [us] of a step of every case, the median over the turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, (step, rows) in steps.items():
            begin, count = time.process_time(), 0
            while time.process_time() - begin < TURN:
                for row in rows:
                    step(*row)
                count += len(rows)
            times[name].append(1e6 * (time.process_time() - begin) / count)
    return {name: float(np.median(values)) for name, values in times.items()}


def peers(arm: Arm, rounds: int) -> list[str]:
    """Return the table of the filters beside their peers."""
    samples = samples_of(arm, 50)
    rows, settings = [(DT, *sample) for sample in samples], settings_of(["stiffness"], "position")
    ekf, given = Ekf(arm, settings), samples[0][0]
    ukf_settings = UkfSettings(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)})
    ekf.reset(0.0, given)
    plain = PlainArm(ekf, given)
    groups: dict[str, dict[str, Step]] = {
        "EKF": {"own": ekf.step, "Pinocchio and numpy": PlainEkf(plain).step},
        "UKF": {"own": Ukf(arm, ukf_settings).step},
        "momentum observer": {
            "own": MomentumObserver(arm, MomentumSettings()).step,
            "Pinocchio and numpy": PlainMomentum(arm, MomentumSettings().gain).step,
        },
    }
    groups["UKF"]["own"].__self__.reset(0.0, given)  # type: ignore[attr-defined]
    groups["momentum observer"]["own"].__self__.reset(0.0, given)  # type: ignore[attr-defined]
    if importlib.util.find_spec("filterpy") is not None:
        groups["EKF"]["Pinocchio and filterpy"] = FilterpyEkf(plain).step
        s = ukf_settings
        groups["UKF"]["Pinocchio and filterpy"] = FilterpyUkf(plain, s.alpha, s.beta, s.kappa).step
    agree(ekf, groups["EKF"], rows)
    steps = {f"{kind}: {name}": (step, rows) for kind, own in groups.items() for name, step in own.items()}
    steps["EKF: the papers' way, virtual machine"] = dm_caller(ekf)[0], [()] * 5
    times = in_turns(steps, rounds)
    lines = ["| filter | step [us] | times the own one | times an EKF step |", "|---|---|---|---|"]
    for name, value in sorted(times.items()):
        own = times[f"{name.split(':')[0]}: own"]
        lines.append(f"| {name} | {value:.1f} | {value / own:.1f} | {value / times['EKF: own']:.1f} |")
    return lines


def agree(ekf: Ekf, steps: dict[str, Step], rows: Sequence[tuple]) -> None:
    """Check that peers of the EKF give its state; a comparison of different things would mean nothing."""
    for step in steps.values():
        for row in rows:
            step(*row)
    for name, step in steps.items():
        if name != "own":
            peer = step.__self__.x  # type: ignore[attr-defined]
            np.testing.assert_allclose(peer, ekf.state, rtol=1e-5, atol=1e-7, err_msg=name)


def growth(cases: dict[str, Ekf], rounds: int) -> tuple[list[str], dict[str, float]]:
    """Return the table of EKFs of growing size, and their times."""
    nothing = compile_function(ca.Function("growth_nothing", [ca.SX.sym("x")], [ca.SX.zeros(1)], ["x"], ["y"]))
    steps: dict[str, tuple[Step, Sequence[tuple]]] = {"an empty call": (nothing, [()] * 50)}
    for name, ekf in cases.items():
        samples = samples_of(ekf.arm, 50)
        ekf.reset(0.0, samples[0][0])
        steps[name] = ekf.step, [(DT, *sample) for sample in samples]
        steps[f"{name}, C"] = ekf._advance, [()] * 50
    rate = matrix_rate()
    times = in_turns(steps, rounds)
    lines = [
        "| EKF | states | step | mean | A | A P A' | update and rest | Python [us] | C [us] | over its floor |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, ekf in cases.items():
        parts, c = operations(ekf), times[f"{name}, C"]
        floor = times["an empty call"] + 1e6 * sum(parts) / rate
        mean, a, spread, rest = (f"{100 * part / sum(parts):.0f} %" for part in parts)
        shares, python = f"{mean} | {a} | {spread} | {rest}", times[name] - c
        first = f"| {name} | {len(ekf.state)} | {times[name]:.2f} | {shares}"
        lines.append(f"{first} | {python:.2f} | {c:.2f} | {c / floor:.1f} |")
    lines += [
        "",
        f"An empty call takes {times['an empty call']:.2f} us; a matrix product makes {rate / 1e9:.1f} GFLOP/s.",
    ]
    return lines, {name: times[name] for name in cases}


def operations(ekf: Ekf) -> tuple[int, int, int, int]:
    """Count operations of the step's mean, of its Jacobian, of A P A', and of all else."""
    step = CoupledStep(ekf.arm, ParallelContacts(ekf.arm, ekf.settings.contacts))
    size = len(ekf.state)
    packed = ca.SX.sym("P", len(pack_array(np.eye(size))))
    inputs, covariance = [step.xi, step.phi, step.tau, step.h, packed], ca.SX(size, size)
    for k, (i, j) in enumerate(zip(*np.tril_indices(size))):
        covariance[i, j] = covariance[j, i] = packed[k]
    counts = [
        ca.Function("count", inputs, outputs).n_instructions()
        for outputs in ([step.next], [step.next, step.jacobian], [step.next, step.propagate(covariance)])
    ]
    total = ekf.function.n_instructions()
    return counts[0], counts[1] - counts[0], counts[2] - counts[1], total - counts[2]


def matrix_rate() -> float:
    """Return the rate [1/s] of multiplications and additions in a large matrix product on one core."""
    a = np.random.default_rng(0).normal(size=(512, 512))
    best = min(in_turns({"product": (lambda: a @ a, [()])}, 3).values())
    return 2.0 * 512**3 / (1e-6 * best)


def contacts_of(count: int) -> list[ContactSettings]:
    """Return contacts at the TCP from several sides."""
    sides = ([0.0, 0.0, 2e4], [2e4, 0.0, 0.0], [0.0, 2e4, 0.0], [-2e4, 0.0, 0.0])
    return [ContactSettings(name=f"side_{k}", stiffness=sides[k], estimate=["stiffness"]) for k in range(count)]


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--joints", type=int, nargs="+", default=[2, 4, 6, 8])
    parser.add_argument("--contacts", type=int, nargs="+", default=[1, 2, 3, 4])
    add_save_argument(parser)
    args = parser.parse_args()
    note = "Processor time. UR16e, position measured, the stiffness vector estimated."
    head = heading("Filters beside their peers, and their growth", note)
    arm, settings = load_arm("ur16e"), settings_of(["stiffness"], "position")
    with tempfile.TemporaryDirectory() as folder:
        of_joints = {f"{n} joints": Ekf(chain(n, Path(folder)), settings) for n in args.joints}
        of_contacts = {
            f"{n} contacts": Ekf(arm, dataclasses.replace(settings, contacts=contacts_of(n))) for n in args.contacts
        }
        beside = peers(arm, args.rounds)
        table, times = growth(of_joints | of_contacts, args.rounds)
    text = [
        *head,
        *beside,
        "",
        "Growth of the EKF. Mean, A, A P A', update: shares of its operations. Python: what the call adds to the C. "
        "Floor: an empty call, and all operations at the rate of a matrix product. Growth with the horizon is in "
        "tables/mpc_scaling.json.",
        "",
        *table,
        "",
        "![Growth](../docs/figures/growth.png)",
    ]
    publish(text, args.save)
    if args.save:
        plot(times)


def plot(times: dict[str, float]) -> None:
    """Draw the times over joints and contacts."""
    fig, axes = figure(1, 2, height=2.4)
    for axis, word in zip(axes[0], ("joints", "contacts")):
        points = [(int(name.split()[0]), value) for name, value in times.items() if name.endswith(word)]
        axis.plot(*zip(*points), marker="o")
        axis.set_xlabel(word)
        axis.set_ylabel("EKF step [us]")
    fig.savefig(ROOT / "docs" / "figures" / "growth.png")


if __name__ == "__main__":
    main()
