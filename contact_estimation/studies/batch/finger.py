"""The example of paper 3, section VI, simulated: a finger with a springy tip taps and slides on a hanging cylinder.

Sensors as in the paper: encoders of 5000 steps per radian, motor torque, a six-axis force sensor before the tip,
motion capture of the cylinder at 240 Hz, gyroscope and accelerometer on it; all noisy, at different rates. The
planted parameters are the truth that the batch estimator has to find again. The simulation runs at a quarter of a
millisecond; the estimator sees 1 ms at contact and 5 ms elsewhere, so that its differences are not those of the
simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import mujoco
import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import Channel, Measurement, columns
from contact_estimation.identify.batch.grid import around_events, contact_times
from contact_estimation.identify.batch.modifiers import modifier
from contact_estimation.identify.batch.parameters import PhysicalParameter
from contact_estimation.identify.batch.problem import Problem, Setup, acceleration_std
from contact_estimation.identify.batch.runner import Plan
from contact_estimation.identify.batch.scene import Scene, add_springy_tip
from contact_estimation.identify.batch.start import initial_trajectory
from contact_estimation.settings import share_file

#: Planted truth, SI units.
TRUTH: dict[str, Any] = {
    "friction": 0.28,
    "contact_stiffness": 600.0,
    "contact_damping": 3.0,
    "spring_stiffness": 300.0,
    "spring_damping": 1.5,
    "anchor": np.array([0.004, -0.003, 0.002]),
}
#: A hand-set model, as far from the truth as the paper's nominal column is from its results.
HAND_SET: dict[str, Any] = {
    "friction": 1.0,
    "contact_stiffness": 200.0,
    "contact_damping": 5.0,
    "spring_stiffness": 400.0,
    "spring_damping": 0.8,
    "anchor": np.zeros(3),
}
SIMULATION_STEP = 0.00025
PAIR, TIP, OBJECT, JOINTS = "tip_on_object", "tip", "object", ("yaw", "shoulder", "elbow")
START = {"yaw": "encoders", "shoulder": "encoders", "elbow": "encoders", "object": "mocap_position,mocap_orientation"}
PLAN = Plan(START, contact=(TIP, OBJECT))

#: Noise of the simulated sensors and the weights of the estimate: rad, Nm, N, Nm, m, rad, rad/s, m/s^2.
CHANNELS = (
    Channel("encoders", "sensor", JOINTS, 1e-4, barrier=0.02),
    Channel("torque", "torque", JOINTS, 0.002),
    Channel("force", "sensor", ("force",), 0.02),
    Channel("force_torque", "sensor", ("wrench_torque",), 5e-4),
    Channel("mocap_position", "sensor", ("object_position",), 2e-4, barrier=0.002),
    Channel("mocap_orientation", "orientation", ("object_orientation",), 2e-3, barrier=0.02),
    Channel("gyro", "sensor", ("gyro",), 0.02),
    Channel("accelerometer", "sensor", ("accelerometer",), 0.1),
)
_SLOW = {"mocap_position": 240.0, "mocap_orientation": 240.0, "gyro": 1800.0, "accelerometer": 1800.0}
RATES = {channel.name: _SLOW.get(channel.name, 1000.0) for channel in CHANNELS}  # [Hz]
ENCODER_STEP = 1.0 / 5000.0


def scene() -> Scene:
    """Build the finger with its parameters, bounds wide around what one would guess."""
    spec = mujoco.MjSpec.from_file(str(share_file("config", "studies", "finger.xml")))
    springs = add_springy_tip(spec, TIP, HAND_SET["spring_stiffness"], HAND_SET["spring_damping"])
    rows = (  # name, nominal, lower, upper, kind, targets, unit
        ("friction", 0.5, 0.1, 1.5, "contact_friction", [PAIR], ""),
        ("contact_stiffness", 400.0, 100.0, 3000.0, "contact_stiffness", [PAIR], "N/m"),
        ("contact_damping", 3.0, 0.3, 20.0, "contact_damping", [PAIR], "N s/m"),
        ("spring_stiffness", 300.0, 60.0, 1500.0, "spring_stiffness", springs, "N/m"),
        ("spring_damping", 1.0, 0.2, 8.0, "spring_damping", springs, "N s/m"),
    )
    scalars = [
        PhysicalParameter(name, nominal, lower, upper, modifier(kind, targets), log=True, unit=unit)
        for name, nominal, lower, upper, kind, targets, unit in rows
    ]
    anchor = PhysicalParameter("anchor", np.zeros(3), -0.01, 0.01, modifier("anchor", ["anchor"]), unit="m")
    return Scene(spec, [*scalars, anchor])


def dynamics_std(model: mujoco.MjModel) -> Array:
    """Unexplained force allowed per dof: the torque sensor's noise on the motors, little on tip springs and object."""
    std = np.full(model.nv, 0.005)
    for joint in JOINTS:
        std[model.joint(joint).dofadr[0]] = 0.002 / np.sqrt(5.0)  # five 1 kHz samples in a reference cell of 5 ms
    turning = model.joint("object").dofadr[0] + 3
    std[turning : turning + 3] = 2e-4
    return std


class Recording(NamedTuple):
    """What the sensors saw, and the truth behind it."""

    measurements: dict[str, Measurement]
    t: Array  # (n,) [s]
    q: Array  # (n, nq)
    contact_force: Array  # on the tip (n, 3) [N], world axes


def simulate(seed: int = 0, duration: float = 4.0) -> Recording:
    """Simulate one recording: taps, presses with circles and slides whose times and sizes the seed varies."""
    rng = np.random.default_rng(seed)
    made = scene()
    model = made.build(made.parameters.vector(TRUTH))
    data = mujoco.MjData(model)
    reference = _reference(rng, duration)
    ticks = round(duration / SIMULATION_STEP) + 1
    t = np.arange(ticks, dtype=float) * SIMULATION_STEP
    q, tau = np.empty((ticks, model.nq)), np.empty((ticks, 3))
    sensors, force = np.empty((ticks, model.nsensordata)), np.zeros((ticks, 3))
    _settle(model, data, reference(0.0))
    dofs = [model.joint(joint).dofadr[0] for joint in JOINTS]
    tip_id, local = model.body("tip").id, np.empty(6)
    jacobian, torque = np.zeros((3, model.nv)), np.zeros(3)
    for k in range(ticks):
        if k % 2 == 0:  # the controller runs at 2 kHz, like the paper's
            torque = _impedance(model, data, reference(t[k]), reference(t[k] + 1e-3), dofs, jacobian)
        data.qfrc_applied[dofs] = torque
        mujoco.mj_forward(model, data)
        q[k], tau[k], sensors[k] = data.qpos, torque, data.sensordata
        for c in range(data.ncon):
            mujoco.mj_contactForce(model, data, c, local)
            sign = 1.0 if model.geom_bodyid[data.contact[c].geom[1]] == tip_id else -1.0
            force[k] += sign * data.contact[c].frame.reshape(3, 3).T @ local[:3]
        mujoco.mj_Euler(model, data)
    return Recording(_measure(rng, model, t, tau, sensors), t, q, force)


def _settle(model: mujoco.MjModel, data: mujoco.MjData, target: Array) -> None:
    """Hang the object still on its string and put the tip at ``target``."""
    hook = model.site("hook").pos
    sag = model.body("object").mass[0] * 9.81 / 4000.0
    data.qpos[:] = model.qpos0
    start = model.joint("object").qposadr[0]
    data.qpos[start : start + 3] = model.site("anchor").pos - hook - [0.0, 0.0, 0.30 + sag]
    data.qpos[[model.joint(j).qposadr[0] for j in JOINTS]] = _inverse_kinematics(target)


def _inverse_kinematics(target: Array) -> Array:
    """Yaw, shoulder, elbow (elbow up) that put the tip at ``target`` (3,)."""
    x, y, z = target[0], target[1], target[2] - 0.1
    yaw, reach = np.arctan2(y, x), np.hypot(x, y)
    first, second = 0.14, 0.15
    cosine = np.clip((reach**2 + z**2 - first**2 - second**2) / (2 * first * second), -1, 1)
    elbow = -np.arccos(cosine)
    shoulder = np.arctan2(z, reach) - np.arctan2(second * np.sin(elbow), first + second * np.cos(elbow))
    return np.array([yaw, shoulder, elbow])


def _reference(rng: np.random.Generator, duration: float) -> Callable[[float], Array]:
    """Tip path: approach along x, tap twice, then press with circles in y-z; everything varied by the seed."""
    home = np.array([0.205, 0.0, 0.10])
    first = 0.35 + 0.1 * rng.random()
    tap_times = first + np.array([0.0, 0.55 + 0.1 * rng.random()])
    tap_depth = 0.026 + 0.008 * rng.random(2)
    press_start, press_end = 1.75 + 0.1 * rng.random(), duration - 0.35
    press_depth = 0.045 + 0.008 * rng.random()
    radius, turns, phase = 0.010 + 0.004 * rng.random(), 1.6 + 0.5 * rng.random(), 2 * np.pi * rng.random()
    wobble = 0.004 + 0.002 * rng.random()

    def reference(t: float) -> Array:
        depth = sum(d * np.exp(-0.5 * ((t - c) / 0.08) ** 2) for c, d in zip(tap_times, tap_depth))
        ramp = _smooth((t - press_start) / 0.3) * _smooth((press_end - t) / 0.25)
        depth += ramp * (press_depth + wobble * np.sin(2 * np.pi * 2.3 * (t - press_start)))
        angle = 2 * np.pi * turns * (t - press_start) + phase
        slide = radius * ramp * np.array([0.0, np.cos(angle), np.sin(angle)])
        return np.asarray(home + np.array([depth, 0.0, 0.0]) + slide)

    return reference


def _smooth(x: float) -> float:
    x = min(max(x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)


def _impedance(
    model: mujoco.MjModel, data: mujoco.MjData, target: Array, ahead: Array, dofs: list[int], jacobian: Array
) -> Array:
    """Motor torques (3,): Cartesian impedance on the tip with gravity compensation."""
    tip_id = model.body(TIP).id
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_jacBody(model, data, jacobian, None, tip_id)
    arm = jacobian[:, dofs]
    velocity = (ahead - target) / 1e-3
    force = 150.0 * (target - data.xpos[tip_id]) + 6.0 * (velocity - arm @ data.qvel[dofs])
    return np.asarray(arm.T @ force + data.qfrc_bias[dofs])


def _measure(
    rng: np.random.Generator, model: mujoco.MjModel, t: Array, tau: Array, sensors: Array
) -> dict[str, Measurement]:
    """Each channel at its own rate with its noise."""
    out = {}
    for channel in CHANNELS:
        times = np.arange(0.0, t[-1], 1.0 / RATES[channel.name])
        index = np.minimum(np.rint(times / SIMULATION_STEP).astype(int), len(t) - 1)
        times = t[index]
        torque = channel.model == "torque"
        clean = tau[index] if torque else sensors[np.ix_(index, columns(model, channel)[0])]
        if channel.name == "encoders":
            noisy = np.round(clean / ENCODER_STEP) * ENCODER_STEP
        elif channel.model == "orientation":
            noisy = rotations.multiply(
                clean, rotations.exp(np.asarray(channel.std) * rng.standard_normal((len(index), 3)))
            )
        else:
            noisy = clean + np.asarray(channel.std) * rng.standard_normal(clean.shape)
        keep = np.concatenate([[True], np.diff(times) > 0])
        out[channel.name] = Measurement(times[keep], noisy[keep])
    return out


def problem(
    recording: Recording,
    formulation: str = "inverse",
    threads: int | None = None,
    without: Sequence[str] = (),
    grid: Array | None = None,
) -> Problem:
    """Pose the estimation problem of a recording.

    Args:
        recording: what was measured.
        formulation: ``inverse`` or ``forward``.
        threads: of the derivative pass; None takes every core.
        without: names of channels that are predicted but not used (leave-one-sensor-out).
        grid: times [s]; None takes 1 ms around contact and 5 ms elsewhere, found in the force channel.
    """
    made = scene()
    if grid is None:
        events = contact_times(recording.measurements["force"])
        grid = around_events(0.0, recording.t[-1] - 0.005, events)
    channels = [replace(c, weight=0.0) if c.name in without else c for c in CHANNELS]
    std = dynamics_std(made.nominal)
    if formulation == "forward":
        std = acceleration_std(made.nominal, std)
    return Problem(made, grid, channels, recording.measurements, std, Setup(formulation, threads=threads))


def start(task: Problem, p: Array) -> Array:
    """Start trajectory (n, nq) from encoders and motion capture."""
    return initial_trajectory(task, p, START)
