"""Tosses of blunt cubes in a physics engine, recorded as a tracker records them: what the estimators must recover.

The engine (MuJoCo) knows nothing of the estimators' model: contacts are springs and dampers on a convex mesh, several
at a time, and an impact lasts. The recording has jittered sampling, noise, a running median of the attitudes
(three samples of the rotation vector), errors of attitude and height that stay for a toss, and body axes that are
named anew from time to time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product
from typing import NamedTuple

import mujoco
import numpy as np
from scipy.ndimage import median_filter
from scipy.spatial.transform import Rotation

from contact_estimation.identify.arrays import Array

_SCENE = """<mujoco><option timestep="{step}" cone="elliptic"/>
<asset><mesh name="cube" vertex="{vertices}"/></asset><worldbody>
<geom type="plane" size="9 9 .1" friction="{friction} 0 0" solref="{solref}" condim="3"/>
<body><freejoint/><inertial pos="{centre}" mass=".37" diaginertia="{inertia}"/>
<geom type="mesh" mesh="cube" friction="{friction} 0 0" condim="3" solref="{solref}"/></body></worldbody></mujoco>"""
_ARC = np.linspace(0.0, 0.5 * np.pi, 7)  # a rounding as a mesh
_NOISE_P, _NOISE_Q = 3e-5, 2e-4  # [m], and per component of a quaternion: white noise of a sample
_JITTER = 0.008  # of a sampling interval
_QUARTER_TURNS = [Rotation.from_rotvec([quarter * np.pi / 2, 0, 0]) for quarter in range(4)]  # about body x


class Cube(NamedTuple):
    """A cube to be tossed.

    Shapes are 'sharp', 'round' (edges and corners by ``size``), 'cut' (plates that end ``size`` before the edges),
    'chamfer' (corners only, ``size`` along each edge) or 'worn' (no two corners alike).
    """

    shape: str = "sharp"
    size: float = 0.0  # [m]
    m_over_i: float | tuple[float, float, float] = 456.8  # about the centre of mass [1/m^2]
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)  # centre of mass [m, body axes from the middle]
    contact: float = 0.006  # how long the undamped impact lasts [s]
    damping: float = 0.6  # damping ratio (0.2: restitution 0.6; 0.6: 0.3)
    friction: float = 0.18
    side: float = 0.1048  # [m]


def cube_vertices(cube: Cube) -> Array:
    """Vertices (n, 3) [m] whose convex hull the cube is."""
    half, size = 0.5 * cube.side, cube.size
    signs = np.array(list(product((1.0, -1.0), repeat=3)))
    if cube.shape == "worn":
        inward = size * np.random.default_rng(5).uniform(0.0, 1.6, (8, 6, 3))
        inward[:, np.arange(6), np.arange(6) % 3] = 0.0
        return np.asarray(((half - inward) * signs[:, None]).reshape(-1, 3))
    corner = np.full((1, 3), half)
    if cube.shape == "round":
        a, b = np.meshgrid(_ARC, _ARC)
        ball = np.stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)], axis=-1).reshape(-1, 3)
        corner = half - size + size * ball
    elif cube.shape == "cut":
        corner = half - size * (1.0 - np.eye(3))
    elif cube.shape == "chamfer":
        corner = half - size * np.eye(3)
    return np.asarray((corner * signs[:, None]).reshape(-1, 3))


class Tracker(NamedTuple):
    """How tosses are recorded."""

    rate: float = 148.0  # samples per second
    samples: int = 70  # per toss
    errors: float = 1.0  # size of the errors that stay for a toss (1: 0.4 degrees, 0.3 mm)
    session: int | None = None  # tosses after which body axes are named anew, by quarter turns about x; None: never


def toss_cube(cube: Cube, tosses: int = 100, seed: int = 0, tracker: Tracker | None = None) -> list[Array]:
    """Toss a cube and record it.

    Args:
        cube: what is tossed.
        tosses: how many.
        seed: of the tosses and the noise.
        tracker: how it is recorded.

    Returns:
        Poses (samples, 7) = position of the cube's middle [m], quaternion (w, x, y, z), of each toss.
    """
    tracker = tracker or Tracker()
    model = _model(cube)
    data, rng, recorded = mujoco.MjData(model), np.random.default_rng(seed), []
    name, samples = _QUARTER_TURNS[0], tracker.samples
    for index in range(tosses):
        if tracker.session and index % tracker.session == 0:
            name = _QUARTER_TURNS[rng.integers(4)]
        _throw(model, data, rng)
        times = (rng.uniform() + np.cumsum(1.0 + _JITTER * rng.standard_normal(samples))) / tracker.rate
        rows = np.array([_state_at(model, data, t) for t in times])
        attitude = Rotation.from_quat(rows[:, [4, 5, 6, 3]] + _NOISE_Q * rng.standard_normal((samples, 4)))
        attitude = attitude * Rotation.from_rotvec(np.radians(0.4) * tracker.errors * rng.standard_normal(3)) * name
        lifted = rows[:, :3] + np.array([0.0, 0.0, 3e-4 * tracker.errors * rng.standard_normal()])
        position = lifted + _NOISE_P * rng.standard_normal((samples, 3))
        recorded.append(np.hstack([position, _running_median(attitude)[:, [3, 0, 1, 2]]]))
    return recorded


def _model(cube: Cube) -> mujoco.MjModel:
    omega = np.pi / cube.contact
    fields = {
        "step": min(2e-4, cube.contact / 25.0),
        "vertices": _text(cube_vertices(cube).ravel()),
        "friction": cube.friction,
        "solref": f"{-(omega**2)} {-2.0 * cube.damping * omega}",
        "centre": _text(cube.centre),
        "inertia": _text(0.37 / np.broadcast_to(np.asarray(cube.m_over_i, float), (3,))),
    }
    return mujoco.MjModel.from_xml_string(_SCENE.format(**fields))


def _throw(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator) -> None:
    """Give the cube a random pose and velocity like those of a hand."""
    mujoco.mj_resetData(model, data)
    quaternion, heading = rng.standard_normal(4), rng.uniform(0.0, 2.0 * np.pi)
    data.qpos[:] = [0.0, 0.0, 0.145 + 0.015 * rng.standard_normal(), *quaternion / np.linalg.norm(quaternion)]
    spin = np.array([2.8, 2.8, 0.9]) * rng.standard_normal(3)
    speed = 1.15 + 0.1 * rng.standard_normal()
    data.qvel[:3] = speed * np.cos(heading), speed * np.sin(heading), -0.12 + 0.15 * rng.standard_normal()
    data.qvel[3:] = Rotation.from_quat(data.qpos[[4, 5, 6, 3]]).apply(spin, inverse=True)


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{value:.7g}" for value in values)


def _state_at(model: mujoco.MjModel, data: mujoco.MjData, t: float) -> Array:
    """Pose of the body's frame at time ``t`` [s]; the last step's motion is taken back to it."""
    mujoco.mj_step(model, data, nstep=max(int((t - data.time) / model.opt.timestep) - 1, 0))
    while data.time < t:  # the last steps, one by one: rounding decides which is the last
        mujoco.mj_step(model, data)
    pose: Array = data.qpos.copy()
    pose[:3] -= data.qvel[:3] * (data.time - t)
    return pose


def _running_median(attitude: Rotation) -> Array:
    """Quaternions (n, 4) after a median of 3 on the rotation vector, which is kept free of jumps by whole turns."""
    vectors = attitude.as_rotvec()
    for before, vector in pairwise(vectors):
        angle = np.linalg.norm(vector)
        turns = np.array([-2, -1, 0, 1, 2])[:, None] * 2.0 * np.pi * vector / max(float(angle), 1e-9)
        vector += turns[np.argmin(np.linalg.norm(vector + turns - before, axis=1))]
    smooth = Rotation.from_rotvec(median_filter(vectors, size=(3, 1), mode="nearest"))
    return np.asarray(smooth.as_quat())
