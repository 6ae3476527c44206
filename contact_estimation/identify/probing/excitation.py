"""Excitation signals that make every parameter observable (paper 4, section IV).

Slide back and forth (a reversal separates friction from surface angle), lean the probe against the sliding direction
(rotation about the tip reveals its coordinates), and press sinusoidally (a changing deformation reveals stiffness). As
in the paper's experiment the first strokes are without rotation; the first rotation starts with the fourth, at 2.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.settings import key, positive

#: Time [s] over which the force rises, so that the first contact is gentle.
_ONSET = 0.3


@dataclass(frozen=True)
class ExcitationSettings:
    """Shape of the probing motion."""

    speed: float = key(0.03, unit="m/s", check=positive, doc="sliding speed within a stroke")
    stroke_time: float = key(0.8333333, unit="s", check=positive, doc="duration of a stroke, one direction")
    ramp_time: float = key(0.12, unit="s", check=positive, doc="time to accelerate and to brake")
    dwell_time: float = key(0.12, unit="s", check=positive, doc="rest at each reversal, during which the probe sticks")
    tilt: float = key(0.35, unit="rad", check=positive, doc="lean of the probe against the sliding direction")
    tilt_time: float = key(0.7, unit="s", check=positive, doc="time to lean over, from the start of a stroke")
    first_tilted_stroke: int = key(3, check=positive, doc="index of the first stroke with rotation; 3 puts it at 2.5 s")
    force: float = key(19.0, unit="N", check=positive, doc="mean normal force")
    force_swing: float = key(8.0, unit="N", check=positive, doc="amplitude of the sinusoidal normal force")
    force_frequency: float = key(1.1, unit="Hz", check=positive, doc="frequency of the sinusoidal normal force")


@dataclass(frozen=True)
class Command:
    """Reference of the excitation at one time.

    Attributes:
        stroke: number of the stroke.
        speed: along the surface [m/s], positive in even strokes.
        blend: 0 to 1, leads from the last stroke's lean to this one's.
        blend_rate: its rate [1/s].
        force: normal force [N].
        force_rate: its rate [N/s].
    """

    stroke: int
    speed: float
    blend: float
    blend_rate: float
    force: float
    force_rate: float


def stroke_speed(cfg: ExcitationSettings, to_reversal: float) -> float:
    """Return the sliding speed [m/s], ``to_reversal`` [s] before or after the nearest reversal."""
    share = np.clip((to_reversal - 0.5 * cfg.dwell_time) / cfg.ramp_time, 0.0, 1.0)
    return float(cfg.speed * share**2 * (3.0 - 2.0 * share))


def lean_blend(cfg: ExcitationSettings, phase: float) -> float:
    """Return the share (0 to 1) of a stroke's change of lean that is done at ``phase`` [s] since its start."""
    return float(0.5 * (1.0 - np.cos(np.pi * np.clip(phase / cfg.tilt_time, 0.0, 1.0))))


def normal_force(cfg: ExcitationSettings, t: float) -> tuple[float, float]:
    """Return the normal force [N] and its rate [N/s] at ``t`` [s] since contact; the first 0.3 s are gentle."""
    omega = 2.0 * np.pi * cfg.force_frequency
    force = cfg.force + cfg.force_swing * np.sin(omega * t)
    rate = omega * cfg.force_swing * np.cos(omega * t)
    if t < _ONSET:
        force, rate = t / _ONSET * force, t / _ONSET * rate + force / _ONSET
    return float(force), float(rate)


def command(cfg: ExcitationSettings, t: float) -> Command:
    """Return the excitation at ``t`` [s] since contact."""
    stroke = int(t / cfg.stroke_time)
    phase = t - stroke * cfg.stroke_time
    x = np.clip(phase / cfg.tilt_time, 0.0, 1.0)
    return Command(
        stroke,
        direction(stroke) * stroke_speed(cfg, min(phase, cfg.stroke_time - phase)),
        lean_blend(cfg, phase),
        0.5 * np.pi / cfg.tilt_time * np.sin(np.pi * x) if x < 1.0 else 0.0,
        *normal_force(cfg, t),
    )


def direction(stroke: int) -> float:
    """Return the sign of the sliding velocity of a stroke: forth, back, forth, ..."""
    return 1.0 if stroke % 2 == 0 else -1.0


def lean(cfg: ExcitationSettings, stroke: int) -> float:
    """Return the lean [rad] at the end of a stroke, about the axis normal x slide.

    A positive lean is against positive sliding.
    """
    return 0.0 if stroke < cfg.first_tilted_stroke else direction(stroke) * cfg.tilt


def first_rotation_end(cfg: ExcitationSettings) -> float:
    """Return the time [s] at which the first rotation is complete."""
    return cfg.first_tilted_stroke * cfg.stroke_time + cfg.tilt_time


def planar_tilt(cfg: ExcitationSettings, order: Command) -> tuple[float, float]:
    """Return the lean [rad] and its rate [rad/s] in the plane."""
    start, goal = lean(cfg, order.stroke - 1), lean(cfg, order.stroke)
    return start + order.blend * (goal - start), order.blend_rate * (goal - start)


def spatial_tilt(cfg: ExcitationSettings, order: Command) -> np.ndarray:
    """Return the lean as a rotation vector (3,) [rad] in surface axes (x, y tangent, z normal)."""
    start, goal = (
        lean(cfg, k) * np.array([-np.sin(azimuth(k)), np.cos(azimuth(k)), 0.0])
        for k in (order.stroke - 1, order.stroke)
    )
    return np.asarray(start + order.blend * (goal - start))


def azimuth(stroke: int) -> float:
    """Return the direction of positive sliding in the surface [rad]: every pair of strokes turns by a right angle."""
    return 0.5 * np.pi * ((stroke // 2) % 2)
