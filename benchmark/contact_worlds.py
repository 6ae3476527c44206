"""Recordings of an arm that is touched: the rows of ``any_contact.py``, from rigid-body dynamics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rigid_body_recording import (
    RATE,
    Force,
    Push,
    Recording,
    RigidBodyArm,
    World,
    pushes,
    random_motion,
    record,
    spring,
    surface,
    window,
)
from scipy.interpolate import CubicSpline

from contact_estimation import load_arm

SENSORS: dict[str, str | None] = {"ur16e": "ur16e_driver", "fr3": None}
#: Smallest and largest push [N].
SIZE = {"ur16e": (30.0, 80.0), "fr3": (15.0, 40.0)}
#: What a surface is pressed with, about [N].
PRESS = {"ur16e": 60.0, "fr3": 25.0}
#: Compliance of the tool [m/N], about: what bends beside the surface.
COMPLIANCE = {"ur16e": 1 / 6e4, "fr3": 0.0}


#: [rad] Half the width of the loop of an elastic joint: from about what the UR16e's profile expects to more than twice.
HYSTERESIS = (6e-5, 1.3e-4)
#: [rad] A press goes into its surface at up to this angle from the normal: recorded ones leave 8 to 12 % of the force
#: along the surface (median; a tenth of the time a quarter).
ASKEW = 0.17
#: [s] How long a push grows that grows slowly.
GROWTH = 5.0
#: [s] How long a hand takes to hold the tool; [m/s] slower, it pushes less.
HOLD, SLOWEST = 0.5, 0.02
#: [rad] Largest joint angle of a random posture; smallest singular value of its Jacobian.
WIDEST, SINGULAR = 2.5, 0.15
#: Factor on the noise of the torque.
NOISE = (0.7, 1.4)


@dataclass(frozen=True)
class Case:
    """A recording and how it is scored.

    Attributes:
        robot: name.
        kind: ``tool``, ``link``, ``surface`` or ``free``.
        rise: how long a touch takes to be held [s].
        recording: signals and truth.
    """

    robot: str
    kind: str
    rise: float
    recording: Recording


def world(seed: int, rng: np.random.Generator) -> World:
    """Friction, stiffness, hysteresis and noise of a seed: nothing is as the observers are told."""
    factors = (0.5, 1.0, 2.0)
    coulomb, stiffness = float(rng.uniform(0.7, 1.3)), float(rng.uniform(0.94, 1.06))
    loop, noise = float(rng.uniform(*HYSTERESIS)), float(rng.uniform(*NOISE))
    return World(coulomb, factors[seed % 3], stiffness, seed, loop, noise)


def direction(rng: np.random.Generator) -> np.ndarray:
    """Return a unit vector (3,), every direction equally likely."""
    vector = rng.normal(size=3)
    return np.asarray(vector / np.linalg.norm(vector))


def _pushed(amplitude: float, links: bool) -> Callable[[RigidBodyArm, np.random.Generator], tuple[np.ndarray, Force]]:
    """Five pushes in random directions, at the tool or at links, while the arm moves."""

    def make(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
        t = np.arange(14 * RATE) / RATE
        plan = []
        for k in range(5):
            start, size = 1.7 + 2.4 * k + rng.uniform(0, 0.4), rng.uniform(*SIZE[arm.robot])
            link = int(rng.integers(2, arm.n)) if links else None  # zero counted: of links 3 to n
            offset = rng.uniform(-0.06, 0.06, 3)
            plan.append(Push(start, start + 1.5, size * direction(rng), link=link, offset=offset))
        return random_motion(arm, t, rng, amplitude, 1.0), pushes(arm, plan, t)

    return make


def _lasting(amplitude: float, rise: float) -> Callable[[RigidBodyArm, np.random.Generator], tuple[np.ndarray, Force]]:
    """Push the tool in a random direction for 13 s, of which it grows for ``rise`` [s], while the arm moves."""

    def make(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
        t = np.arange(18 * RATE) / RATE
        start, size = 2.5 + rng.uniform(0, 0.4), rng.uniform(*SIZE[arm.robot])
        plan = [Push(start, start + 13.0, size * direction(rng), rise=rise)]
        return random_motion(arm, t, rng, amplitude, 1.0), pushes(arm, plan, t)

    return make


def _guided(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
    """Push the moving tool along its own velocity, as a hand that guides it."""
    t = np.arange(18 * RATE) / RATE
    theta = random_motion(arm, t, rng, 0.15, 1.0)
    start, size = 2.5 + rng.uniform(0, 0.4), rng.uniform(*SIZE[arm.robot])
    share = window(t, start, start + 13.0, HOLD)
    velocity = np.gradient([arm.pose(q).translation for q in theta], t, axis=0)
    along = velocity / np.sqrt(np.sum(velocity**2, axis=1, keepdims=True) + SLOWEST**2)

    def act(k: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        force = size * share[k] * along[k]
        return arm.jacobian(q).T @ force, force

    return theta, act


def _path(arm: RigidBodyArm, t: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Joint positions (N, n) along which the tool goes ``way`` (N, 3) [m] from the start, its axes fixed."""
    q = arm.start
    pose, knots, found = arm.pose(q), slice(None, None, 20), []
    for step in way[knots]:
        q = arm.reach(pose.translation + step, pose.rotation, q)
        found.append(q)
    return np.asarray(CubicSpline(t[knots], np.array(found))(t))


def pressed(
    normal: Callable[[np.random.Generator], np.ndarray],
    stiffness: float = 3e4,
    friction: float = 0.2,
    slide: float = 0.0,
    payload: float = 0.0,
) -> Callable[[RigidBodyArm, np.random.Generator], tuple[np.ndarray, Force]]:
    """Two presses of a plane, from 10 mm away, at some 10 to 20 mm/s, the second twice as strong, then a slow sway."""

    def make(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
        t = np.arange(14 * RATE) / RATE
        out = normal(rng)
        depth = PRESS[arm.robot] * (1 / stiffness + COMPLIANCE[arm.robot])
        hard = depth * rng.uniform(0.8, 1.2)
        deep = (0.01 + 0.5 * hard) * window(t, 1.5, 6.0, 1.0) + (0.01 + hard) * window(t, 7.5, 13.0, 1.0)
        deep += 0.1 * hard * np.sin(2.0 * t) * window(t, 9.0, 11.5, 0.5)
        side = np.cross(out, direction(rng))
        side /= np.linalg.norm(side)
        along = slide * np.sin(1.2 * (t - 2.5)) * window(t, 2.5, 13.5, 0.5)
        if payload:
            arm.carry(payload, [0.0, 0.0, 0.08])
        turn, askew = rng.uniform(0, 2 * np.pi), np.tan(rng.uniform(0, ASKEW))
        into = askew * (np.cos(turn) * side + np.sin(turn) * np.cross(out, side)) - out
        way = np.outer(deep, into) + np.outer(along, side)
        theta = _path(arm, t, way)
        point = arm.pose(arm.start).translation - 0.01 * out
        return theta, surface(arm, point, out, stiffness, friction)

    return make


def _sprung(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
    """Hold the tool twice by a spring of 10 kN/m in all directions, while it moves within millimetres."""
    t = np.arange(14 * RATE) / RATE
    on = window(t, 2.0, 6.5, 0.3) + window(t, 8.0, 13.0, 0.3)
    reach = PRESS[arm.robot] * (1e-4 + COMPLIANCE[arm.robot]) / 1.5
    phase, rates = rng.uniform(0, 2 * np.pi, 3), rng.uniform(0.8, 2.0, 3)
    way = reach * window(t, 1.0, 14.0)[:, None] * np.sin(np.outer(t, rates) + phase)
    theta = _path(arm, t, way)
    rest = arm.pose(arm.start).translation + reach * direction(rng)
    return theta, spring(arm, rest, 1e4, on)


def _free(arm: RigidBodyArm, rng: np.random.Generator) -> tuple[np.ndarray, Force]:
    """Fast motion that touches nothing."""
    t = np.arange(30 * RATE) / RATE
    speed = rng.uniform(1.5, 2.5)
    theta = random_motion(arm, t, rng, float(rng.uniform(0.3, 0.8)) / speed, speed)
    return theta, pushes(arm, [], t)


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        kind: as :class:`Case`'s.
        rise: [s].
        make: what the arm does and what touches it.
    """

    kind: str
    rise: float
    make: Callable[[RigidBodyArm, np.random.Generator], tuple[np.ndarray, Force]]


def _up(_: np.random.Generator) -> np.ndarray:
    return np.array([0.0, 0.0, 1.0])


def _level(rng: np.random.Generator) -> np.ndarray:
    angle = rng.uniform(0, 2 * np.pi)
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def _tilted(rng: np.random.Generator) -> np.ndarray:
    return (_level(rng) + _up(rng)) / np.sqrt(2)


ROWS = {
    "tool push, still": Row("tool", 0.3, _pushed(0.0, links=False)),
    "tool push, moving": Row("tool", 0.3, _pushed(0.15, links=False)),
    "link push, still": Row("link", 0.3, _pushed(0.0, links=True)),
    "link push, moving": Row("link", 0.3, _pushed(0.1, links=True)),
    "floor, 1 kN/m": Row("surface", 0.5, pressed(_up, 1e3)),
    "floor, 5 kN/m": Row("surface", 0.5, pressed(_up, 5e3)),
    "floor, 30 kN/m": Row("surface", 0.5, pressed(_up, 3e4)),
    "floor, 200 kN/m": Row("surface", 0.5, pressed(_up, 2e5)),
    "floor, sliding, mu 0.4": Row("surface", 0.5, pressed(_up, friction=0.4, slide=0.03)),
    "floor, payload 2 kg": Row("surface", 0.5, pressed(_up, payload=2.0)),
    "wall": Row("surface", 0.5, pressed(_level)),
    "ceiling": Row("surface", 0.5, pressed(lambda rng: -_up(rng))),
    "plane at 45 degrees": Row("surface", 0.5, pressed(_tilted)),
    "spring in 3-D": Row("surface", 0.3, _sprung),
    "free, fast": Row("free", 0.0, _free),
    "slow push, still": Row("tool", GROWTH, _lasting(0.0, GROWTH)),
    "slow push, moving": Row("tool", GROWTH, _lasting(0.15, GROWTH)),
    "guided by hand": Row("tool", HOLD, _guided),
    "long push, moving": Row("tool", 0.3, _lasting(0.15, 0.3)),
}


def random_posture(robot: str, seed: int) -> np.ndarray:
    """Return a posture (n,) [rad] in the middle of the ranges, in which every force at the tool loads the joints."""
    rng, arm = np.random.default_rng([seed, 99]), load_arm(robot)
    low, high = np.maximum(arm.lower, -WIDEST), np.minimum(arm.upper, WIDEST)
    while True:
        q = low + (0.2 + 0.6 * rng.uniform(size=arm.n)) * (high - low)
        if np.linalg.svd(arm.tcp_jacobian(q), compute_uv=False)[-1] > SINGULAR:
            return np.asarray(q)


def make_case(robot: str, row: str, seed: int, anywhere: bool = False) -> Case:
    """Return the recording of a row for a seed; ``anywhere``: it begins in a posture of that seed."""
    rng = np.random.default_rng([seed, list(ROWS).index(row), len(robot)])
    arm, chosen = RigidBodyArm(robot, random_posture(robot, seed) if anywhere else None), ROWS[row]
    theta, force = chosen.make(arm, rng)
    return Case(robot, chosen.kind, chosen.rise, record(arm, theta, force, world(seed, rng)))
