"""A probe that slides over a surface, for ``identify probing --recording``: MuJoCo moves the arm, this file presses.

The arm is a gantry (two slides and a hinge) under joint control at 2.5 kHz. Surface: a spring over depth with a little
damping; friction: Dahl's law dz/dt = v (1 - sgn(v) z / z_c) with the bristle z and z_c = mu N / s. The
surface may be curved, stiffen, move, or touch the tool a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

from benchmark.adversary.case import CLEAN, Case, Interval, between
from benchmark.adversary.summary import share

FAULTS = {
    "bias": "wrench offset of 3 N and 0.2 Nm",
    "curved": "surface of radius 0.3 m",
    "stiffness_jump": "stiffness times 1.5 at 4 s",
    "hertz": "force grows with depth to the power 1.5",
    "clock": "wrench 40 ms late",
    "gain": "moment measured 15 % large",
    "gap": "0.8 s of samples missing",
    "outliers": "2 % of the wrenches are 10 to 30 N off",
    "wrong_tip": "tip told is 50 to 70 mm off",
    "friction_patch": "friction doubles beyond a line on the surface",
    "second_contact": "tool touches an edge as well from 4 s on",
    "moving_surface": "surface moves by 2 mm at 0.4 Hz",
    "saturated": "sensor ends at 70 % of the largest force",
    "tool_weight": "0.4 kg behind the sensor, not taken off",
    "noisy": "force noise is 5 times the stated one",
    "soft_presliding": "friction needs three times the distance the filter waits",
    "drift": "force offset drifts by 0.6 N/s",
    "late_wrench": "wrench 10 to 60 ms late",
    "early_wrench": "wrench 10 to 60 ms early",
    "late_pose": "pose 10 to 60 ms late, the twist not",
    "frozen_wrench": "sensor repeats its last wrench for 0.2 to 1 s",
    "frozen_pose": "pose and twist repeat their last sample for 0.2 to 1 s",
    "small_gap": "0.2 to 0.4 s of samples missing",
    "small_offset": "wrench offset of 0.7 N and 0.03 Nm",
    "tangential_gain": "one force axis reads 10 % too much",
    "fast_twist": "twist is 10 % too large",
    "turned_sensor": "sensor is mounted 3 to 5 degrees askew",
    "moved_sensor": "moment is about a point 10 to 20 mm off",
    "reversed": "wrench is that of the probe on the surface",
    "noisier": "noise of every signal is 3 times the stated one",
    "noisy_pose": "noise of the pose is 5 times the stated one",
    "edge": "tool touches an edge as well from the start on",
    "viscous": "friction grows by 30 N s/m times the speed",
    "damped": "surface damps by 150 N s/m along the normal",
    "slow_change": "stiffness grows by half in 8 s",
    "cautious": "noise of every signal is a third of the stated one",
    "soft": "stiffness 500 to 900 N/m",
    "hard": "stiffness 10 to 15 kN/m",
    "slippery": "friction 0.05 to 0.1",
    "rough": "friction 0.9 to 1.2",
    "slow_samples": "every other sample is missing",
}
#: Answers may be right with these.
CONDITIONS = ("small_gap", "cautious", "soft", "hard", "slippery", "rough", "slow_samples")
MAIN = "stiffness"
#: Offset of the wrench in sensor axes [N, N, Nm].
OFFSET = ("offset_x", "offset_y", "offset_moment")
#: The paper's accuracy: tip [m]; orientation [rad], stiffness [N/m], friction.
OF_TIP, TIP, ACCURACY = ("tip_x", "tip_y"), 2e-3, {"phi": 3e-2, "stiffness": 500.0, "friction": 3e-3}
STEP, RATE, SECONDS = 4e-4, 25.0, 8.0  # [s], [Hz], [s]
#: [N/m]: stiff, so that Dahl's friction, which trails a growing normal force, is Coulomb's to 0.2 % while it slides.
PRESLIDING = 3e5
#: [m]: where a patch of other friction begins, in the middle of the strokes.
PATCH = 0.01
#: Noise that the settings' defaults tell the filter: m, m, rad; m/s, m/s, rad/s; N, N, Nm.
NOISE = {"pose": (1e-4, 1e-4, 5e-4), "twist": (2e-3, 2e-3, 5e-3), "wrench": (0.15, 0.15, 0.01)}
GANTRY = """
<mujoco><option timestep="0.0004" integrator="Euler" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <joint name="turn" type="hinge" axis="0 0 1"/>
    <inertial mass="3" pos="0 0 0" diaginertia="0.02 0.02 0.02"/>
  </body></worldbody></mujoco>"""


@dataclass(frozen=True)
class Surface:
    """What is touched; the truth of a run.

    Attributes:
        tip: (2,) [m] in end-effector axes.
        phi: angle of the surface where it is touched first [rad].
        touch: that place (2,) [m].
        stiffness: [N/m]; friction: Coulomb coefficient.
        curvature: 1 / radius [1/m], convex.
        power: of the depth; 1.5 is Hertz's contact, as stiff as the spring at 4 mm.
        jump: factor on the stiffness from 4 s on.
        patch: factor on friction beyond :data:`PATCH` from the touched place.
        wave: amplitude [m] of the surface's own motion at 0.4 Hz.
        presliding: tangential stiffness [N/m] of the bristles.
        edge: stiffness [N/m] of a second contact, from ``edge_from`` [s] on.
        damping: of the normal motion [N s/m].
        viscous: friction per speed [N s/m].
        growth: relative growth of the stiffness [1/s].
    """

    tip: np.ndarray
    phi: float
    touch: np.ndarray
    stiffness: float
    friction: float
    curvature: float = 0.0
    power: float = 1.0
    jump: float = 1.0
    patch: float = 1.0
    wave: float = 0.0
    presliding: float = PRESLIDING
    edge: float = 0.0
    edge_from: float = 4.0
    damping: float = 2.0
    viscous: float = 0.0
    growth: float = 0.0

    def depth(self, point, t: float) -> tuple[float, np.ndarray]:
        """Depth [m] of a point (2,), and the outward normal (2,) there."""
        normal = np.array([-math.sin(self.phi), math.cos(self.phi)])
        touch = self.touch + self.wave * math.sin(0.8 * math.pi * t) * normal
        if not self.curvature:
            return float(normal @ (touch - point)), normal
        centre = touch - normal / self.curvature
        distance = math.dist(point, centre)
        return 1.0 / self.curvature - distance, (point - centre) / distance

    def push(self, depth: float, t: float) -> float:
        """Return the static normal force [N] at a depth [m]."""
        factor = self.stiffness * (self.jump if t >= 4.0 else 1.0) * (1.0 + self.growth * t)
        return factor * max(depth, 0.0) ** self.power * 4e-3 ** (1.0 - self.power)


class Probe:
    """The gantry with its contact; ``step`` advances it by 0.4 ms."""

    def __init__(self, surface: Surface, pose) -> None:
        self.surface, self.model = surface, mujoco.MjModel.from_xml_string(GANTRY)
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = pose
        self.bristle, self.wrench, self.normal_force, self.t = 0.0, np.zeros(3), 0.0, 0.0

    def contact(self) -> np.ndarray:
        """Generalised force (3,) on the gantry; updates bristle, normal force and the wrench in end-effector axes."""
        x, y, alpha = self.data.qpos
        c, s = math.cos(alpha), math.sin(alpha)
        arm = np.array(
            [c * self.surface.tip[0] - s * self.surface.tip[1], s * self.surface.tip[0] + c * self.surface.tip[1]]
        )
        velocity = self.data.qvel[:2] + self.data.qvel[2] * np.array([-arm[1], arm[0]])
        point = np.array([x, y]) + arm
        depth, normal = self.surface.depth(point, self.t)
        tangent = np.array([normal[1], -normal[0]])
        damped = self.surface.damping * float(normal @ velocity) * (depth > 0.0)
        self.normal_force = max(self.surface.push(depth, self.t) - damped, 0.0)
        force = self.normal_force * normal + self._friction(point, tangent, float(tangent @ velocity)) * tangent
        force = force - self.surface.viscous * float(tangent @ velocity) * (depth > 0.0) * tangent
        moment = arm[0] * force[1] - arm[1] * force[0]
        if self.surface.edge and self.t >= self.surface.edge_from:  # on the tool, half-way to the tip
            extra = self.surface.edge * max(float(tangent @ (point - self.surface.touch)), 0.0) * -tangent
            force, moment = force + extra, moment + 0.5 * (arm[0] * extra[1] - arm[1] * extra[0])
        self.wrench = np.array([c * force[0] + s * force[1], -s * force[0] + c * force[1], moment])
        return np.array([*force, moment])

    def _friction(self, point, tangent, slip):
        beyond = float(tangent @ (point - self.surface.touch)) > PATCH
        mu = self.surface.friction * (self.surface.patch if beyond else 1.0)
        limit = max(mu * self.normal_force / self.surface.presliding, 1e-9)
        self.bristle += STEP * slip * (1.0 - math.copysign(1.0, slip) * self.bristle / limit)
        self.bristle = float(np.clip(self.bristle, -limit, limit))
        return -self.surface.presliding * self.bristle

    def step(self, goal, rate) -> None:
        """Follow ``goal`` (3,) moving at ``rate`` (3,), 60 Hz wide."""
        wide = 2.0 * math.pi * 60.0
        error, inertia = goal - self.data.qpos, np.array([3.0, 3.0, 0.02])
        drive = inertia * (wide**2 * error + 2.0 * wide * (rate - self.data.qvel))
        self.data.qfrc_applied[:] = drive + self.contact()
        mujoco.mj_step(self.model, self.data)
        self.t += STEP


def excite(probe: Probe, guess_tip, guess_phi: float, seconds: float) -> dict[str, np.ndarray]:
    """Slide forth and back, press harder and softer, lean from the fourth stroke on; samples at 25 Hz, no noise."""
    tangent = np.array([math.cos(guess_phi), math.sin(guess_phi)])
    normal = np.array([-tangent[1], tangent[0]])
    goal = probe.data.qpos.copy()
    alpha0, every = goal[2], round(1.0 / (RATE * STEP))
    rows: dict[str, list] = {"t": [], "pose": [], "twist": [], "wrench": []}
    previous = 0.0
    for k in range(round(seconds * RATE) * every):
        t = k * STEP
        speed, lean = _programme(t)
        want = min(t / 0.3, 1.0) * (19.0 + 8.0 * math.sin(2.0 * math.pi * 1.1 * t))
        push = (want - previous) / STEP / 5000.0 * (k > 0) + 60.0 / 20000.0 * (want - _pressed(probe, normal))
        previous = want
        turn = (alpha0 - lean - goal[2]) / STEP
        c, s = math.cos(goal[2]), math.sin(goal[2])
        arm = np.array([c * guess_tip[0] - s * guess_tip[1], s * guess_tip[0] + c * guess_tip[1]])
        rate = np.array([*(speed * tangent - np.clip(push, -0.05, 0.05) * normal), turn])
        rate[:2] += turn * np.array([arm[1], -arm[0]])
        goal = goal + STEP * rate
        probe.step(goal, rate)
        if (k + 1) % every == 0:
            for name, value in zip(rows, (probe.t, probe.data.qpos, probe.data.qvel, probe.wrench)):
                rows[name].append(np.array(value))
    return {name: np.array(values) for name, values in rows.items()}


def _programme(t: float) -> tuple[float, float]:
    """Sliding speed [m/s] and lean [rad]."""
    stroke, phase = divmod(t, 0.85)
    sign = 1.0 if int(stroke) % 2 == 0 else -1.0
    share = float(np.clip(min(phase - 0.06, 0.79 - phase) / 0.12, 0.0, 1.0))
    blend = 0.5 - 0.5 * math.cos(math.pi * min(phase / 0.7, 1.0))
    before, after = (0.0 if n < 3 else (0.33 if n % 2 == 0 else -0.33) for n in (int(stroke) - 1, int(stroke)))
    return 0.03 * sign * share * share * (3.0 - 2.0 * share), before + blend * (after - before)


def _pressed(probe, normal):
    c, s = math.cos(probe.data.qpos[2]), math.sin(probe.data.qpos[2])
    fx, fy, _ = probe.wrench
    return normal[0] * (c * fx - s * fy) + normal[1] * (s * fx + c * fy)


def write(folder: Path, fault: str, rng: np.random.Generator, seconds: float = SECONDS) -> Case:
    """See :class:`~benchmark.adversary.case.World`."""
    guess_tip = np.array([between(rng, -0.03, 0.03), between(rng, -0.22, -0.14)])
    guess_phi = between(rng, -0.6, 0.6)
    pose = np.array([between(rng, -0.5, 0.5), between(rng, 0.2, 0.8), guess_phi + between(rng, -0.1, 0.1)])
    error = np.clip(rng.standard_normal(3), -2.0, 2.0)
    tip, phi = guess_tip + 0.01 * error[:2], guess_phi + 0.1 * error[2]
    c, s = math.cos(pose[2]), math.sin(pose[2])
    normal = np.array([-math.sin(phi), math.cos(phi)])
    touch = pose[:2] + [c * tip[0] - s * tip[1], s * tip[0] + c * tip[1]] + between(rng, 0.0, 1e-3) * normal
    stiffness = between(rng, *{"soft": (500.0, 900.0), "hard": (10e3, 15e3)}.get(fault, (2000.0, 8000.0)))
    friction = between(rng, *{"slippery": (0.05, 0.1), "rough": (0.9, 1.2)}.get(fault, (0.2, 0.8)))
    surface = Surface(tip, phi, touch, stiffness, friction)
    rows = excite(Probe(_plant(surface, fault), pose), guess_tip, guess_phi, seconds)
    offset = _measure(rows, fault, rng)
    if fault == "wrong_tip":
        angle = between(rng, -math.pi, math.pi)
        guess_tip = guess_tip + between(rng, 0.05, 0.07) * np.array([math.cos(angle), math.sin(angle)])
    np.savez(folder / "probe.npz", tip=guess_tip, phi=guess_phi, **rows)
    final = surface.stiffness * (1.5 if fault in ("stiffness_jump", "slow_change") else 1.0)
    truth = {"tip_x": tip[0], "tip_y": tip[1], "phi": phi, "d": normal @ touch, "stiffness": final}
    truth |= {"friction": surface.friction} | dict(zip(OFFSET, offset))
    largest = np.abs(rows["wrench"][:, :2]).max()
    about = f"k {surface.stiffness:.0f} N/m, mu {surface.friction:.2f}, largest force {largest:.0f} N"
    command = ["identify", "probing", "--example", "planar", "--recording", str(folder / "probe.npz")]
    return Case(command, {name: float(value) for name, value in truth.items()}, about)


def _plant(surface: Surface, fault: str) -> Surface:
    """Return the surface with the faults of the world."""
    planted = {
        "curved": {"curvature": 1.0 / 0.3},
        "stiffness_jump": {"jump": 1.5},
        "hertz": {"power": 1.5},
        "friction_patch": {"patch": 2.0},
        "moving_surface": {"wave": 2e-3},
        "soft_presliding": {"presliding": 4e3},
        "second_contact": {"edge": 400.0},
        "edge": {"edge": 400.0, "edge_from": 0.0},
        "viscous": {"viscous": 30.0},
        "damped": {"damping": 150.0},
        "slow_change": {"growth": 0.5 / SECONDS},
    }
    return replace(surface, **planted.get(fault, {}))


def _measure(rows: dict[str, np.ndarray], fault: str, rng: np.random.Generator) -> list[float]:
    """Turn true samples into measured ones, in place; returns the offset of the wrench, if there is one."""
    wrench, t, offset = rows["wrench"], rows["t"], []
    scale = dict.fromkeys(NOISE, {"noisier": 3.0, "cautious": 1.0 / 3.0}.get(fault, 1.0))
    scale |= {"noisy": {"wrench": 5.0}, "noisy_pose": {"pose": 5.0}}.get(fault, {})
    if fault == "bias":
        angle = between(rng, -math.pi, math.pi)
        offset = [3.0 * math.cos(angle), 3.0 * math.sin(angle), between(rng, 0.2, 0.2, signed=True)]
        wrench += offset
    elif fault == "clock":
        wrench[:] = np.column_stack([np.interp(t - 0.04, t, column) for column in wrench.T])
    elif fault in ("late_wrench", "early_wrench", "late_pose"):
        late = between(rng, 0.01, 0.06) * (-1.0 if fault == "early_wrench" else 1.0)
        moved = rows["pose"] if fault == "late_pose" else wrench
        moved[:] = np.column_stack([np.interp(t - late, t, column) for column in moved.T])
    elif fault == "small_offset":
        angle = between(rng, -math.pi, math.pi)
        offset = [0.7 * math.cos(angle), 0.7 * math.sin(angle), between(rng, 0.03, 0.03, signed=True)]
        wrench += offset
    elif fault == "tangential_gain":
        wrench[:, int(rng.integers(2))] *= 1.1
    elif fault == "fast_twist":
        rows["twist"] *= 1.1
    elif fault == "turned_sensor":
        turn = math.radians(between(rng, 3.0, 5.0, signed=True))
        c, s = math.cos(turn), math.sin(turn)
        wrench[:, :2] = wrench[:, :2] @ np.array([[c, -s], [s, c]])
    elif fault == "moved_sensor":
        wrench[:, 2] += between(rng, 0.01, 0.02, signed=True) * wrench[:, int(rng.integers(2))]
    elif fault == "reversed":
        wrench *= -1.0
    elif fault == "gain":
        wrench[:, 2] *= 1.15
    elif fault == "saturated":
        wrench[:, :2] = np.clip(wrench[:, :2], *np.array([-0.7, 0.7])[:, None] * np.abs(wrench[:, :2]).max())
    elif fault == "tool_weight":  # 60 mm towards the tip from the end-effector
        alpha = rows["pose"][:, 2]
        weight = -0.4 * 9.81 * np.column_stack([np.sin(alpha), np.cos(alpha)])
        wrench += np.column_stack([weight, 0.06 * weight[:, 0]])
    elif fault == "drift":
        wrench[:, :2] += 0.6 * t[:, None] * np.array([math.cos(1.0), math.sin(1.0)])
    for name, std in NOISE.items():
        rows[name] += scale[name] * np.array(std) * rng.standard_normal(rows[name].shape)
    if fault == "outliers":
        hit = rng.random(len(t)) < 0.02
        hit[rng.integers(50, len(t))] = True
        wrench[hit, :2] += rng.choice([-1.0, 1.0], (hit.sum(), 2)) * rng.uniform(10.0, 30.0, (hit.sum(), 2))
    if fault.startswith("frozen"):
        part = _part(t, between(rng, 0.2, 1.0), rng)
        for name in ("wrench",) if fault == "frozen_wrench" else ("pose", "twist"):
            rows[name][part] = rows[name][part][0]
    keep = np.ones(len(t), bool)
    if fault == "gap":
        keep = ~((t > 3.0) & (t < 3.8))
    elif fault == "small_gap":
        keep = ~_part(t, between(rng, 0.2, 0.4), rng)
    elif fault == "slow_samples":
        keep = np.arange(len(t)) % 2 == 0
    for name in rows:
        rows[name] = rows[name][keep]
    return offset


def _part(t: np.ndarray, duration: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a part (T,) of the times after the first second, of a duration [s]."""
    begin = between(rng, 1.0, t[-1] - duration - 0.2)
    return (t >= begin) & (t < begin + duration)


def read(output: dict) -> dict[str, Interval]:
    """See :class:`~benchmark.adversary.case.World`."""
    ends = output.get("interval_total") or [
        [mean - 1.96 * std, mean + 1.96 * std] for mean, std in zip(output["mean"], output["std"])
    ]
    found = {name: Interval(mean, *end) for name, mean, end in zip(output["names"], output["mean"], ends)}
    if output.get("disturbance") != "offset":
        return found
    estimate = zip(OFFSET, output["disturbance_value"], output["disturbance_std"])
    return found | {name: Interval(mean, mean - 1.96 * std, mean + 1.96 * std) for name, mean, std in estimate}


def _errors(row: dict, names: Iterable[str]) -> list[float]:
    """Absolute errors of a row's parameters; infinite where they were not found."""
    found, truth = row["found"], row["truth"]
    return [abs(found[name][0] - truth[name]) if name in found else math.inf for name in names]


def _converged(row: dict) -> bool:
    """Whether a result is within the paper's accuracy."""
    limits = ACCURACY.values()
    return math.hypot(*_errors(row, OF_TIP)) < TIP and all(e < x for e, x in zip(_errors(row, ACCURACY), limits))


def _share_converged(rows: list[dict]) -> str:
    return share(sum(map(_converged, rows)), len(rows))


def _offset_error(rows: list[dict]) -> str:
    """Error of the force's offset: median and worst."""
    planted = [row for row in rows if OFFSET[0] in row["truth"]]
    errors = [math.hypot(*_errors(row, OFFSET[:2])) for row in planted]
    return f"{np.median(errors):.2f}, {max(errors):.2f}" if errors else "-"


COLUMNS = {"within the paper's accuracy": _share_converged, "error of the offset [N]: median, worst": _offset_error}
__all__ = ["CLEAN", "COLUMNS", "FAULTS", "MAIN", "read", "write"]
