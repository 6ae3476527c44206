"""Excitation signals that make every parameter observable (paper 4, section IV).

Slide back and forth (a reversal tells friction from surface angle), lean the probe against the sliding direction
(rotation about the tip tells its coordinates), and press sinusoidally (a changing deformation tells stiffness). As in
the paper's experiment the first strokes are without rotation; the first rotation starts with the fourth, at 2.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.settings import key, positive


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
    """What the excitation asks for at one time.

    ``stroke`` is the stroke's number; ``speed`` [m/s] along the surface, positive in even strokes; ``blend`` in [0,
    1] and ``blend_rate`` [1/s] lead from the last stroke's lean to this one's; ``force`` [N] and ``force_rate`` [N/s]
    are normal.
    """

    stroke: int
    speed: float
    blend: float
    blend_rate: float
    force: float
    force_rate: float


def command(cfg: ExcitationSettings, t: float) -> Command:
    """The excitation at time ``t`` [s] since contact."""
    stroke = int(t / cfg.stroke_time)
    phase = t - stroke * cfg.stroke_time
    rest = min(phase - 0.5 * cfg.dwell_time, cfg.stroke_time - 0.5 * cfg.dwell_time - phase)
    share = np.clip(rest / cfg.ramp_time, 0.0, 1.0)
    x = np.clip(phase / cfg.tilt_time, 0.0, 1.0)
    omega = 2.0 * np.pi * cfg.force_frequency
    onset = min(t / 0.3, 1.0)  # the first contact is gentle
    return Command(
        stroke,
        direction(stroke) * cfg.speed * share**2 * (3.0 - 2.0 * share),
        0.5 * (1.0 - np.cos(np.pi * x)),
        0.5 * np.pi / cfg.tilt_time * np.sin(np.pi * x) if x < 1.0 else 0.0,
        onset * (cfg.force + cfg.force_swing * np.sin(omega * t)),
        onset * omega * cfg.force_swing * np.cos(omega * t),
    )


def direction(stroke: int) -> float:
    """Sign of the sliding velocity of a stroke: forth, back, forth, ..."""
    return 1.0 if stroke % 2 == 0 else -1.0


def lean(cfg: ExcitationSettings, stroke: int) -> float:
    """Lean [rad] at the end of a stroke, about the axis normal x slide: positive leans the probe against positive
    sliding."""
    return 0.0 if stroke < cfg.first_tilted_stroke else direction(stroke) * cfg.tilt


def first_rotation_end(cfg: ExcitationSettings) -> float:
    """Time [s] at which the first rotation is complete."""
    return cfg.first_tilted_stroke * cfg.stroke_time + cfg.tilt_time


def planar_tilt(cfg: ExcitationSettings, order: Command) -> tuple[float, float]:
    """Lean [rad] and its rate [rad/s] in the plane."""
    start, goal = lean(cfg, order.stroke - 1), lean(cfg, order.stroke)
    return start + order.blend * (goal - start), order.blend_rate * (goal - start)


def spatial_tilt(cfg: ExcitationSettings, order: Command) -> np.ndarray:
    """Lean as a rotation vector (3,) [rad] in surface axes (x, y tangent, z normal)."""
    start, goal = (
        lean(cfg, k) * np.array([-np.sin(azimuth(k)), np.cos(azimuth(k)), 0.0])
        for k in (order.stroke - 1, order.stroke)
    )
    return start + order.blend * (goal - start)


def azimuth(stroke: int) -> float:
    """Direction of positive sliding in the surface [rad]: every pair of strokes turns by a right angle."""
    return 0.5 * np.pi * ((stroke // 2) % 2)
