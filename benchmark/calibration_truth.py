"""Calibration where the truth is known: do the intervals hold it, and is what is wrong told?

    python benchmark/calibration_truth.py [--seeds 20] [--save]
    python benchmark/calibration_truth.py --links 5

The world shares no code with the calibration but the robot's description: Pinocchio's recursive Newton-Euler algorithm,
LuGre friction with Stribeck effect, torque noise of first order that lasts 0.05 to 1 s, encoder noise. First table:
share of 95 % intervals that hold the truth. Second: what a calibration says of a recording that has something wrong.
``--links N`` prints how much of the residuals corrected links explain, of a right and a coarse description and of other
robots, N recordings each.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from report import add_save_argument, heading, publish
from scipy.signal import lfilter

from contact_estimation.commands.output import text_table
from contact_estimation.exceptions import IdentificationError
from contact_estimation.fit.calibration import CalibrationSettings, identify
from contact_estimation.fit.calibration.doubts import doubts, explained_by_links
from contact_estimation.io.recording import Recording
from contact_estimation.robot import Arm, load_arm

RATE = 250
CENTRE = np.array([0.3, -1.2, 1.4, -1.0, -1.2, 0.4])
VISCOUS, COULOMB = np.array([20.0, 18.0, 10.0, 4.0, 2.5, 3.0]), np.array([14.0, 8.0, 5.0, 2.0, 3.0, 2.5])
ARMATURE = np.array([3.0, 1.6, 1.4, 0.45, 0.5, 0.46])
#: Breakaway length [rad]; the friction at rest is higher by a share, below a speed [rad/s] (Stribeck).
BREAKAWAY, STRIBECK, SLOW = 1.5e-4, 0.1, 0.02
LOAD, PLACE = 2.0, np.array([0.02, -0.03, 0.08])
#: Standard deviation of torque noise and of bias, share of the effort limit.
NOISE, BIAS = 1e-3, 3e-3
SETTINGS = CalibrationSettings()


@dataclass(frozen=True)
class World:
    """What differs from recording to recording.

    Attributes:
        seconds: length. speed: factor on the frequencies of the motion. time: [s] how long torque noise lasts.
        robot: which one moves. told: as which one it is read.
        load: [kg] behind the flange. scale: true torque over the measured one. late: [s] of the torque.
        inertia: factor on the true moments of inertia of each link, drawn between its inverse and itself.
        lean: [degrees] of the base, about an axis that each recording draws. taken: [kg] taken up half-way.
    """

    seconds: float = 30.0
    speed: float = 1.0
    time: float = 0.25
    robot: str = "ur16e"
    told: str = "ur16e"
    load: float = 0.0
    scale: float = 1.0
    late: float = 0.0
    inertia: float = 1.0
    lean: float = 0.0
    taken: float = 0.0


def motion(arm: Arm, world: World, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return t (N,) and q, dq, ddq (N, n) of a Fourier series within the joint limits."""
    t = np.arange(0, world.seconds, 1 / RATE)
    while True:
        q, dq, ddq = (np.zeros((len(t), arm.n)) for _ in range(3))
        for k in range(1, 8):
            w = 2 * np.pi * 0.07 * k * world.speed
            a, b = rng.normal(scale=0.45 / k**0.7, size=(2, arm.n))
            q += np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b)
            dq += w * (np.outer(np.cos(w * t), a) - np.outer(np.sin(w * t), b))
            ddq -= w**2 * (np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b))
        if (np.abs(q[:, 2] + CENTRE[2]) < 3.1).all():
            return t, q + CENTRE, dq, ddq


def friction(q: np.ndarray) -> np.ndarray:
    """LuGre friction (N, n) [Nm], exact over a step of constant velocity."""
    bristle, states, way = np.zeros(q.shape[1]), np.zeros_like(q), np.diff(q, axis=0)
    limit = BREAKAWAY * (1 + STRIBECK * np.exp(-((way * RATE / SLOW) ** 2)))
    keep, target = np.exp(-np.abs(way) / limit), np.sign(way) * limit
    for k in range(len(way)):
        bristle = target[k] + (bristle - target[k]) * keep[k]
        states[k + 1] = bristle
    return COULOMB * states / BREAKAWAY


def carry(arm: Arm, model: pin.Model, mass: float) -> None:
    """Add a point mass [kg] behind the flange."""
    placement = model.frames[model.getFrameId(arm.tcp_frame)].placement
    model.inertias[arm.n] = model.inertias[arm.n] + placement.act(pin.Inertia(mass, PLACE, np.zeros((3, 3))))


def record(world: World, seed: int) -> tuple[Recording, np.ndarray]:
    """Return a recording of a world, and its biases (n,) [measured Nm]."""
    arm, rng = load_arm(world.robot), np.random.default_rng([seed, 6])
    t, q, dq, ddq = motion(arm, world, rng)
    model = arm.model.copy()
    if world.load:
        carry(arm, model, world.load)
    if world.inertia != 1.0:
        for k, factor in enumerate(world.inertia ** rng.uniform(-1, 1, arm.n), 1):
            link = model.inertias[k]
            model.inertias[k] = pin.Inertia(link.mass, link.lever, factor * link.inertia)
    if world.lean:
        angle = np.random.default_rng([seed, 7]).uniform(0, 2 * np.pi)
        turn = pin.exp3(np.radians(world.lean) * np.array([np.cos(angle), np.sin(angle), 0.0]))
        model.gravity.linear = turn @ model.gravity.linear
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, dq, ddq)])
    if world.taken:
        carry(arm, model, world.taken)
        data, half = model.createData(), len(t) // 2
        tau[half:] = [pin.rnea(model, data, *state) for state in zip(q[half:], dq[half:], ddq[half:])]
    tau = (tau + ARMATURE * ddq + VISCOUS * dq + friction(q)) / world.scale
    tau = np.column_stack([np.interp(t - world.late, t, column) for column in tau.T])
    bias, keep = rng.normal(size=arm.n) * BIAS * arm.effort_limit, np.exp(-1 / (RATE * world.time))
    white = rng.normal(size=tau.shape) * NOISE * arm.effort_limit * np.sqrt(1 - keep**2)
    tau += bias + lfilter([1.0], [1.0, -keep], white, axis=0)
    stamps = np.round(t * 1e9).astype(np.int64)
    return Recording(stamps, arm.joint_names, q + 1e-5 * rng.normal(size=q.shape), dq, tau, f"seed {seed}"), bias


def coverage(world: World, seeds: int) -> dict[str, float]:
    """Return by kind of parameter the share of 95 % intervals that hold the truth, over ``seeds`` recordings."""
    hits: dict[str, list[np.ndarray]] = {}
    for seed in range(seeds):
        recording, bias = record(world, seed)
        found = identify(load_arm(world.told), [recording], SETTINGS)
        truth = {
            "viscous": VISCOUS,
            "coulomb": COULOMB,
            "bias": bias,
            "gain": np.ones(6),
            "armature": ARMATURE,
            "payload": world.load * np.array([1.0, *PLACE]),
        }
        for name, value in truth.items():
            std = found.std(name)
            inside = np.abs(found.value(name) - value) < 1.96 * std
            hits.setdefault(name, []).append(inside[std > 0])
    return {name: float(np.mean(np.concatenate(values))) for name, values in hits.items()}


def told(world: World, seeds: int) -> list[object]:
    """Return how many of ``seeds`` recordings are refused, doubtful and good, and the mean payload of the rest."""
    counts, masses = [0, 0, 0], []
    for seed in range(seeds):
        arm = load_arm(world.told)
        try:
            found = identify(arm, [record(world, seed)[0]], SETTINGS)
        except IdentificationError:
            counts[0] += 1
            continue
        counts[1 if doubts(arm, found, SETTINGS) else 2] += 1
        masses.append(found.value("payload")[0])
    return [*counts, float(np.mean(masses)) if masses else "-"]


#: Robot that moves and robot it is read as, beside the right one.
OTHERS = (("ur10e", "ur16e"), ("ur16e", "ur10e"))
#: Lets pass what is refused for other reasons.
PERMISSIVE = dataclasses.replace(SETTINGS, max_unexplained=1e3, max_scale_error=1e3, max_contact_force=1e3)


def explained(world: World, seeds: int) -> list[object]:
    """Return how many of ``seeds`` recordings are refused, and of the others the least and largest share of links."""
    refused, shares = 0, []
    for seed in range(seeds):
        arm = load_arm(world.told)
        try:
            found = identify(arm, [record(world, seed)[0]], PERMISSIVE)
        except IdentificationError:
            refused += 1
        else:
            shares.append(float(np.max(explained_by_links(arm, found, PERMISSIVE))))
    return [refused, *((min(shares), max(shares)) if shares else ("-", "-"))]


def links(seeds: int) -> str:
    """Return the table of ``--links``."""
    worlds = {"the right description": World(), "with a load of 2 kg": World(load=LOAD)}
    worlds |= {f"moments of inertia off by up to {f:g}": World(inertia=f) for f in (1.5, 2.0)}
    for load in (0.0, LOAD):
        words = f" with {load:g} kg" if load else ""
        worlds |= {f"a {a}{words} read as a {b}": World(robot=a, told=b, load=load) for a, b in OTHERS}
    rows = []
    for name, world in worlds.items():
        rows += [
            [f"{name}, speed x {speed:g}", *explained(dataclasses.replace(world, speed=speed), seeds)]
            for speed in (0.5, 1.0, 2.0)
        ]
    return text_table(["recording", "refused", "least share", "largest share"], rows, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--links", type=int, metavar="N", help="print the share of links instead, N recordings each")
    add_save_argument(parser)
    args = parser.parse_args()
    if args.links:
        print(links(args.links))
        return
    lines, rows = heading("Calibration where the truth is known"), []
    for seconds, time in ((10.0, 0.25), (20.0, 0.05), (20.0, 0.25), (20.0, 1.0), (60.0, 0.25)):
        shares = coverage(World(seconds=seconds, time=time, load=LOAD), args.seeds)
        rows.append([f"{seconds:g} s, noise of {time:g} s", *(f"{100 * share:.0f} %" for share in shares.values())])
    first = text_table(["recording", *(name.replace("gain", "scale") for name in shares)], rows)
    wrong = {
        "nothing": {},
        "a load of 2 kg": {"load": LOAD},
        "torque scale 0.85": {"scale": 0.85},
        "torque scale 1.15, 2 kg": {"scale": 1.15, "load": LOAD},
        "torque 5 ms late": {"late": 0.005},
        "torque 20 ms late": {"late": 0.02},
        "base leans by 3 degrees": {"lean": 3.0},
        "1 kg taken up half-way": {"taken": 1.0},
        "a UR10e read as a UR16e": {"robot": "ur10e"},
        "a UR16e with 2 kg read as a UR10e": {"told": "ur10e", "load": LOAD},
    }
    rows = []
    for label, changes in wrong.items():
        for speed in (0.5, 1.0, 2.0):
            world = dataclasses.replace(World(speed=speed), **changes)
            rows.append([f"{label}, speed x {speed:g}", *told(world, args.seeds // 2)])
    second = text_table(["wrong", "refused", "doubtful", "good", "payload [kg]"], rows)
    lines += [f"95 % intervals that hold the truth, {args.seeds} recordings of a UR16e with 2 kg each:", ""]
    lines += ["```", first, "```", "", f"What is said of {args.seeds // 2} recordings of 30 s each:", ""]
    publish([*lines, "```", second, "```"], args.save)


if __name__ == "__main__":
    main()
