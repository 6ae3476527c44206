"""Arms that press on a box, for ``identify batch --model``: three MJCF scenes of a user, contact forces of this file.

MuJoCo moves the bodies at 0.1 ms; contact, friction and the springy tip are computed here and applied as forces:
normal max(0, k d + b d') along the box's normal, friction min(mu N, c |v|) against the slip. The scene file that goes
with the recording has wrong start values for what is identified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np
import yaml

from benchmark.adversary.case import CLEAN, Case, Interval, between

FAULTS = {
    "clock": "motion capture and encoders 8 ms late",
    "force_clock": "force sensor 8 ms late",
    "offset": "force sensor reads 3 to 5 N at rest",
    "gain": "force sensor reads 15 % too much",
    "gap": "a third of the force samples missing, in bursts",
    "outliers": "1 % of the force samples are 20 to 60 N off",
    "wrong_geometry": "ball told is 20 % smaller; last link 3 % longer (slides: first rail 2 degrees askew)",
    "joint_friction": "first joint has dry friction that the scene has not",
    "second_contact": "a spring hooks onto the last link half-way",
    "moving_base": "box moves by 2 mm at 1.5 Hz",
    "saturated": "force sensor ends at 60 % of its maximum",
    "torque_gain": "motor torques told are 12 % too large",
    "payload": "0.3 kg on the last link that the scene has not",
    "encoder_offset": "encoders 10 mrad (slides: 5 mm) off zero",
    "stiffening": "force grows with depth to the power 1.5",
    "tilted_base": "arm stands 3 degrees askew, so that gravity told is wrong",
    "tool_mass": "0.1 kg behind the force sensor that the scene has not",
    "fixed_friction": "friction is no parameter, and told 30 % too large",
    "small_offset": "force sensor reads 0.5 N at rest",
    "small_gain": "force sensor reads 5 % too much",
    "late_force": "force sensor 10 to 60 ms late",
    "late_encoders": "encoders alone 10 to 60 ms late",
    "frozen_encoders": "encoders repeat their last sample for 0.2 to 1 s",
    "frozen_force": "force sensor repeats its last sample for 0.2 to 1 s",
    "frozen_torque": "motor torques repeat their last sample for 0.2 to 1 s",
    "torque_gap": "no motor torques for 0.3 to 1 s",
    "noisier": "noise of every sensor is 3 times the one told",
    "longer_link": "last link told is 5 to 10 mm longer (slides: first rail 1 degree askew)",
    "prior_off": "largest stiffness told is half the true one",
    "weak_hook": "a spring of 30 N/m hooks onto the last link half-way",
    "cautious": "noise of every sensor is a third of the one told",
    "soft": "stiffness 300 to 600 N/m, at most a fifth of the start value",
    "hard": "stiffness 15 to 25 kN/m, at least five times the start value",
}
CONDITIONS = ("cautious", "soft", "hard")
MAIN = "stiffness"
COLUMNS: dict = {}
STEP, RADIUS, SLIP_DAMPING = 1e-4, 0.02, 300.0  # [s], [m], [N s/m]
SWING, SWING_RATES = 0.12, (2.0, 3.0)  # amplitude [rad] (links go up) and rates [Hz] of the free motion
OPTION = '<option timestep="0.0001" integrator="Euler"/>'
BALL = f"""<body name="pad" pos="{{tip}}"><inertial mass="0.05" pos="0 0 0" diaginertia="1e-5 1e-5 1e-5"/>
  <geom name="ball" type="sphere" size="{RADIUS}"/><site name="sensor"/>{{inner}}</body>"""
#: Two links that turn in the vertical plane; the box is a geom of the world.
LINKAGE = """<mujoco>{option}<worldbody>
  <geom name="table" type="box" size="0.3 0.2 0.05" pos="0.45 0 0.05"/>
  <body name="upper" pos="0 0 0.5"><joint name="shoulder" axis="0 1 0" damping="0.1" armature="0.02"/>
    <inertial mass="1.2" pos="0.2 0 0" diaginertia="0.002 0.016 0.016"/>
    <body name="lower" pos="0.4 0 0"><joint name="elbow" axis="0 1 0" damping="0.1" armature="0.02"/>
      <inertial mass="0.7" pos="0.16 0 0" diaginertia="0.001 0.008 0.008"/>{ball}</body></body>
</worldbody></mujoco>"""
#: A carriage on two slides; the box lies at the origin of its own body.
SLIDE = """<mujoco>{option}<worldbody>
  <body name="bench" pos="0.45 0 0.05"><geom name="table" type="box" size="0.3 0.2 0.05"/></body>
  <body name="carriage" pos="0.45 0 0.2"><joint name="across" type="slide" axis="1 0 0" damping="2"/>
    <inertial mass="1.5" pos="0 0 0" diaginertia="0.01 0.01 0.01"/>
    <body name="ram" pos="0 0 0"><joint name="down" type="slide" axis="0 0 1" damping="2"/>
      <inertial mass="0.8" pos="0 0 0" diaginertia="0.005 0.005 0.005"/>{ball}</body></body>
</worldbody></mujoco>"""

#: What is right -> what the description tells instead. On slides a wrong ball alone is a wrong height of the box.
WRONG = {
    "wrong_geometry": {
        'size="0.02"': 'size="0.016"',
        'pos="0.35 0 0"': 'pos="0.36 0 0"',
        'type="slide" axis="1 0 0"': 'type="slide" axis="0.99939 0 0.03490"',
    },
    "longer_link": {
        'pos="0.35 0 0"': 'pos="0.357 0 0"',
        'type="slide" axis="1 0 0"': 'type="slide" axis="0.99985 0 0.01745"',
    },
}


@dataclass(frozen=True)
class Truth:
    """Planted parameters, SI.

    Attributes:
        scene: linkage, slide or finger (the linkage with its ball on a spring along z).
        lift: how much higher the box is than the scene file says [m].
        power: of the depth in the normal force; 1 is the spring.
        friction_joint: dry friction of the first joint [N m or N].
        payload: mass added to the last link [kg].
        hook: stiffness [N/m] of a spring from the middle of the last link to where that is at the start.
        wave: amplitude [m] of the box's motion at 1.5 Hz.
        tilt: of gravity about y [rad].
        tool: mass added to the ball [kg].
    """

    scene: str
    stiffness: float
    damping: float
    friction: float
    lift: float
    spring: float = 0.0
    spring_damping: float = 0.0
    power: float = 1.0
    friction_joint: float = 0.0
    payload: float = 0.0
    hook: float = 0.0
    wave: float = 0.0
    tilt: float = 0.0
    tool: float = 0.0

    @property
    def joints(self) -> tuple[str, str]:
        """Actuated joints."""
        return ("across", "down") if self.scene == "slide" else ("shoulder", "elbow")


def mjcf(scene: str, inner: str = "", option: str = OPTION) -> str:
    """Write the description of a scene; ``inner`` goes into the body of the ball."""
    text, tip = (SLIDE, "0 0 0") if scene == "slide" else (LINKAGE, "0.35 0 0")
    return text.format(option=option, ball=BALL.format(tip=tip, inner=inner))


@dataclass
class Bench:
    """One simulated recording: ``step`` advances it by 0.1 ms."""

    truth: Truth
    rows: dict[str, list] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spring = '<joint name="tip_z" type="slide" axis="0 0 1"/>' if self.truth.scene == "finger" else ""
        spec = mujoco.MjSpec.from_string(mjcf(self.truth.scene, spring))
        for geom in spec.geoms:
            geom.contype = geom.conaffinity = 0
        for name, kind in (("force", mujoco.mjtSensor.mjSENS_FORCE), ("place", mujoco.mjtSensor.mjSENS_FRAMEPOS)):
            spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="sensor")
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        last = "ram" if self.truth.scene == "slide" else "lower"
        self.pad, self.last = self.model.body("pad").id, self.model.body(last).id
        self.model.body_mass[self.last] += self.truth.payload
        self.model.body_mass[self.pad] += self.truth.tool
        mujoco.mj_setConst(self.model, self.data)
        self.model.opt.gravity[:] = -9.81 * np.sin(self.truth.tilt), 0.0, -9.81 * np.cos(self.truth.tilt)
        self.top = self.model.geom("table").pos[2] + self.model.body(self.model.geom("table").bodyid[0]).pos[2]
        self.top += float(self.model.geom("table").size[2]) + self.truth.lift
        self.force, self.depth, self.hooked = np.zeros(3), 0.0, None

    def contact(self) -> np.ndarray:
        """Force (3,) of the box on the ball [N]; updates ``depth`` [m] and ``force``."""
        omega, t = 3.0 * np.pi, self.data.time
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_BODY, self.pad, velocity, 0)
        top = self.top + self.truth.wave * np.sin(omega * t)
        rising = self.truth.wave * omega * np.cos(omega * t)
        self.depth = RADIUS + top - self.data.xpos[self.pad, 2]
        self.force = np.zeros(3)
        if self.depth > 0.0:
            spring = self.truth.stiffness * self.depth * (self.depth / 4e-3) ** (self.truth.power - 1.0)
            normal = max(spring + self.truth.damping * (rising - velocity[5]), 0.0)
            slip = velocity[3] + velocity[1] * -(
                RADIUS - self.depth
            )  # of the ball's lowest point: it turns with the arm
            grip = min(self.truth.friction * normal, SLIP_DAMPING * abs(slip))
            self.force[:] = -np.sign(slip) * grip, 0.0, normal
        return self.force

    def step(self, goal, rate, acceleration) -> np.ndarray:
        """Follow a joint trajectory by computed torque; returns the motors' torque (2,)."""
        model, data = self.model, self.data
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_step1(model, data)
        mujoco.mj_fullM(model, data, mass)
        wide = 2.0 * np.pi * 6.0
        wish = acceleration + wide**2 * (goal - data.qpos[:2]) + 1.4 * wide * (rate - data.qvel[:2])
        torque = mass[:2, :2] @ wish + data.qfrc_bias[:2]
        data.qfrc_applied[:] = 0.0
        data.qfrc_applied[:2] = torque
        data.qfrc_applied[0] -= self.truth.friction_joint * np.tanh(data.qvel[0] / 2e-3)
        if model.nv > 2:
            data.qfrc_applied[2] = -self.truth.spring * data.qpos[2] - self.truth.spring_damping * data.qvel[2]
        force = self.contact()
        lever = -(RADIUS - max(self.depth, 0.0))  # along z, to the lowest point
        data.xfrc_applied[self.pad] = *force, -lever * force[1], lever * force[0], 0.0
        if self.truth.hook:
            middle = data.xipos[self.last]
            self.hooked = middle.copy() if self.hooked is None else self.hooked
            data.xfrc_applied[self.last, :3] = self.truth.hook * (self.hooked - middle)
        mujoco.mj_step2(model, data)
        return torque

    def joints_at(self, x: np.ndarray | float, z: np.ndarray | float) -> np.ndarray:
        """Joint positions (..., 2) that put the ball's middle at each (x, z) (...), the elbow up."""
        if self.truth.scene == "slide":
            return np.stack([x - 0.45, z - 0.2], axis=-1)
        dx, dz = x, 0.5 - z
        cosine = np.clip((dx * dx + dz * dz - 0.4**2 - 0.35**2) / (2.0 * 0.4 * 0.35), -1.0, 1.0)
        elbow = np.arccos(cosine)
        shoulder = np.arctan2(dz, dx) - np.arctan2(0.35 * np.sin(elbow), 0.4 + 0.35 * np.cos(elbow))
        return np.stack([shoulder, elbow], axis=-1)


def path(bench: Bench, t: np.ndarray, press: float) -> np.ndarray:
    """Wanted joint positions (n, 2): swing before time 0, then hover, tap, ``press`` [m] deep and slide, lift."""
    height = bench.top - bench.truth.lift + RADIUS
    keys = [(0.0, 0.45, 0.03), (0.3, 0.45, 0.02), (0.5, 0.46, -press), (0.7, 0.46, 0.01), (0.95, 0.46, -press)]
    keys += [
        (1.35, 0.53, -1.3 * press),
        (1.75, 0.44, -press),
        (2.0, 0.46, -1.5 * press),
        (2.3, 0.46, 0.03),
        (2.5, 0.46, 0.03),
    ]
    at, x, z = np.array(keys).T
    i = np.clip(np.searchsorted(at, t, side="right") - 1, 0, len(at) - 2)
    s = np.clip((t - at[i]) / (at[i + 1] - at[i]), 0.0, 1.0)
    s = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
    joints = bench.joints_at(x[i] + s * (x[i + 1] - x[i]), height + z[i] + s * (z[i + 1] - z[i]))
    return joints - SWING * (1.0 - np.cos(2.0 * np.pi * np.outer(np.minimum(t, 0.0), SWING_RATES)))


def simulate(truth: Truth, rng: np.random.Generator, swing: float = 0.0) -> dict[str, np.ndarray]:
    """Make true samples at 1 kHz (motion capture: every fourth): t, q, dq, tau, force, place, contact force, depth.

    The arm swings freely for ``swing`` whole seconds before it presses. The arrays are read-only.
    """
    return dict(_samples(truth, between(rng, 0.006, 0.01), swing))


@lru_cache(maxsize=8)  # faults of sensors and of what is told leave the world as it is
def _samples(truth: Truth, press: float, swing: float) -> dict[str, np.ndarray]:
    bench = Bench(truth)
    t = np.arange(-swing, 2.4, STEP)
    goal = path(bench, t, press)
    rate = np.gradient(goal, STEP, axis=0)
    acceleration = np.gradient(rate, STEP, axis=0)
    bench.data.qpos[:2] = goal[0]
    rows: dict[str, list] = {name: [] for name in ("t", "q", "dq", "tau", "force", "place", "contact", "depth")}
    for k in range(len(t)):
        if k % 10 == 0:  # state before the step, forces that act on it
            kept = t[k], bench.data.qpos.copy(), bench.data.qvel.copy()
        torque = bench.step(goal[k], rate[k], acceleration[k])
        if k % 10 == 0:
            sensed = bench.data.sensordata.copy()
            sample = (*kept, torque, sensed[:3], sensed[3:], bench.force.copy(), bench.depth)
            for name, value in zip(rows, sample):
                rows[name].append(value)
    samples = {name: np.array(values) for name, values in rows.items()}
    for values in samples.values():
        values.setflags(write=False)
    return samples


def write(folder: Path, fault: str, rng: np.random.Generator, scene: str | None = None, swing: float = 0.0) -> Case:
    """See :class:`~benchmark.adversary.case.World`; ``scene`` fixes which of the three is drawn.

    The arm swings freely for ``swing`` whole seconds first.
    """
    scene = scene or str(rng.choice(["linkage", "slide", "finger"]))
    truth = Truth(
        scene,
        _stiffness(rng, fault),
        between(rng, 5.0, 25.0),
        between(rng, 0.2, 0.6),
        between(rng, 1e-3, 3e-3, signed=True),
        between(rng, 1500.0, 4000.0),
        between(rng, 2.0, 5.0),
    )
    rows = simulate(_plant(truth, fault), rng, swing)
    arrays = _measure(rows, truth, fault, rng)
    np.savez(folder / "press.npz", **arrays)
    text = mjcf(scene)
    for right, told in WRONG.get(fault, {}).items():
        text = text.replace(right, told)
    (folder / "scene.xml").write_text(text)
    (folder / "scene.yaml").write_text(yaml.safe_dump(_told(truth, fault), sort_keys=False))
    command = ["identify", "batch", str(folder / "press.npz"), "--model", str(folder / "scene.yaml")]
    planted = {
        "stiffness": truth.stiffness,
        "damping": truth.damping,
        "friction": truth.friction,
        "lift[2]": truth.lift,
    }
    if fault == "fixed_friction":
        del planted["friction"]
    if scene == "finger":
        planted |= {"spring": truth.spring, "spring_damping": truth.spring_damping}
    return Case(command, planted, f"{scene}, k {truth.stiffness:.0f} N/m, largest force {rows['contact'].max():.0f} N")


def _stiffness(rng: np.random.Generator, fault: str) -> float:
    """Draw the box's stiffness [N/m]; every fault draws one number."""
    low, high = {"soft": (300.0, 600.0), "hard": (15e3, 25e3)}.get(fault, (1500.0, 6000.0))
    return between(rng, low, high)


def _told(truth: Truth, fault: str) -> dict:
    """Make the scene file with the faults of what it tells."""
    scene = scene_settings(truth)
    by_name = {parameter["name"]: parameter for parameter in scene["parameters"]}
    if fault == "fixed_friction":
        scene["contacts"][0]["friction"] = 1.3 * truth.friction
        scene["parameters"].remove(by_name["friction"])
    elif fault == "prior_off":
        by_name["stiffness"] |= {"nominal": [0.4 * truth.stiffness], "upper": 0.5 * truth.stiffness}
    scale = {"noisier": 1.0 / 3.0, "cautious": 3.0}.get(fault, 1.0)
    for channel in scene["channels"]:
        channel["std"] = [scale * std for std in channel["std"]]
    return scene


def _plant(truth: Truth, fault: str) -> Truth:
    """Return the truth with the faults of the world."""
    planted = {
        "joint_friction": {"friction_joint": 3.0 if truth.scene == "slide" else 0.8},
        "second_contact": {"hook": 150.0},
        "moving_base": {"wave": 2e-3},
        "payload": {"payload": 0.3},
        "stiffening": {"power": 1.5},
        "tilted_base": {"tilt": np.deg2rad(3.0)},
        "tool_mass": {"tool": 0.1},
        "weak_hook": {"hook": 30.0},
    }
    return Truth(**{**vars(truth), **planted.get(fault, {})})


def _measure(rows, truth: Truth, fault: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Make the archive's arrays: noise, rates and the faults of sensors."""
    t, unit = rows["t"], 0.5 if truth.scene == "slide" else 1.0
    late = 8e-3 if fault == "clock" else 0.0
    q, dq, tau, force, place = (rows[name].copy() for name in ("q", "dq", "tau", "force", "place"))
    q, dq = q[:, :2], dq[:, :2]
    if fault == "force_clock":
        force = _delayed(t, force, 8e-3)
    elif fault == "late_force":
        force = _delayed(t, force, between(rng, 0.01, 0.06))
    elif fault == "late_encoders":
        q = _delayed(t, q, between(rng, 0.01, 0.06))
    elif fault == "small_gain":
        force *= 1.05
    elif fault == "small_offset":
        force += rng.choice([-0.5, 0.5], 3) * [1.0, 0.0, 1.0]
    elif fault == "offset":
        force += rng.choice([-1.0, 1.0], 3) * rng.uniform(3.0, 5.0, 3) * [1.0, 0.0, 1.0]
    elif fault == "gain":
        force *= 1.15
    elif fault == "saturated":
        force = np.clip(force, -0.6 * np.abs(force).max(), 0.6 * np.abs(force).max())
    elif fault == "torque_gain":
        tau = 1.12 * tau
    elif fault == "encoder_offset":
        q = q + 0.01 * unit * np.array([1.0, -1.0])
    force += 0.1 * rng.standard_normal(force.shape)
    if fault == "outliers":
        hit = rng.random(len(t)) < 0.01
        force[hit] += rng.choice([-1.0, 1.0], (hit.sum(), 3)) * rng.uniform(20.0, 60.0, (hit.sum(), 3))
    elif fault == "gap":
        force[np.repeat(rng.random(len(t) // 40 + 1) < 1.0 / 3.0, 40)[: len(t)]] = np.nan
    tau = tau + 0.02 / unit * rng.standard_normal(tau.shape)
    encoders = _delayed(t, q, late) + 1e-4 * unit * rng.standard_normal(q.shape)
    every = slice(None, None, 4)
    capture = (_delayed(t, place, late) + 2e-4 * rng.standard_normal(place.shape))[every]
    if fault.startswith("frozen"):
        held = {"frozen_encoders": encoders, "frozen_force": force, "frozen_torque": tau}[fault]
        part = _part(t, between(rng, 0.2, 1.0), rng)
        held[part] = held[part][0]
    elif fault == "torque_gap":
        tau[_part(t, between(rng, 0.3, 1.0), rng)] = np.nan
    names = np.array(truth.joints)
    return {
        "t": t,
        "joint_names": names,
        "q": encoders,
        "dq": dq,
        "tau": tau,
        "tip_force": force,
        "t_tip_force": t,
        "tip_place": capture,
        "t_tip_place": t[every],
    }


def _part(t, duration: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a part (n,) of the times, of a duration [s]."""
    begin = between(rng, 0.1, t[-1] - duration - 0.1)
    return (t >= begin) & (t < begin + duration)


def _delayed(t, values, late: float) -> np.ndarray:
    return np.column_stack([np.interp(t - late, t, column) for column in values.T])


def scene_settings(truth: Truth) -> dict:
    """Make the scene file: start values that a user would guess, noise as it is."""
    unit = 0.5 if truth.scene == "slide" else 1.0
    scene = {
        "model": "scene.xml",
        "contacts": [
            {
                "name": "press",
                "geoms": ["ball", "table"],
                "stiffness": 3000.0,
                "damping": 12.0,
                "friction": 0.4,
                "slip_damping": SLIP_DAMPING,
            }
        ],
        "sensors": [{"name": f"{joint}_angle", "type": "jointpos", "object": joint} for joint in truth.joints]
        + [
            {"name": "force", "type": "force", "object": "sensor"},
            {"name": "place", "type": "framepos", "object": "sensor"},
        ],
        "channels": [
            {"name": "encoders", "source": "q", "targets": [f"{j}_angle" for j in truth.joints], "std": [1e-4 * unit]},
            {"name": "torque", "source": "tau", "model": "torque", "targets": list(truth.joints), "std": [0.02 / unit]},
            {"name": "force", "source": "tip_force", "targets": ["force"], "std": [0.1]},
            {"name": "place", "source": "tip_place", "targets": ["place"], "std": [2e-4]},
        ],
        "parameters": [
            _log("stiffness", 3000.0, 200.0, 30000.0, "N/m"),
            _log("damping", 12.0, 0.5, 300.0, "N s/m"),
            _log("friction", 0.4, 0.05, 1.5, ""),
            {
                "name": "lift",
                "kind": "geom_offset",
                "targets": ["table"],
                "nominal": [0.0, 0.0, 0.0],
                "lower": -0.01,
                "upper": 0.01,
                "prior_std": 0.003,
                "unit": "m",
            },
        ],
        "start": dict.fromkeys(truth.joints, "encoders"),
        "dynamics_std": {"default": 0.05 / unit},
        "grid": {"coarse": 0.005, "fine": 0.002, "events": "force"},
        "contact": ["pad", "bench" if truth.scene == "slide" else "world"],
    }
    if truth.scene == "finger":
        scene["springy"] = {"body": "pad", "axes": "z", "stiffness": 2500.0, "damping": 3.0}
        for name, kind, start in (("spring", "spring_stiffness", 2500.0), ("spring_damping", "spring_damping", 3.0)):
            scene["parameters"].append(
                {
                    "name": name,
                    "kind": kind,
                    "targets": ["pad_spring_z"],
                    "nominal": [start],
                    "lower": 0.1 * start,
                    "upper": 10.0 * start,
                    "log": True,
                    "prior_std": 1.0,
                    "unit": "N/m" if name == "spring" else "N s/m",
                }
            )
    return scene


def _log(name, start, lower, upper, unit) -> dict:
    return {
        "name": name,
        "kind": f"contact_{name}",
        "targets": ["press"],
        "nominal": [start],
        "lower": lower,
        "upper": upper,
        "log": True,
        "unit": unit,
    }


def read(output: dict) -> dict[str, Interval]:
    """See :class:`~benchmark.adversary.case.World`."""
    return {
        name: Interval(found["value"], *(found.get("interval_total") or found["interval"]))
        for name, found in output["parameters"].items()
        if found["interval"][0] is not None
    }


__all__ = ["CLEAN", "FAULTS", "MAIN", "read", "write"]
