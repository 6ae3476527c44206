"""Settings of a scenario.

Places are given relative to the first tool point at the start, so that one file serves every arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact_estimation.control.admittance import AdmittanceSettings
from contact_estimation.control.impedance import ImpedanceSettings
from contact_estimation.exceptions import ConfigError
from contact_estimation.robot import Arm
from contact_estimation.robot.posture import ready_posture
from contact_estimation.settings import key, load_task, non_negative, positive, task_names


@dataclass(frozen=True, kw_only=True)
class BoundSettings:
    """A face ends where ``direction`` . (x - centre of the face) exceeds ``length``."""

    direction: list[float] = key(doc="unit vector in base axes", length=3)
    length: float = key(doc="extent from the face's centre along the direction", unit="m")


@dataclass(frozen=True, kw_only=True)
class SurfaceSettings:
    """One surface of known stiffness and friction."""

    name: str = key(doc="name of the surface")
    kind: str = key(
        "face",
        doc="face: pushes where it is penetrated; anchor: holds a point with springs",
        choices=("face", "anchor"),
    )
    offset: list[float] = key(
        [0.0, 0.0, 0.0], doc="centre, from the first tool point at the start, base axes", unit="m", length=3
    )
    normal: list[float] = key([0.0, 0.0, 1.0], doc="outward normal of a face, base axes", length=3)
    stiffness: float = key(doc="stiffness", unit="N/m", check=positive)
    stiffness_axes: list[float] = key(
        [1.0, 1.0, 1.0],
        doc="share of the stiffness along each base axis, of an anchor; 0 is free",
        check=non_negative,
        length=3,
    )
    damping: float = key(50.0, doc="damping", unit="Ns/m", check=non_negative)
    friction: float = key(0.0, doc="Coulomb friction coefficient of a face", check=non_negative)
    tangential: float = key(0.7, doc="tangential over normal stiffness of a face while it sticks", check=positive)
    depth: float = key(
        0.05, doc="penetration beyond which a face has no effect (the other side of a body)", unit="m", check=positive
    )
    bounds: list[BoundSettings] = key([], doc="where a face ends; endless without any")
    hysteresis: float = key(
        0.0, doc="internal friction of the material, at most half of what presses it", unit="N", check=non_negative
    )
    hysteresis_length: float = key(
        5.0e-4, doc="travel over which the internal friction builds up", unit="m", check=positive
    )
    stiffening: float = key(
        0.0, doc="growth of the force with the square of the penetration", unit="N/m^2", check=non_negative
    )


@dataclass(frozen=True, kw_only=True)
class SegmentSettings:
    """One piece of the motion of the first tool point."""

    duration: float = key(doc="how long it takes", unit="s", check=positive)
    move: list[float] = key(
        [0.0, 0.0, 0.0], doc="where it ends, from the tool point's start, base axes", unit="m", length=3
    )
    turn: list[float] = key(
        [0.0, 0.0, 0.0],
        doc="attitude at its end: rotation vector from the start, base axes, about the tool point",
        unit="rad",
        length=3,
    )
    force: list[float] | None = key(
        None, doc="force the robot shall exert, base axes (admittance-controlled arms)", unit="N", length=3
    )
    free_rotation: bool = key(False, doc="measured torque turns the tool (admittance-controlled arms)")
    shape: str = key(
        "smooth", doc="smooth: minimum jerk; linear: constant speed as when jogging", choices=("smooth", "linear")
    )


@dataclass(frozen=True, kw_only=True)
class PushSettings:
    """A push that no surface explains, of a hand for example: a force that rises, stays and falls."""

    name: str = key(doc="what it is called in reports")
    start: float = key(doc="when it begins", unit="s", check=non_negative)
    duration: float = key(doc="how long it lasts, rise and fall included", unit="s", check=positive)
    rise: float = key(0.2, doc="time in which it rises, and falls", unit="s", check=positive)
    force: list[float] = key(doc="force on the robot, base axes", unit="N", length=3)
    joint: int = key(
        0, doc="the joint, counted from 1 at the base, whose link is pushed; 0: the TCP", check=non_negative
    )
    point: list[float] = key(
        [0.0, 0.0, 0.0], doc="where, in the frame of that joint, or of the TCP", unit="m", length=3
    )

    def force_at(self, t: float) -> np.ndarray:
        """Force (3,) [N] on the robot at the time ``t`` [s], base axes."""
        share = min(t - self.start, self.start + self.duration - t) / self.rise
        return np.asarray(np.sin(0.5 * np.pi * min(max(share, 0.0), 1.0)) ** 2 * np.array(self.force, float))


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings:
    """A task of an arm among surfaces."""

    title: str = key(doc="one line that describes the scenario")
    source: str = key("", doc="paper and section it comes from")
    robot: str = key(doc="robot used when none is asked for")
    start: dict[str, list[float]] = key(
        {}, doc="joint positions at the start, by robot; others start in their ready posture", unit="rad"
    )
    tool_points: list[list[float]] = key([[0.0, 0.0, 0.0]], doc="points of the tool that touch, TCP frame", unit="m")
    surfaces: list[SurfaceSettings] = key(doc="what can be touched")
    placement_error: list[float] = key(
        [0.0, 0.0, 0.0], doc="displacement of every surface from its assumed place, base axes", unit="m", length=3
    )
    motion: list[SegmentSettings] = key(doc="segments, in order; the last pose is held")
    pushes: list[PushSettings] = key([], doc="pushes in addition to the surfaces")
    controller: dict[str, str] = key(
        {}, doc="impedance or admittance, by robot; the default is in the robot's own YAML"
    )
    impedance: ImpedanceSettings = key(ImpedanceSettings(), doc="gains of the Cartesian impedance")
    admittance: AdmittanceSettings = key(AdmittanceSettings(), doc="gains of the admittance")
    rate: float = key(500.0, doc="rate of the samples", unit="Hz", check=positive)
    control_rate: float = key(1000.0, doc="rate of the inner control loop", unit="Hz", check=positive)
    timestep: float = key(1.0e-3, doc="integration step", unit="s", check=positive)

    def __post_init__(self) -> None:
        for robot, word in self.controller.items():
            if word not in ("impedance", "admittance"):
                raise ConfigError(f"controller.{robot} is '{word}'; expected impedance or admittance")
        for what, period in (("rate", 1.0 / self.rate), ("control_rate", 1.0 / self.control_rate)):
            if period < self.timestep * 0.999 or abs(period / self.timestep - round(period / self.timestep)) > 1e-6:
                raise ConfigError(
                    f"{what}: its period must be a multiple of timestep ({self.timestep} s), found {period} s"
                )
        if self.rate > self.control_rate * (1 + 1e-9):
            raise ConfigError(f"rate ({self.rate} Hz) must not exceed control_rate ({self.control_rate} Hz)")
        if any(len(point) != 3 for point in self.tool_points) or not self.tool_points:
            raise ConfigError(f"tool_points must hold points [x, y, z], found {self.tool_points}")

    def for_robot(self, arm: Arm) -> tuple[np.ndarray, str]:
        """Joint positions (n,) [rad] at the start, and controller (``impedance`` or ``admittance``) of ``arm``."""
        start = self.start.get(arm.name)
        q = ready_posture(arm) if start is None else np.array(start, float)
        return q, self.controller.get(arm.name, arm.settings.control)

    @property
    def duration(self) -> float:
        """Time the motion takes [s]."""
        return sum(segment.duration for segment in self.motion)


def load_scenario(name: str, folder: Path | str | None = None) -> ScenarioSettings:
    """Load a shipped scenario by name, or one from a YAML file.

    Args:
        name: of the scenario, or path.
        folder: profile of a robot; its scenarios come first.

    Raises:
        ConfigError: there is no such scenario, or the file has an error.
    """
    return load_task(ScenarioSettings, "scenario", name, folder)


def scenario_names() -> list[str]:
    """Names of the shipped scenarios."""
    return task_names("scenario")
