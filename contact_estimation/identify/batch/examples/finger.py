"""The example of paper 3, section VI, simulated: a three-joint finger with a springy tip taps and slides on a hanging
cylinder.

Sensors as in the paper: encoders of 5000 steps per radian, motor torque, a six-axis force sensor before the tip,
motion capture of the cylinder at 240 Hz, gyroscope and accelerometer on it; all noisy, at different rates. The
planted parameters are the truth that the batch estimator has to find again. The simulation runs at a quarter of a
millisecond; the estimator sees 1 ms at contact and 5 ms elsewhere, so that its differences are not those of the
simulator.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.grid import around_events, contact_times
from contact_estimation.identify.batch.parameters import PhysicalParameter, modifier
from contact_estimation.identify.batch.problem import Problem, acceleration_std
from contact_estimation.identify.batch.scene import Scene, add_springy_tip
from contact_estimation.identify.batch.start import initial_trajectory

#: Planted truth, SI units.
TRUTH = {
    "friction": 0.28,
    "contact_stiffness": 600.0,
    "contact_damping": 3.0,
    "spring_stiffness": 300.0,
    "spring_damping": 1.5,
    "anchor": np.array([0.004, -0.003, 0.002]),
}
#: A hand-set model, as far from the truth as the paper's nominal column is from its results.
HAND_SET = {"friction": 1.0, "contact_stiffness": 200.0, "contact_damping": 5.0, "spring_stiffness": 400.0,
            "spring_damping": 0.8, "anchor": np.zeros(3)}
SIMULATION_STEP = 0.00025
PAIR, TIP, OBJECT, JOINTS = "tip_on_object", "tip", "object", ("yaw", "shoulder", "elbow")
START = {"yaw": "encoders", "shoulder": "encoders", "elbow": "encoders", "object": "mocap_position,mocap_orientation"}

_XML = """
<mujoco model="finger">
  <option timestep="0.00025" integrator="Euler" cone="elliptic" impratio="100" tolerance="1e-12"/>
  <worldbody>
    <site name="anchor" pos="0.26 0 0.45" size="0.004"/>
    <body name="turret" pos="0 0 0.1">
      <inertial mass="0.2" pos="0 0 0" diaginertia="2e-4 2e-4 2e-4"/>
      <joint name="yaw" axis="0 0 1" armature="3e-4" damping="0.004"/>
      <geom type="capsule" fromto="0 0 -0.06 0 0 0" size="0.015" contype="0" conaffinity="0"/>
      <body name="upper">
        <inertial mass="0.08" pos="0.07 0 0" diaginertia="1e-5 1.4e-4 1.4e-4"/>
        <joint name="shoulder" axis="0 -1 0" armature="3e-4" damping="0.004"/>
        <geom type="capsule" fromto="0 0 0 0.14 0 0" size="0.008" contype="0" conaffinity="0"/>
        <body name="lower" pos="0.14 0 0">
          <inertial mass="0.06" pos="0.07 0 0" diaginertia="1e-5 1e-4 1e-4"/>
          <joint name="elbow" axis="0 -1 0" armature="3e-4" damping="0.004"/>
          <geom type="capsule" fromto="0 0 0 0.13 0 0" size="0.006" contype="0" conaffinity="0"/>
          <site name="wrist" pos="0.14 0 0" size="0.004"/>
          <body name="tip" pos="0.15 0 0">
            <inertial mass="0.03" pos="0 0 0" diaginertia="2e-6 2e-6 2e-6"/>
            <geom name="pad" type="sphere" size="0.01" contype="0" conaffinity="0" rgba="0.84 0.37 0 1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="object" pos="0.26 0 0.10">
      <freejoint name="object"/>
      <inertial mass="0.4" pos="0 0 0" diaginertia="3.6e-4 3.6e-4 1.8e-4"/>
      <geom name="shell" type="cylinder" size="0.03 0.045" contype="0" conaffinity="0" rgba="0.34 0.71 0.91 1"/>
      <site name="hook" pos="0 0 0.05" size="0.003"/>
      <site name="imu" pos="0 0 -0.03" size="0.003"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="string" range="0 0.30" limited="true" width="0.001" solreflimit="-4000 -8">
      <site site="anchor"/><site site="hook"/>
    </spatial>
  </tendon>
  <contact>
    <pair name="tip_on_object" geom1="pad" geom2="shell" condim="3" friction="0.28 0.28 0 0 0" solref="-600 -3"
          solreffriction="-1 -0.15"/>
  </contact>
  <sensor>
    <jointpos name="yaw" joint="yaw"/><jointpos name="shoulder" joint="shoulder"/><jointpos name="elbow" joint="elbow"/>
    <force name="force" site="wrist"/><torque name="wrench_torque" site="wrist"/>
    <framepos name="object_position" objtype="xbody" objname="object"/>
    <framequat name="object_orientation" objtype="xbody" objname="object"/>
    <gyro name="gyro" site="imu"/><accelerometer name="accelerometer" site="imu"/>
  </sensor>
</mujoco>
"""

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
RATES = {"encoders": 1000.0, "torque": 1000.0, "force": 1000.0, "force_torque": 1000.0, "mocap_position": 240.0,
         "mocap_orientation": 240.0, "gyro": 1800.0, "accelerometer": 1800.0}
ENCODER_STEP = 1.0 / 5000.0


def scene() -> Scene:
    """The finger with its parameters, bounds wide around what one would guess."""
    spec = mujoco.MjSpec.from_string(_XML)
    springs = add_springy_tip(spec, TIP, HAND_SET["spring_stiffness"], HAND_SET["spring_damping"])
    return Scene(
        spec,
        [
            PhysicalParameter("friction", 0.5, 0.1, 1.5, modifier("contact_friction", [PAIR]), log=True),
            PhysicalParameter(
                "contact_stiffness", 400.0, 100.0, 3000.0, modifier("contact_stiffness", [PAIR]), log=True, unit="N/m"
            ),
            PhysicalParameter(
                "contact_damping", 3.0, 0.3, 20.0, modifier("contact_damping", [PAIR]), log=True, unit="N s/m"
            ),
            PhysicalParameter(
                "spring_stiffness", 300.0, 60.0, 1500.0, modifier("spring_stiffness", springs), log=True, unit="N/m"
            ),
            PhysicalParameter(
                "spring_damping", 1.0, 0.2, 8.0, modifier("spring_damping", springs), log=True, unit="N s/m"
            ),
            PhysicalParameter("anchor", np.zeros(3), -0.01, 0.01, modifier("anchor", ["anchor"]), unit="m"),
        ],
    )


def dynamics_std(model: mujoco.MjModel) -> np.ndarray:
    """Unexplained force allowed per dof: the torque sensor's noise on the motors, little on tip springs and object."""
    std = np.full(model.nv, 0.005)
    for joint in JOINTS:
        std[model.joint(joint).dofadr[0]] = 0.002 / np.sqrt(5.0)  # five 1 kHz samples in a reference cell of 5 ms
    turning = model.joint("object").dofadr[0] + 3
    std[turning:turning + 3] = 2e-4
    return std


@dataclasses.dataclass
class Recording:
    """What the sensors saw, and the truth behind it (t, q, contact force on the tip in world axes)."""

    measurements: dict[str, Measurement]
    t: np.ndarray
    q: np.ndarray
    contact_force: np.ndarray


def simulate(seed: int = 0, duration: float = 4.0) -> Recording:
    """Simulate one recording: taps, presses with circles and slides whose times and sizes the seed varies."""
    rng = np.random.default_rng(seed)
    made = scene()
    model = made.build(made.parameters.vector(TRUTH))
    data = mujoco.MjData(model)
    reference = _reference(rng, duration)
    ticks = int(round(duration / SIMULATION_STEP)) + 1
    t = np.arange(ticks) * SIMULATION_STEP
    q, tau = np.empty((ticks, model.nq)), np.empty((ticks, 3))
    sensors, force = np.empty((ticks, model.nsensordata)), np.zeros((ticks, 3))
    _settle(model, data, reference(0.0))
    dofs = [model.joint(joint).dofadr[0] for joint in JOINTS]
    tip_id, local = model.body("tip").id, np.empty(6)
    jacobian, torque = np.zeros((3, model.nv)), np.zeros(3)
    for k in range(ticks):
        if k % 2 == 0:  # the controller runs at 2 kHz, like the paper's
            torque = _impedance(model, data, reference(t[k]), reference(t[k] + 1e-3), tip_id, dofs, jacobian)
        data.qfrc_applied[dofs] = torque
        mujoco.mj_forward(model, data)
        q[k], tau[k], sensors[k] = data.qpos, torque, data.sensordata
        for c in range(data.ncon):
            mujoco.mj_contactForce(model, data, c, local)
            sign = 1.0 if model.geom_bodyid[data.contact[c].geom[1]] == tip_id else -1.0
            force[k] += sign * data.contact[c].frame.reshape(3, 3).T @ local[:3]
        mujoco.mj_Euler(model, data)
    return Recording(_measure(rng, model, t, tau, sensors), t, q, force)


def _settle(model, data, target):
    """Hang the object still on its string and put the tip at ``target``."""
    hook = model.site("hook").pos
    sag = model.body("object").mass[0] * 9.81 / 4000.0
    data.qpos[:] = model.qpos0
    start = model.joint("object").qposadr[0]
    data.qpos[start:start + 3] = model.site("anchor").pos - hook - [0.0, 0.0, 0.30 + sag]
    data.qpos[[model.joint(j).qposadr[0] for j in JOINTS]] = _inverse_kinematics(target)


def _inverse_kinematics(target):
    """Yaw, shoulder, elbow (elbow up) that put the tip at ``target`` (3,)."""
    x, y, z = target[0], target[1], target[2] - 0.1
    yaw, reach = np.arctan2(y, x), np.hypot(x, y)
    first, second = 0.14, 0.15
    cosine = np.clip((reach**2 + z**2 - first**2 - second**2) / (2 * first * second), -1, 1)
    elbow = -np.arccos(cosine)
    shoulder = np.arctan2(z, reach) - np.arctan2(second * np.sin(elbow), first + second * np.cos(elbow))
    return np.array([yaw, shoulder, elbow])


def _reference(rng, duration):
    """Tip path: approach along x, tap twice, then press with circles in y-z; everything varied by the seed."""
    home = np.array([0.205, 0.0, 0.10])
    first = 0.35 + 0.1 * rng.random()
    tap_times = first + np.array([0.0, 0.55 + 0.1 * rng.random()])
    tap_depth = 0.026 + 0.008 * rng.random(2)
    press_start, press_end = 1.75 + 0.1 * rng.random(), duration - 0.35
    press_depth = 0.045 + 0.008 * rng.random()
    radius, turns, phase = 0.010 + 0.004 * rng.random(), 1.6 + 0.5 * rng.random(), 2 * np.pi * rng.random()
    wobble = 0.004 + 0.002 * rng.random()

    def reference(t):
        depth = sum(d * np.exp(-0.5 * ((t - c) / 0.08)**2) for c, d in zip(tap_times, tap_depth))
        ramp = _smooth((t - press_start) / 0.3) * _smooth((press_end - t) / 0.25)
        depth += ramp * (press_depth + wobble * np.sin(2 * np.pi * 2.3 * (t - press_start)))
        angle = 2 * np.pi * turns * (t - press_start) + phase
        slide = radius * ramp * np.array([0.0, np.cos(angle), np.sin(angle)])
        return home + [depth, 0.0, 0.0] + slide

    return reference


def _smooth(x):
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def _impedance(model, data, target, ahead, tip_id, dofs, jacobian):
    """Motor torques (3,): Cartesian impedance on the tip with gravity compensation."""
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_jacBody(model, data, jacobian, None, tip_id)
    arm = jacobian[:, dofs]
    velocity = (ahead - target) / 1e-3
    force = 150.0 * (target - data.xpos[tip_id]) + 6.0 * (velocity - arm @ data.qvel[dofs])
    return arm.T @ force + data.qfrc_bias[dofs]


def _measure(rng, model, t, tau, sensors):
    """Each channel at its own rate with its noise."""
    out = {}
    for channel in CHANNELS:
        times = np.arange(0.0, t[-1], 1.0 / RATES[channel.name])
        index = np.minimum(np.rint(times / SIMULATION_STEP).astype(int), len(t) - 1)
        times = t[index]
        if channel.model == "torque":
            clean = tau[index]
        else:
            columns = np.concatenate([np.arange(a, a + d) for a, d in (
                (model.sensor(s).adr[0], model.sensor(s).dim[0]) for s in channel.targets)])
            clean = sensors[np.ix_(index, columns)]
        if channel.name == "encoders":
            noisy = np.round(clean / ENCODER_STEP) * ENCODER_STEP
        elif channel.model == "orientation":
            noisy = rotations.multiply(clean, rotations.exp(channel.std * rng.standard_normal((len(index), 3))))
        else:
            noisy = clean + np.asarray(channel.std) * rng.standard_normal(clean.shape)
        keep = np.concatenate([[True], np.diff(times) > 0])
        out[channel.name] = Measurement(times[keep], noisy[keep])
    return out


def problem(recording: Recording, formulation: str = "inverse", threads: int | None = None, without: str = "",
            grid: np.ndarray | None = None) -> Problem:
    """The estimation problem of a recording.

    Args:
        without: name of a channel that is predicted but not used (leave-one-sensor-out).
        grid: times [s]; None takes 1 ms around contact and 5 ms elsewhere, found in the force channel.
    """
    made = scene()
    if grid is None:
        events = contact_times(recording.measurements["force"])
        grid = around_events(0.0, recording.t[-1] - 0.005, events)
    channels = [dataclasses.replace(c, weight=0.0) if c.name == without else c for c in CHANNELS]
    std = dynamics_std(made.nominal)
    if formulation == "forward":
        std = acceleration_std(made.nominal, std)
    return Problem(made, grid, channels, recording.measurements, std, formulation=formulation, threads=threads)


def start(task: Problem, p: np.ndarray) -> np.ndarray:
    """Start trajectory (n, nq) from encoders and motion capture."""
    return initial_trajectory(task, p, START)
