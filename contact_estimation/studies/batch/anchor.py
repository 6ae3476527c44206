"""The anchor problem of paper 3, section III-B: why trajectory and parameters are optimised together, not in turns.

An object swings on a string whose anchor is known to a centimetre. With a wrong anchor the best trajectory is shifted
by the same error. With the shifted trajectory the best anchor is the wrong one. Alternating (EM) therefore converges
slowly, and the joint step quickly.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from contact_estimation.identify.arrays import Array
from contact_estimation.identify.batch import rotations
from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.estimate import Estimate
from contact_estimation.identify.batch.grid import uniform
from contact_estimation.identify.batch.modifiers import modifier
from contact_estimation.identify.batch.parameters import PhysicalParameter
from contact_estimation.identify.batch.problem import Problem, Setup
from contact_estimation.identify.batch.result import Result, read_out
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.solver import Options, Solution, solve
from contact_estimation.identify.batch.start import initial_trajectory
from contact_estimation.settings import share_file

TRUTH = np.array([0.006, -0.004, -0.005])
SIMULATION_STEP = 0.0005

START = {"object": "mocap_position,mocap_orientation"}
CHANNELS = (
    Channel("mocap_position", "sensor", ("position",), 2e-4),
    Channel("gyro", "sensor", ("gyro",), 0.02),
    Channel("mocap_orientation", "orientation", ("orientation",), 2e-3),
)


def problem(seed: int = 0, duration: float = 2.0, threads: int | None = None) -> Problem:
    """Simulate a swing from a random push and pose the estimation at 200 Hz."""
    rng = np.random.default_rng(seed)
    scene = Scene(
        mujoco.MjSpec.from_file(str(share_file("config", "studies", "anchor.xml"))),
        [PhysicalParameter("anchor", np.zeros(3), -0.02, 0.02, modifier("anchor", ["anchor"]), unit="m")],
    )
    model = scene.build(scene.parameters.vector({"anchor": TRUTH}))
    data = mujoco.MjData(model)
    data.qpos[:3] = model.site("anchor").pos - [0.0, 0.0, 0.3 + 0.4 * 9.81 / 4000.0]
    data.qvel[:3] = 0.15 * rng.standard_normal(3) * [1.0, 1.0, 0.0]
    data.qvel[3:] = 0.5 * rng.standard_normal(3)
    ticks = int(duration / SIMULATION_STEP) + 1
    sensors = np.empty((ticks, model.nsensordata))
    for k in range(ticks):
        mujoco.mj_forward(model, data)
        sensors[k] = data.sensordata
        mujoco.mj_Euler(model, data)
    t = np.arange(ticks, dtype=float) * SIMULATION_STEP
    measured = {}
    for channel, part, stride in zip(CHANNELS, (slice(0, 3), slice(7, 10), slice(3, 7)), (8, 2, 8)):
        clean = sensors[::stride, part]
        noise = np.asarray(channel.std) * rng.standard_normal((len(clean), 3))
        noisy = rotations.multiply(clean, rotations.exp(noise)) if channel.model == "orientation" else clean + noise
        measured[channel.name] = Measurement(t[::stride], noisy)
    std = np.concatenate([np.full(3, 0.01), np.full(3, 4e-4)])
    return Problem(scene, uniform(0.0, duration - 0.005, 200.0), list(CHANNELS), measured, std, Setup(threads=threads))


class Comparison(NamedTuple):
    """Costs and anchor errors [m] after each round; index 0 is the start.

    A round of the joint method is one Newton iteration in both; a round of EM is one in the trajectory and one in the
    parameters, so it does at least the same work.
    """

    joint_cost: Array
    joint_error: Array
    em_cost: Array
    em_error: Array
    result: Result  # of the joint method at its last round

    def rounds_to(self, error: float) -> tuple[int | None, int | None]:
        """Count the rounds (joint, EM) until the anchor is within ``error`` [m] of the truth; None: never."""
        reached = [np.flatnonzero(e <= error) for e in (self.joint_error, self.em_error)]
        joint, em = (int(r[0]) if len(r) else None for r in reached)
        return joint, em


def compare(task: Problem, rounds: int = 30) -> Comparison:
    """Joint optimisation and EM from the same start; the string is held taut, which keeps its law smooth."""
    p = task.scene.parameters.nominal
    q = initial_trajectory(task, p, START)
    task.ease(remote_distance=1e-3)
    joint, last = _alternate(task, q, p, ("both",), rounds)
    em, _ = _alternate(task, q, p, ("trajectory", "parameters"), rounds)
    return Comparison(*joint, *em, read_out(task, Estimate(last, [])))


def _alternate(
    task: Problem, q: Array, p: Array, modes: tuple[str, ...], rounds: int
) -> tuple[tuple[Array, Array], Solution]:
    """Costs and errors after every round, and the last solution."""
    costs, errors = [task.cost(q, p)], [_error(task, p)]
    for _ in range(rounds):
        for mode in modes:
            found = solve(task, q, p, Options(mode=mode, max_iterations=1, tolerance=1e-12))
            q, p = found.q, found.p
        costs.append(found.cost)
        errors.append(_error(task, p))
    return (np.array(costs), np.array(errors)), found


def _error(task: Problem, p: Array) -> float:
    return float(np.linalg.norm(task.scene.parameters.values(p) - TRUTH))
