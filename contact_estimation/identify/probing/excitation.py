"""Excitation signals that make every parameter observable (paper 4, section IV).

Slide back and forth (a reversal tells friction from surface angle), lean the probe against the sliding direction
(rotation about the tip tells its coordinates), and press sinusoidally (a changing deformation tells stiffness). As in the
paper's experiment the first strokes are without rotation; the first rotation starts with the third, at 2.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_estimation.settings import key, positive


@dataclass(frozen=True)
class ExcitationSettings:
    """Shape of the probing motion."""

    speed: float = key(0.03, unit="m/s", check=positive, doc="sliding speed within a stroke")
    stroke_time: float = key(1.25, unit="s", check=positive, doc="duration of a stroke, one direction")
    ramp_time: float = key(0.12, unit="s", check=positive, doc="time to accelerate and to brake")
    dwell_time: float = key(0.12, unit="s", check=positive, doc="rest at each reversal, during which the probe sticks")
    tilt: float = key(0.35, unit="rad", check=positive, doc="lean of the probe against the sliding direction")
    tilt_time: float = key(0.9, unit="s", check=positive, doc="time to lean over, from the start of a stroke")
    first_tilted_stroke: int = key(2, doc="index of the first stroke with rotation; 2 puts it at 2.5 s")
    force: float = key(20.0, unit="N", check=positive, doc="mean normal force")
    force_swing: float = key(9.0, unit="N", check=positive, doc="amplitude of the sinusoidal normal force")
    force_frequency: float = key(1.1, unit="Hz", check=positive, doc="frequency of the sinusoidal normal force")


@dataclass(frozen=True)
class Command:
    """What the excitation asks for at one time: stroke number, speed along it [m/s], lean [rad] and its rate [rad/s], normal
    force [N] and its rate [N/s]."""

    stroke: int
    speed: float
    tilt: float
    tilt_rate: float
    force: float
    force_rate: float


def command(cfg: ExcitationSettings, t: float) -> Command:
    """The excitation at time ``t`` [s] since contact. Even strokes go forward, odd ones back."""
    stroke = int(t / cfg.stroke_time)
    phase = t - stroke * cfg.stroke_time
    direction = 1.0 if stroke % 2 == 0 else -1.0
    rest = min(phase - 0.5 * cfg.dwell_time, cfg.stroke_time - 0.5 * cfg.dwell_time - phase)
    share = np.clip(rest / cfg.ramp_time, 0.0, 1.0)
    speed = direction * cfg.speed * share**2 * (3.0 - 2.0 * share)
    tilt, tilt_rate = _tilt(cfg, stroke, phase, direction)
    omega = 2.0 * np.pi * cfg.force_frequency
    onset = min(t / 0.3, 1.0)  # the first contact is gentle
    return Command(stroke, speed, tilt, tilt_rate, onset * (cfg.force + cfg.force_swing * np.sin(omega * t)),
                   onset * omega * cfg.force_swing * np.cos(omega * t))


def _tilt(cfg, stroke, phase, direction):
    """Lean opposite to the sliding direction, reached from the last stroke's by a half cosine."""
    if stroke < cfg.first_tilted_stroke:
        return 0.0, 0.0
    goal = direction * cfg.tilt
    start = 0.0 if stroke == cfg.first_tilted_stroke else -goal
    x = np.clip(phase / cfg.tilt_time, 0.0, 1.0)
    rate = 0.5 * np.pi / cfg.tilt_time * np.sin(np.pi * x) if x < 1.0 else 0.0
    return start + (goal - start) * 0.5 * (1.0 - np.cos(np.pi * x)), (goal - start) * rate
