"""Surfaces of exactly known stiffness and friction, touched by points of the tool.

A force law per surface instead of the engine's contact solver: normal force F = k d + c d' on penetration d, never
pulling; tangential force from a bristle (spring and damper) that slides at the Coulomb limit mu F. The forces are
therefore exactly those of the scenario. Positions [m] and forces [N] are in the base frame; forces act ON the robot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt


@dataclass
class Touch:
    """What one surface does to one point.

    Attributes:
        force: (3,) [N] ON the robot, base axes.
        stiffness: (3,) [N/m] the vector K of papers 1 and 2: along the normal, its norm the stiffness.
        rest: (3,) [m] nearest point of the undeformed surface, base frame.
        penetration: [m], positive in contact.
        closed: whether it touches.
    """

    force: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    penetration: float
    closed: bool


@dataclass
class PointMemory:
    """What one surface remembers of one of the robot's points.

    Attributes:
        bristle: (3,) [m] tangential deflection of the contact.
        hysteresis: share of the Dahl element's largest force, -1 to 1.
    """

    bristle: np.ndarray = field(default_factory=lambda: np.zeros(3))
    hysteresis: float = 0.0

    def clear(self) -> None:
        """Forget the contact."""
        self.bristle[:], self.hysteresis = 0.0, 0.0


class Slab(NamedTuple):
    """A body to draw.

    Attributes:
        rotation: (3, 3), its axes in the base frame.
        position: (3,) [m] of its centre.
        size: (3,) [m] edges.
    """

    rotation: np.ndarray
    position: np.ndarray
    size: np.ndarray


#: [m] An endless face is drawn this far to each side; thickness of a face and of a thin one; an anchor.
_EXTENT, _THICK, _THIN, _ANCHOR = 0.15, 0.02, 0.008, 0.04


class Surface(Protocol):
    """A surface at ``point`` (3,) [m]; the caller keeps its memory of each of the robot's points."""

    name: str
    point: np.ndarray

    def touch(self, point: np.ndarray, velocity: np.ndarray, memory: PointMemory, step: float) -> Touch:
        """Return what acts on one of the robot's points.

        Args:
            point: (3,) [m] of the robot, base frame.
            velocity: (3,) [m/s] of it.
            memory: of this point; changed in place.
            step: [s].
        """

    def slab(self) -> Slab:
        """Return the body that is drawn for it."""


def coulomb(
    tangential_velocity: np.ndarray, bristle: np.ndarray, limit: float, stiffness: float, damping: float, step: float
) -> np.ndarray:
    """Tangential force (3,) [N] of a bristle that is stretched by sliding and slips at ``limit`` [N].

    Args:
        tangential_velocity: (3,) [m/s].
        bristle: (3,) [m]; updated in place.
        limit: largest force [N].
        stiffness: [N/m].
        damping: [Ns/m].
        step: [s].
    """
    bristle += step * tangential_velocity
    force = -stiffness * bristle - damping * tangential_velocity
    norm = float(np.sqrt(force @ force))
    if norm > limit:
        force *= limit / norm
        bristle[:] = -(force + damping * tangential_velocity) / stiffness
        stretch = float(np.sqrt(bristle @ bristle))
        if stretch * stiffness > limit:
            bristle *= limit / (stretch * stiffness)
    return force


class Face:
    """A flat face: a plane through ``point`` with outward unit ``normal``, optionally bounded.

    Args:
        name: used in truth and errors.
        point: of the plane (3,) [m], base frame.
        normal: outward, unit length (3,), base frame.
        stiffness: [N/m].
        damping: [Ns/m].
        friction: Coulomb coefficient.
        tangential: bristle stiffness as a share of ``stiffness``.
        bounds: list of (direction (3,), length [m]): the face exists where direction . (x - point) <= length.
        depth: penetration beyond which the face has no say (the other side of a thin wall) [m].
        hysteresis: force [N] and length [m] of a Dahl element in parallel with the spring; 0 leaves a pure
            spring-damper.
        stiffening: growth of the stiffness with penetration [N/m^2].
    """

    def __init__(
        self,
        name: str,
        point: npt.ArrayLike,
        normal: npt.ArrayLike,
        stiffness: float,
        damping: float = 0.0,
        friction: float = 0.0,
        tangential: float = 0.7,
        bounds: Iterable[tuple[npt.ArrayLike, float]] = (),
        depth: float = np.inf,
        hysteresis: tuple[float, float] = (0.0, 1e-3),
        stiffening: float = 0.0,
    ) -> None:
        self.name, self.point = name, np.array(point, float)
        self.normal = np.array(normal, float) / np.linalg.norm(normal)
        self.stiffness, self.damping, self.friction = float(stiffness), float(damping), float(friction)
        self.tangential = tangential * self.stiffness
        self.bounds = [(np.array(direction, float), float(length)) for direction, length in bounds]
        self.depth, self.stiffening = depth, float(stiffening)
        self._dahl_force, self._dahl_length = hysteresis

    def touch(self, point: np.ndarray, velocity: np.ndarray, memory: PointMemory, step: float) -> Touch:
        """Return what acts on one of the robot's points."""
        offset = point - self.point
        height = float(self.normal @ offset)
        rest = point - height * self.normal
        inside = -self.depth < height <= 0.0 and all(direction @ offset <= length for direction, length in self.bounds)
        stiffness = (self.stiffness + 2.0 * self.stiffening * max(-height, 0.0)) * self.normal
        if not inside:
            memory.clear()
            return Touch(np.zeros(3), stiffness, rest, -height, False)
        rate = -float(self.normal @ velocity)
        pressure = self.stiffness * -height + self.stiffening * height * height + self.damping * rate
        if self._dahl_force > 0:
            move = step * rate / self._dahl_length
            goal = 1.0 if move > 0 else -1.0
            memory.hysteresis = goal + (memory.hysteresis - goal) * np.exp(-abs(move))
            # The element is an internal friction of the pressed material: it cannot exceed what presses it.
            pressure += memory.hysteresis * min(self._dahl_force, 0.5 * max(pressure, 0.0))
        pressure = max(pressure, 0.0)
        force = pressure * self.normal
        if self.friction > 0:
            slide, bristle = velocity + rate * self.normal, memory.bristle
            bristle -= (bristle @ self.normal) * self.normal
            # Tangential damping as critical as the normal one, which keeps a stuck point from ringing.
            force = force + coulomb(slide, bristle, self.friction * pressure, self.tangential, self.damping, step)
        return Touch(force, stiffness, rest, -height, True)

    def slab(self) -> Slab:
        """Return a plate below the face, as far as its bounds reach along the plate's axes."""
        side = np.cross(np.eye(3)[int(np.argmin(np.abs(self.normal)))], self.normal)
        side /= np.linalg.norm(side)
        axes = np.column_stack([np.cross(side, self.normal), side, self.normal])
        low, high = np.full(2, -_EXTENT), np.full(2, _EXTENT)
        for direction, length in self.bounds:
            along = axes[:, :2].T @ direction
            k = int(np.argmax(np.abs(along)))
            if abs(along[k]) < 0.3:
                continue  # it cuts the face obliquely
            end = length / along[k]
            low[k], high[k] = (low[k], min(high[k], end)) if along[k] > 0 else (max(low[k], end), high[k])
        thickness = _THIN if self.depth < _THICK else _THICK
        centre = self.point + axes[:, :2] @ (0.5 * (low + high)) - 0.5 * thickness * self.normal
        return Slab(axes, centre, np.array([*(high - low), thickness]))


class Anchor:
    """A point held by springs: a hinge or a pivot (two or three of the paper's contacts in parallel; paper 2, 6.3.2).

    Args:
        name: in reports.
        point: (3,) rest position [m], base frame.
        stiffness: (3,) [N/m] along the base axes; 0 leaves a direction free.
        damping: [Ns/m] in the held directions.

    Attributes:
        holds: whether it holds the point; an open one exerts no force.
    """

    def __init__(self, name: str, point: npt.ArrayLike, stiffness: npt.ArrayLike, damping: float = 0.0) -> None:
        self.name, self.point, self.holds = name, np.array(point, float), True
        stiffness = np.array(stiffness, float)
        self.matrix = np.diag(stiffness)
        self._damper = np.diag(np.where(stiffness > 0, float(damping), 0.0))
        self._at_rest = stiffness.max() * stiffness / max(np.linalg.norm(stiffness), 1e-12)

    def touch(self, point: np.ndarray, velocity: np.ndarray, memory: PointMemory, step: float) -> Touch:
        """Return what acts on one of the robot's points; arguments as of :class:`Surface`."""
        offset = point - self.point
        if not self.holds:
            return Touch(np.zeros(3), self._at_rest, self.point.copy(), -float(np.linalg.norm(offset)), False)
        spring = -self.matrix @ offset
        # The vector K of the one contact that pulls like this: along the force, its stiffness over the displacement
        # there.
        along, size = abs(float(spring @ offset)), float(np.linalg.norm(spring))
        stiffness = spring * (size / along) if along > 1e-15 else self._at_rest
        force = spring - self._damper @ velocity
        return Touch(force, stiffness, self.point.copy(), float(np.linalg.norm(offset)), True)

    def slab(self) -> Slab:
        """Return a cube at the point; a rod along the axis of a hinge."""
        free = np.diag(self.matrix) == 0.0
        size = np.where(free, 6.0, 0.6) * _ANCHOR if free.sum() == 1 else np.full(3, _ANCHOR)
        return Slab(np.eye(3), self.point, size)
