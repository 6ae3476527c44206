"""Tosses of blunt cubes in a physics engine, recorded as a tracker records them: what the estimators must recover.

The engine (MuJoCo) knows nothing of the estimators' model: contacts are springs and dampers on a convex mesh, several
at a time, and an impact lasts. The recording has jittered sampling, noise, a running median of the attitudes
(three samples of the rotation vector), errors of attitude and height that stay for a toss, and body axes that are
named anew from time to time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import mujoco
import numpy as np
from scipy.ndimage import median_filter
from scipy.spatial.transform import Rotation

_SCENE = """<mujoco><option timestep="{step}" cone="elliptic"/>
<asset><mesh name="cube" vertex="{vertices}"/></asset><worldbody>
<geom type="plane" size="9 9 .1" friction="{friction} 0 0" solref="{solref}" condim="3"/>
<body><freejoint/><inertial pos="{centre}" mass=".37" diaginertia="{inertia}"/>
<geom type="mesh" mesh="cube" friction="{friction} 0 0" condim="3" solref="{solref}"/></body></worldbody></mujoco>"""
_ARC = np.linspace(0.0, 0.5 * np.pi, 7)  # a rounding as a mesh
_NOISE_P, _NOISE_Q = 3e-5, 2e-4          # m, and per component of a quaternion: white noise of a sample
_JITTER = 0.008                          # of a sampling interval
_QUARTER_TURNS = [Rotation.from_rotvec([quarter * np.pi / 2, 0, 0]) for quarter in range(4)]  # about body x


@dataclass(frozen=True)
class Cube:
    """A cube to be tossed.

    ``shape``: 'sharp', 'round' (edges and corners by ``size`` [m]), 'cut' (plates that end ``size`` before the edges),
    'chamfer' (corners only, ``size`` along each edge) or 'worn' (no two corners alike). ``m_over_i`` (3,) or one value
    [1/m^2] about the centre of mass ``centre`` (3,) [m, body axes from the middle]. ``contact`` [s] and ``damping``
    (ratio): how long the undamped impact lasts, and how much of it is lost (0.2: restitution 0.6; 0.6: 0.3).
    """

    shape: str = "sharp"
    size: float = 0.0
    m_over_i: float | tuple[float, float, float] = 456.8
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    contact: float = 0.006
    damping: float = 0.6
    friction: float = 0.18
    side: float = 0.1048


def cube_vertices(cube: Cube) -> np.ndarray:
    """Vertices (n, 3) [m] whose convex hull the cube is."""
    half, size = 0.5 * cube.side, cube.size
    signs = np.array(list(product((1.0, -1.0), repeat=3)))
    if cube.shape == "round":
        a, b = np.meshgrid(_ARC, _ARC)
        ball = np.stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)], axis=-1).reshape(-1, 3)
        corner = half - size + size * ball
    elif cube.shape == "cut":
        corner = half - size * (1.0 - np.eye(3))
    elif cube.shape == "chamfer":
        corner = half - size * np.eye(3)
    elif cube.shape == "worn":
        rng = np.random.default_rng(5)
        inward = size * rng.uniform(0.0, 1.6, (8, 6, 3))
        inward[:, np.arange(6), np.arange(6) % 3] = 0.0
        return ((half - inward) * signs[:, None]).reshape(-1, 3)
    else:
        corner = np.full((1, 3), half)
    return (corner * signs[:, None]).reshape(-1, 3)


def toss_cube(cube: Cube, tosses: int = 100, seed: int = 0, rate: float = 148.0, samples: int = 70,
              tracking: float = 1.0, session: int | None = None) -> list[np.ndarray]:
    """Recorded tosses (samples, 7) = position of the cube's middle [m], quaternion (w, x, y, z).

    Args:
        tracking: how large the tracker's errors that stay for a toss are (1: 0.4 degrees, 0.3 mm).
        session: tosses after which the body axes are named anew, by quarter turns about x; None: never.
    """
    omega = np.pi / cube.contact
    solref = f"{-omega**2} {-2.0 * cube.damping * omega}"
    inertia = 0.37 / np.broadcast_to(np.asarray(cube.m_over_i, float), (3,))
    model = mujoco.MjModel.from_xml_string(_SCENE.format(
        step=min(2e-4, cube.contact / 25.0), vertices=_text(cube_vertices(cube).ravel()), friction=cube.friction,
        solref=solref, centre=_text(cube.centre), inertia=_text(inertia)))
    data, rng, recorded = mujoco.MjData(model), np.random.default_rng(seed), []
    name = _QUARTER_TURNS[0]
    for index in range(tosses):
        if session and index % session == 0:
            name = _QUARTER_TURNS[rng.integers(4)]
        mujoco.mj_resetData(model, data)
        quaternion, heading = rng.standard_normal(4), rng.uniform(0.0, 2.0 * np.pi)
        data.qpos[:] = [0.0, 0.0, 0.145 + 0.015 * rng.standard_normal(), *quaternion / np.linalg.norm(quaternion)]
        spin = np.array([2.8, 2.8, 0.9]) * rng.standard_normal(3)
        speed = 1.15 + 0.1 * rng.standard_normal()
        data.qvel[:3] = speed * np.cos(heading), speed * np.sin(heading), -0.12 + 0.15 * rng.standard_normal()
        data.qvel[3:] = Rotation.from_quat(data.qpos[[4, 5, 6, 3]]).apply(spin, inverse=True)
        times = (rng.uniform() + np.cumsum(1.0 + _JITTER * rng.standard_normal(samples))) / rate
        rows = np.array([_state_at(model, data, t) for t in times])
        attitude = Rotation.from_quat(rows[:, [4, 5, 6, 3]] + _NOISE_Q * rng.standard_normal((samples, 4)))
        attitude = attitude * Rotation.from_rotvec(np.radians(0.4) * tracking * rng.standard_normal(3)) * name
        lifted = rows[:, :3] + [0.0, 0.0, 3e-4 * tracking * rng.standard_normal()]
        position = lifted + _NOISE_P * rng.standard_normal((samples, 3))
        recorded.append(np.hstack([position, _running_median(attitude)[:, [3, 0, 1, 2]]]))
    return recorded


def _text(values) -> str:
    return " ".join(f"{value:.7g}" for value in values)


def _state_at(model, data, t):
    """Pose of the body's frame at time ``t`` [s]; the last step's motion is taken back to it."""
    while data.time < t:
        mujoco.mj_step(model, data)
    pose = data.qpos.copy()
    pose[:3] -= data.qvel[:3] * (data.time - t)
    return pose


def _running_median(attitude: Rotation) -> np.ndarray:
    """Quaternions (n, 4) after a median of 3 on the rotation vector, which is kept free of jumps by whole turns."""
    vectors = attitude.as_rotvec()
    for before, vector in zip(vectors, vectors[1:]):
        angle = np.linalg.norm(vector)
        turns = np.array([-2, -1, 0, 1, 2])[:, None] * 2.0 * np.pi * vector / max(angle, 1e-9)
        vector += turns[np.argmin(np.linalg.norm(vector + turns - before, axis=1))]
    return Rotation.from_rotvec(median_filter(vectors, size=(3, 1), mode="nearest")).as_quat()
