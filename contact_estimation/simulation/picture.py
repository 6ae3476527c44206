"""Pictures of a scenario: arm, tool, surfaces and contact force, rendered by MuJoCo without a display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import mujoco
import numpy as np

from contact_estimation.simulation.model import build_spec
from contact_estimation.simulation.session import Simulation
from contact_estimation.simulation.surfaces import Anchor

#: Red, green, blue, opacity, each of 0 to 1.
Colour = tuple[float, ...]
#: Start (3,) [m], vector (3,) [m] and colour of each arrow.
Arrows: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray, tuple[float, ...]]]

_SURFACE = ((0.35, 0.60, 0.80, 0.75), (0.85, 0.55, 0.20, 0.75), (0.40, 0.65, 0.40, 0.75))
_TOOL, _FORCE = (0.15, 0.15, 0.15, 1.0), (0.84, 0.15, 0.15, 1.0)


def render(
    simulation: Simulation, width: int = 480, height: int = 360, arrow: float = 0.2, arrows: Arrows | None = None
) -> np.ndarray:
    """Picture (height, width, 3) uint8 of the simulation now; the force is an arrow of the length ``arrow`` [m].

    ``arrows``, where given, are drawn instead: start (3,) [m], vector (3,) [m] and colour of each, base frame.

    Needs OpenGL without a display: set MUJOCO_GL=egl (or osmesa) before the first import of mujoco.
    """
    plant = simulation.plant
    spec = build_spec(simulation.arm, plant.timestep, visuals=True)
    spec.visual.headlight.ambient = (0.6, 0.6, 0.6)
    getattr(spec.visual, "global").offwidth, getattr(spec.visual, "global").offheight = width, height
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(1.0, 1.0, 1.0),
        rgb2=(0.90, 0.92, 0.95),
        width=64,
        height=384,
    )
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=(2, 2, 0.1),
        pos=(0, 0, -0.15),
        rgba=(0.93, 0.93, 0.93, 1),
        contype=0,
        conaffinity=0,
    )
    for i, surface in enumerate(plant.surfaces):
        _add_surface(spec, surface, _SURFACE[i % len(_SURFACE)])
    points = [plant.point(i) for i in range(len(simulation.scenario.tool_points))]
    for point in points:
        _bar(spec, plant.position, point, 0.008, _TOOL)
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.011, 0, 0), pos=point, rgba=_TOOL, contype=0, conaffinity=0
        )
    azimuth, elevation = (215.0 if points[0][1] < -0.1 else 130.0), -18.0
    a, e = np.radians([azimuth, elevation])
    view = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    force = plant.rotation @ plant.wrench_tcp[:3]
    if arrows is None and np.linalg.norm(force) > 0.5:
        arrows = [(plant.truth()["contact_point"], arrow * force / np.linalg.norm(force), _FORCE)]
    for start, vector, colour in arrows or ():  # nearer to the eye by what the arm is thick, or it would hide them
        _arrow(spec, start - 0.15 * view, vector, colour)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = plant.q
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = 0.85 * np.array(points[0]) + [0.0, 0.0, 0.10]
    camera.distance, camera.azimuth, camera.elevation = 1.1, azimuth, elevation
    with mujoco.Renderer(model, height, width) as renderer:
        renderer.update_scene(data, camera)
        return np.array(renderer.render())


def _bar(spec: mujoco.MjSpec, start: np.ndarray, end: np.ndarray, radius: float, colour: Colour) -> None:
    if np.linalg.norm(np.subtract(end, start)) > 1e-3:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=(*start, *end),
            size=(radius, 0, 0),
            rgba=colour,
            contype=0,
            conaffinity=0,
        )


def _arrow(spec: mujoco.MjSpec, start: np.ndarray, along: np.ndarray, colour: Colour) -> None:
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, along / np.linalg.norm(along))
    length, head = np.linalg.norm(along), 0.05
    shaft_end = np.array(start) + along * (1.0 - head / length)
    _bar(spec, start, shaft_end, 0.007, colour)
    for k in range(10):  # a cone of discs: the engine has no cone to put into a model
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=(0.018 * (1.0 - k / 10), head / 20, 0),
            pos=shaft_end + along / length * head * (k + 0.5) / 10,
            quat=quat,
            rgba=colour,
            contype=0,
            conaffinity=0,
        )


def _add_surface(spec: mujoco.MjSpec, surface: Any, colour: Colour) -> None:
    if isinstance(surface, Anchor):
        held = np.flatnonzero(np.diag(surface.matrix) == 0)
        if len(held) == 1:  # a hinge: its axis is the free direction
            axis = 0.12 * np.eye(3)[held[0]]
            _bar(spec, surface.point - axis, surface.point + axis, 0.012, colour)
        else:
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE,
                size=(0.02, 0, 0),
                pos=surface.point,
                rgba=colour,
                contype=0,
                conaffinity=0,
            )
        return
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, surface.normal)
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, quat)
    axes = rotation.reshape(3, 3)
    low, high = np.full(2, -0.15), np.full(2, 0.15)
    for direction, length in surface.bounds:
        along = axes[:, :2].T @ direction
        k = int(np.argmax(np.abs(along)))
        if abs(along[k]) < 0.3:
            continue
        if along[k] > 0:
            high[k] = min(high[k], length / along[k])
        else:
            low[k] = max(low[k], length / along[k])
    thickness = 0.004 if surface.depth < 0.02 else 0.01
    centre = surface.point + axes[:, :2] @ (0.5 * (low + high)) - thickness * surface.normal
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(*(0.5 * (high - low)), thickness),
        pos=centre,
        quat=quat,
        rgba=colour,
        contype=0,
        conaffinity=0,
    )
