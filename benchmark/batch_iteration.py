"""Time and memory of one batch iteration over the recording's length: 14 degrees of freedom at 200 Hz, contact on.

    python benchmark/batch_iteration.py            # prints the table and writes benchmark/batch_iteration.md

An iteration is what the solver does each time: derivatives of dynamics and sensors, assembly of the bordered
Hessian, its factorisation and a line search. CPU time is of all threads together: on an idle machine with two cores the
wall time lies between half of it and all of it. Every length runs in a process of its own, for its own peak memory.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np

from contact_estimation.identify.batch.channels import Channel, Measurement
from contact_estimation.identify.batch.grid import uniform
from contact_estimation.identify.batch.modifiers import modifier
from contact_estimation.identify.batch.parameters import PhysicalParameter
from contact_estimation.identify.batch.problem import Problem
from contact_estimation.identify.batch.scene import Scene
from contact_estimation.identify.batch.solver import Options, solve

LENGTHS = (5.0, 10.0, 20.0, 40.0)
ITERATIONS = 5
JOINTS = 8


def scene() -> Scene:
    """Build an arm of eight hinges whose tip presses a free ball on a floor: 8 + 6 degrees of freedom, two contacts."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_BOX, size=[2, 2, 0.1], pos=[0, 0, -0.1], contype=0, conaffinity=0
    )
    for k in range(JOINTS):
        body = body.add_body(
            name=f"link{k}",
            pos=[0, 0, 0.5] if k == 0 else [0.1, 0, 0],
            mass=0.3,
            inertia=[1e-3, 1e-3, 1e-3],
            explicitinertial=True,
            ipos=[0.05, 0, 0],
        )
        body.add_joint(name=f"joint{k}", axis=[[0, 0, 1], [0, 1, 0], [1, 0, 0]][k % 3], armature=0.01)
        spec.add_sensor(
            name=f"joint{k}",
            type=mujoco.mjtSensor.mjSENS_JOINTPOS,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname=f"joint{k}",
        )
    body.add_geom(name="tip", size=[0.02, 0, 0], contype=0, conaffinity=0, pos=[0.1, 0, 0])
    body.add_site(name="wrist")
    ball = spec.worldbody.add_body(
        name="ball", pos=[0.8, 0, 0.499], mass=0.4, inertia=[1e-3, 1e-3, 1e-3], explicitinertial=True
    )
    ball.add_freejoint(name="ball")
    ball.add_geom(name="shell", size=[0.5, 0, 0], contype=0, conaffinity=0)
    for name, other in (("tip_on_ball", "tip"), ("ball_on_floor", "floor")):
        pair = spec.add_pair(name=name, geomname1=other, geomname2="shell", condim=3)
        pair.solref, pair.solreffriction = [-800.0, -5.0], [-1.0, -20.0]
    for name, kind, objtype, owner in (
        ("position", mujoco.mjtSensor.mjSENS_FRAMEPOS, mujoco.mjtObj.mjOBJ_XBODY, "ball"),
        ("orientation", mujoco.mjtSensor.mjSENS_FRAMEQUAT, mujoco.mjtObj.mjOBJ_XBODY, "ball"),
        ("force", mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtObj.mjOBJ_SITE, "wrist"),
    ):
        spec.add_sensor(name=name, type=kind, objtype=objtype, objname=owner)
    pairs = ("tip_on_ball", "ball_on_floor")
    kinds = (("contact_stiffness", 800.0), ("contact_damping", 5.0), ("contact_friction", 0.5))
    return Scene(
        spec,
        [
            PhysicalParameter(f"{kind}_{pair}", value, value / 10, value * 10, modifier(kind, [pair]), log=True)
            for pair in pairs
            for kind, value in kinds
        ]
        + [
            PhysicalParameter("mass", 0.4, 0.1, 2.0, modifier("mass", ["ball"]), log=True, prior_std=0.1),
            PhysicalParameter("friction", 0.1, 0.01, 1.0, modifier("joint_damping", ["joint0"]), log=True),
        ],
    )


def measure(duration: float) -> dict:
    """Median seconds of an iteration and peak memory [MB] for one length."""
    made, rng = scene(), np.random.default_rng(0)
    t = uniform(0.0, duration, 200.0)[: int(duration * 200)]
    model = made.nominal
    q = np.tile(model.qpos0, (len(t), 1))
    q[:, :JOINTS] = 0.1 * np.sin(np.outer(t, 1.0 + 0.3 * np.arange(JOINTS)))
    channels = [
        Channel("joints", "sensor", tuple(f"joint{k}" for k in range(JOINTS)), 1e-3),
        Channel("position", "sensor", ("position",), 1e-3),
        Channel("orientation", "orientation", ("orientation",), 1e-2),
        Channel("force", "sensor", ("force",), 0.1),
    ]
    truth = {
        "joints": q[:, :JOINTS],
        "position": q[:, JOINTS : JOINTS + 3],
        "orientation": q[:, JOINTS + 3 :],
        "force": np.zeros((len(t), 3)),
    }
    measurements = {
        name: Measurement(t, value + 1e-3 * rng.standard_normal(value.shape)) for name, value in truth.items()
    }
    measurements["orientation"] = Measurement(t, truth["orientation"])
    problem = Problem(made, t, channels, measurements, 0.1)
    clock = []
    found = solve(
        problem,
        q,
        made.parameters.nominal,
        Options(max_iterations=ITERATIONS, tolerance=1e-12),
        lambda iteration: clock.append(time.process_time()),
    )
    return {
        "duration": duration,
        "unknowns": sum(problem.size),
        "iterations": len(found.trace),
        "seconds": float(np.median([i.seconds for i in found.trace])),
        "cpu": float(np.median(np.diff(clock))),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }


def main() -> None:
    """Measure every length in its own process, print and save the table."""
    rows = [
        json.loads(
            subprocess.run([sys.executable, __file__, str(length)], check=True, capture_output=True, text=True).stdout
        )
        for length in LENGTHS
    ]
    lines = [
        "# One batch iteration over the recording's length",
        "",
        f"`python benchmark/batch_iteration.py` on {len(os.sched_getaffinity(0))} cores: 14 degrees of freedom at "
        f"200 Hz, 8 parameters, two contacts; median of {ITERATIONS} iterations.",
        "",
        "| length s | unknowns | wall s / iteration | CPU s / iteration | CPU ms / iteration and s of recording "
        "| peak memory MB |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['duration']:.0f} | {r['unknowns']} | {r['seconds']:.2f} | {r['cpu']:.2f} | "
        f"{1e3 * r['cpu'] / r['duration']:.0f} | {r['memory_mb']:.0f} |"
        for r in rows
    ]
    text = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(float(sys.argv[1]))))
    else:
        main()
