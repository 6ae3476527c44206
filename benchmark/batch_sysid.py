"""A stranger's MJCF, two links with a ball that presses on a box: `identify batch` beside `mujoco.sysid`.

    python benchmark/batch_sysid.py [--seeds 3] [--save benchmark/batch_sysid.md]

The recording is that of :mod:`benchmark.adversary.batch` (0.1 ms, contact forces of its own). The description both get
has wrong masses, inertia, rotor inertia and damping. `mujoco.sysid` gets its best formulation of those tried: rollouts
of ``--segment`` seconds from measured states, every sensor weighted with its noise, the contact law that we use, one
compiled model per parameter vector. Both run on one thread, in one process, from the same start. The ratio of CPU
times does not depend on the machine's load.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import scipy.ndimage
import yaml
from mujoco import sysid
from report import add_save_argument, heading, publish

from benchmark.adversary import batch as world
from contact_estimation.identify.batch import runner
from contact_estimation.identify.batch.inertia import identified_inertia
from contact_estimation.identify.batch.problem import Problem

#: What the description says wrongly: text of the true MJCF -> text of the user's.
GUESSES = {
    'mass="0.7" pos="0.16 0 0" diaginertia="0.001 0.008 0.008"': 'mass="0.55" pos="0.14 0 0" diaginertia="0.0012 '
    '0.006 0.006"',
    'name="shoulder" axis="0 1 0" damping="0.1" armature="0.02"': 'name="shoulder" axis="0 1 0" damping="0.05" '
    'armature="0.03"',
    'name="elbow" axis="0 1 0" damping="0.1" armature="0.02"': 'name="elbow" axis="0 1 0" damping="0.05" '
    'armature="0.03"',
}
PARAMETERS = (  # name, kind, target, nominal, lower, upper
    ("lower_mass", "mass", "lower", [0.55], 0.1, 3.0),
    ("lower_com", "com_offset", "lower", [0.0] * 3, -0.1, 0.1),
    ("lower_inertia", "inertia", "lower", [0.0] * 6, -1.5, 1.5),
    ("shoulder_armature", "armature", "shoulder", [0.03], 1e-3, 0.3),
    ("elbow_armature", "armature", "elbow", [0.03], 1e-3, 0.3),
    ("shoulder_damping", "joint_damping", "shoulder", [0.05], 1e-3, 2.0),
    ("elbow_damping", "joint_damping", "elbow", [0.05], 1e-3, 2.0),
)
_PRIOR = {"lower_com": 0.05, "lower_inertia": 0.5}  # directions that a plane motion does not show
#: Numbers compared: of parameters, and of the identified body.
TRUTH = {
    "lower_mass": 0.7,
    "lower_com": 0.16,
    "lower_inertia": 0.008,
    "shoulder_armature": 0.02,
    "elbow_armature": 0.02,
    "shoulder_damping": 0.1,
    "elbow_damping": 0.1,
}
NAMES = ("stiffness", "damping", "friction", "lift", *TRUTH)
STEP = 5e-4  # of the rollouts [s]
SWING = 2.0  # free motion before the press [s]


class Outcome(NamedTuple):
    """What one method found."""

    values: dict[str, float]
    cpu: float  # [s]
    iterations: int


def write(folder: Path, seed: int) -> dict[str, float]:
    """Write recording, description and scene file as a user has them; return the truth."""
    truth = world.write(folder, "clean", np.random.default_rng([5, seed]), "linkage", SWING).truth
    with np.load(folder / "press.npz") as archive:  # no velocities: the recording is no arm's
        np.savez(folder / "own.npz", **{name: archive[name] for name in archive.files if name != "dq"})
    text = (folder / "scene.xml").read_text()
    for right, wrong in GUESSES.items():
        assert right in text
        text = text.replace(right, wrong)
    text = text.replace(
        "</worldbody>",
        '</worldbody><actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator>',
    )
    (folder / "scene.xml").write_text(text)
    scene = yaml.safe_load((folder / "scene.yaml").read_text())
    for name, kind, target, nominal, lower, upper in PARAMETERS:
        row = {"name": name, "kind": kind, "targets": [target], "nominal": nominal, "lower": lower, "upper": upper}
        row |= {"prior_std": _PRIOR[name]} if name in _PRIOR else {"log": True}
        scene["parameters"].append(row)
    (folder / "scene.yaml").write_text(yaml.safe_dump(scene, sort_keys=False))
    return {name: truth[name] for name in ("stiffness", "damping", "friction")} | {"lift": truth["lift[2]"]} | TRUTH


def read_out(problem: Problem, p: np.ndarray) -> dict[str, float]:
    """Find the compared numbers of an optimiser's vector."""
    values = dict(zip(problem.scene.parameters.names, problem.scene.parameters.values(p)))
    lower = next(each for each in identified_inertia(problem.scene, p, np.eye(len(p))) if each.body == "lower")
    values |= {"lift": values["lift[2]"], "lower_com": lower.com[0], "lower_inertia": lower.inertia[1]}
    return {name: float(values[name]) for name in NAMES}


def batch(folder: Path) -> Outcome:
    """Run `identify batch` on the files."""
    began = time.process_time()
    problem, plan = runner.prepare(folder / "own.npz", folder / "scene.yaml")
    problem.engine.threads = 1
    found = runner.run(problem, plan).estimate
    return Outcome(read_out(problem, found.solution.p), time.process_time() - began, found.iterations)


def rollouts(folder: Path, segment: float) -> Outcome:
    """Run `mujoco.sysid` on segments from measured states."""
    began = time.process_time()
    problem, _ = runner.prepare(folder / "own.npz", folder / "scene.yaml")  # for its channels, scene and contact law
    archive = np.load(folder / "own.npz")
    t, parameters = archive["t"], problem.scene.parameters
    shift = {name: archive[name] for name in ("q", "tau", "tip_force")}
    place = np.column_stack([np.interp(t, archive["t_tip_place"], c) for c in archive["tip_place"].T])
    sensors = np.hstack([shift["q"], shift["tip_force"], place])
    weights = np.array([1e4] * 2 + [10.0] * 3 + [5e3] * 3) / np.sqrt([1, 1, 1, 1, 1, 4, 4, 4])
    rate = scipy.ndimage.gaussian_filter1d(shift["q"], 5.0, axis=0, order=1) / (t[1] - t[0])
    smooth = scipy.ndimage.gaussian_filter1d(shift["q"], 2.0, axis=0)
    models: dict[bytes, mujoco.MjModel] = {}

    def build(values: sysid.ParameterDict, _spec: mujoco.MjSpec) -> mujoco.MjModel:
        vector = {p.name: np.clip(p.value, p.min_value, p.max_value) for p in values.values()}
        key = values.as_vector().tobytes()
        if key not in models:
            if len(models) > 64:
                models.clear()
            model = problem.scene.build(parameters.vector(vector))
            model.opt.timestep = STEP
            models[key] = model
        return models[key]

    every = round(segment / (t[1] - t[0]))
    spans = [slice(k, k + every + 1) for k in range(0, len(t) - every, every)]
    spec = problem.scene._spec.copy()
    spec.option.timestep = STEP
    model = spec.compile()
    mapping = sysid.TimeSeries.compute_all_sensor_mapping(model)
    sequences = sysid.ModelSequences(
        "own",
        spec,
        [f"segment {k}" for k in range(len(spans))],
        [sysid.create_initial_state(model, smooth[s.start], rate[s.start]) for s in spans],
        [sysid.TimeSeries.from_control_names(t[s] - t[s.start], shift["tau"][s], model) for s in spans],
        [sysid.TimeSeries(t[s] - t[s.start], sensors[s], mapping) for s in spans],
    )

    def weighted(_params, predicted, measured, _model, _all, **_):
        predicted = predicted.resample(measured.times)
        return (predicted.data - measured.data)[1:] * weights, measured, measured

    values = sysid.ParameterDict({parameter.name: parameter for parameter in parameters.parameters})
    residual = sysid.build_residual_fn(
        models_sequences=[sequences], build_model=build, modify_residual=weighted, n_threads=1
    )
    found, log = sysid.optimize(values, residual, "mujoco", max_iters=60, x_scale="jac")
    p = parameters.vector({p.name: np.clip(p.value, p.min_value, p.max_value) for p in found.values()})
    return Outcome(read_out(problem, p), time.process_time() - began, len(log.extras.get("objective", [])))


def table(seeds: int, segments: list[float]) -> list[str]:
    """Run both on every seed; rows of Markdown."""
    lines = ["| seed | method | CPU s | of sysid's best | iterations | " + " | ".join(NAMES) + " |"]
    lines.append("|" + "---|" * (len(NAMES) + 5))
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            truth = write(folder, seed)
            found = {"identify batch": batch(folder)}
            found |= {f"mujoco.sysid, {segment} s": rollouts(folder, segment) for segment in segments}
        best = min(outcome.cpu for label, outcome in found.items() if label != "identify batch")
        for label, (values, cpu, iterations) in found.items():
            errors = (f"{100 * (values[name] / truth[name] - 1):.2f}" for name in NAMES)
            cells = seed, label, f"{cpu:.1f}", f"{cpu / best:.2f}", iterations, *errors
            lines.append(f"| {' | '.join(map(str, cells))} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--segment", type=float, action="append", default=[], help="[s], repeatable (default 0.2, 0.4)")
    add_save_argument(parser)
    args = parser.parse_args()
    segments = args.segment or [0.2, 0.4]
    note = "Errors [%] of every parameter; CPU on one thread, as a ratio to the faster of sysid's formulations."
    head = heading("A stranger's MJCF: identify batch beside mujoco.sysid", note)
    publish([*head, *table(args.seeds, segments)], args.save)


if __name__ == "__main__":
    main()
